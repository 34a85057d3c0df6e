//! Status is told, never obeyed; and telling it costs nobody a byte.

#![cfg(feature = "lab")]

use anyhow::{Context as _, Result, bail, ensure};
use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use windlass_api::Logbook;
use windlass_api::logbook::LogbookSpec;
use windlass_core::conditions::same_but_for_times;
use windlass_e2e::{Cluster, LONG, Refusal, Stage, wait_for};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

#[tokio::test(flavor = "multi_thread")]
async fn junk_in_the_status_is_healed_and_never_obeyed() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("junk", true, async |place| {
            let cluster = place.dummy("junk", 3).await?;
            let good = cluster.get_raw().await?["status"].clone();
            let set = cluster.stateful_set().await?.metadata;
            let hooks = cluster.hooks(3).await?;
            let logbook = without_what_runs(cluster.logbook().await?);
            let since = stage.audit().mark()?;
            let (mut healed, mut refused) = (0, 0);
            for (what, junk) in junk(&good) {
                match throw(&cluster, &junk).await.with_context(|| what.to_owned())? {
                    Ok(()) => healed += 1,
                    Err(refusal) => {
                        ensure!(matches!(refusal.code, 400 | 422), "{what}: {refusal:?}");
                        refused += 1;
                    }
                }
                heal(&cluster, what, &good).await?;
            }
            ensure!(healed >= 10 && refused >= 3, "only {healed} healed and {refused} refused");

            let now = cluster.stateful_set().await?.metadata;
            ensure!(now.generation == set.generation, "the StatefulSet was changed");
            ensure!(cluster.hooks(3).await? == hooks, "a hook ran in a member");
            ensure!(cluster.deeds(since).await?.is_empty(), "a hook was run");
            ensure!(without_what_runs(cluster.logbook().await?) == logbook, "the logbook took something from the status");
            let requests = cluster.operator_requests(since)?;
            let writes: Vec<_> = requests.iter().filter(|entry| entry.is_write()).collect();
            let other = writes.iter().find(|entry| entry.resource() != "replicatedstatefulsets/status");
            ensure!(other.is_none(), "written: {}", other.map(|entry| entry.describe()).unwrap_or_default());
            // One pass each: a conflict with the junk itself may cost another request, which is refused.
            let done = writes.iter().filter(|entry| entry.code() == 200).count();
            ensure!(done == healed, "{healed} times junk, {done} writes of the operator");
            stage.say(&format!("{healed} sorts of junk healed in {done} writes, {refused} refused by the schema, none obeyed"));
            Ok(())
        })
        .await
}

/// A request to `/status`.
struct Junk {
    method: Method,
    content_type: &'static str,
    status: Value,
}

fn junk(good: &Value) -> Vec<(&'static str, Junk)> {
    let put = |status: Value| Junk { method: Method::PUT, content_type: JSON, status };
    let patch = |status: Value| Junk { method: Method::PATCH, content_type: MERGE, status };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut status = good.clone();
        change(&mut status);
        status
    };
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "reason": "Junk", "message": "junk", "lastTransitionTime": "2001-01-01T00:00:00Z" });
    vec![
        ("an empty status", put(json!({}))),
        ("no status", put(Value::Null)),
        ("a status that is taken away", patch(Value::Null)),
        ("phase Failed", patch(json!({ "phase": "Failed", "reason": "because" }))),
        ("phase Creating", patch(json!({ "phase": "Creating" }))),
        ("99 replicas", patch(json!({ "replicas": 99, "restoreReplicas": 99 }))),
        ("no replicas", patch(json!({ "replicas": 0, "restoreReplicas": 0 }))),
        ("a pause that nobody asked for", patch(json!({ "controlPaused": true, "phase": "Paused" }))),
        (
            "members that are not there",
            patch(json!({ "members": { "primary": ["x"], "ready": [], "failed": ["rss-junk-0", "rss-junk-1"] } })),
        ),
        ("another Service", patch(json!({ "serviceName": "elsewhere", "clientPort": 1, "selector": "app=elsewhere" }))),
        ("a generation of the future", patch(json!({ "observedGeneration": 9999 }))),
        ("only junk conditions", patch(json!({ "conditions": [condition("Junk", "True")] }))),
        ("no conditions", patch(json!({ "conditions": [] }))),
        (
            "conditions that say the opposite",
            put(with(&|status| {
                for found in status["conditions"].as_array_mut().into_iter().flatten() {
                    found["status"] = if found["status"] == "True" { "False".into() } else { "True".into() };
                }
            })),
        ),
        (
            "one condition more",
            put(with(&|status| {
                status["conditions"].as_array_mut().into_iter().for_each(|all| all.push(condition("Junk", "Unknown")));
            })),
        ),
        ("fields that nobody knows, and a wrong reason", patch(json!({ "secret": { "deep": [1, 2] }, "reason": "junk" }))),
        ("a text for a number", patch(json!({ "replicas": "many" }))),
        ("a number for a phase", patch(json!({ "phase": 7 }))),
        ("a phase that is none", patch(json!({ "phase": "Resting" }))),
        ("a text for the conditions", patch(json!({ "conditions": "all fine" }))),
        ("a list for the members", patch(json!({ "members": ["a"] }))),
        ("a negative number", patch(json!({ "replicas": -1 }))),
        ("a condition without a type", patch(json!({ "conditions": [{ "status": "True" }] }))),
        ("a text for the whole status", patch(json!("fine"))),
    ]
}

