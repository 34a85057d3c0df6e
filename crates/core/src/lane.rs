//! The two lanes that can be paused apart.

use serde::Serialize;
use strum::{Display, EnumIter, IntoStaticStr};

/// What a step touches: objects of Kubernetes, or the clustering of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Display, EnumIter, IntoStaticStr)]
pub enum Lane {
    /// Services, StatefulSets, disruption budgets, pods: everything that is an object.
    Resources,
    /// Everything that changes what the members are to each other.
    Clustering,
}

/// A lane as a type, so that a permit for one lane is no permit for the other.
pub trait LaneType: Send + Sync + 'static {
    /// The lane.
    const LANE: Lane;
}

/// [`Lane::Resources`] as a type.
#[derive(Clone, Copy, Debug)]
pub enum Resources {}

/// [`Lane::Clustering`] as a type.
#[derive(Clone, Copy, Debug)]
pub enum Clustering {}

impl LaneType for Resources {
    const LANE: Lane = Lane::Resources;
}

impl LaneType for Clustering {
    const LANE: Lane = Lane::Clustering;
}
