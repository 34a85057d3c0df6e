//! GET of objects and lists: revisions, selectors, pages, and metadata-only views.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    failure::Failure,
    path::Query,
    registry::Resource,
    selector::Selection,
    state::{Answer, State},
    store::ObjectKey,
};

/// How a client wants objects shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Whole,
    MetadataOnly,
}

impl View {
    pub(crate) fn from_accept(accept: &str) -> Self {
        if accept.contains("as=PartialObjectMetadata") { Self::MetadataOnly } else { Self::Whole }
    }

    /// The object as this client sees it, in the version it asked for.
    pub(crate) fn show(self, resource: &Resource, object: &Value) -> Value {
        match self {
            Self::Whole => {
                let mut shown = object.clone();
                if resource.custom && shown["apiVersion"] != resource.api_version().as_str() {
                    shown["apiVersion"] = json!(resource.api_version());
                }
                shown
            }
            Self::MetadataOnly => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
        }
    }
}

impl State {
    /// The newest revision a read may show.
    pub(crate) fn readable_revision(&self, stale_at: Option<u64>) -> u64 {
        let newest = self.history.revision();
        stale_at.or(self.script.held_at).map_or(newest, |held| held.min(newest))
    }

    pub(crate) fn get(
        &self,
        resource: &Resource,
        key: &ObjectKey,
        query: &Query,
        stale_at: Option<u64>,
    ) -> Result<Arc<Value>, Failure> {
        self.check_not_ahead(query)?;
        let revision = self.readable_revision(stale_at);
        self.history.get_at(key, revision).ok_or_else(|| Failure::not_found(resource, &key.name))
    }

    fn check_not_ahead(&self, query: &Query) -> Result<(), Failure> {
        let newest = self.history.revision();
        match revision_of(query)? {
            Some(asked) if asked > newest => Err(Failure::revision_too_large(asked, newest)),
            _ => Ok(()),
        }
    }

    pub(crate) fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        query: &Query,
        view: View,
        stale_at: Option<u64>,
    ) -> Result<Answer, Failure> {
        self.check_not_ahead(query)?;
        let selection = Selection::from_query(query, resource.plural == "pods")?;
        let mut revision = self.readable_revision(stale_at);
        let mut from = None;
        if let Some(token) = query.get("continue") {
            let (at, after) =
                read_token(token).ok_or_else(|| Failure::bad_request(format!("continue key is not valid: {token:?}")))?;
            if at < self.history.horizon() {
                return Err(Failure::expired(
                    "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
                ));
            }
            revision = at;
            from = Some(after);
        } else if query.get("resourceVersionMatch") == Some("Exact") {
            let exact = revision_of(query)?.unwrap_or_default();
            if exact < self.history.horizon() {
                return Err(Failure::expired(format!("The resourceVersion for the provided list is too old: {exact}")));
            }
            revision = exact;
        }
        let all = self.history.list_at(resource, namespace, revision);
        let mut chosen: Vec<(ObjectKey, Arc<Value>)> = all
            .into_iter()
            .filter(|(key, _)| from.as_ref().is_none_or(|after| place(key) > *after))
            .filter(|(_, object)| selection.matches(object))
            .collect();
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if resource.custom && view == View::Whole {
            metadata["continue"] = json!("");
        }
        let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok());
        if let Some(limit) = limit.filter(|limit| *limit > 0 && chosen.len() > *limit) {
            let rest = chosen.split_off(limit);
            if let Some((last, _)) = chosen.last() {
                metadata["continue"] = json!(write_token(revision, &place(last)));
            }
            if selection.is_everything() {
                metadata["remainingItemCount"] = json!(rest.len());
            }
        }
        let items: Vec<Value> = chosen.iter().map(|(_, object)| shown_in_list(resource, view, object)).collect();
        let (kind, api_version) = match view {
            View::Whole => (format!("{}List", resource.kind), resource.api_version()),
            View::MetadataOnly => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        let list = json!({ "kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items });
        Ok((200, list))
    }
}

/// Items of built-in lists do not repeat their type.
fn shown_in_list(resource: &Resource, view: View, object: &Value) -> Value {
    let mut shown = view.show(resource, object);
    if view == View::Whole
        && !resource.custom
        && let Some(root) = shown.as_object_mut()
    {
        root.remove("apiVersion");
        root.remove("kind");
    }
    shown
}

/// The resourceVersion of a query; `0` and absent are both "no demand", told apart by the caller where it matters.
pub(crate) fn revision_of(query: &Query) -> Result<Option<u64>, Failure> {
    match query.get("resourceVersion") {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| Failure::bad_request(format!("invalid resource version {text:?}"))),
    }
}

fn place(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// A token nobody is tempted to read: the revision and the last place, in hexadecimal.
fn write_token(revision: u64, place: &str) -> String {
    let plain = format!("{revision}:{place}");
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    plain.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn read_token(token: &str) -> Option<(u64, String)> {
    let digits: Vec<char> = token.chars().collect();
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).ok()).collect();
    let plain = String::from_utf8(bytes?).ok()?;
    let (revision, place) = plain.split_once(':')?;
    Some((revision.parse().ok()?, place.to_owned()))
}
