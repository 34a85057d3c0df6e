//! What `ReplicatedStatefulSet` adds to the harness: a synchronously replicated database behind hooks, clients that write to it,
//! and its scenarios.

mod database;
mod harbour;
mod scenarios;

pub use harbour::Harbour;
