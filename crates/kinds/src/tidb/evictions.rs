//! Leaders that are evicted because we asked for it. What we asked for is on record, and is ended when nobody needs it; what somebody
//! else asked PD for is left alone.

use std::collections::BTreeSet;

use windlass_api::logbook::tidb::MemberEntry;
use windlass_api::tidb::{Component, keys};
use windlass_core::ordinals::Ordinal;

use super::answers::StoreState;
use super::deeds::Task;
use super::facts::after;
use super::membership::Standing;
use super::plan::Planner;
use super::scene::Scene;
use super::walk::Walk;

/// So many leaders are worth waiting for. With fewer, what PD calls balanced may be any number.
const MANY: u64 = 200;

impl Scene<'_> {
    /// The stores whose leaders we evict: their pods, and their ids.
    pub(super) fn evictions(&self) -> impl Iterator<Item = (&str, u64)> {
        let own = self.intents.iter().filter(|intent| intent.act == super::EVICT_LEADERS);
        own.filter_map(|intent| Some((intent.target.as_str(), intent.uid.rsplit_once('/')?.1.parse().ok()?)))
    }

    /// Whether a store of TiKV is to leave.
    pub(super) fn leaves(&self, id: u64) -> bool {
        let wanted = self.group(Component::Tikv).wanted();
        self.own_stores(Component::Tikv).iter().any(|(ordinal, store)| store.id == id && ordinal.get() >= wanted)
    }

    /// The stores whose leaders are to be elsewhere, if that can be told.
    pub(super) fn wanted_evictions(&self) -> Option<BTreeSet<u64>> {
        let group = self.group(Component::Tikv);
        // What the spec does not name, or says wrongly, is left as it is.
        group.wish.as_ref()?;
        self.stores().ok()?;
        let walk = Walk::of(self, Component::Tikv);
        if walk == Walk::Unknown {
            return None;
        }
        let is_wanted = |ordinal: Ordinal| {
            ordinal.get() >= group.wanted() || walk.ordinal() == Some(ordinal) || self.is_asked_to_evict(ordinal)
        };
        let stores = self.own_stores(Component::Tikv).iter().filter(|(ordinal, _)| is_wanted(**ordinal));
        Some(stores.map(|(_, store)| store.id).collect())
    }

    /// The store that leads again, and far less than before its pod was replaced: the next one would take more leaders away from those
    /// that serve. Named by its pod.
    pub(super) fn returning(&self) -> Option<&str> {
        let is_awaited = |(pod, entry): &(&String, &MemberEntry)| entry.leaders.is_some_and(|led| self.awaits(pod, led));
        self.entries.members.iter().find(is_awaited).map(|(pod, _)| pod.as_str())
    }

    /// Whether leaders of a store are to come back: it had many, it may lead, and it was not waited for long enough. One that does not run
    /// is waited for elsewhere.
    pub(super) fn awaits(&self, pod: &str, led: u64) -> bool {
        let group = self.group(Component::Tikv);
        let Some(ordinal) = Ordinal::of_pod(&self.names.set(Component::Tikv), pod) else { return false };
        let patience = group.wish.as_ref().map(|wish| wish.return_patience).unwrap_or_default();
        let since = group.pods.get(&ordinal).filter(|pod| pod.ready).and_then(|pod| pod.ready_since);
        let in_time = since.is_some_and(|since| after(since, patience) > self.observed.now);
        let lacks = match self.standing(Component::Tikv, ordinal) {
            Standing::Is(store) => store.state == StoreState::Up && store.leaders.saturating_mul(3) < led.saturating_mul(2),
            // Nobody knows how many it has.
            Standing::Unknown(_) => true,
            _ => false,
        };
        led >= MANY && ordinal.get() < group.wanted() && in_time && lacks
    }

    /// Whether the user asked that a store's leaders go.
    pub(super) fn is_asked_to_evict(&self, ordinal: Ordinal) -> bool {
        let Some(pod) = self.group(Component::Tikv).pods.get(&ordinal) else { return false };
        let until = pod.meta.annotations.get(keys::TIKV_EVICT_LEADER_EXPIRATION_TIME);
        let expired =
            until.and_then(|until| until.parse().ok()).is_some_and(|until: jiff::Timestamp| until <= self.observed.now);
        pod.meta.annotations.contains_key(keys::EVICT_LEADER) && !expired
    }
}

impl Planner<'_> {
    /// Ends what nobody needs any more.
    pub(super) fn end_evictions(&mut self) {
        let (Some(wanted), Some(evicting)) = (self.scene.wanted_evictions(), self.scene.evicting()) else { return };
        let unwanted = self.scene.evictions().filter(|(_, id)| !wanted.contains(id) && evicting.contains(id));
        let unwanted: Vec<(String, u64)> = unwanted.map(|(pod, id)| (pod.to_owned(), id)).collect();
        for (pod, store) in unwanted {
            self.pd_task(&pod, Some(store), Task::StopEvicting { store }, "its leaders need not be elsewhere any more");
        }
    }
}
