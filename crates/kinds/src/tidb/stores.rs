//! TiKV and TiFlash become more or fewer: each store gives away what it has before its pod goes.
//!
//! Leaving: the guard, the leaders, the announcement, the store in PD, its proven end, the marks on its volumes, and then the pod. It can
//! be called off until PD has seen the end of the store; from then on the pod gets other volumes, and is another store.

use std::time::Duration;

use windlass_api::tidb::Component;
use windlass_core::ordinals::{Ordinal, Ordinals};
use windlass_core::plan::{Percent, UnderWay};
use windlass_core::reason;
use windlass_core::scale::{self, Drain, Limits, Scale};

use super::answers::{Said, Store, StoreState};
use super::deeds::Task;
use super::facts::after;
use super::guard::Guard;
use super::membership::{Standing, component_of, pod_at, progress};
use super::plan::Planner;
use super::scaling::JOINING;
use super::scene::Scene;

/// How long leaders are waited for before a store leaves all the same: PD moves them then, one by one.
const EVICTION: Duration = Duration::from_mins(5);

/// Why leaders go from a store that leaves; from others they go for other reasons.
pub(super) const LEAVES: &str = "the store is to leave";

/// How far the removal of a store is.
pub(super) fn drain(scene: &Scene<'_>, component: Component, ordinal: Ordinal) -> Drain {
    let group = scene.group(component);
    let leaves = ordinal.get() >= group.wanted();
    let pod = scene.names.pod(component, ordinal);
    if let Some(deed) = scene.running(&pod)
        && (leaves || matches!(deed.task, Task::DeleteStore { .. } | Task::RestoreStore { .. }))
    {
        return Drain::Draining;
    }
    let begun = |store: &Store| {
        scene.is_announced(super::DELETE_STORE, store.id)
            || (leaves && component == Component::Tikv && scene.is_announced(super::EVICT_LEADERS, store.id))
    };
    // Who else sent it away may have his reasons; only what we began do we call off.
    let draining = |store: &&Store| {
        (leaves || store.state == StoreState::Offline) && (begun(store) || (leaves && store.state == StoreState::Offline))
    };
    progress(&scene.standing(component, ordinal), group.around(ordinal, scene.asked()), draining)
}

/// Whether the leaders of a store are gone, or were waited for long enough.
pub(super) fn is_evicted(scene: &Scene<'_>, ordinal: Ordinal, store: &Store, patience: Duration) -> bool {
    let Some(intent) = scene.announced(super::EVICT_LEADERS, store.id) else { return false };
    if after(intent.announced, patience) <= scene.observed.now {
        return true;
    }
    // Its own word is newer than what it told PD.
    match scene.said(Component::Tikv, ordinal) {
        Some(Said::Tikv { leaders }) => *leaders == 0,
        _ => store.leaders == 0 && store.heard.is_none_or(|heard| heard > intent.announced),
    }
}

/// Whether others could lead instead of a store. One that does not run leads nothing any more.
pub(super) fn can_evict(scene: &Scene<'_>, store: &Store) -> bool {
    let others = scene.stores_of(Component::Tikv);
    let runs = |ordinal| scene.group(Component::Tikv).runs(ordinal);
    let serves = matches!(store.state, StoreState::Up | StoreState::Disconnected)
        && pod_at(&scene.names, Component::Tikv, &store.address).is_none_or(runs);
    serves && others.iter().any(|other| other.id != store.id && scene.is_up(Component::Tikv, other))
}

