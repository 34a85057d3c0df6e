//! The controller's client beside real servers: looks, and each task.
//!
//! `cargo xtask test` runs them. How to run one of them by hand is said at the head of `crates/operator/tests/mysql`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod cloning;
mod closing;
mod comparing;
mod following;
mod leading;
mod looking;
mod replicating;
mod server;
mod watching;
mod world;
