//! An upgrade of the operator to a version that renders pod templates in another way: no pod restarts until the user changes
//! something that reaches the template, also when clusters are scaled, resumed, or have lost their logbook.

#![cfg(feature = "lab")]

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use windlass_api::Logbook;
use windlass_e2e::helm::lives;
use windlass_e2e::{Cluster, LONG, Place, Stage, dummy, wait_for};

/// What the other version puts on every pod that it renders.
const MARK: &str = "windlass.dev/rehearsal";
/// How many clusters there are beside the real ones; their pods never find a node.
const MANY: &str = "WINDLASS_UPGRADE_CLUSTERS";
const MANY_IN_SHORT: usize = 20;
/// How many real ones there are: three dummies of two members, a MySQL of three, and a TiDB.
const REAL: usize = 5;
/// Their pods: those of TiDB are three of PD, three of TiKV, two of TiDB, and discovery.
const OF_THE_REAL_ONES: usize = 3 * 2 + 3 + 9;

#[tokio::test(flavor = "multi_thread")]
async fn another_version_restarts_nothing_until_the_template_changes() -> Result<()> {
    let stage = Stage::get().await?;
    let many = std::env::var(MANY).ok().map(|text| text.parse()).transpose()?.unwrap_or(MANY_IN_SHORT);
    let played = stage.with_namespace("upgrade", true, async |place| play(&stage, place, many).await).await;
    let restored = stage.main_release().upgrade(&json!({ "image": { "tag": "" } })).await;
    played.and(restored)
}

async fn play(stage: &Stage, place: &Place, many: usize) -> Result<()> {
    let unplaced: Vec<Value> =
        (0..many).map(|number| dummy::unplaced(dummy::manifest(&format!("unplaced-{number}"), 1))).collect();
    place.apply(&unplaced).await?;
    let scaled = place.dummy("scaled", 2).await?;
    let paused = place.dummy("paused", 2).await?;
    let forgotten = place.dummy("forgotten", 2).await?;
    let mysql = place.mysql(|_| ()).await?;
    let tidb = place.tidb(|_| ()).await?;
    paused.patch(&json!({ "spec": { "paused": true } })).await?;
    paused.wait_for_condition("ReconciliationActive", "False", "Paused").await?;
    wait_for("every cluster has its pods", LONG, async || {
        let found = place.api::<Pod>().list(&ListParams::default()).await?.items.len();
        ensure!(found == many + OF_THE_REAL_ONES, "{found} pods");
        Ok(())
    })
    .await?;
    let before = Picture::take(place).await?;
    stage.say(&format!("{} clusters are there", many + REAL));

    let version = env!("CARGO_PKG_VERSION");
    stage.main_release().upgrade(&json!({ "image": { "tag": format!("{version}-rehearsal") } })).await?;
    claimed_by(place, many + REAL, &format!("{version}+rehearsal")).await?;
    mysql.wait_until_healthy().await?;
    tidb.wait_until_ready().await?;
    before.is_still_so(place, "the upgrade").await?;
    stage.say("the other version looks after all of them; no pod was restarted, no template changed");

    place.api::<Logbook>().delete("rss-forgotten", &DeleteParams::default()).await?;
    wait_for("the lost logbook is proven again", LONG, async || {
        let logbook = forgotten.logbook().await?.spec;
        ensure!(logbook.claim.is_some() && logbook.unproven.is_empty(), "{:?}", logbook.unproven);
        Ok(())
    })
    .await?;
    paused.patch(&json!({ "spec": { "paused": false } })).await?;
    paused.wait_until_ready(2).await?;
    scaled.scale(3).await?;
    scaled.wait_until_ready(3).await?;
    before.is_still_so(place, "a scale, a resume and a lost logbook").await?;
    ensure!(!is_marked(&scaled.get_pod(2).await?), "the new member has another template than the others");
    stage.say("scaled, resumed and without its logbook: no pod was restarted, and a new member is like the old ones");

    change_template(&scaled).await?;
    wait_for("every member has the new template", LONG, async || {
        for ordinal in 0..3 {
            ensure!(is_marked(&scaled.get_pod(ordinal).await?), "member {ordinal} has the old one");
        }
        Ok(())
    })
    .await?;
    scaled.wait_until_ready(3).await?;
    stage.say("a change of the spec that reaches the template brought the new rendering with it");
    println!("{many} clusters and five real ones upgraded, scaled, resumed, without a logbook: 0 pods restarted");
    Ok(())
}

async fn change_template(cluster: &Cluster) -> Result<()> {
    let env = json!([{ "name": "CHANGED", "value": "yes" }]);
    let change = json!([{ "op": "add", "path": "/spec/pod/containers/0/env", "value": env }]);
    let patch = kube::api::Patch::Json::<()>(serde_json::from_value(change).context("the change is no patch")?);
    cluster.api().patch(cluster.names.cluster(), &kube::api::PatchParams::default(), &patch).await?;
    Ok(())
}

fn is_marked(pod: &Pod) -> bool {
    pod.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(MARK))
}

async fn claimed_by(place: &Place, clusters: usize, version: &str) -> Result<()> {
    wait_for("the other version has claimed every cluster", LONG, async || {
        let logbooks = place.api::<Logbook>().list(&ListParams::default()).await?.items;
        let claimed = logbooks.iter().filter(|it| it.spec.claim.as_ref().is_some_and(|claim| claim.version == version));
        let claimed = claimed.count();
        ensure!(claimed == clusters, "{claimed} of {clusters}");
        Ok(())
    })
    .await
}

/// The lives of all pods, and the templates and generations of all sets.
struct Picture {
    pods: Vec<(String, String, i32)>,
    templates: BTreeMap<String, Value>,
}

impl Picture {
    async fn take(place: &Place) -> Result<Self> {
        let pods = lives(&place.api::<Pod>().list(&ListParams::default()).await?.items);
        let mut templates = BTreeMap::new();
        for set in place.api::<StatefulSet>().list(&ListParams::default()).await?.items {
            let template = serde_json::to_value(&set.spec.context("a set without a spec")?.template)?;
            templates.insert(set.metadata.name.unwrap_or_default(), template);
        }
        Ok(Self { pods, templates })
    }

    /// Every pod that was there is there, and every template is the same.
    async fn is_still_so(&self, place: &Place, after: &str) -> Result<()> {
        let now = Self::take(place).await?;
        for pod in &self.pods {
            ensure!(now.pods.contains(pod), "after {after}: {pod:?} was restarted or is gone");
        }
        ensure!(now.templates == self.templates, "after {after}: a template changed");
        Ok(())
    }
}
