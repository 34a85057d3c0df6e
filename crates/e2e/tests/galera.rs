//! The Galera example on the lab: written through the client Service, read from every member, scaled, and hurt.

#![cfg(feature = "lab")]

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ListParams;
use serde_json::json;
use windlass_api::replicated::Phase;
use windlass_e2e::galera::Galera;
use windlass_e2e::galera::load::{Observer, Writer};
use windlass_e2e::{LONG, Place, Stage, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn galera_serves_grows_shrinks_and_survives_a_killed_server() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("galera", true, async |place| {
            let since = stage.audit().mark()?;
            let began = Instant::now();
            let galera = place.galera().await?;
            tell(place, "3 members from nothing", began);
            check_objects(&galera, 3).await?;

            galera.sql(1, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            galera.sql(1, &galera.service(), "INSERT INTO rope VALUES (1)").await?;
            check_rows(&galera, 3, "1").await?;

            let began = Instant::now();
            galera.cluster.scale(5).await?;
            galera.cluster.wait_until_ready(5).await?;
            tell(place, "3 to 5 members", began);
            check_objects(&galera, 5).await?;
            check_rows(&galera, 5, "1").await?;
            galera.sql(4, &galera.service(), "INSERT INTO rope VALUES (2)").await?;

            let began = Instant::now();
            galera.cluster.scale(3).await?;
            galera.cluster.wait_until_ready(3).await?;
            tell(place, "5 to 3 members", began);
            check_objects(&galera, 3).await?;
            check_rows(&galera, 3, "1\n2").await?;
            check_members_left(&galera).await?;

            check_slow_request(&galera).await?;
            check_kill(&galera).await?;
            check_rows(&galera, 3, "1\n2\n3").await?;
            stage.audit().check_restricted(place.namespace(), since)?;
            stage.say("all pods were admitted under Pod Security restricted");
            Ok(())
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_template_is_rolled_under_writes_one_member_at_a_time() -> Result<()> {
    let stage = Stage::get().await?;
    stage
        .with_namespace("roll", true, async |place| {
            let galera = place.galera().await?;
            galera.sql(1, &galera.service(), "CREATE TABLE rope (length INT PRIMARY KEY)").await?;
            let (writer, observer) = (Writer::start(&galera, 3, 1), Observer::start(&galera, 3));
            writer.has_written(3).await?;
            let began = Instant::now();
            let mut containers = serde_json::to_value(galera.cluster.get().await?.spec.pod.containers)?;
            let variables = containers[0]["env"].as_array_mut().context("the example has no variables")?;
            variables.push(json!({ "name": "ROLLED", "value": "once" }));
            galera.cluster.patch(&json!({ "spec": { "pod": { "containers": containers } } })).await?;
            for member in 0..3 {
                wait_for(&format!("member {member} has the new template"), LONG, async || {
                    let spec = galera.cluster.get_pod(member).await?.spec.context("no spec")?;
                    let has = spec.containers.iter().flat_map(|it| it.env.iter().flatten()).any(|it| it.name == "ROLLED");
                    ensure!(has, "it has the old one");
                    Ok(())
                })
                .await?;
            }
            galera.cluster.wait_until_ready(3).await?;
            let took = began.elapsed().as_secs_f64();
            let (told, seen) = (writer.stop().await?, observer.stop().await?);
            galera.check_rows(3, &told.safe).await?;
            ensure!(told.failed == 0, "{} rows were taken by no member", told.failed);
            ensure!(seen.most_down <= 1, "{} members were down at once", seen.most_down);
            ensure!(seen.torn.is_empty(), "there were two primary components: {:?}", seen.torn);
            stage.say(&format!(
                "rolled in {took:.1} s under writes: {} rows safe, {} retried at the next member, 0 failed, never more than one member down in {} looks",
                told.safe.len(),
                told.retries,
                seen.looks
            ));
            Ok(())
        })
        .await
}

fn tell(place: &Place, what: &str, began: Instant) {
    place.stage().say(&format!("{what}: {:.1} s", began.elapsed().as_secs_f64()));
}

/// The objects and the status of a healthy cluster of this size.
async fn check_objects(galera: &Galera, replicas: u16) -> Result<()> {
    let Galera { cluster, .. } = galera;
    let (place, names) = (&cluster.place, &cluster.names);
    let status = cluster.status().await?;
    ensure!(status.phase == Some(Phase::Running), "phase {:?}", status.phase);
    ensure!(status.service_name == names.client_service() && status.client_port == Some(3306), "{status:?}");
    ensure!(status.members.primary == cluster.pods(replicas), "not all are primaries: {:?}", status.members);

    let set = cluster.stateful_set().await?.spec.context("no spec")?;
    ensure!(set.replicas == Some(i32::from(replicas)), "the StatefulSet has {:?} replicas", set.replicas);
    let budget = place.api::<PodDisruptionBudget>().get(&names.disruption_budget()).await?;
    let may_leave = budget.spec.context("no spec")?.max_unavailable;
    ensure!(may_leave == Some(IntOrString::Int(i32::from(replicas - 1) / 2)), "maxUnavailable is {may_leave:?}");
    let headless = place.api::<Service>().get(&names.headless_service()).await?.spec.context("no spec")?;
    ensure!(
        headless.cluster_ip.as_deref() == Some("None") && headless.publish_not_ready_addresses == Some(true),
        "{headless:?}"
    );
    let client = place.api::<Service>().get(&names.client_service()).await?.spec.context("no spec")?;
    ensure!(client.ports.iter().flatten().any(|port| port.port == 3306), "{:?}", client.ports);

    wait_for("the client Service leads to every member", LONG, async || {
        let selector = format!("kubernetes.io/service-name={}", names.client_service());
        let slices = place.api::<EndpointSlice>().list(&ListParams::default().labels(&selector)).await?;
        let endpoints = slices.items.iter().flat_map(|slice| &slice.endpoints);
        let ready = endpoints.filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|is| is.ready == Some(true))).count();
        ensure!(ready == usize::from(replicas), "{ready} endpoints are ready");
        Ok(())
    })
    .await
}

async fn check_rows(galera: &Galera, replicas: u16, rows: &str) -> Result<()> {
    for member in 0..replicas {
        let read = galera.read_from(member, "SELECT length FROM rope ORDER BY length").await?;
        ensure!(read == rows, "member {member} has {read:?} and not {rows:?}");
        let size = galera.read_from(member, "SHOW STATUS LIKE 'wsrep_cluster_size'").await?;
        ensure!(size.ends_with(&replicas.to_string()), "member {member} says {size:?}");
    }
    Ok(())
}

/// Members that left have no pod any more, and keep their data.
async fn check_members_left(galera: &Galera) -> Result<()> {
    let Galera { cluster, .. } = galera;
    for member in [3, 4] {
        let pod = cluster.pod(member);
        wait_for(&format!("{pod} is gone"), LONG, async || {
            ensure!(cluster.place.api::<Pod>().get_opt(&pod).await?.is_none(), "it is there");
            Ok(())
        })
        .await?;
        ensure!(cluster.place.has::<PersistentVolumeClaim>(&format!("data-{pod}")).await?, "the claim of {pod} is gone");
    }
    Ok(())
}

/// A request to the entrypoint is one, however slowly it arrives. The server that runs makes it refuse this one, by its name.
async fn check_slow_request(galera: &Galera) -> Result<()> {
    let script =
        "printf s 1<>/run/mysqld/requests; sleep 2.5; printf 'tart\\tslow\\t0\\tjoin\\t-\\tgcomm://\\n' 1<>/run/mysqld/requests
        for _ in {1..100}; do grep ^slow /run/mysqld/refused && exit; sleep 0.2; done";
    let refused = galera.cluster.place.shell(&galera.cluster.pod(2), script).await?;
    ensure!(refused.contains("a server runs already"), "the request got lost: {refused:?}");
    Ok(())
}

async fn check_kill(galera: &Galera) -> Result<()> {
    let began = Instant::now();
    let killed = galera.kill_server(1).await?;
    galera.sql(0, &galera.host(0), "INSERT INTO rope VALUES (3)").await?;
    wait_for("the killed server is replaced", LONG, async || {
        let now = galera.server_process(1).await?;
        ensure!(now != killed, "process {now} still runs");
        Ok(())
    })
    .await?;
    galera.cluster.wait_until_ready(3).await?;
    tell(&galera.cluster.place, "a killed server is back", began);
    Ok(())
}
