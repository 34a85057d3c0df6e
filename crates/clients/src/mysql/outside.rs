//! The Secret that tells where a server elsewhere is, and how to log in there. It is read right before it is used, kept nowhere, and never
//! shown.

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use windlass_kinds::mysql::deeds::{Outside, Place, Source};
use windlass_kinds::mysql::facts::{SourceAt, Unreadable};

use super::session::Failure;

/// How long one request may take.
const CALL: Duration = Duration::from_secs(2);

/// A server elsewhere, and the accounts that it lets in.
pub(super) struct Elsewhere {
    /// The version of the Secret.
    pub(super) version: String,
    /// Where it is.
    pub(super) source: Source,
    /// Who may replicate and copy.
    pub(super) user: String,
    pub(super) password: String,
    /// Who may do everything, in the copy.
    pub(super) init_user: String,
    pub(super) init_password: String,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl Elsewhere {
    /// What decisions need of it.
    pub(super) fn at(&self) -> SourceAt {
        SourceAt { version: self.version.clone(), host: self.source.host.clone() }
    }
}

/// Reads it.
pub(super) async fn read(client: &Client, namespace: &str, name: &str) -> Result<Elsewhere, Unreadable> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let field = "of spec.replicationSourceSecretName";
    match tokio::time::timeout(CALL, secrets.get_opt(name)).await {
        Ok(Ok(Some(secret))) => elsewhere(&secret).map_err(|why| {
            Unreadable::Missing(format!("Secret {name} {field} cannot be used: {why}; it needs {}", KEYS.join(", ")))
        }),
        Ok(Ok(None)) => Err(Unreadable::Missing(format!("Secret {name} {field} does not exist; it needs {}", KEYS.join(", ")))),
        Ok(Err(error)) => Err(Unreadable::Unknown(format!("Secret {name} {field} could not be read: {error}"))),
        Err(_) => Err(Unreadable::Unknown(format!("Secret {name} {field} could not be read within {} s", CALL.as_secs()))),
    }
}

/// Reads it for a task, which was decided by one version of it.
pub(super) async fn as_decided(client: &Client, place: &Place, outside: &Outside) -> Result<Elsewhere, Failure> {
    let elsewhere = read(client, &place.namespace, &outside.secret).await.map_err(|why| Failure::Untried(why.to_string()))?;
    if elsewhere.version != outside.version {
        let why = format!("Secret {} was changed since this was decided, so nothing was done", outside.secret);
        return Err(Failure::Untried(why));
    }
    Ok(elsewhere)
}

const KEYS: [&str; 6] = ["HOST", "PORT", "USER", "PASSWORD", "INIT_USER", "INIT_PASSWORD"];

/// What is wrong with it is told, never what it says.
fn elsewhere(secret: &Secret) -> Result<Elsewhere, String> {
    let of = |key: &str| {
        let missing = || format!("it has no {key}");
        let bytes = &secret.data.as_ref().and_then(|data| data.get(key)).ok_or_else(missing)?.0;
        let text = String::from_utf8(bytes.clone()).map_err(|_| format!("its {key} is no text"))?;
        if text.is_empty() { Err(missing()) } else { Ok(text) }
    };
    let [host, port, user, password, init_user, init_password] = KEYS.map(of);
    let port = port?.trim().parse().ok().filter(|port| *port > 0).ok_or("its PORT is no number of a port")?;
    Ok(Elsewhere {
        version: secret.metadata.resource_version.clone().unwrap_or_default(),
        source: Source { host: host?.trim().to_owned(), port },
        user: user?,
        password: password?,
        init_user: init_user?,
        init_password: init_password?,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;
    use kube::core::ObjectMeta;

    use super::*;

    const VALUES: [&str; 6] = ["db.example", "3306", "repl", "hidden one", "root", "hidden two"];

    fn secret(change: impl FnOnce(&mut std::collections::BTreeMap<String, ByteString>)) -> Secret {
        let pairs = KEYS.iter().zip(VALUES).map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let mut data = pairs.collect();
        change(&mut data);
        let metadata = ObjectMeta { resource_version: Some("7".into()), ..ObjectMeta::default() };
        Secret { metadata, data: Some(data), ..Secret::default() }
    }

    #[test]
    fn every_key_is_read_and_none_is_shown() {
        let read = elsewhere(&secret(|_| {})).unwrap();
        assert_eq!((read.source.host.as_str(), read.source.port, read.user.as_str()), ("db.example", 3306, "repl"));
        assert_eq!((read.password.as_str(), read.init_user.as_str()), ("hidden one", "root"));
        assert_eq!((read.init_password.as_str(), read.version.as_str()), ("hidden two", "7"));
        assert_eq!(format!("{read:?}"), "Elsewhere");
        assert!(!format!("{:?}", read.at()).contains("hidden"));
    }

    #[test]
    fn a_key_that_is_missing_or_empty_is_named_and_no_value_is_told() {
        for key in KEYS {
            let told = elsewhere(&secret(|data| drop(data.remove(key)))).unwrap_err();
            assert_eq!(told, format!("it has no {key}"));
            let empty = elsewhere(&secret(|data| drop(data.insert(key.to_owned(), ByteString(Vec::new()))))).unwrap_err();
            assert_eq!(empty, format!("it has no {key}"));
        }
        for port in ["many", "0", "70000"] {
            let told = elsewhere(&secret(|data| drop(data.insert("PORT".into(), ByteString(port.into()))))).unwrap_err();
            assert_eq!(told, "its PORT is no number of a port");
        }
    }
}
