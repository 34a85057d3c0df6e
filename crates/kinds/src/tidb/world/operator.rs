//! The operator in the world: a pass, the steps it takes, and what no step may ever do.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_api::tidb::{Component, keys};
use windlass_core::bookkeeping;
use windlass_core::claim::Identity;
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::{Kind, Observed, Options, Report};
use windlass_core::lane::Lane;
use windlass_core::memory::{Found, Memory, reprove};
use windlass_core::ordinals::Ordinal;
use windlass_core::plan::Plan;
use windlass_core::step::{Act, Action as _, ObjectKind, Step};
use windlass_core::views::Children;

use super::super::answers::StoreState;
use super::super::build::{Claims, Objects};
use super::super::component::has_stores;
use super::super::deeds::{Deed, Task};
use super::super::plan::plan_with;
use super::super::scaling::is_marked;
use super::super::simulation::SimulatedStore;
use super::super::stores::LEAVES;
use super::super::validate::Validated;
use super::super::{EVICT_LEADERS, Settings, Tidb, probes};
use super::kubernetes::sketch;
use super::{COMPONENTS, LARGEST, NAMES, UID, World};

/// How long what was seen may be older than what is.
const LATE: i64 = 8;

pub(super) struct Passed {
    pub(super) plan: Plan<Deed>,
    pub(super) look_again: Timestamp,
    pub(super) resumed: bool,
}

impl World {
    pub(super) fn pass(&mut self) -> Passed {
        self.passes += 1;
        Tidb::forget(&mut self.facts, &self.children);
        let found = self.logbook.as_ref().map(|logbook| Found { logbook, uid: "logbook" });
        let memory = Memory::judge(found, UID, &self.children);
        let settings = Settings { auto_failover: self.failover, discovery_image: "windlass".into(), ..Settings::default() };
        let observed = Observed {
            resource: &self.resource,
            children: &self.children,
            settings: &settings,
            options: &Options::None,
            facts: &self.facts,
            memory: &memory,
            answered: &BTreeMap::new(),
            running: &self.running,
            settled: false,
            now: self.now,
        };
        let discovery = |_: &Validated, _: &str, _: &Children| Objects {
            applied: Vec::new(),
            removals: Vec::new(),
            claims: Claims::AsAsked,
        };
        let plan = plan_with(&observed, &sketch, &discovery);
        let rests = self.rest.as_ref().is_some_and(|(resource, children, logbook)| {
            (resource, children, logbook) == (&self.resource, &self.children, &self.logbook)
        });
        if rests {
            // Whatever was said since the objects were found to be as they should be: looking at them again would change nothing.
            assert_eq!(plan_with(&Observed { settled: true, ..observed }, &sketch, &discovery), plan);
        } else {
            let sight = || (self.resource.clone(), self.children.clone(), self.logbook.clone());
            self.rest = plan.settled.then(sight);
        }
        let mut entries = memory.entries();
        entries.cluster_uid = UID.into();
        Tidb::remember(&observed, &mut entries);
        reprove(&mut entries, &Tidb::proves(&observed));
        let gate = bookkeeping::gate::<Tidb>(observed.resource, observed.running, &entries);
        let parted = gate.part(&plan);
        bookkeeping::note_pass(&observed, &Identity::default(), &plan, &gate, &parted, &mut entries);
        let questions = probes::due(&observed);
        // Now and then it looks late, and sees only what came of things; so late that it does not know PD any more only in bad times.
        let late = if self.calm { Duration::from_secs(20) } else { Duration::from_mins(1) };
        let in_time = self.events.is_empty() || !self.passes.is_multiple_of(3);
        let wait = if in_time { probes::look_again(&observed) } else { late };
        if self.passes.is_multiple_of(16) {
            let report = Report { plan: &plan, gate: &gate, held: &parted.held, taken: &[], remembered: &entries };
            let status = Tidb::status(&observed, &report);
            assert_eq!(status.conditions.len(), 7);
            Tidb::figures(&observed, &report, &status);
        }
        let kept = self.calm || !self.dice.chance(3);
        if kept {
            self.logbook = Some(entries);
            for step in &parted.go {
                self.take(step);
            }
        }
        for question in questions {
            self.ask(question);
        }
        let resumed = kept && self.withdraw(&gate);
        Passed { plan, look_again: self.now.checked_add(SignedDuration::try_from(wait).unwrap()).unwrap(), resumed }
    }

