//! The definitions are those that users know.

use rstest::rstest;
use serde_json::{Value, json};

use super::{definition, schema};
use crate::mysql::conditions::{self, State, reasons};

/// More than this, and `kubectl apply` cannot note what was applied.
const LARGEST: usize = 250_000;

#[rstest]
#[case("MySQLCluster", "mysqlclusters", "mysqlcluster", true)]
#[case("BackupPolicy", "backuppolicies", "backuppolicy", false)]
fn names_and_subresources(#[case] kind: &str, #[case] plural: &str, #[case] singular: &str, #[case] status: bool) {
    let definition = definition(kind);
    assert_eq!(definition.metadata.name, Some(format!("{plural}.moco.cybozu.com")));
    assert_eq!((definition.spec.group.as_str(), definition.spec.scope.as_str()), ("moco.cybozu.com", "Namespaced"));
    let names = &definition.spec.names;
    assert_eq!((names.plural.as_str(), names.singular.as_deref()), (plural, Some(singular)));
    assert_eq!(names.short_names.clone().unwrap_or_default(), Vec::<String>::new());
    assert_eq!(definition.spec.versions.len(), 1);
    let version = &definition.spec.versions[0];
    assert_eq!((version.name.as_str(), version.served, version.storage), ("v1beta2", true, true));
    let subresources = version.subresources.clone().unwrap_or_default();
    assert_eq!((subresources.status.is_some(), subresources.scale), (status, None));
}

#[test]
fn columns_are_printed_as_ever() {
    let columns = |kind: &str| {
        let columns = definition(kind).spec.versions[0].additional_printer_columns.clone().unwrap_or_default();
        columns.into_iter().map(|column| (column.name, column.type_, column.json_path, column.priority)).collect::<Vec<_>>()
    };
    let condition = |name: &str, type_: &str| {
        (name.to_owned(), "string".to_owned(), format!(".status.conditions[?(@.type=='{type_}')].status"), None)
    };
    let field = |name: &str, type_: &str, path: &str| (name.to_owned(), type_.to_owned(), path.to_owned(), None);
    let expected = [
        condition("Available", conditions::AVAILABLE),
        condition("Healthy", conditions::HEALTHY),
        field("Primary", "integer", ".status.currentPrimaryIndex"),
        field("Synced replicas", "integer", ".status.syncedReplicas"),
        field("Errant replicas", "integer", ".status.errantReplicas"),
        condition("Clustering Active", conditions::CLUSTERING_ACTIVE),
        condition("Reconcile Active", conditions::RECONCILIATION_ACTIVE),
        field("Last backup", "string", ".status.backup.time"),
    ];
    assert_eq!(columns("MySQLCluster"), expected);
    assert_eq!(columns("BackupPolicy"), []);
}

#[rstest]
#[case("MySQLCluster", "/spec", &["replicas", "podTemplate", "volumeClaimTemplates", "primaryServiceTemplate", "replicaServiceTemplate",
    "mysqlConfigMapName", "replicationSourceSecretName", "collectors", "serverIDBase", "maxDelaySeconds",
    "maxDelaySecondsForPodDeletion", "startupWaitSeconds", "logRotationSchedule", "logRotationSize", "backupPolicyName", "restore",
    "disableSlowQueryLogContainer", "slowQueryLogConfigTmpl", "agentUseLocalhost", "initializeTimezoneData", "offline"])]
#[case("MySQLCluster", "/spec/properties/restore", &["sourceName", "sourceNamespace", "restorePoint", "jobConfig", "schema", "users"])]
#[case("MySQLCluster", "/status", &["observedGeneration", "conditions", "currentPrimaryIndex", "syncedReplicas", "errantReplicas",
    "errantReplicaList", "backup", "restoredTime", "cloned", "reconcileInfo"])]
#[case("MySQLCluster", "/status/properties/backup", &["time", "elapsed", "sourceIndex", "sourceUUID", "uuidSet", "binlogFilename", "gtidSet",
    "dumpSize", "binlogSize", "workDirUsage", "warnings"])]
#[case("MySQLCluster", "/status/properties/reconcileInfo", &["generation", "reconcileVersion"])]
#[case("BackupPolicy", "/spec", &["schedule", "timeZone", "jobConfig", "startingDeadlineSeconds", "activeDeadlineSeconds",
    "concurrencyPolicy", "backoffLimit", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"])]
#[case("BackupPolicy", "/spec/properties/jobConfig", &["serviceAccountName", "bucketConfig", "workVolume", "threads", "cpu", "maxCpu",
    "memory", "maxMemory", "envFrom", "env", "affinity", "volumes", "volumeMounts"])]
#[case("BackupPolicy", "/spec/properties/jobConfig/properties/bucketConfig", &["bucketName", "region", "endpointURL", "usePathStyle",
    "backendType", "caCert"])]
fn fields_are_spelled_as_ever(#[case] kind: &str, #[case] place: &str, #[case] expected: &[&str]) {
    let schema = schema(kind);
    let node = schema.pointer(&format!("/properties{place}/properties")).unwrap();
    let mut names: Vec<&str> = node.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = expected.to_vec();
    names.sort_unstable();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[rstest]
#[case("MySQLCluster")]
#[case("BackupPolicy")]
fn a_definition_is_small_and_every_field_of_ours_is_explained(#[case] kind: &str) {
    let size = serde_json::to_string(definition(kind)).unwrap().len();
    assert!(size < LARGEST, "{kind} has {size} bytes");
    let mut silent = Vec::new();
    for part in ["spec", "status"] {
        let fields = schema(kind)["properties"][part]["properties"].as_object().cloned().unwrap_or_default();
        silent.extend(fields.iter().filter(|it| !it.1["description"].is_string()).map(|it| format!("{part}.{}", it.0)));
    }
    assert_eq!(silent, Vec::<String>::new());
}

#[rstest]
#[case("/spec/properties/mysqlConfigMapName", json!(true))]
#[case("/spec/properties/replicationSourceSecretName", json!(true))]
#[case("/spec/properties/backupPolicyName", json!(true))]
#[case("/spec/properties/restore/properties/jobConfig/properties/cpu", json!(true))]
#[case("/spec/properties/restore/properties/jobConfig/properties/memory", json!(true))]
#[case("/status/properties/backup/properties/time", json!(true))]
// A null becomes the default.
#[case("/spec/properties/replicas", Value::Null)]
#[case("/spec/properties/restore/properties/jobConfig/properties/bucketConfig/properties/backendType", Value::Null)]
fn null_is_kept_where_it_means_something(#[case] place: &str, #[case] nullable: Value) {
    let schema = schema("MySQLCluster");
    assert_eq!(schema.pointer(&format!("/properties{place}")).unwrap()["nullable"], nullable);
}

#[test]
fn conditions_reasons_and_states_are_spelled_as_ever() {
    assert_eq!(
        conditions::TYPES.join(" "),
        "Initialized Available Healthy StatefulSetReady ReconcileSuccess ReconciliationActive ClusteringActive"
    );
    assert_eq!(reasons::FAILED_TO_GET_STATEFUL_SET, "FaildToGetStatefulSet");
    assert_eq!(State::ALL.map(State::as_str).join(" "), "Incomplete Healthy Cloning Restoring Degraded Failed Lost Offline");
}
