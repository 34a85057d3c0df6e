//! The client of PD beside real PDs: what it reads, and each task.
//!
//! They are ignored unless asked for, with WINDLASS_PD_SERVER naming a pd-server. The lab builds one (`crates/lab/tools/pd`).
//!
//! `WINDLASS_PD_SERVER=DIR/pd-server cargo test -p windlass-clients --test pd -- --ignored --test-threads 1`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test says what went wrong by panicking")]

mod members;
mod server;
mod stores;
mod tls;
mod world;