/// Writes junk as somebody with rights on `/status` can.
async fn throw(cluster: &Cluster, junk: &Junk) -> Result<Result<(), Refusal>> {
    let path = format!("{}/status", cluster.path());
    wait_for("the request does not collide", LONG, async || {
        let mut body = json!({ "status": junk.status });
        if junk.method == Method::PUT {
            body = cluster.get_raw().await?;
            body["status"] = junk.status.clone();
        }
        match cluster.place.stage().send(junk.method.clone(), &path, junk.content_type, &body).await? {
            Ok(_) => Ok(Ok(())),
            Err(refusal) if refusal.code == 409 => bail!("{}", refusal.message),
            Err(refusal) => Ok(Err(refusal)),
        }
    })
    .await
}

/// The content of a logbook but for what runs, which is told some seconds late.
fn without_what_runs(logbook: Logbook) -> LogbookSpec {
    let mut spec = logbook.spec;
    spec.plan.running.clear();
    spec
}

async fn heal(cluster: &Cluster, what: &str, good: &Value) -> Result<()> {
    wait_for(&format!("the status is healed of {what}"), LONG, async || {
        let now = cluster.get_raw().await?["status"].clone();
        ensure!(same_but_for_times(&now, good), "{now}");
        Ok(())
    })
    .await
}

/// How many interleavings there are.
const COUNT_VARIABLE: &str = "WINDLASS_INTERLEAVINGS";
const COUNT: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn no_byte_of_a_user_is_lost_to_a_status_write() -> Result<()> {
    let count = std::env::var(COUNT_VARIABLE).ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT);
    let stage = Stage::get().await?;
    stage.with_namespace("edits", true, async |place| {
        let since = stage.audit().mark()?;
        let cluster = place.dummy("edits", 3).await?;
        let mut user = User { cluster: &cluster, wish: Wish::of(&cluster.get_raw().await?), conflicts: 0, refused: 0, accepted: 0 };
        for round in 0..count {
            // All at once: what the operator tells in the middle of it must not undo what the user says.
            let (edited, provoked) = tokio::join!(user.edit(round), provoke(&cluster, round));
            edited.with_context(|| format!("edit {round}"))?;
            provoked.with_context(|| format!("event {round}"))?;
            user.check(round).await?;
        }
        user.resume().await?;
        cluster.wait_until_ready(3).await?;
        user.check(count).await?;
        let User { conflicts, refused, accepted, .. } = user;

        let requests = cluster.operator_requests(since)?;
        let told = requests.iter().filter(|entry| entry.resource() == "replicatedstatefulsets/status" && entry.code() == 200).count();
        let main = requests.iter().find(|entry| entry.is_write() && entry.resource() == "replicatedstatefulsets");
        ensure!(main.is_none(), "the operator wrote the custom resource: {}", main.map(windlass_e2e::Entry::describe).unwrap_or_default());
        check_owners(&cluster.get_raw().await?)?;
        ensure!(told >= count / 2, "only {told} status writes fell between the edits");
        stage.say(&format!(
            "{count} interleavings: {accepted} edits accepted ({conflicts} conflicts, {refused} refused), {told} status writes, no byte lost"
        ));
        Ok(())
    })
    .await
}

/// What the user wants, as the user remembers it.
#[derive(Clone, Debug, PartialEq)]
struct Wish {
    spec: Value,
    labels: Value,
    annotations: Value,
}

impl Wish {
    fn of(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let map = |value: &Value| if value.is_null() { json!({}) } else { value.clone() };
        Self { spec: object["spec"].clone(), labels: map(&metadata["labels"]), annotations: map(&metadata["annotations"]) }
    }
}

struct User<'a> {
    cluster: &'a Cluster,
    wish: Wish,
    conflicts: usize,
    refused: usize,
    accepted: usize,
}