    /// Opens lanes whose acknowledgement was withdrawn in the status.
    fn withdraw(&mut self, gate: &Gate) -> bool {
        let Some(logbook) = &mut self.logbook else { return false };
        let opening = |lane| *gate.door(lane) == Door::Opening;
        if opening(Lane::Resources) {
            logbook.pause.resources = None;
        }
        if opening(Lane::Clustering) {
            logbook.pause.clustering = None;
        }
        opening(Lane::Resources) || opening(Lane::Clustering)
    }

    /// Carries a step out, unless the request gets lost.
    fn take(&mut self, step: &Step<Deed>) {
        self.judge(step);
        if self.take_policy(step) {
            return;
        }
        if !self.calm && self.dice.chance(5) {
            return;
        }
        match &step.act {
            Act::Apply(manifest) => self.apply(manifest),
            Act::Delete { object, over } => match object.kind {
                ObjectKind::Pod => {
                    if self.children.pods.get(&object.name).is_some_and(|pod| pod.meta.as_judged() == *over) {
                        self.delete_pod(&object.name);
                    }
                }
                ObjectKind::PersistentVolumeClaim => {
                    let version = self.fresh().to_string();
                    let claim = self.children.claims.get_mut(&object.name).filter(|it| it.meta.as_judged() == *over);
                    if let Some(claim) = claim {
                        claim.meta.deleting = true;
                        claim.meta.resource_version = version;
                    }
                }
                ObjectKind::StatefulSet => {
                    self.children.stateful_sets.remove(&object.name);
                }
                other => panic!("a {other} is deleted"),
            },
            Act::SetReplicas { object, over, to, .. } => {
                let set = self.children.stateful_sets.get(&object.name);
                if set.is_some_and(|set| set.object.meta.as_judged() == *over) {
                    let component = COMPONENTS.into_iter().find(|it| NAMES.set(*it) == object.name).unwrap();
                    self.resize(component, *to);
                }
            }
            Act::Label { object, over, labels, annotations } => {
                let version = self.fresh().to_string();
                let meta = match object.kind {
                    ObjectKind::Pod => self.children.pods.get_mut(&object.name).map(|pod| &mut pod.meta),
                    _ => self.children.claims.get_mut(&object.name).map(|claim| &mut claim.meta),
                };
                if let Some(meta) = meta.filter(|meta| meta.as_judged() == *over) {
                    for (changes, on) in [(labels, &mut meta.labels), (annotations, &mut meta.annotations)] {
                        for (key, value) in changes {
                            match value {
                                Some(value) => on.insert(key.clone(), value.clone()),
                                None => on.remove(key),
                            }
                        }
                    }
                    meta.resource_version = version;
                }
            }
            Act::Member(deed) => self.start(deed.clone()),
            // It is seen when somebody shows it.
            Act::TakeOver { .. } => {}
            Act::Sync { .. } | Act::DeleteAlone { .. } | Act::Grow { .. } | Act::SetReclaim { .. } => {
                panic!("{step} is not for this world")
            }
        }
    }

