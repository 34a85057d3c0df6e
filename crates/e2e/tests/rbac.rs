//! What releases may do is what they did over all tests: nothing is missing, nothing is unused. Runs last.

#![cfg(feature = "lab")]

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use windlass_e2e::galera::read_repository;
use windlass_e2e::helm::is_release;
use windlass_e2e::{Entry, Stage};

const RULES: &str = "charts/windlass/files/rules.yaml";

/// A verb, a group, and a resource with its subresource.
type Use = (String, String, String);

/// Allowed, and not used here. `create pods/exec`: from Kubernetes 1.35 on, a server asks for it beside `get` when a command is run
/// through a websocket; without it the operator would stand still after an upgrade of the server. `watch leases`: whoever stands
/// by waits for the Lease, and the installed release has one replica. The others are for what these tests do not do: a ConfigMap is
/// deleted when there are ten newer ones, and claims, accounts, Deployments, Roles and their bindings are read one by one when a cluster of
/// another operator is taken over (both are shown on the fake API server). Nodes are read where PD has location labels, as in `tidb_adoption`.
const NEEDED_LATER: [(&str, &str, &str); 9] = [
    ("create", "", "pods/exec"),
    ("watch", "coordination.k8s.io", "leases"),
    ("delete", "", "configmaps"),
    ("get", "", "persistentvolumeclaims"),
    ("get", "", "serviceaccounts"),
    ("get", "", "nodes"),
    ("get", "apps", "deployments"),
    ("get", "rbac.authorization.k8s.io", "roles"),
    ("get", "rbac.authorization.k8s.io", "rolebindings"),
];

/// Allowed in the namespace of a release, and not used there: the clusters of MySQL of these tests are looked after by an operator
/// outside, whose requests all count as made elsewhere. And the next root of a release's certificates is made after years.
const NEEDED_AT_HOME: [(&str, &str, &str); 3] = [("create", "", "secrets"), ("get", "", "secrets"), ("update", "", "secrets")];

/// What a request asked for, and who did.
fn right(entry: &Entry) -> String {
    let (verb, resource, group, namespace) = (&entry.verb, entry.resource(), entry.group(), entry.namespace());
    format!("{verb} {resource} in group {group:?} and namespace {namespace:?} by {}", entry.user())
}

#[tokio::test]
async fn releases_may_do_what_they_did_and_nothing_else() -> Result<()> {
    let stage = Stage::get().await?;
    let audit = stage.audit();
    let operator = stage.operator_user();
    let requests = audit.requests_where(|user| user == operator || is_release(user), audit.beginning())?;
    ensure!(requests.iter().any(|entry| entry.user() == operator), "{operator} is not in the audit log");
    // A server that has just started does not know all rights yet, and refuses what it allows a moment later.
    let is_allowed_later = |place: usize, entry: &Entry| {
        requests[place..].iter().any(|later| !later.is_unauthorised() && right(later) == right(entry))
    };
    let refused: BTreeSet<String> = requests
        .iter()
        .enumerate()
        .filter(|(place, entry)| entry.is_unauthorised() && !is_allowed_later(*place, entry))
        .map(|(_, entry)| entry)
        // `helm uninstall` takes a release's rights away before its pod ends: the Lease then runs out instead of being given up.
        .filter(|entry| entry.user() == operator || entry.resource() != "leases")
        .map(right)
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");

    let (at_home, elsewhere) = (uses(&requests, is_at_home), uses(&requests, |entry| !is_at_home(entry)));
    let rules: Value = serde_saphyr::from_str(&read_repository(RULES)?).with_context(|| format!("{RULES} cannot be read"))?;
    let (clusters, release) = (allowed(&rules["clusters"])?, allowed(&rules["release"])?);
    println!(
        "releases made {} requests; used {} sorts in their own namespace and {} elsewhere, may {} and {}",
        requests.len(),
        at_home.len(),
        elsewhere.len(),
        release.len(),
        clusters.len()
    );
    let later = |it: &&Use| NEEDED_LATER.contains(&(it.0.as_str(), it.1.as_str(), it.2.as_str()));
    let missing: Vec<&Use> = elsewhere
        .difference(&clusters)
        .chain(at_home.iter().filter(|it| !clusters.contains(it) && !release.contains(it)))
        .collect();
    ensure!(missing.is_empty(), "used and not allowed by {RULES}: {missing:?}");
    let unused: Vec<&Use> = clusters.difference(&elsewhere).filter(|it| !later(it)).collect();
    ensure!(unused.is_empty(), "allowed by {RULES} where clusters are, and not used by any test: {unused:?}");
    let at_home_later = |it: &&Use| NEEDED_AT_HOME.contains(&(it.0.as_str(), it.1.as_str(), it.2.as_str()));
    let unused: Vec<&Use> = release.difference(&at_home).filter(|it| !later(it) && !at_home_later(it)).collect();
    ensure!(unused.is_empty(), "allowed by {RULES} in the namespace of the release, and not used by any test: {unused:?}");
    Ok(())
}

/// Whether a request was for something in the namespace of the release that made it.
fn is_at_home(entry: &Entry) -> bool {
    let account = entry.user().strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    account.is_some_and(|(namespace, _)| namespace == entry.namespace())
}

fn uses(requests: &[Entry], is_meant: impl Fn(&Entry) -> bool) -> BTreeSet<Use> {
    let mut used = BTreeSet::new();
    for entry in requests.iter().filter(|entry| !entry.resource().is_empty() && is_meant(entry)) {
        let key = |verb: &str| (verb.to_owned(), entry.group().to_owned(), entry.resource());
        used.insert(key(&entry.verb));
        // An apply that makes an object needs both.
        if entry.verb == "patch" && entry.code() == 201 {
            used.insert(key("create"));
        }
    }
    used
}

/// All that these rules allow.
fn allowed(rules: &Value) -> Result<BTreeSet<Use>> {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in rules.as_array().with_context(|| format!("{RULES} lacks rules"))? {
        for verb in words(&rule["verbs"]) {
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    allowed.insert((verb.clone(), group.clone(), resource));
                }
            }
        }
    }
    ensure!(!allowed.is_empty(), "{RULES} allows nothing");
    Ok(allowed)
}
