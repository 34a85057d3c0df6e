//! A live MySQL cluster that was not made by Windlass: it is refused until its user says so, taken over without a restart of anything,
//! looked after as it is, and gets pods of Windlass when it is restarted.

#![cfg(feature = "lab")]

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use windlass_api::mysql::keys;
use windlass_core::labels::ADOPT;
use windlass_e2e::Stage;
use windlass_e2e::helm::lives;
use windlass_e2e::mysql::load::{Writer, check_kept};
use windlass_e2e::mysql::{Mysql, Stoppable};

#[tokio::test(flavor = "multi_thread")]
async fn a_live_cluster_is_taken_over_and_nothing_restarts() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("adoption", true, async |place| {
            let mysql = place.mysql_by_hand().await?;
            let writer = Writer::start(&mysql).await?;
            writer.goes_on().await?;
            let before = pods(&mysql).await?;

            stage.say("a cluster that was made by hand is refused");
            mysql.start(Stoppable::Reconciliation).await?;
            let stalled = mysql.wait_for_condition("Stalled", "True").await?;
            ensure!(stalled.message.contains(ADOPT), "it is not said how to go on: {}", stalled.message);

            stage.say("its user says so, and it is taken over");
            mysql.annotate(ADOPT, Some("true")).await?;
            mysql.wait_for_condition("Stalled", "False").await?;
            mysql.start(Stoppable::Clustering).await?;
            mysql.wait_until_healthy().await?;
            writer.goes_on().await?;
            ensure!(mysql.primary().await? == 0, "another instance became the primary");
            ensure!(pods(&mysql).await? == before, "pods were restarted");
            println!("a live cluster was taken over: 0 pods restarted");

            stage.say("its primary hands over");
            let demote = serde_json::json!({ "metadata": { "annotations": { keys::DEMOTE: "true" } } });
            mysql.place.api::<Pod>().patch(&mysql.pod(0), &PatchParams::default(), &Patch::Merge(demote)).await?;
            mysql.another_primary(0).await?;
            mysql.wait_until_healthy().await?;
            writer.goes_on().await?;

            stage.say("a replica that needs a copy waits for an agent, and says so");
            mysql.leave_behind(0, &writer).await?;
            let stalled = mysql.wait_for_condition("Stalled", "True").await?;
            ensure!(stalled.message.contains("kubectl windlass restart"), "it is not said how to go on: {}", stalled.message);

            stage.say("the cluster is restarted, and all pods are those of Windlass");
            let restart = serde_json::json!({ "metadata": { "annotations": { "kubectl.kubernetes.io/restartedAt": "now" } } });
            mysql.patch(&serde_json::json!({ "spec": { "podTemplate": restart } })).await?;
            mysql.wait_until_healthy().await?;
            for pod in mysql.place.api::<Pod>().list(&ListParams::default()).await?.items {
                let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
                let agent = containers.into_iter().find(|it| it.name == "agent").and_then(|it| it.args).unwrap_or_default();
                ensure!(agent.first().is_some_and(|it| it == "mysql-agent"), "{:?} has none: {agent:?}", pod.metadata.name);
            }
            writer.goes_on().await?;
            check_kept(&mysql, &writer.stop()?).await
        })
        .await
}

/// Which pods there are, and how often each was started.
async fn pods(mysql: &Mysql) -> Result<Vec<(String, String, i32)>> {
    Ok(lives(&mysql.place.api::<Pod>().list(&ListParams::default()).await?.items))
}
