//! The crash harness. It runs the real engine in process, on simulated time, on the fake API server and on a simulated world of
//! members, and perturbs it: it kills the controller around each call that changes something, deceives it about the past, loses its
//! events and answers, and lets late requests of a dead controller arrive. The end must be the same as without all that.
//!
//! Nothing here knows a kind: a kind adds a [`kit::World`] and its scenarios (see `replicated`, `mysql` and `tidb`).

pub mod cases;
pub mod digest;
pub mod director;
pub mod judge;
pub mod kit;
pub mod members;
pub mod mysql;
pub mod play;
pub mod replicated;
pub mod run;
pub mod sabotage;
pub mod tidb;
