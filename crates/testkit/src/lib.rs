//! What the tests of Windlass stand on: a fake API server with scripted faults, the conformance cases that hold it to
//! the real server, and a small world that plays the StatefulSet controller and the kubelet.
//!
//! Only tests, benches and the conformance runs may depend on this crate.

mod apply;
mod calls;
mod clock;
pub mod conformance;

mod defaults;
mod delete;
mod discovery;
mod dispatch;
mod failure;
mod faults;
mod gc;
mod inspect;
mod line;
mod meta;
mod object;
mod patch;
mod path;
mod read;
mod registry;
mod scale;
mod schema;
mod selector;
mod serve;
mod server;
mod state;
mod store;
mod watch;
pub mod world;

mod write;

pub use calls::{Call, Outcome, Verb};
pub use clock::Clock;
pub use faults::{CallMatch, Effect, EventEffect, EventMatch, Faults};
pub use inspect::Store;
pub use line::{Guard, Line, Sighting};
pub use path::Query;
pub use serve::Served;
pub use server::FakeApiServer;
pub use store::ObjectKey;
