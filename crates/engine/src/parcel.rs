//! One object of the API server that is kept for long: packed as its text while nobody looks at it.
//!
//! A custom resource as a type has room for every field that there is, and a logbook is a heap of small texts; of most clusters neither is
//! looked at more than a few times a minute. What is packed is unpacked for each who asks, and stays packed.

use std::sync::Arc;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_core::packing::{pack_text, unpack_text};

use crate::caches::version_of;

/// An object, and what it is compared by.
pub(crate) struct Parcel<T> {
    pub(crate) name: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) version: u64,
    content: Content<T>,
}

enum Content<T> {
    Loose(Arc<T>),
    Packed(Box<[u8]>),
}

impl<T: Resource + Serialize + DeserializeOwned> Parcel<T> {
    pub(crate) fn new(object: T) -> Self {
        let metadata = object.meta();
        let (name, uid, version) = (metadata.name.clone(), metadata.uid.clone(), version_of(metadata));
        Self { name, uid, version, content: Content::Loose(Arc::new(object)) }
    }

    /// The object.
    #[expect(clippy::expect_used, reason = "it was unpacked once before it was kept, and there is no other way to have it")]
    pub(crate) fn get(&self) -> Arc<T> {
        match &self.content {
            Content::Loose(object) => Arc::clone(object),
            Content::Packed(bytes) => Arc::new(unpack_text(bytes).expect("what was packed can be unpacked")),
        }
    }

    /// Makes it small, if it comes out again as it went in.
    pub(crate) fn pack(&mut self) {
        let Content::Loose(object) = &self.content else { return };
        let Some(bytes) = pack_text(&**object) else { return };
        if unpack_text::<T>(&bytes).and_then(|again| pack_text(&again)).as_ref() == Some(&bytes) {
            self.content = Content::Packed(bytes.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_packed_is_small_and_the_same() {
        let text = "line\n".repeat(1000);
        let object = json!({ "metadata": { "uid": "u", "resourceVersion": "7" }, "data": { "a": text } });
        let object: ConfigMap = serde_json::from_value(object).unwrap();
        let mut parcel = Parcel::new(object.clone());
        assert_eq!((parcel.uid.as_deref(), parcel.version), (Some("u"), 7));
        assert!(Arc::ptr_eq(&parcel.get(), &parcel.get()));
        parcel.pack();
        assert!(matches!(&parcel.content, Content::Packed(bytes) if bytes.len() < 200));
        assert_eq!(*parcel.get(), object);
    }
}
