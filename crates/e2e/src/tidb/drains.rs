//! Watching stores leave: what PD says of them, all the time, and how well their time was used.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use windlass_api::tidb::Component;

use super::{Store, Tidb};
use crate::wait::LONGEST;

const POLL: Duration = Duration::from_millis(300);

/// What was seen while stores left.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// How many were Offline at once, at most.
    pub most_leaving: usize,
    /// How many were Up, at least.
    pub fewest_up: usize,
    /// The sizes of the set, in the order in which they were seen.
    pub sizes: Vec<i32>,
    /// From Offline to Tombstone, by store.
    pub drains: BTreeMap<u64, Duration>,
    /// From the request until the set had its size.
    pub took: Duration,
}

impl Watched {
    /// The time that an ideal schedule would have taken, by the time that was taken. An ideal one lets the highest leave first, and the next
    /// one as soon as a place is free.
    pub fn efficiency(&self, parallelism: NonZeroU16) -> f64 {
        let mut places = vec![Duration::ZERO; usize::from(parallelism.get())];
        for drain in self.drains.values().rev() {
            if let Some(first) = places.iter_mut().min() {
                *first += *drain;
            }
        }
        let ideal = places.into_iter().max().unwrap_or_default();
        if self.took.is_zero() { 0.0 } else { ideal.as_secs_f64() / self.took.as_secs_f64() }
    }
}

impl Tidb {
    /// Watches stores of TiKV leave until the set has this size. `look` is given what PD says, each time.
    pub async fn watch_leaving(&self, size: i32, mut look: impl FnMut(&[Store]) -> Result<()>) -> Result<Watched> {
        let began = Instant::now();
        let mut watched = Watched { fewest_up: usize::MAX, ..Watched::default() };
        let mut since: BTreeMap<u64, Instant> = BTreeMap::new();
        loop {
            let stores = self.stores().await?;
            look(&stores)?;
            let are = |state: &str| stores.iter().filter(|store| store.state == state).count();
            watched.most_leaving = watched.most_leaving.max(are("Offline"));
            watched.fewest_up = watched.fewest_up.min(are("Up"));
            for store in &stores {
                if store.state == "Offline" {
                    since.entry(store.id).or_insert_with(Instant::now);
                } else if store.state == "Tombstone"
                    && let Some(left) = since.get(&store.id)
                {
                    watched.drains.entry(store.id).or_insert_with(|| left.elapsed());
                }
            }
            let now = self.size(Component::Tikv).await?;
            if watched.sizes.last() != Some(&now) {
                watched.sizes.push(now);
            }
            if now == size {
                watched.took = began.elapsed();
                return Ok(watched);
            }
            ensure!(began.elapsed() < LONGEST, "the set still has size {now}; stores: {stores:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The store of a pod that has not left.
    pub async fn store_of(&self, ordinal: u16) -> Result<Store> {
        let pod = self.pod(Component::Tikv, ordinal);
        let stores = self.stores().await?;
        let mut own = stores.into_iter().filter(|store| store.pod == pod && store.state != "Tombstone");
        own.next().with_context(|| format!("{pod} is no store"))
    }
}
