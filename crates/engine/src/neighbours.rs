//! Other releases in the same Kubernetes: whether the one that holds a cluster is still alive.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use tokio::sync::Mutex;

use crate::calls::DEADLINE;
use crate::clock::Clock;

/// How often one Lease is read at most, whoever asks.
const LOOK: Duration = Duration::from_secs(1);

/// What is known of the Leases of other releases.
pub(crate) struct Neighbours {
    client: Client,
    clock: Clock,
    known: Mutex<HashMap<String, Known>>,
}

struct Known {
    /// The version of the Lease; none when it was missing.
    version: Option<String>,
    /// Since when it did not change, by our own clock.
    since: Duration,
    looked: Duration,
}

impl Neighbours {
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, known: Mutex::default() }
    }

    /// How long the Lease of a release, given as `namespace/name`, did not change or was missing. None when it could not be read.
    pub(crate) async fn silent(&self, release: &str) -> Option<Duration> {
        let mut known = self.known.lock().await;
        let now = self.clock.uptime();
        if let Some(known) = known.get(release)
            && now.saturating_sub(known.looked) < LOOK
        {
            return Some(known.looked.saturating_sub(known.since));
        }
        let version = self.version(release).await?;
        let since = known.get(release).filter(|it| it.version == version).map_or(now, |it| it.since);
        known.insert(release.to_owned(), Known { version, since, looked: now });
        Some(now.saturating_sub(since))
    }

    async fn version(&self, release: &str) -> Option<Option<String>> {
        // A release without a namespace has no Lease.
        let Some((namespace, name)) = release.split_once('/') else { return Some(None) };
        let api: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        match tokio::time::timeout(DEADLINE, api.get_opt(name)).await {
            Ok(Ok(lease)) => Some(lease.map(|lease| format!("{:?}/{:?}", lease.metadata.uid, lease.metadata.resource_version))),
            Ok(Err(error)) => {
                tracing::warn!(release, %error, "the Lease of another release cannot be read");
                None
            }
            Err(_) => None,
        }
    }
}
