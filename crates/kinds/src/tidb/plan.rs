//! What to do next. Each component by itself, so that one which waits does not stop another; the orders that matter are in `order`.

use std::collections::BTreeMap;

use windlass_api::tidb::Component;
use windlass_core::adoption::unseen;
use windlass_core::conditions::Reason;
use windlass_core::kind::Observed;
use windlass_core::lane::Lane;
use windlass_core::memory::ways_out;
use windlass_core::ordinals::Ordinal;
use windlass_core::plan::{Plan, Waiting};
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, Meta};

use super::Tidb;
use super::build::{self, Inputs, Objects};
use super::deeds::{At, Deed, Task};
use super::scene::Scene;
use super::suspend;
use super::validate::{Validated, bare, validate};

/// A plan in the making.
pub(super) struct Planner<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) plan: Plan<Deed>,
    /// Whether what is remembered can carry what cannot be undone.
    pub(super) trusted: bool,
}

/// Builds the objects of one component.
pub(super) type Builder<'b> = &'b dyn Fn(&Validated, Component, &Inputs<'_>) -> Option<Objects<Deed>>;

/// Builds the objects of discovery with an image, beside what is there.
pub(super) type DiscoveryBuilder<'b> = &'b dyn Fn(&Validated, &str, &Children) -> Objects<Deed>;

pub(super) fn plan(observed: &Observed<'_, Tidb>) -> Plan<Deed> {
    plan_with(observed, &build::component, &|cluster, image, children| build::discovery(cluster, image, children))
}

/// The plan for objects that somebody else builds.
pub(super) fn plan_with(observed: &Observed<'_, Tidb>, build: Builder<'_>, discovery: DiscoveryBuilder<'_>) -> Plan<Deed> {
    let scene = Scene::of(observed, &observed.memory.entries());
    let mut planner = Planner { scene, plan: Plan::default(), trusted: false };
    planner.trusted = planner.memory();
    let cluster = match validate(observed.resource) {
        Ok(cluster) => cluster,
        Err(invalid) => {
            planner.wait(reason!("InvalidSpec"), invalid.to_string(), true);
            planner.refused();
            return planner.plan;
        }
    };
    planner.hearing();
    let mut settled = planner.discovery(&cluster, discovery);
    if !planner.take_over(&cluster) {
        return planner.plan;
    }
    planner.set_policies(&cluster);
    for component in Component::ALL.into_iter().filter(|component| cluster.group(*component).is_some()) {
        planner.grow(&cluster, component);
        settled &= planner.objects(&cluster, component, build);
        planner.size(component);
    }
    planner.plan.settled = settled;
    planner.announced();
    planner.end_evictions();
    planner.restart();
    planner.fail_over();
    planner.place_stores();
    planner.label();
    planner.reclaim(&cluster);
    planner.plan
}

impl Planner<'_> {
    /// The spec is refused: objects stay as the last good one made them, and discovery is kept whole. What was begun with PD and members
    /// goes on, as that spec asked for it: who is on the way out or back, leaders that need not be elsewhere any more, who has failed.
    fn refused(&mut self) {
        self.hearing();
        let observed = self.scene.observed;
        let discovery = bare(observed.resource).ok().and_then(|cluster| build::discovery_as_kept(&cluster, observed.children));
        self.plan.apply(discovery.into_iter().flatten().collect(), observed.children, observed.answered);
        let sets = Component::ALL.into_iter().filter_map(|component| self.scene.group(component).live_set());
        if sets.into_iter().any(|set| !unseen(set, observed.children).is_empty()) {
            // Members that are not seen yet would count as missing.
            return;
        }
        for component in Component::ALL {
            self.size(component);
        }
        self.announced();
        self.end_evictions();
        self.restart();
        self.fail_over();
        self.plan.steps.retain(|step| step.lane() != Some(Lane::Resources));
    }

    /// Discovery is there before all others, and no pause holds it back. Tells whether it is as it should be.
    fn discovery(&mut self, cluster: &Validated, build: DiscoveryBuilder<'_>) -> bool {
        let observed = self.scene.observed;
        if observed.settled {
            return true;
        }
        let before = self.plan.len();
        let image = &observed.settings.discovery_image;
        if image.is_empty() {
            let message = "the operator was started without its own image, and so cannot say which program is discovery";
            self.wait(reason!("DiscoveryImageUnknown"), message, true);
            return false;
        }
        let Objects { applied, removals, .. } = build(cluster, image, observed.children);
        self.plan.steps.extend(removals);
        self.plan.apply(applied, observed.children, observed.answered);
        self.plan.len() == before
    }

    /// Plans the size of a component, unless it is stopped.
    fn size(&mut self, component: Component) {
        if suspend::is_asked(&self.scene, component) {
            return;
        }
        let scale = match component {
            Component::Pd => self.scale_pd(),
            Component::Tikv | Component::Tiflash => self.scale_stores(component),
            _ => self.scale_servers(component),
        };
        if scale.is_empty() {
            self.keep_volumes(component);
        }
    }

    /// What was announced is in hand until PD was seen to be so.
    fn announced(&mut self) {
        let ours = self.scene.intents.iter().filter(|intent| super::INTENTS.contains(&intent.act.as_str()));
        let messages: Vec<String> = ours.map(|intent| intent.reason.clone()).collect();
        for message in messages {
            self.wait(reason!("Announced"), message, false);
        }
    }

    /// Says what is wrong with PD where a person has to look.
    fn hearing(&mut self) {
        if let Err(unheard) = &self.scene.pd
            && unheard.stalled
        {
            let message = unheard.why.clone();
            self.wait(reason!("ClusterIdChanged"), message, true);
        }
    }

    pub(super) fn wait(&mut self, reason: Reason, message: impl Into<String>, stalled: bool) {
        self.plan.waiting.push(Waiting { reason, message: message.into(), stalled });
    }

    pub(super) fn step(&mut self, act: Act<Deed>, why: impl Into<String>) {
        self.plan.steps.push(Step::new(act, why));
    }

    pub(super) fn object(&self, kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: self.scene.namespace.to_owned(), name: name.to_owned() }
    }

    pub(super) fn delete(&mut self, kind: ObjectKind, meta: &Meta, why: impl Into<String>) {
        let object = self.object(kind, &meta.name);
        self.step(Act::Delete { object, over: meta.as_judged() }, why);
    }

    /// Sets annotations of a pod or a claim; those without a value are taken away.
    pub(super) fn annotate(
        &mut self,
        kind: ObjectKind,
        meta: &Meta,
        changes: &[(&str, Option<String>)],
        why: impl Into<String>,
    ) {
        let annotations = changes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let object = self.object(kind, &meta.name);
        self.step(Act::Label { object, over: meta.as_judged(), labels: BTreeMap::new(), annotations }, why);
    }

    /// A task for PD about a pod's store or member, if PD can be reached, the cluster is the one on record, and nothing else is done
    /// about that pod. One that failed is tried again after a while.
    pub(super) fn pd_task(&mut self, about: &str, id: Option<u64>, task: Task, why: impl Into<String>) {
        let Some(pd) = self.scene.pd_place().filter(|pd| pd.cluster.is_some() && self.trusted) else { return };
        // What was said before the last task about it tells of what was then: a mistake must not become a storm.
        if !self.scene.asked().is_some_and(|asked| self.scene.is_settled(about, asked)) {
            return;
        }
        let identity = id.map_or_else(|| about.to_owned(), |id| self.scene.identity(id));
        self.task(Deed { at: At::Pd(pd), task, about: about.to_owned(), identity }, why);
    }

    /// A task for one server about another one, or itself.
    pub(super) fn server_task(&mut self, at: (Component, Ordinal), about: (Component, Ordinal), task: Task, why: &str) {
        let pod = self.scene.group(about.0).pods.get(&about.1).copied();
        let (Some(server), Some(pod)) = (self.scene.server(at.0, at.1), pod) else { return };
        let facts = self.scene.server_facts(about.0, about.1);
        if !facts.is_some_and(|facts| self.scene.is_settled(&pod.meta.name, facts.asked)) {
            return;
        }
        let (about, identity) = (pod.meta.name.clone(), pod.meta.uid.clone());
        self.task(Deed { at: At::Server(server), task, about, identity }, why);
    }

    fn task(&mut self, deed: Deed, why: impl Into<String>) {
        let is_planned = |step: &Step<Deed>| matches!(&step.act, Act::Member(other) if other.about == deed.about);
        if self.scene.running(&deed.about).is_some() || self.plan.steps.iter().any(is_planned) {
            return;
        }
        if let Some(failed) = self.scene.observed.facts.failed(&deed.about).filter(|failed| failed.task == deed.task) {
            let message = format!("{deed} failed {} times and is tried again: {}", failed.times, failed.why);
            let again = failed.again();
            self.wait(reason!("TaskFailed"), message, false);
            if again > self.scene.observed.now {
                return;
            }
        }
        self.step(Act::Member(deed), why);
    }

    /// Whether what is remembered can carry steps that cannot be undone.
    fn memory(&mut self) -> bool {
        let Some(why) = self.scene.observed.memory.lost() else { return true };
        let mut message = format!("{why}; nothing is removed, restarted or evicted until PD was heard");
        let remembered = self.scene.observed.memory.entries();
        if !remembered.own_uid.is_empty() {
            let ways = ways_out(&remembered);
            message = format!("{message}; or say what it held, by these annotations on the custom resource: {ways}");
        }
        self.wait(reason!("LogbookLost"), message, true);
        false
    }
}
