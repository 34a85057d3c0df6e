//! The certificates with which the operator proves to servers of clusters who it is, as their Secrets have them. They are kept in memory
//! and never shown. A Secret is read again after a call that failed: its certificate may have been renewed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::papers::Papers;

/// How long one request may take.
const CALL: Duration = Duration::from_secs(3);
/// How long a Secret counts as just read: servers that are down are no reason to read it over and over.
const FRESH: Duration = Duration::from_secs(10);

/// A Secret, by namespace and name.
type Name = (String, String);

/// Reads Secrets, and remembers what they are good for.
pub(super) struct Vault {
    client: Client,
    known: Mutex<HashMap<Name, (Instant, Arc<ClientConfig>)>>,
}

impl Vault {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// How connections are made with the certificate of a Secret.
    pub(super) async fn of(&self, namespace: &str, name: &str) -> Result<Arc<ClientConfig>, String> {
        let key = (namespace.to_owned(), name.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some((_, configuration)) = known {
            return Ok(configuration);
        }
        let configuration = Arc::new(read_papers(&self.client, namespace, name).await?.client_configuration()?);
        let known = (Instant::now(), Arc::clone(&configuration));
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, known);
        Ok(configuration)
    }

    /// A call with it failed: it is read again before the next one.
    pub(super) fn doubt(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&key).is_some_and(|(read, _)| read.elapsed() > FRESH) {
            known.remove(&key);
        }
    }
}

/// Reads a Secret with a certificate, its key, and the authority that is to be believed.
pub async fn read_papers(client: &Client, namespace: &str, name: &str) -> Result<Papers, String> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = match tokio::time::timeout(CALL, secrets.get(name)).await {
        Ok(Ok(secret)) => secret,
        Ok(Err(error)) => return Err(format!("Secret {name:?} with our certificate could not be read: {error}")),
        Err(_) => return Err(format!("Secret {name:?} with our certificate could not be read within {} s", CALL.as_secs())),
    };
    papers(&secret).map_err(|key| format!("Secret {name:?} has no PEM text under {key:?}, so servers with TLS cannot be asked"))
}

/// The key that is missing, if one is.
fn papers(secret: &Secret) -> Result<Papers, &'static str> {
    let of = |key: &'static str| {
        let bytes = &secret.data.as_ref().and_then(|data| data.get(key)).ok_or(key)?.0;
        let text = String::from_utf8(bytes.clone()).map_err(|_| key)?;
        if text.contains("-----BEGIN") { Ok(text) } else { Err(key) }
    };
    let authority = "the authority of a TidbCluster".to_owned();
    Ok(Papers { certificate: of("tls.crt")?, key: of("tls.key")?, roots: of("ca.crt")?, authority })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(keys: &[&str]) -> Secret {
        let pem = |key: &&str| ((*key).to_owned(), ByteString(b"-----BEGIN X-----".to_vec()));
        Secret { data: Some(keys.iter().map(pem).collect()), ..Secret::default() }
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_shown() {
        assert_eq!(papers(&Secret::default()).unwrap_err(), "tls.crt");
        assert_eq!(papers(&secret(&["tls.crt", "ca.crt"])).unwrap_err(), "tls.key");
        assert_eq!(papers(&secret(&["tls.crt", "tls.key"])).unwrap_err(), "ca.crt");
        let whole = papers(&secret(&["tls.crt", "tls.key", "ca.crt"])).unwrap();
        assert!(!format!("{whole:?}").contains("BEGIN"));
    }
}
