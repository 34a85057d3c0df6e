//! Manifests as users have them, and what the definitions make of them.

mod admission;
mod definitions;
mod round_trips;
mod rules;

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::fixture::{document, with};

/// What a first try looks like.
const MINIMAL: &str = "
apiVersion: moco.cybozu.com/v1beta2
kind: MySQLCluster
metadata: { name: harbour, namespace: shop }
spec:
  podTemplate:
    spec:
      containers:
      - { name: mysqld, image: 'mysql:8.4.8' }
  volumeClaimTemplates:
  - metadata: { name: mysql-data }
    spec: { resources: { requests: { storage: 1Gi } } }
";

/// Every field, none of them with its default.
const FULL: &str = r#"
apiVersion: moco.cybozu.com/v1beta2
kind: MySQLCluster
metadata: { name: harbour, namespace: shop, annotations: { moco.cybozu.com/clustering-stopped: "true" } }
spec:
  replicas: 3
  podTemplate:
    metadata: { name: ignored, labels: { team: quay }, annotations: { note: pier } }
    spec:
      terminationGracePeriodSeconds: 600
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [ { topologyKey: zone } ] } }
      securityContext: { fsGroup: 10000 }
      containers:
      - name: mysqld
        image: mysql:8.4.8
        resources: { limits: { cpu: 2, memory: 4Gi } }
        ports: [ { name: extra, containerPort: 9999, protocol: TCP } ]
        livenessProbe: { periodSeconds: 5 }
      - { name: filebeat, image: 'filebeat:9' }
      initContainers:
      - { name: prepare, image: 'busybox:1', restartPolicy: Always }
      volumes:
      - { name: scratch, emptyDir: { sizeLimit: 1Gi } }
    overwriteContainers:
    - { name: agent, resources: { requests: { cpu: 50m } } }
    - { name: copy-moco-init, securityContext: { runAsUser: 20000 } }
    - { name: moco-init, resources: {} }
    - { name: slow-log }
    - { name: mysqld-exporter, resources: { limits: { memory: 200Mi } }, securityContext: { readOnlyRootFilesystem: true } }
  volumeClaimTemplates:
  - metadata: { name: mysql-data, labels: { team: quay }, annotations: { note: pier } }
    spec: { storageClassName: fast, accessModes: [ ReadWriteOncePod ], resources: { requests: { storage: 10Gi }, limits: { storage: 20Gi } } }
  - metadata: { name: scratch-data }
    spec: { volumeMode: Block, resources: { requests: { storage: '1073741824' } } }
  primaryServiceTemplate:
    metadata: { labels: { a: b }, annotations: { external-dns: harbour.example } }
    spec: { type: LoadBalancer, ports: [ { name: mysql, nodePort: 30306 } ] }
  replicaServiceTemplate:
    spec: { type: NodePort }
  mysqlConfigMapName: settings
  replicationSourceSecretName: source
  collectors: [ engine_innodb_status, info_schema.innodb_metrics ]
  serverIDBase: 100
  maxDelaySeconds: 0
  maxDelaySecondsForPodDeletion: 30
  startupWaitSeconds: 7200
  logRotationSchedule: "@every 10s"
  logRotationSize: 1048576
  backupPolicyName: nightly
  restore:
    sourceName: pier
    sourceNamespace: shop
    restorePoint: "2026-01-31T12:00:00Z"
    schema: orders
    users: 'alice@%,bob@%'
    jobConfig:
      serviceAccountName: restorer
      bucketConfig: { bucketName: $(BUCKET) }
      workVolume: { emptyDir: {} }
  disableSlowQueryLogContainer: true
  slowQueryLogConfigTmpl: "[INPUT]\n  Path {{ .Path }}\n"
  agentUseLocalhost: true
  initializeTimezoneData: true
  offline: true
status:
  observedGeneration: 4
  conditions:
  - { type: Available, status: Unknown, reason: Healthy, message: the current state is Healthy, lastTransitionTime: "2026-01-01T00:00:00Z" }
  - { type: ReconcileSuccess, status: "True", reason: ReconcileSuccess, message: reconcile successfully, observedGeneration: 4, lastTransitionTime: "2026-01-01T00:00:00Z" }
  currentPrimaryIndex: 2
  syncedReplicas: 3
  errantReplicas: 1
  errantReplicaList: [ 1 ]
  backup:
    time: "2026-01-01T00:00:00Z"
    elapsed: 1m2.5s
    sourceIndex: 1
    sourceUUID: 1b7a4f6e-5c1b-11f0-9d4b-0242ac110002
    uuidSet: { "1": 1b7a4f6e-5c1b-11f0-9d4b-0242ac110002 }
    binlogFilename: binlog.000007
    gtidSet: 1b7a4f6e-5c1b-11f0-9d4b-0242ac110002:1-77
    dumpSize: 8589934592
    binlogSize: 1024
    workDirUsage: 17179869184
    warnings: [ no binary log ]
  restoredTime: "2026-01-01T00:00:00Z"
  cloned: true
  reconcileInfo: { generation: 4, reconcileVersion: 1 }
"#;

/// A policy with what it needs.
const POLICY: &str = r#"
apiVersion: moco.cybozu.com/v1beta2
kind: BackupPolicy
metadata: { name: nightly, namespace: shop }
spec:
  schedule: "@daily"
  jobConfig:
    serviceAccountName: backup
    bucketConfig: { bucketName: harbour }
    workVolume: { emptyDir: {} }
"#;

/// A policy with every field, none of them with its default.
const FULL_POLICY: &str = r#"
apiVersion: moco.cybozu.com/v1beta2
kind: BackupPolicy
metadata: { name: nightly, namespace: shop }
spec:
  schedule: "0 3 * * 1-5"
  timeZone: Asia/Tokyo
  jobConfig:
    serviceAccountName: backup
    bucketConfig:
      bucketName: harbour
      region: eu-central-1
      endpointURL: https://storage.example
      usePathStyle: true
      backendType: azure
      caCert: /etc/ca/ca.crt
    workVolume: { ephemeral: { volumeClaimTemplate: { spec: { accessModes: [ ReadWriteOnce ], resources: { requests: { storage: 10Gi } } } } } }
    threads: 8
    cpu: "2"
    maxCpu: 2500m
    memory: 8Gi
    maxMemory: 16Gi
    envFrom: [ { secretRef: { name: keys } } ]
    env: [ { name: AWS_REGION, value: eu-central-1 } ]
    affinity: { nodeAffinity: {} }
    volumes: [ { name: ca, configMap: { name: ca } } ]
    volumeMounts: [ { name: ca, mountPath: /etc/ca } ]
  startingDeadlineSeconds: 600
  concurrencyPolicy: Forbid
  activeDeadlineSeconds: 3600
  backoffLimit: 0
  successfulJobsHistoryLimit: 5
  failedJobsHistoryLimit: 0
"#;

fn definition(kind: &str) -> &'static CustomResourceDefinition {
    // Made once: a debug build takes its time.
    static ALL: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(crate::mysql::custom_resource_definitions);
    ALL.iter().find(|it| it.spec.names.kind == kind).unwrap()
}

/// The schema of a kind, as the API server gets it.
fn schema(kind: &str) -> Value {
    serde_json::to_value(&definition(kind).spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone()
}