impl Planner<'_> {
    /// Plans the size of TiKV or TiFlash; tells whether it is on its way to another one.
    pub(super) fn scale_stores(&mut self, component: Component) -> Scale {
        let group = self.scene.group(component);
        let (size, wanted) = (group.size(), group.wanted());
        let (Some(wish), true) = (group.wish.clone(), group.live_set().is_some()) else { return Scale::default() };
        let known = |ordinal| (drain(&self.scene, component, ordinal), self.scene.standing(component, ordinal));
        let mut view = self.view(component, known);
        let strays = self.strays(component);
        let leaving = strays.iter().filter(|ordinal| ordinal.get() >= wanted);
        view.drains.extend(leaving.map(|ordinal| (*ordinal, drain(&self.scene, component, *ordinal))));
        let guard = Guard::of(&self.scene, component);
        self.tell_strays(component, size.min(wanted), guard.as_ref().ok());
        let moves = size != wanted
            || !strays.is_empty()
            || view.drains.values().any(|drain| matches!(drain, Drain::Draining | Drain::Finished));
        if !moves || !self.trusted {
            return Scale::default();
        }
        let guard = match guard {
            Ok(guard) => guard,
            Err(why) => {
                self.wait(reason!("PDUnknown"), format!("{} is not scaled now: {why}", component.title()), false);
                return Scale { direction: direction(size, wanted), ..Scale::default() };
            }
        };
        if let Some(refusal) = guard.refusal().filter(|_| wanted < size) {
            self.wait(reason!("FailedScaleIn"), refusal, true);
        }
        let (guarded, unguarded) = guard.limit();
        let limits =
            Limits { scale_in_parallelism: wish.scale_in, scale_out_parallelism: wish.scale_out, guard: guarded, unguarded };
        let scale = self.scale(component, &view, &limits);
        let stranded = self.stranded(component, &scale.keep, &guard);
        for ordinal in scale.start.iter().chain(&scale.keep).filter(|ordinal| Some(*ordinal) != stranded) {
            self.leave(component, ordinal, &guard);
        }
        for ordinal in &scale.cancel {
            self.call_off(component, ordinal, "the store is wanted again");
        }
        if let Some(ordinal) = stranded {
            self.call_off(component, ordinal, "others leave too, and too few would stay to take what they have");
        }
        let under_way = view.drains.values().filter(|drain| matches!(drain, Drain::Draining | Drain::Unknown)).count();
        let free = scale.start.len() + under_way < usize::from(wish.scale_in.get());
        let unbegun = strays.into_iter().find(|ordinal| !scale.keep.contains(*ordinal));
        if let Some(ordinal) = unbegun.filter(|_| free && !self.scene.refused) {
            self.leave(component, ordinal, &guard);
        }
        scale
    }

    /// The next step of a store that leaves.
    fn leave(&mut self, component: Component, ordinal: Ordinal, guard: &Guard) {
        let pod = self.scene.names.pod(component, ordinal);
        match self.scene.standing(component, ordinal) {
            Standing::Is(store) if store.state == StoreState::Offline => {
                let message = format!("store {} ({pod}) gives its regions to others", store.id);
                self.under_way(&pod, store);
                self.wait(reason!("Draining"), message, false);
                self.tell_stuck(&pod, store, guard);
            }
            Standing::Is(store) => self.send_away(component, ordinal, store, guard),
            // PD is asked for this very one: its word that there is none is what the pod may go by.
            Standing::Vanished(id) => {
                let address = String::new();
                self.pd_task(&pod, Some(id), Task::DeleteStore { store: id, address }, "PD lists no such store any more");
            }
            Standing::Left => self.mark(component, ordinal),
            Standing::Never => self.never_joined(component, ordinal),
            Standing::Unknown(_) => {}
        }
    }

    /// The store that has to come back when so many leave that none of them could ever be done: the one that has most left to give away,
    /// of those that we sent. What somebody else asked PD for is his to take back.
    fn stranded(&self, component: Component, leaving: &Ordinals, guard: &Guard) -> Option<Ordinal> {
        let serves = |ordinal: Ordinal| match self.scene.standing(component, ordinal) {
            Standing::Is(store) if store.state == StoreState::Offline && self.scene.group(component).runs(ordinal) => {
                self.scene.is_announced(super::DELETE_STORE, store.id).then_some((store.regions, ordinal))
            }
            _ => None,
        };
        leaving.iter().filter(|_| guard.is_stuck()).filter_map(serves).max().map(|(_, ordinal)| ordinal)
    }

    /// Tells how far a store is that gives away what it has.
    fn under_way(&mut self, pod: &str, store: &Store) {
        let Some(all) = self.scene.entries.members.get(pod).and_then(|entry| entry.regions) else { return };
        let since = self.scene.announced(super::DELETE_STORE, store.id).map(|intent| intent.announced);
        let what = format!("store {} ({pod}) gives away {all} regions", store.id);
        self.plan.under_way.push(UnderWay { what, since, percent: Percent::of(store.regions, all) });
    }

    fn send_away(&mut self, component: Component, ordinal: Ordinal, store: &Store, guard: &Guard) {
        let pod = self.scene.names.pod(component, ordinal);
        let announced = self.scene.is_announced(super::DELETE_STORE, store.id);
        let evicts = component == Component::Tikv && can_evict(&self.scene, store) && !announced;
        if evicts && !is_evicted(&self.scene, ordinal, store, EVICTION) {
            let listed = self.scene.evicting().is_some_and(|evicting| evicting.contains(&store.id));
            if listed && self.scene.is_announced(super::EVICT_LEADERS, store.id) {
                let message = format!("store {} ({pod}) gives its leaders to others", store.id);
                return self.wait(reason!("Draining"), message, false);
            }
            let task = Task::EvictLeaders { store: store.id };
            return self.pd_task(&pod, Some(store.id), task, LEAVES);
        }
        if !guard.holds() {
            let message =
                format!("store {} ({pod}) does not leave now: {} must stay up, and {} are", store.id, guard.least, guard.up);
            return self.wait(reason!("TooFewStores"), message, false);
        }
        let task = Task::DeleteStore { store: store.id, address: store.address.clone() };
        self.pd_task(
            &pod,
            Some(store.id),
            task,
            format!("the spec asks for {} stores of {}", self.scene.group(component).wanted(), component.title()),
        );
    }

    /// Stores of pods that are not there and will not come back as what they were: nobody else sends them away. A pod may have become a
    /// store in the very moment in which it was removed.
    fn strays(&self, component: Component) -> Vec<Ordinal> {
        let group = self.scene.group(component);
        let returns = |ordinal: &Ordinal| ordinal.get() < group.wanted() && group.has_volumes(*ordinal);
        let is_stray =
            |ordinal: &Ordinal| ordinal.get() >= group.size() && !group.pods.contains_key(ordinal) && !returns(ordinal);
        self.scene.own_stores(component).keys().copied().filter(is_stray).collect()
    }

    /// Says which stores that should stay leave, or are not known, without our doing.
    fn tell_strays(&mut self, component: Component, staying: u16, guard: Option<&Guard>) {
        for ordinal in (0..staying).map(Ordinal::new) {
            let pod = self.scene.names.pod(component, ordinal);
            match self.scene.standing(component, ordinal) {
                Standing::Is(store)
                    if store.state == StoreState::Offline && !self.scene.is_announced(super::DELETE_STORE, store.id) =>
                {
                    let message = format!(
                        "store {} ({pod}) is to stay and leaves, because somebody asked PD for it; when it has left, {pod} begins anew",
                        store.id
                    );
                    self.wait(reason!("StoreLeaves"), message, false);
                    if let Some(guard) = guard {
                        self.tell_stuck(&pod, store, guard);
                    }
                }
                Standing::Vanished(id) => {
                    let message = format!(
                        "PD does not know store {id} of {pod} any more; if it does not come back, delete the PersistentVolumeClaims of {pod} and \
                         the pod: it begins anew then"
                    );
                    self.wait(reason!("StoreVanished"), message, true);
                }
                Standing::Never => self.tell_tombstone(component, ordinal),
                _ => {}
            }
        }
    }

    /// Says of a store that somebody else sent away that it can never be done, and what lets everything go on. We do not take back what a
    /// person asked for: which store he can do without, he knows.
    fn tell_stuck(&mut self, pod: &str, store: &Store, guard: &Guard) {
        if !guard.is_stuck() || self.scene.is_announced(super::DELETE_STORE, store.id) {
            return;
        }
        let Guard { least, able, .. } = guard;
        let message = format!(
            "store {id} ({pod}) leaves because somebody asked PD for it, and can never be done: {least} stores must stay, and {able} are \
             not on their way out; let it stay in PD, POST /pd/api/v1/store/{id}/state?state=Up, or ask for more stores",
            id = store.id
        );
        self.wait(reason!("StoreCannotLeave"), message, true);
    }

    /// A pod may have been a store, and have left, before anybody saw it: then it does not start any more. But that its volumes are those of
    /// the store that has left, nobody knows.
    fn tell_tombstone(&mut self, component: Component, ordinal: Ordinal) {
        let Some(pod) = self.scene.group(component).pods.get(&ordinal).copied() else { return };
        let joins = pod.meta.created.is_none_or(|created| after(created, JOINING) > self.scene.observed.now);
        let left = |store: &&Store| {
            store.state == StoreState::Tombstone
                && component_of(store) == component
                && pod_at(&self.scene.names, component, &store.address) == Some(ordinal)
        };
        let Some(store) = self.scene.stores().ok().and_then(|stores| stores.values().rfind(left)) else { return };
        if pod.ready || joins {
            return;
        }
        let name = &pod.meta.name;
        let message = format!(
            "{name} does not join PD, and store {} with its address has left for good; if it was that one, delete the \
             PersistentVolumeClaims of {name} and the pod: it begins anew then",
            store.id
        );
        self.wait(reason!("TombstoneInTheWay"), message, true);
    }

    /// A store that was to leave stays.
    fn call_off(&mut self, component: Component, ordinal: Ordinal, why: &'static str) {
        let pod = self.scene.names.pod(component, ordinal);
        if let Standing::Is(store) = self.scene.standing(component, ordinal)
            && store.state == StoreState::Offline
        {
            let task = Task::RestoreStore { store: store.id, address: store.address.clone() };
            self.pd_task(&pod, Some(store.id), task, why);
        }
    }
}

fn direction(size: u16, wanted: u16) -> scale::Direction {
    match size.cmp(&wanted) {
        std::cmp::Ordering::Less => scale::Direction::Out,
        std::cmp::Ordering::Equal => scale::Direction::Settled,
        std::cmp::Ordering::Greater => scale::Direction::In,
    }
}
