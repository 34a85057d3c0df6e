//! Every reason that a MySQLCluster or a TidbCluster can show is explained in the guide, and the guide explains none that is gone.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use windlass_api::mysql::conditions::{State, reasons};
use windlass_api::tidb::conditions::ReadyReason;

/// Core and the engine tell these of every kind.
const OF_EVERY_KIND: [&str; 6] = ["ForeignObject", "Idle", "NothingBlocked", "StepFailed", "UnknownIntent", "Working"];
/// Where every task of TiDB is named, planned or not.
const KNOW_EVERY_TASK: [&str; 2] = ["deeds", "simulation"];

fn house(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

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

fn code(folder: &str) -> String {
    let mut code = String::new();
    sources(&house(folder), &mut code);
    code
}

fn file(path: &str) -> String {
    std::fs::read_to_string(house(path)).unwrap()
}

/// The words between these two.
fn words<'a>(text: &'a str, before: &str, after: &str) -> BTreeSet<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(word, _)| word).collect()
}

fn literal_reasons(code: &str) -> impl Iterator<Item = String> {
    words(code, "reason!(\"", "\")").into_iter().map(str::to_owned)
}

fn of_mysql() -> BTreeSet<String> {
    let code = code("crates/kinds/src/mysql");
    let mut known: BTreeSet<String> = literal_reasons(&code).collect();
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

fn of_tidb() -> BTreeSet<String> {
    let mut known: BTreeSet<String> = literal_reasons(&code("crates/kinds/src/tidb")).collect();
    known.extend(ReadyReason::ALL.map(|reason| reason.as_str().to_owned()));
    known.extend(literal_reasons(&file("crates/core/src/telling.rs")));
    known.extend(OF_EVERY_KIND.map(str::to_owned));
    known.extend(planned_tasks());
    known
}

/// What is done to PD and to servers is told by an Event of its name: all tasks that some plan has.
fn planned_tasks() -> BTreeSet<String> {
    let deeds = file("crates/kinds/src/tidb/deeds.rs");
    let (_, rest) = deeds.split_once("pub enum Task {\n").unwrap();
    let (tasks, _) = rest.split_once("\n}\n").unwrap();
    let variants =
        tasks.lines().filter_map(|line| line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase)));
    let names: BTreeSet<&str> = variants.map(|line| line.trim_end_matches([',', ' ', '{'])).collect();
    let of_plans = |path: &PathBuf| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        path.is_file() && !KNOW_EVERY_TASK.contains(&name) && !name.ends_with("_tests")
    };
    let files = std::fs::read_dir(house("crates/kinds/src/tidb")).unwrap().map(|entry| entry.unwrap().path());
    let plans: String = files.filter(of_plans).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let is_planned = |name: &&str| plans.contains(&format!("Task::{name}"));
    names.into_iter().filter(is_planned).map(str::to_owned).collect()
}

/// The headings of the second order, and the names in the first cells of tables of reasons.
fn explained(page: &str) -> BTreeSet<String> {
    let mut explained = BTreeSet::new();
    for line in file(page).lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            explained.insert(heading.to_owned());
        } else if line.starts_with("| `") {
            let cell = line.trim_start_matches("| ").split(" | ").next().unwrap();
            explained.extend(cell.split(", ").map(|word| word.trim_matches('`').to_owned()));
        }
    }
    explained
}

fn check(page: &str, known: &BTreeSet<String>) {
    let explained = explained(page);
    let missing: Vec<_> = known.difference(&explained).collect();
    assert!(missing.is_empty(), "{page} has no section on {missing:?}");
    let gone: Vec<_> = explained.difference(known).collect();
    assert!(gone.is_empty(), "{page} tells of {gone:?}, which nothing tells any more");
}

#[test]
fn every_reason_of_mysql_is_explained_and_no_other() {
    let known = of_mysql();
    assert!(known.len() > 40 && known.contains("ReplicaTooOld") && known.contains("Lost"), "{known:?}");
    check("docs/guide/mysql-states.md", &known);
}

#[test]
fn every_reason_of_tidb_is_explained_and_no_other() {
    let known = of_tidb();
    // One of each source: plans, what is told, what users know, core, and tasks.
    for word in ["FailedScaleIn", "ClusterFounded", "TiKVStoreNotUp", "Paused", "EvictLeaders"] {
        assert!(known.contains(word), "{word}: {known:?}");
    }
    check("docs/guide/tidb-states.md", &known);
}