impl User<'_> {
    /// One edit of some sort, in one of the ways in which people edit.
    async fn edit(&mut self, round: usize) -> Result<()> {
        let (key, text) = (format!("edit-{}", round % 7), format!("round {round} \u{e9}\t\"quoted\""));
        let mut wish = self.wish.clone();
        match round % 6 {
            0 => wish.spec["paused"] = json!(round.is_multiple_of(12)),
            1 => wish.labels[&key] = json!(format!("r{round}")),
            2 => wish.annotations[&key] = json!(text),
            3 => wish.spec["reconcileInterval"] = json!(format!("{}s", 10 + round % 5)),
            4 => wish.spec["servicePorts"] = json!([{ "name": "main", "port": 3306 + round }]),
            _ => {
                wish.spec["pod"]["commands"]["stop"]["timeout"] = json!(format!("{}s", 60 + round));
                wish.labels[&key] = json!(format!("r{round}"));
                wish.annotations[&key] = json!(text);
            }
        }
        match round % 5 {
            0 | 1 => self.update(wish).await,
            2 => self.update_blindly(wish).await,
            3 => self.merge(wish).await,
            _ => self.apply(wish).await,
        }
    }

    fn accept(&mut self, wish: Wish) {
        self.wish = wish;
        self.accepted += 1;
    }

    /// Reads, changes and writes back what was read; again when somebody was faster.
    async fn update(&mut self, wish: Wish) -> Result<()> {
        loop {
            let body = with_wish(self.cluster.get_raw().await?, &wish);
            match self.send(Method::PUT, JSON, &body).await? {
                Ok(answer) => {
                    ensure!(Wish::of(&answer) == wish, "the answer is not what was sent: {answer}");
                    self.accept(wish);
                    return Ok(());
                }
                Err(refusal) if refusal.code == 409 => self.conflicts += 1,
                Err(refusal) => bail!("{refusal:?}"),
            }
        }
    }

    /// Writes without saying what was read. The server wants to know for this kind, and refuses.
    async fn update_blindly(&mut self, wish: Wish) -> Result<()> {
        let mut body = with_wish(self.cluster.get_raw().await?, &wish);
        body["metadata"].as_object_mut().context("no metadata")?.remove("resourceVersion");
        match self.send(Method::PUT, JSON, &body).await? {
            Ok(_) => self.accept(wish),
            Err(refusal) => {
                ensure!(refusal.code == 422, "{refusal:?}");
                self.refused += 1;
            }
        }
        Ok(())
    }

    async fn merge(&mut self, wish: Wish) -> Result<()> {
        let body = json!({ "metadata": { "labels": wish.labels, "annotations": wish.annotations }, "spec": wish.spec });
        match self.send(Method::PATCH, MERGE, &body).await? {
            Ok(_) => self.accept(wish),
            Err(refusal) => bail!("{refusal:?}"),
        }
        Ok(())
    }

    async fn apply(&mut self, wish: Wish) -> Result<()> {
        let body = with_wish(
            json!({ "apiVersion": "clusterlabs.org/v1alpha1", "kind": "ReplicatedStatefulSet", "metadata": {} }),
            &wish,
        );
        let path = format!("{}?fieldManager=user&force=true", self.cluster.path());
        match self.cluster.place.stage().send(Method::PATCH, &path, APPLY, &body).await? {
            Ok(_) => self.accept(wish),
            Err(refusal) => bail!("{refusal:?}"),
        }
        Ok(())
    }

    async fn resume(&mut self) -> Result<()> {
        let mut wish = self.wish.clone();
        wish.spec["paused"] = json!(false);
        self.update(wish).await
    }

    async fn send(&self, method: Method, content_type: &str, body: &Value) -> Result<Result<Value, Refusal>> {
        self.cluster.place.stage().send(method, &self.cluster.path(), content_type, body).await
    }

    /// Nobody but the user changed what is the user's.
    async fn check(&self, round: usize) -> Result<()> {
        let now = Wish::of(&self.cluster.get_raw().await?);
        ensure!(now == self.wish, "after round {round} the server has {now:?} and the user wants {:?}", self.wish);
        Ok(())
    }
}

fn with_wish(mut object: Value, wish: &Wish) -> Value {
    object["spec"] = wish.spec.clone();
    object["metadata"]["labels"] = wish.labels.clone();
    object["metadata"]["annotations"] = wish.annotations.clone();
    object
}

/// Something that makes the operator tell: a member that stops, a lost Service, junk.
async fn provoke(cluster: &Cluster, round: usize) -> Result<()> {
    match round % 3 {
        0 => cluster.place.shell(&cluster.pod(u16::try_from(round % 2 + 1)?), "rm -f /state/running").await.map(drop),
        1 => {
            let junk =
                Junk { method: Method::PATCH, content_type: MERGE, status: json!({ "phase": "Failed", "replicas": round }) };
            let thrown = throw(cluster, &junk).await?;
            ensure!(thrown.is_ok(), "{thrown:?}");
            Ok(())
        }
        _ => match cluster.place.api::<Service>().delete(&cluster.names.client_service(), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => Ok(other.map(drop)?),
        },
    }
}

/// Of the custom resource, the operator owns the status and nothing else.
fn check_owners(object: &Value) -> Result<()> {
    for owner in object["metadata"]["managedFields"].as_array().context("no managedFields")? {
        let manager = owner["manager"].as_str().unwrap_or_default();
        if manager == "windlass" || manager == "windlass-status" || manager == "windlass-labels" {
            let fields: Vec<&String> = owner["fieldsV1"].as_object().into_iter().flatten().map(|(field, _)| field).collect();
            ensure!(owner["subresource"] == "status" && fields == ["f:status"], "{manager} owns {fields:?}");
        }
    }
    Ok(())
}
