//! An AdmissionReview: what is asked, and what is answered. Pure; whoever serves it brings what has to be looked up.
//!
//! What is not selected is allowed untouched: another release judges it, or nobody does. A request that takes an object out of the
//! selector is judged by what the object becomes.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_core::selector::Selector;
use windlass_kinds::mysql::admission::{complete, judge_cluster, judge_policy, judge_removal};
use windlass_kinds::tidb::admission as tidb;

const CLUSTERS: &str = "mysqlclusters";
const POLICIES: &str = "backuppolicies";
const TIDB_CLUSTERS: &str = "tidbclusters";
const DELETE: &str = "DELETE";
const CREATE: &str = "CREATE";

/// What is asked.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Request {
    uid: String,
    resource: Resource,
    pub(super) namespace: String,
    name: String,
    operation: String,
    object: Value,
    old_object: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resource {
    resource: String,
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Allowed,
    /// Allowed, with these operations of a JSON Patch.
    Completed(Vec<Value>),
    /// Allowed, and something is said to whoever asked.
    Doubted(String),
    Refused(String),
}

/// The clusters of a namespace and the policies that they name, or why they cannot be looked up.
pub(super) type Clusters = Result<Vec<(String, Option<String>)>, String>;

/// Reads a review.
pub(super) fn read(body: &[u8]) -> Result<Request, String> {
    let mut review: Value = serde_json::from_slice(body).map_err(|error| format!("the review is no JSON: {error}"))?;
    let request: Request =
        serde_json::from_value(review["request"].take()).map_err(|error| format!("the review has no request: {error}"))?;
    if request.uid.is_empty() { Err("the review has no request".to_owned()) } else { Ok(request) }
}

impl Request {
    /// The object that there is afterwards; of a deletion, the one that goes.
    fn subject(&self) -> &Value {
        if self.operation == DELETE { &self.old_object } else { &self.object }
    }

    fn is_selected(&self, selector: &Selector) -> bool {
        let labels = self.subject()["metadata"]["labels"].clone();
        selector.matches(&serde_json::from_value::<BTreeMap<String, String>>(labels).unwrap_or_default())
    }

    /// Whether the clusters of the namespace have to be looked up for the verdict.
    pub(super) fn needs_clusters(&self, selector: &Selector) -> bool {
        self.resource.resource == POLICIES && self.operation == DELETE && self.is_selected(selector)
    }

    /// Fills in what a new cluster lacks.
    pub(super) fn mutate(&self, selector: &Selector, number: u32) -> Verdict {
        if self.resource.resource != CLUSTERS || self.operation != CREATE || !self.is_selected(selector) {
            return Verdict::Allowed;
        }
        let operations = complete(&self.object, number);
        if operations.is_empty() { Verdict::Allowed } else { Verdict::Completed(operations) }
    }

    /// Judges a request.
    pub(super) fn validate(&self, selector: &Selector, clusters: &Clusters) -> Verdict {
        if !self.is_selected(selector) || self.changes_metadata_alone() {
            return Verdict::Allowed;
        }
        match (self.resource.resource.as_str(), self.operation.as_str()) {
            (_, DELETE) if self.resource.resource != POLICIES => Verdict::Allowed,
            (POLICIES, DELETE) => match clusters {
                Ok(clusters) => verdict(judge_removal(&self.namespace, &self.name, clusters)),
                Err(why) => Verdict::Doubted(format!("whether a MySQLCluster uses this policy is not known: {why}")),
            },
            (CLUSTERS, _) => self.judge(judge_cluster),
            (POLICIES, _) => self.judge(judge_policy),
            (TIDB_CLUSTERS, _) => self.judge(tidb::judge_cluster),
            _ => Verdict::Allowed,
        }
    }

    /// Labels, annotations and finalizers are free, whatever is wrong with the rest.
    fn changes_metadata_alone(&self) -> bool {
        let ends = !self.object["metadata"]["deletionTimestamp"].is_null();
        self.old_object.is_object() && self.operation != DELETE && (ends || self.object["spec"] == self.old_object["spec"])
    }

    fn judge<T: DeserializeOwned, E: ToString>(&self, judge: impl FnOnce(Option<&T>, &T) -> Result<(), E>) -> Verdict {
        let new: T = match serde_json::from_value(self.object.clone()) {
            Ok(new) => new,
            Err(error) => return Verdict::Refused(format!("the operator could not read it: {error}")),
        };
        // One that could not be read before had nothing that the new one could be compared with.
        let old: Option<T> = serde_json::from_value(self.old_object.clone()).ok();
        verdict(judge(old.as_ref(), &new))
    }

    /// The review that is sent back.
    pub(super) fn answer(&self, verdict: Verdict) -> Value {
        let mut response = json!({ "uid": self.uid, "allowed": !matches!(verdict, Verdict::Refused(_)) });
        match verdict {
            Verdict::Allowed => {}
            Verdict::Completed(operations) => {
                response["patchType"] = "JSONPatch".into();
                response["patch"] = json!(ByteString(Value::from(operations).to_string().into_bytes()));
            }
            Verdict::Doubted(why) => response["warnings"] = json!([why]),
            Verdict::Refused(why) => response["status"] = json!({ "code": 422, "reason": "Invalid", "message": why }),
        }
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
    }
}

fn verdict(judged: Result<(), impl ToString>) -> Verdict {
    judged.map_or_else(|why| Verdict::Refused(why.to_string()), |()| Verdict::Allowed)
}

#[cfg(test)]
#[path = "review_tests.rs"]
pub(super) mod tests;
