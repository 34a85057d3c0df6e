//! Values as few bytes, for what is kept for long and looked at seldom.
//!
//! The bytes never leave the process: what was packed by one version is never unpacked by another.

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// More than this saves hardly a byte, and takes its time.
const LEVEL: u8 = 6;

/// Packs a value. Nothing when it has a form that cannot be packed.
pub fn pack<T: Serialize>(value: &T) -> Option<Vec<u8>> {
    Some(compress_to_vec(&postcard::to_allocvec(value).ok()?, LEVEL))
}

/// Unpacks a value that was packed as the same type.
pub fn unpack<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(&decompress_to_vec(bytes).ok()?).ok()
}

/// Packs a value as its text: for types whose form depends on the format.
pub fn pack_text<T: Serialize>(value: &T) -> Option<Vec<u8>> {
    Some(compress_to_vec(&serde_json::to_vec(value).ok()?, LEVEL))
}

/// Unpacks a value that was packed as its text.
pub fn unpack_text<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(&decompress_to_vec(bytes).ok()?).ok()
}
