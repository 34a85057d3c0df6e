//! The ring of input and output around the pure decisions: watches, passes, execution, reports. The only writer.
//!
//! It runs every kind through [`windlass_core::kind::Kind`] and knows none of them.

mod actor;
mod adoption;
mod authority;
mod caches;
mod calls;
mod clock;
mod controller;
mod events;
mod execute;
mod fence;
mod finalizer;
mod lease;
mod logbook;
mod metrics;
mod neighbours;
mod options;
mod own_metrics;
mod ownership;
mod parcel;
mod pass;
mod reclaim;
mod rest;
mod secrets;
mod server;
mod status;
mod take;
mod tell;

pub use authority::{Authority, AuthorityError, Certified};
pub use caches::Caches;
pub use calls::Calls;
pub use clock::Clock;
pub use controller::{Controller, Settings};
pub use fence::Fence;
pub use lease::{Election, Overlaps};
pub use metrics::Metrics;
pub use server::{Health, serve};
