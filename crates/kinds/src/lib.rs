//! What each kind of cluster decides: one folder per kind, each with what is observed, what is valid, what is built, what is
//! planned and what is told.
//!
//! Pure: no client, no clock, no randomness, no logging.

mod claim_templates;
mod fields;
pub mod mysql;
pub mod replicated;
pub mod tidb;
