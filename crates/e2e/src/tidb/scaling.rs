//! Stores of TiKV leave, several at a time, and others come in their place. One piece of the tests and of the campaign.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass_api::tidb::{Component, keys};

use super::drains::Watched;
use super::{Store, Tidb};
use crate::wait::{LONG, wait_for};

/// `max-replicas` of PD, where nobody says otherwise, and how many stores stay.
pub const COPIES: u16 = 3;

/// How many leave, and how.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// How many stores there are at first.
    pub from: u16,
    /// How many may leave, and come, at once.
    pub parallelism: NonZeroU16,
    /// How many regions those that leave give away in a second: the highest first, and again from the beginning.
    pub speeds: &'a [f64],
}

/// PD moves as many regions at once as there are: else those of a slow store would hold up those of a fast one, inside PD.
pub fn move_freely(cluster: &mut Value) {
    let config = cluster["spec"]["pd"]["config"].as_str().unwrap_or_default();
    cluster["spec"]["pd"]["config"] = config.replace("replica-schedule-limit = 4", "replica-schedule-limit = 64").into();
}

impl Round<'_> {
    fn leaving(&self) -> std::ops::Range<u16> {
        COPIES..self.from
    }

    /// What must hold at every moment.
    fn check(&self, stores: &[Store]) -> Result<()> {
        let leaving = stores.iter().filter(|it| it.state == "Offline").count();
        let staying = stores.iter().filter(|it| it.stays()).count();
        ensure!(leaving <= usize::from(self.parallelism.get()), "{leaving} leave at once: {stores:?}");
        ensure!(staying >= usize::from(COPIES), "{staying} stores stay: {stores:?}");
        Ok(())
    }

    /// All but three leave. Their volumes are marked, and nothing is left over in PD.
    pub async fn leave(&self, tidb: &Tidb) -> Result<Watched> {
        for (ordinal, speed) in self.leaving().rev().zip(self.speeds.iter().cycle()) {
            tidb.set_speed(ordinal, *speed).await?;
        }
        tidb.scale(COPIES).await?;
        let watched = tidb.watch_leaving(COPIES.into(), |stores| self.check(stores)).await?;
        let count = self.leaving().count();
        ensure!(watched.most_leaving == count.min(self.parallelism.get().into()), "at most {} at once", watched.most_leaving);
        ensure!(watched.drains.len() == count, "{} of {count} were seen to leave", watched.drains.len());
        tidb.wait_until_ready().await?;
        self.check_marks(tidb, COPIES).await?;
        ensure!(tidb.evictions().await?.is_empty(), "leaders are still evicted: {:?}", tidb.evictions().await?);
        Ok(watched)
    }

    /// As many come, on new volumes.
    pub async fn come(&self, tidb: &Tidb, gone: &BTreeMap<String, PersistentVolumeClaim>) -> Result<()> {
        tidb.scale(self.from).await?;
        tidb.wait_until_ready().await?;
        tidb.wait_until_up(self.from.into()).await?;
        let fresh = tidb.claims(Component::Tikv).await?;
        for ordinal in 0..self.from {
            let name = tidb.claim(ordinal);
            let Some(before) = gone.get(&name) else { continue };
            let same = fresh.get(&name).and_then(ResourceExt::uid) == before.uid();
            ensure!(same == (ordinal < COPIES), "{name} is {}", if same { "the same" } else { "another one" });
        }
        self.check_marks(tidb, self.from).await
    }

    /// With so many stores, exactly the volumes of the others are marked.
    async fn check_marks(&self, tidb: &Tidb, stores: u16) -> Result<()> {
        let marked = tidb.marked_claims().await?;
        let wrong = (0..self.from).map(|ordinal| (ordinal, tidb.claim(ordinal)));
        let wrong: Vec<_> = wrong.filter(|(ordinal, name)| marked.contains_key(name) != (*ordinal >= stores)).collect();
        ensure!(wrong.is_empty(), "{wrong:?} are marked, or not, and should not be so; marked: {:?}", marked.keys());
        Ok(())
    }
}

impl Tidb {
    /// The name of the volume of a store.
    fn claim(&self, ordinal: u16) -> String {
        format!("tikv-{}", self.pod(Component::Tikv, ordinal))
    }

    /// How many may leave and come at once from now on.
    pub async fn allow(&self, parallelism: NonZeroU16) -> Result<()> {
        let policy = json!({ "scaleInParallelism": parallelism, "scaleOutParallelism": parallelism });
        self.patch(&json!({ "spec": { "tikv": { "scalePolicy": policy } } })).await
    }

    /// The volumes of TiKV that are marked: what was on them has left.
    pub async fn marked_claims(&self) -> Result<BTreeMap<String, PersistentVolumeClaim>> {
        let mut claims = self.claims(Component::Tikv).await?;
        claims.retain(|_, claim| claim.annotations().contains_key(keys::PVC_DEFER_DELETING));
        Ok(claims)
    }

    /// Waits until each store has regions to give away.
    pub async fn wait_until_spread(&self, least: u64) -> Result<()> {
        wait_for("every store has regions", LONG, async || {
            let up = self.stores_that_are("Up").await?;
            ensure!(up.values().all(|store| store.regions >= least), "{up:?}");
            Ok(())
        })
        .await
    }
}
