//! Annotations, labels and the finalizer of the API. Scripts of users rest on them.

/// On a MySQLCluster: `"true"`, and nothing else, stops clustering.
pub const CLUSTERING_STOPPED: &str = "moco.cybozu.com/clustering-stopped";
/// On a MySQLCluster: `"true"`, and nothing else, stops reconciliation.
pub const RECONCILIATION_STOPPED: &str = "moco.cybozu.com/reconciliation-stopped";
/// On a MySQLCluster and its StatefulSet: `"true"` rolls all instances without waiting for one after the other.
pub const FORCE_ROLLING_UPDATE: &str = "moco.cybozu.com/force-rolling-update";
/// On a MySQLCluster: `"true"` lets instances that have transactions which no client was told of stay as they are. Without it these
/// are saved, and the instance gets a copy of the primary's data.
pub const KEEP_SURPLUS: &str = "windlass.dev/keep-surplus";
/// On a MySQLCluster: how long a primary whose server ended is given to come back before another one takes its place, as `10s`. Without
/// it none: a failover is quick, but the former primary's data may have to be copied anew.
pub const PRIMARY_RESTART_GRACE: &str = "windlass.dev/primary-restart-grace";
/// On the primary's pod: `"true"` asks for a switchover, and is removed after it.
pub const DEMOTE: &str = "moco.cybozu.com/demote";
/// On the primary's pod: `"true"` protects it from deletion.
pub const PREVENT_DELETE: &str = "moco.cybozu.com/prevent-delete";
/// On Secrets with passwords: the version of their form, [`SECRET_VERSION_1`].
pub const SECRET_VERSION: &str = "moco.cybozu.com/secret-version";
/// The value of [`SECRET_VERSION`].
pub const SECRET_VERSION_1: &str = "1";

/// On pods: [`ROLE_PRIMARY`] or [`ROLE_REPLICA`]. Absent on an instance that is neither, or in transition.
pub const ROLE: &str = "moco.cybozu.com/role";
/// A value of [`ROLE`].
pub const ROLE_PRIMARY: &str = "primary";
/// A value of [`ROLE`].
pub const ROLE_REPLICA: &str = "replica";

/// On all objects: what they are, [`NAME_MYSQL`] or [`NAME_BACKUP`].
pub const NAME: &str = "app.kubernetes.io/name";
/// The value of [`NAME`] on the objects of a cluster.
pub const NAME_MYSQL: &str = "mysql";
/// The value of [`NAME`] on the objects of backups and restores.
pub const NAME_BACKUP: &str = "mysql-backup";
/// On all objects: the cluster's name.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// On objects outside the cluster's namespace: that namespace.
pub const INSTANCE_NAMESPACE: &str = "app.kubernetes.io/instance-namespace";
/// On all objects: who made them, [`CREATED_BY_MOCO`].
pub const CREATED_BY: &str = "app.kubernetes.io/created-by";
/// The value of [`CREATED_BY`]. It stays what it was, since selectors that cannot be changed contain it.
pub const CREATED_BY_MOCO: &str = "moco";

/// Holds a MySQLCluster until what lies outside its namespace is gone.
pub const FINALIZER: &str = "moco.cybozu.com/mysqlcluster";
