//! `kubectl windlass`, as a person types it: kubectl itself finds the plugin on PATH.
//!
//! `cargo xtask test` puts it there; by hand, `cargo xtask lab exec -- cargo test …` does.

#![cfg(feature = "lab")]

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use windlass_api::replicated::Phase;
use windlass_e2e::{Cluster, LONG, LONGEST, Place, Stage, wait_for};

const WHY: &str = "the rope is being inspected";

/// What kubectl came to.
#[derive(Debug)]
struct Ran {
    code: i32,
    out: String,
    errors: String,
}

impl Ran {
    /// What it printed, if it ended well.
    fn done(self) -> Result<String> {
        ensure!(self.code == 0, "{self:?}");
        Ok(self.out)
    }
}

/// Types `kubectl windlass …` in the namespace.
async fn windlass(place: &Place, arguments: &[&str]) -> Result<Ran> {
    kubectl(place, &[&["windlass"], arguments, &["--namespace", place.namespace()]].concat()).await
}

async fn kubectl(place: &Place, arguments: &[&str]) -> Result<Ran> {
    let lab = place.stage().lab();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(lab.bin_dir()).chain(std::env::split_paths(&path)))?;
    let mut command = Command::new(lab.bin_dir().join("kubectl"));
    command.args(arguments).env("PATH", path).env("KUBECONFIG", lab.kubeconfig());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LONGEST, command.output()).await.context("kubectl hangs")??;
    let ran = Ran {
        code: output.status.code().context("kubectl was killed")?,
        out: String::from_utf8(output.stdout)?,
        errors: String::from_utf8(output.stderr)?,
    };
    let shown = format!("{}{}", ran.errors, ran.out);
    place.stage().say(&format!("kubectl {} ({})\n{}", arguments.join(" "), ran.code, shown.trim_end()));
    ensure!(!shown.contains('\x1b'), "a pipe got colours or cursor movement: {shown:?}");
    Ok(ran)
}

async fn json(place: &Place, arguments: &[&str]) -> Result<Value> {
    let out = windlass(place, &[arguments, &["--output", "json"]].concat()).await?.done()?;
    serde_json::from_str(&out).with_context(|| format!("no JSON: {out}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_paused_looked_at_resumed_and_scaled_by_the_plugin() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("plugin", true, async |place| {
            let cluster = place.dummy("held", 3).await?;
            look(place).await?;
            pause(place, &cluster).await?;
            plan(place, &cluster).await?;
            resume(place, &cluster).await?;
            scale(place, &cluster).await?;
            one_lane(place, &cluster).await
        })
        .await
}

async fn look(place: &Place) -> Result<()> {
    let list = windlass(place, &["list"]).await?.done()?;
    let row: Vec<&str> = list.lines().nth(1).context("no row")?.split_whitespace().collect();
    ensure!(row.get(..4) == Some(&["rss/held", "True", "AllMembersServe", "3/3"]), "{list}");
    ensure!(row.get(4..6) == Some(&["-", "0"]), "{list}");

    let owner = json(place, &["owner", "rss/held"]).await?["owner"].clone();
    ensure!(owner["state"] == "Claimed", "nobody looks after it: {owner}");
    let release = owner["release"].as_str().context("no release")?;
    ensure!(release.starts_with("windlass-system/"), "{release}");
    ensure!(owner["version"].as_str().is_some_and(|version| !version.is_empty()), "{owner}");
    ensure!(owner["epoch"].as_u64() >= Some(1) && owner["since"].is_string(), "{owner}");
    ensure!(list.contains(release), "{list}");
    let releases = windlass(place, &["owner"]).await?.done()?;
    let row: Vec<&str> = releases.lines().nth(1).context("no row")?.split_whitespace().collect();
    ensure!(row.first() == Some(&release) && row.get(2..4) == Some(&["Claimed", "1"]), "{releases}");

    let status = windlass(place, &["status", "rss/held"]).await?.done()?;
    for part in ["Ready: all 3 members serve", "primary: rss-held-0 rss-held-1 rss-held-2", release, "ClusteringActive"] {
        ensure!(status.contains(part), "{part:?} is missing: {status}");
    }
    // The seed of the empty cluster could not be undone.
    let log = windlass(place, &["log", "replicatedstatefulset/held"]).await?.done()?;
    ensure!(log.lines().any(|line| line.contains("Seed") && line.contains("Done") && line.contains(release)), "{log}");
    let nothing = windlass(place, &["plan", "rss", "held"]).await?;
    ensure!(nothing.errors.contains("nothing to do"), "{nothing:?}");
    Ok(())
}

async fn pause(place: &Place, cluster: &Cluster) -> Result<()> {
    let dry = windlass(place, &["pause", "rss/held", "--dry-run=server"]).await?.done()?;
    ensure!(dry.contains("server dry run") && !cluster.get().await?.spec.paused, "{dry}");
    let out = windlass(place, &["pause", "rss/held", "--reason", WHY]).await?.done()?;
    ensure!(out.contains("rss/held paused: Resources and Clustering"), "{out}");
    // It has waited: the acknowledgement is there without any further waiting.
    let status = cluster.status().await?;
    ensure!(status.phase == Some(Phase::Paused) && status.control_paused, "not acknowledged: {status:?}");
    let managers = cluster.get().await?.metadata.managed_fields.unwrap_or_default();
    ensure!(managers.iter().any(|entry| entry.manager.as_deref() == Some("kubectl-windlass")), "{managers:?}");
    let shown = windlass(place, &["status", "rss/held"]).await?.done()?;
    ensure!(shown.contains(WHY) && shown.contains("paused since"), "{shown}");
    Ok(())
}

