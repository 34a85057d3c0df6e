//! Talks to the members of clusters and returns facts.
//!
//! Decides nothing: an answer that could not be had is a fact as well, and what it means is for the kind to say.

pub mod guard;
pub mod hooks;
pub mod http;
mod kept;
pub mod members;
pub mod mysql;
pub mod papers;
pub mod pd;
mod pods;
#[cfg(test)]
mod script;
pub mod tidb;
