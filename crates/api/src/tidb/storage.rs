//! Volumes that each member gets of its own.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base::Resources;

/// A further volume that each member gets of its own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageVolume {
    /// Its name. The claim is called COMPONENT-NAME.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Its size.
    #[schemars(length(min = 1))]
    pub storage_size: String,
    /// Where it is mounted. It is not when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<String>,
    /// Its storage class. That of the component when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

/// A disk of TiFlash.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.resources) && has(self.resources.requests) && 'storage' in self.resources.requests", "a claim must request storage"))]
pub struct StorageClaim {
    /// Its size, in requests.storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Its storage class. The default one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}
