//! Field ownership: server-side apply, and the book-keeping of ordinary updates.
//!
//! `topology` knows which lists and maps are one value and which are merged by key; `fields` is a set of owned paths;
//! `walk` computes sets, differences and merges of objects; `managers` reads and writes `metadata.managedFields`.

pub(crate) mod fields;
pub(crate) mod managers;
pub(crate) mod topology;
pub(crate) mod walk;
