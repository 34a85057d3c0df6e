//! Cases that must come out the same on the fake server and on a real one.
//!
//! They use nothing but a `kube::Client`. Where the two differ the real server is right: the fake is changed, or the
//! case was wrong. Each case has a namespace of its own, so that they can run side by side.

use std::time::Duration;

use futures::{StreamExt, future::BoxFuture, stream};
use kube::Client;
use serde_json::json;

mod apply;
mod collection;
mod deletion;
mod desk;
mod lists;
mod locking;
mod merging;
mod objects;
mod ownership;
mod patches;
mod specimen;
mod status;
mod watches;

use desk::{CONFIG_MAPS, Desk, MERGE, NAMESPACES, SPECIMENS, eventually};
pub use desk::{CaseResult, Wrong};

/// One case: a fact about the API server, and how to see it.
#[derive(Clone, Copy)]
pub struct Case {
    /// The fact.
    pub name: &'static str,
    /// Shows it with a client, in a namespace that is this case's alone.
    pub run: for<'a> fn(&'a Client, &'a str) -> BoxFuture<'a, CaseResult>,
}

/// Names a case after its function.
macro_rules! list_cases {
    ($($function:ident),* $(,)?) => {
        vec![$($crate::conformance::Case {
            name: stringify!($function),
            run: |client, namespace| Box::pin(async move {
                $function($crate::conformance::desk::Desk::new(client, namespace)).await
            }),
        }),*]
    };
}
use list_cases;

/// How a run came out.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Facts that hold.
    pub passed: Vec<&'static str>,
    /// Facts that do not, and what was seen instead.
    pub failed: Vec<(&'static str, String)>,
}

impl Report {
    /// How many cases ran.
    pub fn total(&self) -> usize {
        self.passed.len() + self.failed.len()
    }
}

/// All cases.
pub fn cases() -> Vec<Case> {
    [
        objects::cases(),
        locking::cases(),
        patches::cases(),
        status::cases(),
        apply::cases(),
        merging::cases(),
        ownership::cases(),
        lists::cases(),
        watches::cases(),
        deletion::cases(),
        collection::cases(),
    ]
    .concat()
}

/// A case that takes longer than this has failed.
const CASE_LIMIT: Duration = Duration::from_mins(2);
/// Cases under way at once: enough to hide the waiting of a few, few enough for two cores.
const SIDE_BY_SIDE: usize = 6;

/// Runs every case, each in a namespace whose name begins with `namespace_prefix`.
pub async fn run_all(client: &Client, namespace_prefix: &str) -> Report {
    run_some(client, namespace_prefix, "").await
}

/// Runs the cases whose name contains `part`.
pub async fn run_some(client: &Client, namespace_prefix: &str, part: &str) -> Report {
    let mut report = Report::default();
    if let Err(wrong) = install(client).await {
        report.failed.push(("the specimen definition can be installed", wrong.to_string()));
        return report;
    }
    let results: Vec<(&'static str, CaseResult)> =
        stream::iter(cases().into_iter().enumerate().filter(|(_, case)| case.name.contains(part)))
            .map(|(number, case)| async move {
                let namespace = format!("{namespace_prefix}-{number}");
                (case.name, run_one(client, &namespace, case).await)
            })
            .buffered(SIDE_BY_SIDE)
            .collect()
            .await;
    for (name, result) in results {
        match result {
            Ok(()) => report.passed.push(name),
            Err(wrong) => report.failed.push((name, wrong.to_string())),
        }
    }
    report
}

/// Runs one case in a fresh namespace, which is deleted afterwards without waiting for it.
pub async fn run_one(client: &Client, namespace: &str, case: Case) -> CaseResult {
    let desk = Desk::new(client, namespace);
    let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    desk.post(&NAMESPACES, &object).await?;
    let result = tokio::time::timeout(CASE_LIMIT, (case.run)(client, namespace)).await;
    // What still has finalizers would keep the namespace, and the namespace controller busy, for ever.
    for kind in [&CONFIG_MAPS, &SPECIMENS] {
        for name in desk.list_names(kind, "").await? {
            // Without finalizers, an object that was being deleted is gone before the answer.
            let _gone = desk.patch(kind, &name, MERGE, &json!({ "metadata": { "finalizers": null } })).await;
        }
    }
    desk.delete(&NAMESPACES, namespace, &json!({})).await?;
    result.unwrap_or_else(|_| Err(Wrong::new(format!("no result within {CASE_LIMIT:?}"))))
}

/// Installs the specimen definition, if it is not there, and waits until it is served.
pub async fn install(client: &Client) -> CaseResult {
    let desk = Desk::new(client, "default");
    match desk.post(&desk::DEFINITIONS, &specimen::definition()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            // An older build may have left its own behind.
            let mut definition = specimen::definition();
            let name = desk::text(&definition, "/metadata/name").to_owned();
            let known = desk.get(&desk::DEFINITIONS, &name).await?;
            definition["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
            desk.put(&desk::DEFINITIONS, &name, &definition).await?;
        }
        Err(error) => return Err(error.into()),
    }
    eventually("specimens are served", || async { Ok(desk.list(&desk::SPECIMENS, "").await.is_ok()) }).await
}
