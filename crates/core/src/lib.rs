//! The decisions that all kinds share: plan, gate, scale, selector, conditions, names.
//!
//! Pure: no client, no clock, no randomness, no logging. Time comes in as a value.

pub mod adoption;
pub mod bookkeeping;
pub mod certificates;
pub mod claim;
pub mod conditions;
pub mod gate;
pub mod kept;
pub mod kind;
pub mod labels;
pub mod lane;
pub mod likeness;
pub mod memory;
pub mod metrics;
pub mod names;
pub mod ordinals;
pub mod outcome;
pub mod packing;
pub mod pairs;
pub mod plan;
pub mod quantity;
pub mod reclaim;
pub mod scale;
pub mod secrets;
pub mod selector;
pub mod shelf;
pub mod step;
pub mod sync;
pub mod telling;
pub mod views;
