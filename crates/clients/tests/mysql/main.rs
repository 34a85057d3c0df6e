//! The controller's client beside real servers: looks, and each task.
//!
//! They are ignored unless asked for, with WINDLASS_MYSQLD naming a server. How to come by one is said at the head of
//! `crates/operator/tests/mysql`.
//!
//! `WINDLASS_MYSQLD=DIR/usr/sbin/mysqld cargo test -p windlass-clients --test mysql -- --ignored --test-threads 1`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod cloning;
mod closing;
mod following;
mod leading;
mod looking;
mod replicating;
mod server;
mod watching;
mod world;