    /// What no step may ever do.
    fn judge(&mut self, step: &Step<Deed>) {
        let paused = step.lane().is_some_and(|lane| Tidb::pause(&self.resource).lane(lane).paused);
        assert!(!paused, "{step} is taken in a paused lane");
        match &step.act {
            Act::Delete { object, over } => {
                assert!(!over.uid.is_empty() && !over.resource_version.is_empty(), "{step} has no precondition");
                match object.kind {
                    ObjectKind::Pod => {
                        let restarts = self.children.pods.get(&object.name).is_some_and(|pod| {
                            pod.meta.annotations.contains_key(keys::EVICT_LEADER)
                                || pod.meta.annotations.contains_key(keys::PD_TRANSFER_LEADER)
                        });
                        // One that leaves may have joined since PD was asked; then it is started again, and nothing is lost. One that
                        // does not run is missed already.
                        let (component, ordinal) = Self::place(&object.name);
                        let leaves = ordinal.get() >= self.wanted(component);
                        let runs = self.children.pods.get(&object.name).is_some_and(|pod| pod.process.is_some());
                        let harmless = restarts || leaves || !runs || !self.lives(&object.name);
                        assert!(harmless, "{step}, and what is on its volume is in PD");
                        self.judge_announced(step, &over.uid);
                    }
                    ObjectKind::PersistentVolumeClaim => {
                        let held = self.held.get(&over.uid).copied();
                        assert!(!held.is_some_and(|id| self.is_in_pd(id)), "{step}, and what is on it is in PD");
                    }
                    ObjectKind::StatefulSet => assert!(self.resource.spec.suspend_action.is_some(), "{step}"),
                    other => panic!("a {other} is deleted"),
                }
            }
            Act::SetReplicas { object, over, from, to } if to < from => {
                self.judge_announced(step, &over.uid);
                let component = COMPONENTS.into_iter().find(|it| NAMES.set(*it) == object.name).unwrap();
                for ordinal in *to..*from {
                    let pod = Self::pod(component, ordinal);
                    assert!(!self.lives(&pod), "{step}, and {pod} is in PD");
                    let unmarked = self
                        .children
                        .claims
                        .values()
                        .find(|it| it.meta.name.ends_with(&format!("-{pod}")) && !is_marked(it) && !it.meta.deleting);
                    assert!(unmarked.is_none(), "{step}, and a volume of {pod} is not marked");
                }
            }
            Act::SetReclaim { over, policy, .. } => self.judge_policy(step, &over.uid, policy),
            Act::Member(deed) if deed.irreversible() => self.judge_announced(step, deed.target_uid()),
            _ => {}
        }
        if let Act::Member(deed) = &step.act
            && Self::sends_away(&deed.task)
        {
            self.judge_parallelism(deed, &step.reason);
        }
    }

    /// Never more leave at once than may.
    fn judge_parallelism(&mut self, deed: &Deed, why: &str) {
        let (component, ordinal) = Self::place(&deed.about);
        let wanted = self.wanted(component);
        // Leaders that go because a pod's annotation asks for it, or because it is about to be replaced, go whether or not the store
        // leaves; and no copy of a region goes with them.
        let is_restart = matches!(deed.task, Task::EvictLeaders { .. }) && why != LEAVES;
        if ordinal.get() < wanted || !has_stores(component) || is_restart {
            return;
        }
        let policy = match component {
            Component::Tikv => self.resource.spec.tikv.as_ref().and_then(|it| it.scale_policy.as_ref()),
            _ => self.resource.spec.tiflash.as_ref().and_then(|it| it.scale_policy.as_ref()),
        };
        let allowed = policy.and_then(|it| it.scale_in_parallelism).unwrap_or(1);
        // With another volume, a pod is another store than the one that was announced.
        let announced = |pod: &str| {
            let mut intents = self.logbook.iter().flat_map(|it| &it.intents);
            let about = |uid: &str| uid.rsplit_once('/').and_then(|(_, id)| id.parse().ok());
            intents.any(|it| {
                let sends_away =
                    (it.act == EVICT_LEADERS && it.reason.ends_with(LEAVES)) || it.act == super::super::DELETE_STORE;
                it.target == pod && sends_away && about(&it.uid).is_some_and(|id| self.is_in_pd(id))
            })
        };
        let leaves = |ordinal: &u16| {
            let pod = Self::pod(component, *ordinal);
            *ordinal >= wanted && pod != deed.about && announced(&pod)
        };
        let under_way = (0..LARGEST).filter(leaves).count();
        self.most = self.most.max(under_way + 1);
        // Who was under way when fewer were allowed goes on.
        let begun = announced_before(self, deed);
        assert!(begun || under_way < usize::from(allowed), "{deed} while {under_way} leave and {allowed} may");
    }

