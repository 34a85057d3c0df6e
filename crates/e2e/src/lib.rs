//! What the tests on the lab share: a stage to play on, waiting, the audit log, and a light cluster.
//!
//! Nothing here decides whether a test passes; helpers return errors that say what was seen. A lab must be up, with Windlass in it
//! and the images loaded: `cargo xtask test` does that.

pub mod audit;
pub mod cluster;
pub mod dummy;
pub mod front;
pub mod galera;
pub mod helm;
pub mod mysql;
mod operator;
pub mod pauses;
mod place;
pub mod process;
mod stage;
pub mod tidb;
mod trouble;
mod wait;
pub mod writers;

pub use audit::{Audit, Entry};
pub use cluster::{Cluster, condition};
pub use place::{Place, Ran};
pub use stage::{Refusal, Stage};
pub use wait::{LONG, LONGEST, wait_for};
