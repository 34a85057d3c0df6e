//! What `TidbCluster` adds to the harness: a simulated PD with stores whose regions move, in pods that come and go, and its scenarios.

mod inner;
mod places;
mod quay;
mod scenarios;
mod script;

pub use quay::Quay;
