//! Labels and annotations of the API. Scripts of users rest on them.
//!
//! On every child are [`NAME`], [`MANAGED_BY`], [`INSTANCE`] and [`COMPONENT`]; these four are also the selectors of StatefulSets, which
//! cannot be changed, so there are never more nor fewer.

use super::kinds::Component;

/// On all objects: what they are, [`NAME_TIDB_CLUSTER`].
pub const NAME: &str = "app.kubernetes.io/name";
/// The value of [`NAME`].
pub const NAME_TIDB_CLUSTER: &str = "tidb-cluster";
/// On all objects: who made them, [`MANAGED_BY_TIDB_OPERATOR`].
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`]. It stays what it was, since selectors that cannot be changed contain it.
pub const MANAGED_BY_TIDB_OPERATOR: &str = "tidb-operator";
/// On all objects: the cluster's name. On the cluster it could say another one.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// On all objects: which component, see [`Component::as_str`]; or [`COMPONENT_DISCOVERY`].
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// A value of [`COMPONENT`].
pub const COMPONENT_DISCOVERY: &str = "discovery";
/// On Services: who uses them, [`USED_BY_PEER`] or [`USED_BY_END_USER`].
pub const USED_BY: &str = "app.kubernetes.io/used-by";
/// A value of [`USED_BY`].
pub const USED_BY_PEER: &str = "peer";
/// A value of [`USED_BY`].
pub const USED_BY_END_USER: &str = "end-user";
/// On volumes: the namespace of their claim.
pub const NAMESPACE: &str = "app.kubernetes.io/namespace";

/// On pods, claims and volumes: the id that PD gave the cluster.
pub const CLUSTER_ID: &str = "tidb.pingcap.com/cluster-id";
/// On pods, claims and volumes of TiKV and TiFlash: the id of the store.
pub const STORE_ID: &str = "tidb.pingcap.com/store-id";
/// On pods, claims and volumes of PD: the id of the member.
pub const MEMBER_ID: &str = "tidb.pingcap.com/member-id";
/// On claims, as a label and as an annotation, and on volumes as an annotation: the pod.
pub const POD_NAME: &str = "tidb.pingcap.com/pod-name";

/// On pods: `"true"` lets Prometheus ask them.
pub const PROMETHEUS_SCRAPE: &str = "prometheus.io/scrape";
/// On pods: the path that Prometheus asks.
pub const PROMETHEUS_PATH: &str = "prometheus.io/path";
/// On pods: the port that Prometheus asks.
pub const PROMETHEUS_PORT: &str = "prometheus.io/port";

/// On the StatefulSet of an advanced controller: a list of ordinals, as JSON, that have no pod.
pub const DELETE_SLOTS: &str = "delete-slots";
/// On the cluster: a list of ordinals, as JSON, that have no pod of this component. Pump has none.
pub const fn delete_slots(component: Component) -> Option<&'static str> {
    match component {
        Component::Pd => Some("pd.tidb.pingcap.com/delete-slots"),
        Component::Tikv => Some("tikv.tidb.pingcap.com/delete-slots"),
        Component::Tidb => Some("tidb.tidb.pingcap.com/delete-slots"),
        Component::Tiflash => Some("tiflash.tidb.pingcap.com/delete-slots"),
        Component::Ticdc => Some("ticdc.tidb.pingcap.com/delete-slots"),
        Component::Tiproxy => Some("tiproxy.tidb.pingcap.com/delete-slots"),
        Component::Pump => None,
    }
}

/// On StatefulSets and Services that another operator made: what it last asked for. We neither read nor write it.
pub const LAST_APPLIED_CONFIGURATION: &str = "pingcap.com/last-applied-configuration";
/// On the Deployment of discovery that another operator made: as [`LAST_APPLIED_CONFIGURATION`].
pub const LAST_APPLIED_POD_TEMPLATE: &str = "pingcap.com/last-applied-podtemplate";

/// On a claim: since when its data is of no use. It is deleted before its ordinal gets a pod again.
pub const PVC_DEFER_DELETING: &str = "tidb.pingcap.com/pvc-defer-deleting";
/// On pods and claims of TiKV: when the removal of the store began.
pub const SCALE_IN_TIME: &str = "tidb.pingcap.com/scale-in-time";
/// On claims: a lock of the scheduler.
pub const POD_SCHEDULING: &str = "tidb.pingcap.com/pod-scheduling";
/// On pods of TiKV: since when PD knows no store of theirs.
pub const TIKV_NO_ACTIVE_STORE_SINCE: &str = "tidb.pingcap.com/tikv-no-active-store-since";
/// On pods of TiKV: since when leaders are moved away.
pub const EVICT_LEADER_BEGIN_TIME: &str = "evictLeaderBeginTime";
/// On pods of TiKV: since when leaders are not moved away any more.
pub const TIKV_EVICT_LEADER_END_AT: &str = "tidb.pingcap.com/tikv-evict-leader-end-at";
/// On pods of TiCDC: since when tables are handed over.
pub const TICDC_GRACEFUL_SHUTDOWN_BEGIN_TIME: &str = "tidb.pingcap.com/ticdc-graceful-shutdown-begin-time";

/// On a pod of TiKV, by the user: move leaders away, then do [`THEN_NONE`] or [`THEN_DELETE_POD`].
pub const EVICT_LEADER: &str = "tidb.pingcap.com/evict-leader";
/// On a pod of PD, by the user: let another member lead, then do [`THEN_NONE`] or [`THEN_DELETE_POD`].
pub const PD_TRANSFER_LEADER: &str = "tidb.pingcap.com/pd-transfer-leader";
/// On a pod of TiDB, by the user: end it gently, then do [`THEN_NONE`] or [`THEN_DELETE_POD`].
pub const TIDB_GRACEFUL_SHUTDOWN: &str = "tidb.pingcap.com/tidb-graceful-shutdown";
/// Nothing.
pub const THEN_NONE: &str = "none";
/// Delete the pod.
pub const THEN_DELETE_POD: &str = "delete-pod";
/// On a pod of TiKV, by the user: until when [`EVICT_LEADER`] counts.
pub const TIKV_EVICT_LEADER_EXPIRATION_TIME: &str = "tidb.pingcap.com/tikv-evict-leader-expiration-time";
/// On a pod of PD, by the user: until when [`PD_TRANSFER_LEADER`] counts.
pub const PD_TRANSFER_LEADER_EXPIRATION_TIME: &str = "tidb.pingcap.com/pd-evict-leader-expiration-time";
/// On a pod, by the user: `"true"` replaces its volumes.
pub const REPLACE_VOLUME: &str = "tidb.pingcap.com/replace-volume";

/// On the cluster: `"true"` replaces pods of PD although PD does not answer.
pub const FORCE_UPGRADE: &str = "tidb.pingcap.com/force-upgrade";
/// On the cluster: how many seconds a pod of this component must have been ready before the next one is replaced.
pub const fn min_ready_seconds(component: Component) -> Option<&'static str> {
    match component {
        Component::Pd => Some("tidb.pingcap.com/pd-min-ready-seconds"),
        Component::Tikv => Some("tidb.pingcap.com/tikv-min-ready-seconds"),
        Component::Tidb => Some("tidb.pingcap.com/tidb-min-ready-seconds"),
        Component::Tiflash => Some("tidb.pingcap.com/tiflash-min-ready-seconds"),
        Component::Tiproxy => Some("tiproxy.pingcap.com/tiproxy-min-ready-seconds"),
        Component::Ticdc | Component::Pump => None,
    }
}
/// On the cluster: `"true"` replaces no pod of PD unless the rest has a majority.
pub const PD_CHECK_QUORUM_BEFORE_UPGRADE: &str = "tidb.pingcap.com/pd-check-quorum-before-upgrade";
/// On the cluster: `"true"` replaces no pod of TiKV unless all stores are up.
pub const TIKV_CHECK_ALL_STORES_UP_BEFORE_UPGRADE: &str = "tidb.pingcap.com/tikv-check-all-stores-up-before-upgrade";
/// On the cluster: pods of this component with a lower ordinal are not replaced.
pub const fn partition(component: Component) -> Option<&'static str> {
    match component {
        Component::Tidb => Some("tidb.pingcap.com/tidb-partition"),
        Component::Tikv => Some("tidb.pingcap.com/tikv-partition"),
        _ => None,
    }
}
/// On the cluster: `"true"` lets stores and claims be deleted when a node fails.
pub const AUTO_FAILURE_RECOVERY: &str = "app.kubernetes.io/auto-failure-recovery";
/// On the cluster: the label of nodes that members are kept apart by.
pub const HA_TOPOLOGY_KEY: &str = "pingcap.com/ha-topology-key";
/// On the cluster, followed by the component: the ConfigMap that a StatefulSet had before it was made again.
pub const CONFIG_MAP_NAME_BEFORE_DELETE: &str = "tidb.pingcap.com/configmap-name-before-delete-";
/// Among the annotations of a component: `"true"` lets a container set kernel parameters first.
pub const SYSCTL_INIT: &str = "tidb.pingcap.com/sysctl-init";
/// On the cluster: the volumes of TiKV are there, in recovery mode.
pub const TIKV_VOLUMES_READY: &str = "tidb.pingcap.com/tikv-volumes-ready";
/// On the cluster, while TiDB is upgraded: whether DDL is paused.
pub const SMOOTH_UPGRADE_DDL_PAUSED: &str = "tidb.pingcap.com/smooth-upgrade-ddl-paused";
/// On the cluster, while TiDB is upgraded: from which version.
pub const SMOOTH_UPGRADE_SOURCE_VERSION: &str = "tidb.pingcap.com/smooth-upgrade-source-version";
/// On the cluster, while TiDB is upgraded: to which version.
pub const SMOOTH_UPGRADE_TARGET_VERSION: &str = "tidb.pingcap.com/smooth-upgrade-target-version";
/// On the cluster, while TiDB is upgraded: since when.
pub const SMOOTH_UPGRADE_STARTED_AT: &str = "tidb.pingcap.com/smooth-upgrade-started-at";
