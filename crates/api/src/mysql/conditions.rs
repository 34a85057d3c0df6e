//! The types of the conditions in the status of a MySQLCluster, and their reasons.

/// The data is there: nothing is being cloned or restored.
pub const INITIALIZED: &str = "Initialized";
/// The primary takes writes. Unknown while clustering is stopped.
pub const AVAILABLE: &str = "Available";
/// The primary takes writes and all replicas follow. Unknown while clustering is stopped.
pub const HEALTHY: &str = "Healthy";
/// All pods are there, ready and of the newest revision.
pub const STATEFUL_SET_READY: &str = "StatefulSetReady";
/// The last reconciliation met no error.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Backups are taken as the policy says. No part of the API as others serve it.
pub const BACKUP_ACTIVE: &str = "BackupActive";
/// False while reconciliation is stopped.
pub const RECONCILIATION_ACTIVE: &str = "ReconciliationActive";
/// False while clustering is stopped.
pub const CLUSTERING_ACTIVE: &str = "ClusteringActive";

/// Every type that the API is known to have, in the order in which they are shown.
pub const TYPES: [&str; 7] =
    [INITIALIZED, AVAILABLE, HEALTHY, STATEFUL_SET_READY, RECONCILE_SUCCESS, RECONCILIATION_ACTIVE, CLUSTERING_ACTIVE];

/// The reasons of the conditions, except those that are a [`State`].
pub mod reasons {
    /// Of [`STATEFUL_SET_READY`](super::STATEFUL_SET_READY): it is.
    pub const STATEFUL_SET_READY: &str = "StatefulSetReady";
    /// Of [`STATEFUL_SET_READY`](super::STATEFUL_SET_READY): it is not.
    pub const STATEFUL_SET_NOT_READY: &str = "StatefulSetNotReady";
    /// Of [`STATEFUL_SET_READY`](super::STATEFUL_SET_READY): there is none.
    pub const STATEFUL_SET_NOT_FOUND: &str = "StatefulSetNotFound";
    /// Of [`STATEFUL_SET_READY`](super::STATEFUL_SET_READY): nobody knows. The spelling is what scripts look for.
    pub const FAILED_TO_GET_STATEFUL_SET: &str = "FaildToGetStatefulSet";
    /// Of [`RECONCILE_SUCCESS`](super::RECONCILE_SUCCESS): no error.
    pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
    /// Of [`RECONCILE_SUCCESS`](super::RECONCILE_SUCCESS): an error.
    pub const RECONCILE_FAILED: &str = "ReconcileFailed";
    /// Of [`RECONCILIATION_ACTIVE`](super::RECONCILIATION_ACTIVE): as always.
    pub const RECONCILIATION_ACTIVE: &str = "ReconciliationActive";
    /// Of [`RECONCILIATION_ACTIVE`](super::RECONCILIATION_ACTIVE): stopped.
    pub const RECONCILIATION_INACTIVE: &str = "ReconciliationInactive";
    /// Of [`CLUSTERING_ACTIVE`](super::CLUSTERING_ACTIVE): as always.
    pub const CLUSTERING_ACTIVE: &str = "ClusteringActive";
    /// Of [`CLUSTERING_ACTIVE`](super::CLUSTERING_ACTIVE): stopped.
    pub const CLUSTERING_INACTIVE: &str = "ClusteringInactive";
}

/// The state that a cluster was found in: the reason of [`INITIALIZED`], [`AVAILABLE`] and [`HEALTHY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// None of the others: the cluster is being set up, or not all that it needs is known.
    Incomplete,
    /// The primary takes writes, and all replicas follow.
    Healthy,
    /// Data of a replication source is being copied.
    Cloning,
    /// Data of a backup is being restored.
    Restoring,
    /// The primary takes writes, and some replica does not follow.
    Degraded,
    /// The primary is gone, and enough replicas are there to choose another one.
    Failed,
    /// The primary is gone, and too few replicas are there.
    Lost,
    /// All instances are stopped because the user said so.
    Offline,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Incomplete,
        Self::Healthy,
        Self::Cloning,
        Self::Restoring,
        Self::Degraded,
        Self::Failed,
        Self::Lost,
        Self::Offline,
    ];

    /// The state as a reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "Incomplete",
            Self::Healthy => "Healthy",
            Self::Cloning => "Cloning",
            Self::Restoring => "Restoring",
            Self::Degraded => "Degraded",
            Self::Failed => "Failed",
            Self::Lost => "Lost",
            Self::Offline => "Offline",
        }
    }
}
