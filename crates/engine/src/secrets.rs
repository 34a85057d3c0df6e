//! Puts values into Secrets, right before they are sent. They are drawn here, or read from the Secret that a recipe names, and kept
//! nowhere.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use windlass_core::secrets::{FINGERPRINT, Recipe, fingerprint};
use windlass_core::step::Manifest;

use crate::authority::{Authority, AuthorityError};
use crate::calls::{CallError, Calls};

/// Bytes of a value that nobody knows.
const DRAWN: usize = 16;

/// Completes the body of an apply.
pub(crate) async fn fill(
    calls: &Calls,
    authority: Option<&Authority>,
    manifest: &Manifest,
    body: &mut Value,
) -> Result<(), CallError> {
    let object = &manifest.object;
    let senseless = |why: String| CallError::Senseless { what: format!("apply {object}"), why };
    let recipe: Recipe = serde_json::from_value(manifest.spec.clone()).map_err(|error| senseless(error.to_string()))?;
    let values = match &recipe.from {
        None => BTreeMap::new(),
        Some((name, over)) => {
            let read = |client| {
                let api: Api<Secret> = Api::namespaced(client, &object.namespace);
                async move { api.get(name).await }
            };
            let what = || format!("read Secret {name} in namespace {:?}", object.namespace);
            let secret = calls.send(what, read).await?;
            // What is made of another one would be taken for made of this one.
            if secret.metadata.uid.as_ref() != Some(&over.uid) {
                return Err(senseless(format!("Secret {name} is not the one that this was decided for")));
            }
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, text(value.0))).collect()
        }
    };
    let mut failure = None;
    let mut made = recipe
        .make(&values, || {
            draw().unwrap_or_else(|error| {
                failure = Some(error);
                String::new()
            })
        })
        .map_err(|missing| senseless(format!("{missing} in {}", recipe.from.as_ref().map_or("", |(name, _)| name))))?;
    if let Some(error) = failure {
        return Err(senseless(format!("no random values can be had: {error}")));
    }
    if let Some(wanted) = &recipe.certificate {
        let authority = authority.ok_or_else(|| senseless("this operator has no authority for certificates".to_owned()))?;
        let certified = authority.certify(wanted).await.map_err(|error| match error {
            AuthorityError::Call(error) => error,
            AuthorityError::Outrun => CallError::Ambiguous { what: format!("apply {object}"), why: error.to_string() },
            other => senseless(other.to_string()),
        })?;
        for (key, value) in certified.annotations {
            body["metadata"]["annotations"][key] = value.into();
        }
        made.extend(certified.texts);
    }
    let data =
        made.into_iter().map(|(key, value)| (key, k8s_openapi::ByteString(value.into_bytes()))).collect::<BTreeMap<_, _>>();
    let data = json!(data);
    body["metadata"]["annotations"][FINGERPRINT] = fingerprint(&data)["fingerprint"].clone();
    body["data"] = data;
    body["type"] = "Opaque".into();
    if recipe.immutable {
        body["immutable"] = true.into();
    }
    Ok(())
}

/// A value that nobody knows, in hexadecimal digits.
fn draw() -> Result<String, getrandom::Error> {
    let mut bytes = [0; DRAWN];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}
