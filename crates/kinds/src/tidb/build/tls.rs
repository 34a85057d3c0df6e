//! Certificates in pods: which Secrets are mounted, and where.
//!
//! Decides places only. That a component shows a certificate is said in its configuration or in its arguments.

use serde_json::{Value, json};

/// A Secret that is mounted.
#[derive(Clone, Debug)]
pub(super) struct Mounted {
    /// The name of the volume.
    pub(super) volume: String,
    /// The Secret.
    pub(super) secret: String,
    /// Where its files are.
    pub(super) path: String,
}

impl Mounted {
    pub(super) fn new(volume: &str, secret: String, path: &str) -> Self {
        Self { volume: volume.to_owned(), secret, path: path.to_owned() }
    }

    pub(super) fn volume(&self) -> Value {
        json!({ "name": self.volume, "secret": { "secretName": self.secret } })
    }

    pub(super) fn mount(&self) -> Value {
        json!({ "name": self.volume, "mountPath": self.path, "readOnly": true })
    }
}

/// Where a component has the certificate that it shows to others of the cluster.
pub(super) fn cluster_path(component: &str) -> String {
    format!("/var/lib/{component}-tls")
}

/// Where the certificate of clients within the cluster is.
pub(super) const CLUSTER_CLIENT: &str = "/var/lib/cluster-client-tls";
/// Where TiDB, and TiProxy in its place, has the certificate that it shows to clients.
pub(super) const SERVER: &str = "/var/lib/tidb-server-tls";
/// Where the certificate that clients show to TiDB is.
pub(super) const CLIENT: &str = "/var/lib/tidb-client-tls";

/// The certificates of those that a certificate is checked with.
pub(super) fn authority(path: &str) -> String {
    format!("{path}/ca.crt")
}

/// The certificate.
pub(super) fn certificate(path: &str) -> String {
    format!("{path}/tls.crt")
}

/// Its key.
pub(super) fn key(path: &str) -> String {
    format!("{path}/tls.key")
}
