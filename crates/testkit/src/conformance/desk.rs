//! What a case works with: requests in plain JSON through the client, and readable complaints.

use std::{fmt, pin::Pin, time::Duration};

use futures::{Stream, StreamExt};
use http::Request;
use kube::{
    Client,
    core::{Status, WatchEvent, response::StatusCause},
};
use serde_json::{Value, json};

/// Why a case failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

impl Wrong {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl From<kube::Error> for Wrong {
    fn from(error: kube::Error) -> Self {
        Self(format!("unexpected refusal: {error}"))
    }
}

/// The result of a case.
pub type CaseResult = Result<(), Wrong>;

/// A resource the cases use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    root: &'static str,
    plural: &'static str,
    namespaced: bool,
}

const fn namespaced(root: &'static str, plural: &'static str) -> Kind {
    Kind { root, plural, namespaced: true }
}

pub(crate) const CONFIG_MAPS: Kind = namespaced("/api/v1", "configmaps");
pub(crate) const SECRETS: Kind = namespaced("/api/v1", "secrets");
pub(crate) const SERVICES: Kind = namespaced("/api/v1", "services");
pub(crate) const STATEFUL_SETS: Kind = namespaced("/apis/apps/v1", "statefulsets");
pub(crate) const BUDGETS: Kind = namespaced("/apis/policy/v1", "poddisruptionbudgets");
pub(crate) const LEASES: Kind = namespaced("/apis/coordination.k8s.io/v1", "leases");
pub(crate) const SPECIMENS: Kind = namespaced("/apis/conformance.windlass.dev/v1", "specimens");
pub(crate) const NAMESPACES: Kind = Kind { root: "/api/v1", plural: "namespaces", namespaced: false };
pub(crate) const DEFINITIONS: Kind =
    Kind { root: "/apis/apiextensions.k8s.io/v1", plural: "customresourcedefinitions", namespaced: false };

/// Content types of patches.
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const JSON: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// An answer: the object, or the client's error.
pub(crate) type Answer = Result<Value, kube::Error>;

/// A client at work in one namespace.
#[derive(Clone)]
pub(crate) struct Desk {
    client: Client,
    pub(crate) namespace: String,
}

impl Desk {
    pub(crate) fn new(client: &Client, namespace: &str) -> Self {
        Self { client: client.clone(), namespace: namespace.to_owned() }
    }

    /// The same client in another namespace.
    pub(crate) fn moved_to(&self, namespace: &str) -> Self {
        Self::new(&self.client, namespace)
    }

    pub(crate) fn path(&self, kind: &Kind, name: &str) -> String {
        let collection = if kind.namespaced {
            format!("{}/namespaces/{}/{}", kind.root, self.namespace, kind.plural)
        } else {
            format!("{}/{}", kind.root, kind.plural)
        };
        if name.is_empty() { collection } else { format!("{collection}/{name}") }
    }

    /// Any request, as it is.
    pub(crate) async fn send(&self, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Answer {
        let body = body.map(Value::to_string).unwrap_or_default().into_bytes();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content_type)
            .header(http::header::USER_AGENT, "conformance/1")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    pub(crate) async fn post(&self, kind: &Kind, object: &Value) -> Answer {
        self.send("POST", &self.path(kind, ""), "application/json", Some(object)).await
    }

    pub(crate) async fn get(&self, kind: &Kind, name: &str) -> Answer {
        self.send("GET", &self.path(kind, name), "application/json", None).await
    }

    /// PUT; `name` may carry a subresource and a query.
    pub(crate) async fn put(&self, kind: &Kind, name: &str, object: &Value) -> Answer {
        self.send("PUT", &self.path(kind, name), "application/json", Some(object)).await
    }

    /// PATCH; `name` may carry a subresource and a query.
    pub(crate) async fn patch(&self, kind: &Kind, name: &str, content_type: &str, patch: &Value) -> Answer {
        self.send("PATCH", &self.path(kind, name), content_type, Some(patch)).await
    }

    /// Server-side apply by `manager`; `extra` is more of the query, beginning with `&`.
    pub(crate) async fn apply(&self, kind: &Kind, name: &str, manager: &str, extra: &str, config: &Value) -> Answer {
        let target = format!("{name}?fieldManager={manager}{extra}");
        self.patch(kind, &target, APPLY, config).await
    }

    pub(crate) async fn delete(&self, kind: &Kind, name: &str, options: &Value) -> Answer {
        self.send("DELETE", &self.path(kind, name), "application/json", Some(options)).await
    }

    /// The list; `query` is without the question mark.
    pub(crate) async fn list(&self, kind: &Kind, query: &str) -> Answer {
        let path = format!("{}?{query}", self.path(kind, ""));
        self.send("GET", &path, "application/json", None).await
    }

    pub(crate) async fn list_names(&self, kind: &Kind, query: &str) -> Result<Vec<String>, kube::Error> {
        Ok(names(&self.list(kind, query).await?))
    }

    /// Opens a watch; `query` is without the question mark and `watch=true`.
    pub(crate) async fn watch(&self, kind: &Kind, query: &str) -> Result<Events, Wrong> {
        self.watch_as(kind, query, "application/json").await
    }

    pub(crate) async fn watch_as(&self, kind: &Kind, query: &str, accept: &str) -> Result<Events, Wrong> {
        let path = format!("{}?watch=true&{query}", self.path(kind, ""));
        let request = Request::builder()
            .uri(path)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(|error| Wrong::new(error.to_string()))?;
        let stream = self.client.request_events::<Value>(request).await?;
        Ok(Events(Box::pin(stream)))
    }

    /// The list with another `Accept` header.
    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        let request = Request::builder()
            .uri(path)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }
}

