//! The passwords of clusters' accounts, as their Secrets have them. They are kept in memory and never shown.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use windlass_kinds::mysql::deeds::Place;

/// How long one request may take: shorter than a look.
const CALL: Duration = Duration::from_secs(2);

/// The passwords that the controller needs.
#[derive(PartialEq, Eq)]
pub(super) struct Passwords {
    /// Of the account that the controller works with.
    pub(super) admin: String,
    /// Of the account that replicas log in to their source with.
    pub(super) replication: String,
    /// Of the account that copies of a server are made with.
    pub(super) clone_donor: String,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passwords")
    }
}

/// Reads Secrets, and remembers them by namespace and name.
pub(super) struct Vault {
    client: Client,
    known: Mutex<HashMap<(String, String), Arc<Passwords>>>,
}

impl Vault {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// The passwords of a cluster, as they were read last.
    pub(super) async fn of(&self, place: &Place) -> Result<Arc<Passwords>, String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key(place)).cloned();
        match known {
            Some(passwords) => Ok(passwords),
            None => self.read(place).await,
        }
    }

    /// Reads them, whatever is remembered.
    pub(super) async fn read(&self, place: &Place) -> Result<Arc<Passwords>, String> {
        let (namespace, name) = (&place.namespace, &place.credentials);
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret = match tokio::time::timeout(CALL, secrets.get(name)).await {
            Ok(Ok(secret)) => secret,
            Ok(Err(error)) => return Err(format!("Secret {name:?} with the passwords could not be read: {error}")),
            Err(_) => {
                return Err(format!("Secret {name:?} with the passwords could not be read within {} s", CALL.as_secs()));
            }
        };
        let passwords = Arc::new(passwords(&secret).map_err(|key| {
            format!("Secret {name:?} has no password under {key:?}: the servers of this cluster cannot be logged in to")
        })?);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key(place), Arc::clone(&passwords));
        Ok(passwords)
    }
}

fn key(place: &Place) -> (String, String) {
    (place.namespace.clone(), place.credentials.clone())
}

/// The key that is missing, if one is. What a password is not is told, never what it is.
fn passwords(secret: &Secret) -> Result<Passwords, &'static str> {
    let of = |key: &'static str| {
        let bytes = &secret.data.as_ref().and_then(|data| data.get(key)).ok_or(key)?.0;
        let text = String::from_utf8(bytes.clone()).map_err(|_| key)?;
        if text.is_empty() { Err(key) } else { Ok(text) }
    };
    Ok(Passwords {
        admin: of("ADMIN_PASSWORD")?,
        replication: of("REPLICATION_PASSWORD")?,
        clone_donor: of("CLONE_DONOR_PASSWORD")?,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn secret(keys: &[(&str, &str)]) -> Secret {
        let data = keys.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()))).collect();
        Secret { data: Some(data), ..Secret::default() }
    }

    const ALL: [(&str, &str); 3] = [("ADMIN_PASSWORD", "a"), ("REPLICATION_PASSWORD", "r"), ("CLONE_DONOR_PASSWORD", "c")];

    #[test]
    fn each_account_has_its_own_password_and_none_is_shown() {
        let passwords = passwords(&secret(&ALL)).unwrap();
        assert_eq!((passwords.admin.as_str(), passwords.replication.as_str(), passwords.clone_donor.as_str()), ("a", "r", "c"));
        assert_eq!(format!("{passwords:?}"), "Passwords");
    }

    #[test]
    fn a_password_that_is_missing_or_empty_is_named() {
        assert_eq!(passwords(&Secret::default()), Err("ADMIN_PASSWORD"));
        assert_eq!(passwords(&secret(&ALL[..2])), Err("CLONE_DONOR_PASSWORD"));
        assert_eq!(passwords(&secret(&[ALL[0], ("REPLICATION_PASSWORD", ""), ALL[2]])), Err("REPLICATION_PASSWORD"));
    }
}
