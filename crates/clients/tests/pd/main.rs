//! The client of PD beside real PDs: what it reads, and each task.
//!
//! `cargo xtask test` runs them, with the pd-server that the lab builds (`crates/lab/tools/pd`). Where nobody names a server they are ignored:
//!
//! `WINDLASS_PD_SERVER=…/pd-server cargo test --workspace --test pd -- --ignored --test-threads 1`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod members;
mod server;
mod stores;
mod tls;
mod world;
