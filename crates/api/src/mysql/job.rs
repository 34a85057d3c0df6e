//! The pods that take a backup or restore one.

use k8s_openapi::api::core::v1::{Affinity, EnvFromSource, EnvVar, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::Part;

/// `threads` when absent.
pub const DEFAULT_THREADS: i64 = 4;
/// `cpu` when absent from a manifest. The API server fills it in: what reads as absent is a null, and requests none.
pub const DEFAULT_CPU: i64 = 4;
/// `memory` when absent from a manifest, as with [`DEFAULT_CPU`].
pub const DEFAULT_MEMORY: &str = "4Gi";
/// `backendType` when absent.
pub const DEFAULT_BACKEND_TYPE: BackendType = BackendType::S3;

/// The pods that take a backup or restore one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobConfig {
    /// The service account of the pod.
    #[schemars(length(min = 1))]
    pub service_account_name: String,

    /// Where backups are kept.
    pub bucket_config: BucketConfig,

    /// The volume to work on, mounted at /work: a volume as in a Pod, without its name. It must have room for a whole dump.
    pub work_volume: Part<Volume>,

    /// How many threads dump or load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = DEFAULT_THREADS))]
    pub threads: Option<i64>,

    /// How much CPU is requested. None with null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_CPU))]
    pub cpu: Option<Quantity>,

    /// The limit of CPU. None when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cpu: Option<Quantity>,

    /// How much memory is requested. None with null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_MEMORY))]
    pub memory: Option<Quantity>,

    /// The limit of memory. None when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory: Option<Quantity>,

    /// Sources of environment variables, for example with the keys of the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<Vec<Part<EnvFromSource>>>,

    /// Environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<Part<EnvVar>>>,

    /// Where the pod may run. It counts for backups only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Part<Affinity>>,

    /// Further volumes of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Part<Volume>>>,

    /// Where the further volumes are mounted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_mounts: Option<Vec<Part<VolumeMount>>>,
}

/// Where backups are kept.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketConfig {
    /// The bucket. `$(NAME)` stands for an environment variable.
    #[schemars(length(min = 1))]
    pub bucket_name: String,

    /// The bucket's region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,

    /// The address of the storage, with http or https. That of the provider when absent.
    #[serde(default, rename = "endpointURL", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^https?://.*"))]
    pub endpoint_url: Option<String>,

    /// Name the bucket in the path of a URL and not in its host.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub use_path_style: bool,

    /// What the storage speaks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DEFAULT_BACKEND_TYPE))]
    pub backend_type: Option<BackendType>,

    /// The path of a certificate that the storage's own is checked with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_cert: Option<String>,
}

/// What a storage speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendType {
    /// Amazon S3, or whatever speaks as it does.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
}
