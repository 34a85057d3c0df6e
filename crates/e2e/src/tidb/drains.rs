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
    /// How many were not asked to leave, at least.
    pub fewest_staying: usize,
    /// The sizes of the set, in the order in which they were seen.
    pub sizes: Vec<i32>,
    /// The stores that left, in the order in which they began.
    pub drains: Vec<Drain>,
    /// From the request until the set had its size.
    pub took: Duration,
}

/// A store that left.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    /// Its id.
    pub store: u64,
    /// When it was Offline, after the request.
    pub begun: Duration,
    /// From Offline to Tombstone.
    pub took: Duration,
}

impl Watched {
    /// The time that an ideal schedule would have taken, by the time that was taken. An ideal one lets them leave in the same order, and the
    /// next one as soon as a place is free.
    pub fn efficiency(&self, parallelism: NonZeroU16) -> f64 {
        let mut places = vec![Duration::ZERO; usize::from(parallelism.get())];
        for drain in &self.drains {
            if let Some(first) = places.iter_mut().min() {
                *first += drain.took;
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
        let mut watched = Watched { fewest_staying: usize::MAX, ..Watched::default() };
        let mut leaving: BTreeMap<u64, Duration> = BTreeMap::new();
        loop {
            // The size first: what a smaller one is due to is to be seen in the stores.
            let now = self.size(Component::Tikv).await?;
            let stores = self.stores().await?;
            look(&stores)?;
            watched.most_leaving = watched.most_leaving.max(stores.iter().filter(|it| it.state == "Offline").count());
            watched.fewest_staying = watched.fewest_staying.min(stores.iter().filter(|it| it.stays()).count());
            for store in &stores {
                if store.state == "Offline" {
                    leaving.entry(store.id).or_insert_with(|| began.elapsed());
                } else if store.state == "Tombstone"
                    && let Some(begun) = leaving.remove(&store.id)
                {
                    watched.drains.push(Drain { store: store.id, begun, took: began.elapsed().saturating_sub(begun) });
                }
            }
            if watched.sizes.last() != Some(&now) {
                watched.sizes.push(now);
            }
            if now == size {
                watched.took = began.elapsed();
                watched.drains.sort_by_key(|drain| drain.begun);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(store: u64, begun: u64, took: u64) -> Drain {
        Drain { store, begun: Duration::from_secs(begun), took: Duration::from_secs(took) }
    }

    /// In the order of their ids, the long one would come last, and five seconds would seem to be lost.
    #[test]
    fn an_ideal_schedule_keeps_the_order_in_which_stores_began() {
        let drains = vec![drain(1, 0, 10), drain(7, 0, 5), drain(4, 5, 5)];
        let watched = Watched { drains, took: Duration::from_secs(10), ..Watched::default() };
        let two = NonZeroU16::MIN.saturating_add(1);
        assert!((watched.efficiency(two) - 1.0).abs() < 1e-9, "{}", watched.efficiency(two));
        assert!((watched.efficiency(NonZeroU16::MIN) - 2.0).abs() < 1e-9);
    }
}
