//! Every reason that a MySQLCluster can show is explained in the guide, and the guide explains none that is gone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use std::collections::BTreeSet;
use std::path::Path;

use windlass_api::mysql::conditions::{State, reasons};

/// Core and the engine tell these of every kind.
const OF_EVERY_KIND: [&str; 6] = ["ForeignObject", "Idle", "NothingBlocked", "StepFailed", "UnknownIntent", "Working"];

fn sources(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|it| it == "rs") {
            into.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

/// The words between these two.
fn words<'a>(text: &'a str, before: &str, after: &str) -> BTreeSet<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(word, _)| word).collect()
}

fn known() -> BTreeSet<String> {
    let mut code = String::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/mysql"), &mut code);
    let mut known: BTreeSet<String> = words(&code, "reason!(\"", "\")").into_iter().map(str::to_owned).collect();
    known.extend(State::ALL.map(|state| state.as_str().to_owned()));
    let named = [
        ("STATEFUL_SET_READY", reasons::STATEFUL_SET_READY),
        ("STATEFUL_SET_NOT_READY", reasons::STATEFUL_SET_NOT_READY),
        ("STATEFUL_SET_NOT_FOUND", reasons::STATEFUL_SET_NOT_FOUND),
        ("RECONCILE_SUCCESS", reasons::RECONCILE_SUCCESS),
        ("RECONCILE_FAILED", reasons::RECONCILE_FAILED),
        ("RECONCILIATION_ACTIVE", reasons::RECONCILIATION_ACTIVE),
        ("RECONCILIATION_INACTIVE", reasons::RECONCILIATION_INACTIVE),
        ("CLUSTERING_ACTIVE", reasons::CLUSTERING_ACTIVE),
        ("CLUSTERING_INACTIVE", reasons::CLUSTERING_INACTIVE),
    ];
    for name in words(&code, "reason!(reasons::", ")") {
        let found = named.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name} is not in the list above"));
        known.insert(found.1.to_owned());
    }
    known.extend(OF_EVERY_KIND.map(str::to_owned));
    known
}

/// The headings of the second order, and the names in the first cells of tables of reasons.
fn explained() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/mysql-states.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut explained = BTreeSet::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            explained.insert(heading.to_owned());
        } else if line.starts_with("| `") {
            let cell = line.trim_start_matches("| ").split(" | ").next().unwrap();
            explained.extend(cell.split(", ").map(|word| word.trim_matches('`').to_owned()));
        }
    }
    explained
}

#[test]
fn every_reason_is_explained_and_no_other() {
    let (known, explained) = (known(), explained());
    assert!(known.len() > 40 && known.contains("ReplicaTooOld") && known.contains("Lost"), "{known:?}");
    let missing: Vec<_> = known.difference(&explained).collect();
    assert!(missing.is_empty(), "docs/guide/mysql-states.md has no section on {missing:?}");
    let gone: Vec<_> = explained.difference(&known).collect();
    assert!(gone.is_empty(), "docs/guide/mysql-states.md tells of {gone:?}, which nothing tells any more");
}
