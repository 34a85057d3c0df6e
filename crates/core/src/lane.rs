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
    /// The lane; none for what is never paused.
    const LANE: Option<Lane>;
}

/// [`Lane::Resources`] as a type.
#[derive(Clone, Copy, Debug)]
pub enum Resources {}

/// [`Lane::Clustering`] as a type.
#[derive(Clone, Copy, Debug)]
pub enum Clustering {}

/// What no pause holds back: metadata that a hand-over between releases needs, and that restarts nothing.
#[derive(Clone, Copy, Debug)]
pub enum Unpaused {}

impl LaneType for Resources {
    const LANE: Option<Lane> = Some(Lane::Resources);
}

impl LaneType for Clustering {
    const LANE: Option<Lane> = Some(Lane::Clustering);
}

impl LaneType for Unpaused {
    const LANE: Option<Lane> = None;
}
