//! The record of every request the server saw.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::path::Query;

/// A verb as RBAC names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH of any kind, server-side apply included.
    Patch,
    /// DELETE of one object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb in an RBAC rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether the verb changes something.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not answered yet, or the caller went away before the answer.
    Pending,
    /// Answered with this code, and the reason of the Status for refusals.
    Answered {
        /// HTTP code.
        code: u16,
        /// Status reason, empty on success.
        reason: String,
    },
    /// The connection broke; `done` says whether the request had been carried out.
    Lost {
        /// Whether the server did the work.
        done: bool,
    },
    /// Never answered.
    Hung,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// Position among all calls, from 0.
    pub index: usize,
    /// RBAC verb.
    pub verb: Verb,
    /// API group.
    pub group: String,
    /// Plural resource.
    pub resource: String,
    /// Subresource, if any.
    pub subresource: Option<String>,
    /// Namespace, if any.
    pub namespace: Option<String>,
    /// Object name, if any.
    pub name: Option<String>,
    /// The field manager sent with a write.
    pub field_manager: Option<String>,
    /// Whether the write was a rehearsal.
    pub dry_run: bool,
    /// Content type of the body.
    pub content_type: String,
    /// All query options.
    pub query: Query,
    /// The body, null when there was none.
    pub body: Value,
    /// Who called, by its user agent; empty when it does not say.
    pub caller: String,
    /// When it came in, by the runtime's timer, so that in tests this is simulated time.
    pub at: tokio::time::Instant,
    /// How it ended.
    pub outcome: Outcome,
}

impl Call {
    /// Whether the call asked for a lasting change.
    pub fn is_mutation(&self) -> bool {
        self.verb.is_write() && !self.dry_run
    }

    /// Whether the call was carried out and answered without refusal.
    pub fn succeeded(&self) -> bool {
        matches!(self.outcome, Outcome::Answered { code, .. } if code < 400)
    }

    /// The resource as RBAC writes it, with the subresource.
    pub fn rbac_resource(&self) -> String {
        match &self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource),
            None => self.resource.clone(),
        }
    }
}

/// The set of (verb, group, resource) in some calls.
pub(crate) fn access_of(calls: &[Call]) -> BTreeSet<(String, String, String)> {
    calls.iter().map(|call| (call.verb.as_str().to_owned(), call.group.clone(), call.rbac_resource())).collect()
}
