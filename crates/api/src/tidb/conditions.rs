//! The conditions in the status of a TidbCluster that users know, and their reasons. The others are those of every kind.

/// All that is asked for is there, up to date and healthy.
pub const READY: &str = "Ready";
/// All that is asked for has an effect in this version. It is there only when it is `False`, and names what has none. No part of the API
/// as others serve it.
pub const FULLY_SUPPORTED: &str = "FullySupported";
/// Of a component: leaders are moved away from one of its stores.
pub const LEADER_EVICTING: &str = "LeaderEvicting";
/// Of a component: one of its volumes grows.
pub const COMPONENT_VOLUME_RESIZING: &str = "ComponentVolumeResizing";

/// Why a cluster is [`READY`](super::conditions::READY) or not. The first that applies counts, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadyReason {
    /// Pods of some component are being replaced.
    StatefulSetNotUpToDate,
    /// A member of PD is missing or not healthy.
    PdUnhealthy,
    /// A store of TiKV is missing or not up.
    TikvStoreNotUp,
    /// A server of TiDB is missing or not healthy.
    TidbUnhealthy,
    /// A store of TiFlash is missing or not up.
    TiflashStoreNotUp,
    /// A capture of TiCDC is missing or not ready.
    TicdcCaptureNotReady,
    /// A proxy is missing or not healthy.
    TiproxyUnhealthy,
    /// It is ready.
    Ready,
}

impl ReadyReason {
    /// Every reason, in the order in which they count.
    pub const ALL: [Self; 8] = [
        Self::StatefulSetNotUpToDate,
        Self::PdUnhealthy,
        Self::TikvStoreNotUp,
        Self::TidbUnhealthy,
        Self::TiflashStoreNotUp,
        Self::TicdcCaptureNotReady,
        Self::TiproxyUnhealthy,
        Self::Ready,
    ];

    /// The reason as scripts know it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StatefulSetNotUpToDate => "StatefulSetNotUpToDate",
            Self::PdUnhealthy => "PDUnhealthy",
            Self::TikvStoreNotUp => "TiKVStoreNotUp",
            Self::TidbUnhealthy => "TiDBUnhealthy",
            Self::TiflashStoreNotUp => "TiFlashStoreNotUp",
            Self::TicdcCaptureNotReady => "TiCDCCaptureNotReady",
            Self::TiproxyUnhealthy => "TiProxyUnhealthy",
            Self::Ready => "Ready",
        }
    }

    /// The message as scripts know it.
    pub const fn message(self) -> &'static str {
        match self {
            Self::StatefulSetNotUpToDate => "Statefulset(s) are in progress",
            Self::PdUnhealthy => "PD(s) are not healthy",
            Self::TikvStoreNotUp => "TiKV store(s) are not up",
            Self::TidbUnhealthy => "TiDB(s) are not healthy",
            Self::TiflashStoreNotUp => "TiFlash store(s) are not up",
            Self::TicdcCaptureNotReady => "TiCDC capture(s) are not up",
            Self::TiproxyUnhealthy => "TiProxy(s) are not healthy",
            Self::Ready => "TiDB cluster is fully up and running",
        }
    }
}
