//! What runs inside a pod of MySQL: `mysql-init` before mysqld starts, `mysql-run` around it, `mysql-agent` beside it.
//!
//! The agent knows one server, its own, and reaches it through its unix socket alone. It decides nothing about the cluster: it
//! prepares the server once, answers probes, rotates the slow log, and clones when the controller asks for it.

pub mod accounts;
mod agent;
mod api;
mod base;
mod calendar;
mod certificates;
mod clone;
pub mod durable;
mod farewell;
pub mod guard;
mod initialise;
pub mod instance;
mod keeper;
mod metrics;
mod plugins;
mod probes;
mod readiness;
mod rotation;
pub mod schedule;
mod session;
pub mod setup;
mod subject;
pub mod surplus;
mod time_zones;

pub use agent::{Settings, Start, run};
