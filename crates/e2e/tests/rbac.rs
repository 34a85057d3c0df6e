//! What the operator may do is what it did over all tests: nothing is missing, nothing is unused. Runs last.

#![cfg(feature = "lab")]

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use windlass_e2e::Stage;
use windlass_e2e::galera::read_repository;

const MANIFEST: &str = "deploy/windlass.yaml";

/// A verb, a group, and a resource with its subresource.
type Use = (String, String, String);

/// Allowed, and not used on this version of Kubernetes. From 1.35 on, a server asks for it beside `get` when a command is run
/// through a websocket; without it the operator would stand still after an upgrade of the server.
const NEEDED_LATER: [(&str, &str, &str); 1] = [("create", "", "pods/exec")];

#[tokio::test]
async fn the_operator_may_do_what_it_did_and_nothing_else() -> Result<()> {
    let stage = Stage::get().await?;
    let audit = stage.audit();
    let requests = audit.requests_of(&stage.operator_user(), audit.beginning())?;
    ensure!(!requests.is_empty(), "{} is not in the audit log", stage.operator_user());
    let refused: BTreeSet<String> = requests
        .iter()
        .filter(|entry| entry.is_unauthorised())
        .map(|entry| format!("{} {} in group {:?}", entry.verb, entry.resource(), entry.group()))
        .collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");

    let mut used: BTreeSet<Use> = BTreeSet::new();
    for entry in requests.iter().filter(|entry| !entry.resource().is_empty()) {
        let key = |verb: &str| (verb.to_owned(), entry.group().to_owned(), entry.resource());
        used.insert(key(&entry.verb));
        // An apply that makes an object needs both.
        if entry.verb == "patch" && entry.code() == 201 {
            used.insert(key("create"));
        }
    }
    let allowed = allowed()?;
    println!("the operator made {} requests; {} sorts used, {} allowed", requests.len(), used.len(), allowed.len());
    let missing: Vec<&Use> = used.difference(&allowed).collect();
    let later = |it: &Use| NEEDED_LATER.contains(&(it.0.as_str(), it.1.as_str(), it.2.as_str()));
    let unused: Vec<&Use> = allowed.difference(&used).filter(|it| !later(it)).collect();
    ensure!(missing.is_empty(), "used and not allowed by {MANIFEST}: {missing:?}");
    ensure!(unused.is_empty(), "allowed by {MANIFEST} and not used by any test: {unused:?}");
    Ok(())
}

/// All that the roles of the manifest allow.
fn allowed() -> Result<BTreeSet<Use>> {
    let objects: Vec<Value> =
        serde_saphyr::from_multiple(&read_repository(MANIFEST)?).context("the manifest cannot be read")?;
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
    };
    let mut allowed = BTreeSet::new();
    for role in objects.iter().filter(|object| object["kind"] == "ClusterRole" || object["kind"] == "Role") {
        for rule in role["rules"].as_array().context("a role without rules")? {
            for verb in words(&rule["verbs"]) {
                for group in words(&rule["apiGroups"]) {
                    for resource in words(&rule["resources"]) {
                        allowed.insert((verb.clone(), group.clone(), resource));
                    }
                }
            }
        }
    }
    ensure!(!allowed.is_empty(), "{MANIFEST} has no role");
    Ok(allowed)
}
