//! Keeps the certificates: reads them from the Secret of the release, renews what is due, and tells the API server whom to trust.
//!
//! All processes of a release share the Secret. Whoever writes first wins, by compare-and-swap, and the others take what they find.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, ObjectMeta};
use tokio_util::sync::CancellationToken;

use super::certificates::{BadCertificate, Kept, due};
use super::registrations::Registration;
use super::server::Desk;

/// How often it is looked whether something is due, or was renewed by another process.
const LOOK: Duration = Duration::from_mins(1);
/// After something went wrong, and after a write of our own: others may have been first.
const SOON: Duration = Duration::from_secs(5);
/// How often the registrations are written although nothing changed: somebody may have emptied them.
const AGAIN: SignedDuration = SignedDuration::from_mins(10);
const FIELD_MANAGER: &str = "windlass-webhook";

/// Why a look came to nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the Secret cannot be read or written: {0}")]
    Secret(kube::Error),
    #[error(transparent)]
    Certificate(#[from] BadCertificate),
    #[error("the registration cannot be written: {0}")]
    Register(kube::Error),
}

pub(super) struct Keeper {
    pub(super) client: Client,
    pub(super) desk: Arc<Desk>,
    /// The name of the Secret, in the namespace of the Service.
    pub(super) secret: String,
    pub(super) registration: Registration,
}

impl Keeper {
    /// Looks now and then, until told to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut registered = None;
        loop {
            let wait = match self.look(&mut registered, Timestamp::now()).await {
                Ok(true) => LOOK,
                Ok(false) => SOON,
                Err(trouble) => {
                    tracing::warn!(%trouble, "the webhook's certificates are not looked after; tried again soon");
                    SOON
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// One look. Returns whether all is as it should be.
    async fn look(&self, registered: &mut Option<(String, Timestamp)>, now: Timestamp) -> Result<bool, Trouble> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.registration.service_namespace);
        let stored = secrets.get_opt(&self.secret).await.map_err(Trouble::Secret)?;
        let kept = stored.as_ref().and_then(|secret| Kept::read(&content(secret)));
        let host = format!("{}.{}.svc", self.registration.service, self.registration.service_namespace);
        if let Some(next) = due(kept.as_ref(), &host, now)? {
            tracing::info!(secret = self.secret, "the webhook's certificates are renewed");
            // It is used when it is read back, by us as by everybody else.
            return self.write(&secrets, stored, &next).await.map(|()| false);
        }
        let Some(kept) = kept else { return Ok(false) };
        // Whom to trust comes first, and who we are after it.
        let is_told = |(bundle, at): &(String, Timestamp)| *bundle == kept.bundle && now.duration_since(*at) < AGAIN;
        if !registered.as_ref().is_some_and(is_told) {
            self.register(&kept.bundle).await?;
            *registered = Some((kept.bundle.clone(), now));
        }
        self.desk.set(kept.configuration()?);
        Ok(true)
    }

    async fn write(&self, secrets: &Api<Secret>, stored: Option<Secret>, kept: &Kept) -> Result<(), Trouble> {
        let fresh = stored.is_none();
        let mut secret = stored.unwrap_or_else(|| Secret {
            metadata: ObjectMeta { name: Some(self.secret.clone()), ..ObjectMeta::default() },
            ..Secret::default()
        });
        secret.data = Some(kept.data().into_iter().map(|(key, value)| (key, ByteString(value))).collect());
        let parameters = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        let written = if fresh {
            secrets.create(&parameters, &secret).await
        } else {
            secrets.replace(&self.secret, &parameters, &secret).await
        };
        match written {
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            written => written.map(drop).map_err(Trouble::Secret),
        }
    }

    async fn register(&self, bundle: &str) -> Result<(), Trouble> {
        for object in self.registration.objects(bundle) {
            let kind = object["kind"].as_str().unwrap_or_default();
            let api: Api<DynamicObject> = Api::all_with(
                self.client.clone(),
                &ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind)),
            );
            let parameters = PatchParams::apply(FIELD_MANAGER).force();
            api.patch(&self.registration.name, &parameters, &Patch::Apply(&object)).await.map_err(Trouble::Register)?;
        }
        Ok(())
    }
}

fn content(secret: &Secret) -> BTreeMap<String, Vec<u8>> {
    secret.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.clone())).collect()
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