    fn wanted(&self, component: Component) -> u16 {
        let spec = &self.resource.spec;
        let replicas = match component {
            Component::Pd => spec.pd.as_ref().map(|it| it.replicas),
            Component::Tikv => spec.tikv.as_ref().map(|it| it.replicas),
            Component::Tiflash => spec.tiflash.as_ref().map(|it| it.replicas),
            _ => spec.tidb.as_ref().map(|it| it.replicas),
        };
        let failures = self.logbook.iter().flat_map(|it| &it.tidb).flat_map(|it| it.failures.values());
        let failed = failures.filter(|it| it.component == component.as_str()).count();
        replicas.unwrap_or(0) + u16::try_from(failed).unwrap()
    }

    /// Whether what is on the volume of a pod is a store or a member of PD that has not left.
    pub(super) fn lives(&self, pod: &str) -> bool {
        self.on(pod).is_some_and(|id| self.is_in_pd(id))
    }

    pub(super) fn is_in_pd(&self, id: u64) -> bool {
        // One that PD was made to forget may have come back a moment ago.
        let is_new = |store: &SimulatedStore| {
            self.forgotten.contains(&id) && self.now.duration_since(store.started) < SignedDuration::from_secs(LATE)
        };
        let store = self.pd.stores.get(&id).filter(|it| it.state != StoreState::Tombstone && !is_new(it));
        self.pd.members.contains_key(&id) || store.is_some()
    }

    fn judge_announced(&self, step: &Step<Deed>, uid: &str) {
        let mut announced = self.logbook.iter().flat_map(|logbook| &logbook.intents);
        assert!(announced.any(|intent| intent.uid == uid), "{step} was not announced");
    }

    /// What PD complains of is our doing, unless something was lost right before.
    pub(super) fn judge_deed(&self, deed: &Deed, before: usize) {
        let lost = self.now.duration_since(self.disturbed) < SignedDuration::from_secs(LATE);
        let said = &self.pd.complaints[before..];
        assert!(said.is_empty() || lost, "{deed}: {said:?}");
        if let Task::DeleteStore { store, .. } = deed.task {
            let on = self.on(&deed.about);
            assert!(on.is_none() || on == Some(store), "{deed}, but {on:?} is on its volume");
        }
    }

    /// What a pod did was handed over before the controller replaces it.
    pub(super) fn judge_replacement(&self, component: Component, ordinal: u16) {
        let name = Self::pod(component, ordinal);
        let lost = self.now.duration_since(self.disturbed) < SignedDuration::from_secs(LATE);
        if component != Component::Pd || lost || self.pd.members.len() < 3 {
            return;
        }
        let Some(id) = self.on(&name) else { return };
        let rest = self.pd.members.iter().filter(|(other, _)| **other != id);
        let (all, alive) = (rest.clone().count(), rest.filter(|(_, it)| it.alive).count());
        assert!(alive * 2 > all || !self.pd.serves(), "{name} is replaced, and {alive} of {all} others run");
    }

    pub(super) fn ordinals(&self, component: Component) -> Vec<Ordinal> {
        (0..self.size(component)).map(Ordinal::new).collect()
    }
}

fn announced_before(world: &World, deed: &Deed) -> bool {
    let mut intents = world.logbook.iter().flat_map(|it| &it.intents);
    // It was announced in an earlier pass than this one.
    intents.any(|it| it.uid == deed.identity && it.announced.as_second() < world.now.as_second())
}