async fn plan(place: &Place, cluster: &Cluster) -> Result<()> {
    cluster.crash(2).await?;
    let held = windlass(place, &["scale", "rss/held", "--replicas", "4"]).await?;
    ensure!(held.code == 3 && held.errors.contains("held by a pause of Resources and Clustering"), "{held:?}");
    let wanted = ["start as primary rss-held-2", "scale StatefulSet rss-held"];
    cluster.wait_until_held(&wanted).await?;
    let plan = windlass(place, &["plan", "rss/held"]).await?.done()?;
    for step in wanted {
        ensure!(plan.lines().any(|line| line.starts_with("Held") && line.contains(step)), "{step:?} is missing: {plan}");
    }
    let list = windlass(place, &["list"]).await?.done()?;
    ensure!(list.contains("HeldByPause") && list.contains("Resources,Clustering"), "{list}");
    Ok(())
}

async fn resume(place: &Place, cluster: &Cluster) -> Result<()> {
    let out = windlass(place, &["resume", "rss/held"]).await?.done()?;
    ensure!(out.contains("rss/held resumed: Resources and Clustering"), "{out}");
    let resource = cluster.get().await?;
    ensure!(!resource.spec.paused, "still paused");
    let left = resource.metadata.annotations.unwrap_or_default();
    ensure!(!left.keys().any(|key| key.contains("pause")), "the pause left {left:?}");
    // What was held is done: the member that stopped runs, and the fourth one comes.
    let out = windlass(place, &["status", "rss/held", "--for", "ready", "--timeout", "20m"]).await?.done()?;
    ensure!(out.contains("all 4 members serve"), "{out}");
    ensure!(cluster.runs(2).await?, "member 2 does not run");
    Ok(())
}

async fn scale(place: &Place, cluster: &Cluster) -> Result<()> {
    let ran = windlass(place, &["scale", "rss/held", "--replicas", "3", "--timeout", "20m"]).await?;
    ensure!(ran.errors.contains("waiting until rss/held has settled at 3"), "no progress: {ran:?}");
    ensure!(ran.done()?.contains("rss/held scaled to 3: 3 of 3 members ready"), "not settled");
    cluster.wait_until_ready(3).await?;
    let ran = windlass(place, &["scale", "rss/held", "--replicas", "4", "--timeout", "20m"]).await?;
    ensure!(ran.errors.contains("3 of 4 members ready"), "no progress: {ran:?}");
    ensure!(ran.done()?.contains("rss/held scaled to 4: 4 of 4 members ready"), "not settled");
    // It has waited.
    let members = cluster.status().await?.members;
    ensure!(members.ready == cluster.pods(4) && members.primary == cluster.pods(4), "{members:?}");
    let refused = windlass(place, &["scale", "rss/held", "--replicas", "100"]).await?;
    ensure!(refused.code == 1 && refused.errors.contains("spec.replicas"), "{refused:?}");
    // A smaller cluster was announced and done; the log has it.
    let log = windlass(place, &["log", "rss/held"]).await?.done()?;
    ensure!(log.lines().any(|line| line.contains("ScaleIn") && line.contains("Done")), "{log}");
    Ok(())
}

async fn one_lane(place: &Place, cluster: &Cluster) -> Result<()> {
    windlass(place, &["pause", "rss/held"]).await?.done()?;
    let ran = windlass(place, &["resume", "rss/held", "--lane", "clustering"]).await?;
    ensure!(ran.errors.contains("Resources stays paused"), "{ran:?}");
    ran.done()?;
    cluster.crash(1).await?;
    cluster.wait_until_runs(1).await?;
    let lanes = json(place, &["status", "rss/held"]).await?["lanes"].clone();
    ensure!(lanes[0]["state"] == "Paused" && lanes[1]["state"] == "Active", "{lanes}");
    windlass(place, &["resume", "rss/held"]).await?.done()?;
    wait_for("the whole cluster works again", LONG, async || {
        let lanes = json(place, &["status", "rss/held"]).await?["lanes"].clone();
        ensure!(lanes[0]["state"] == "Active" && lanes[1]["state"] == "Active", "{lanes}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_completes_the_plugins_words() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("plugin-words", true, async |place| {
            let verbs = kubectl(place, &["__complete", "windlass", ""]).await?.done()?;
            ensure!(verbs.lines().any(|line| line.starts_with("pause")), "{verbs}");
            ensure!(verbs.trim_end().ends_with(":4"), "no directive: {verbs}");
            let namespaces = kubectl(place, &["__complete", "windlass", "list", "-n", "plugin-words"]).await?.done()?;
            ensure!(namespaces.lines().any(|line| line == place.namespace()), "{namespaces}");
            Ok(())
        })
        .await
}