/// An open watch.
pub(crate) struct Events(Pin<Box<dyn Stream<Item = Result<WatchEvent<Value>, kube::Error>> + Send>>);

/// How long a watch may be silent before an expected event counts as missing.
const EVENT_LIMIT: Duration = Duration::from_secs(30);

impl Events {
    /// The next event as (type, object). The end of the stream is `("END", null)`.
    pub(crate) async fn next(&mut self) -> Result<(&'static str, Value), Wrong> {
        let next = tokio::time::timeout(EVENT_LIMIT, self.0.next()).await;
        let Ok(next) = next else {
            return Err(Wrong::new(format!("no watch event within {EVENT_LIMIT:?}")));
        };
        Ok(match next {
            None => ("END", Value::Null),
            Some(Ok(WatchEvent::Added(object))) => ("ADDED", object),
            Some(Ok(WatchEvent::Modified(object))) => ("MODIFIED", object),
            Some(Ok(WatchEvent::Deleted(object))) => ("DELETED", object),
            Some(Ok(WatchEvent::Bookmark(bookmark))) => (
                "BOOKMARK",
                json!({
                    "metadata": {
                        "resourceVersion": bookmark.metadata.resource_version,
                        "annotations": bookmark.metadata.annotations,
                    },
                }),
            ),
            Some(Ok(WatchEvent::Error(status))) => ("ERROR", json!(*status)),
            Some(Err(error)) => return Err(error.into()),
        })
    }

    /// The next event that is not a bookmark, which must be of this type and about this object.
    pub(crate) async fn expect(&mut self, kind: &str, name: &str) -> Result<Value, Wrong> {
        loop {
            let (found, object) = self.next().await?;
            if found == "BOOKMARK" {
                continue;
            }
            let found_name = text(&object, "/metadata/name");
            if found != kind || found_name != name {
                return Err(Wrong::new(format!("expected {kind} {name}, saw {found} {found_name}: {object}")));
            }
            return Ok(object);
        }
    }
}

/// Complains unless `held`.
pub(crate) fn check(held: bool, complaint: impl fmt::Display) -> CaseResult {
    if held { Ok(()) } else { Err(Wrong::new(complaint.to_string())) }
}

/// Complains unless both are equal.
pub(crate) fn same<A, B>(found: &A, wanted: &B, what: &str) -> CaseResult
where
    A: PartialEq<B> + fmt::Debug + ?Sized,
    B: fmt::Debug + ?Sized,
{
    check(found == wanted, format!("{what}: found {found:?}, wanted {wanted:?}"))
}

/// What a refusal says.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) details: Details,
}

/// What a refusal is about.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) causes: Vec<StatusCause>,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        let details = status.details.map(|details| Details {
            name: details.name,
            group: details.group,
            kind: details.kind,
            causes: details.causes,
        });
        Self { message: status.message, details: details.unwrap_or_default() }
    }
}

/// The refusal with this code and reason; complains about success and other refusals.
pub(crate) fn refused(answer: Answer, code: u16, reason: &str) -> Result<Refusal, Wrong> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == code && status.reason == reason => Ok((*status).into()),
        Err(kube::Error::Api(status)) => Err(Wrong::new(format!(
            "wanted {code} {reason}, was refused with {} {:?}: {}",
            status.code, status.reason, status.message
        ))),
        Err(error) => Err(error.into()),
        Ok(object) => Err(Wrong::new(format!("wanted {code} {reason}, was accepted: {object}"))),
    }
}

/// Text at a JSON pointer, empty when absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The resourceVersion as a number; the real server's are numbers too.
pub(crate) fn version(object: &Value) -> Result<u64, Wrong> {
    let found = text(object, "/metadata/resourceVersion");
    found.parse().map_err(|_| Wrong::new(format!("resourceVersion {found:?} is not a number")))
}

pub(crate) fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array();
    items.into_iter().flatten().map(|item| text(item, "/metadata/name").to_owned()).collect()
}

/// A ConfigMap with labels and data.
pub(crate) fn config_map(name: &str, labels: &Value, data: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": labels },
        "data": data,
    })
}

/// Waits for something that controllers bring about.
pub(crate) async fn eventually<Holds, Answer>(what: &str, mut holds: Holds) -> CaseResult
where
    Holds: FnMut() -> Answer,
    Answer: Future<Output = Result<bool, Wrong>>,
{
    let limit = Duration::from_secs(90);
    let pause = Duration::from_millis(100);
    let wait = async {
        while !holds().await? {
            tokio::time::sleep(pause).await;
        }
        Ok(())
    };
    let result = tokio::time::timeout(limit, wait).await;
    result.unwrap_or_else(|_| Err(Wrong::new(format!("not within {limit:?}: {what}"))))
}
