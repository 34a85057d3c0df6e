//! What `MySQLCluster` adds to the harness: simulated servers in pods, clients that write to them, and its scenarios.

mod docks;
mod inner;
mod pods;
mod scenarios;
mod script;

pub use docks::Docks;
