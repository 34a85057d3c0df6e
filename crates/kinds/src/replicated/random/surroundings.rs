//! What is around a random custom resource: children, answers of members, a logbook. Each may be good, odd or broken.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::core::DeserializeGuard;
use serde_json::{Value, json};
use windlass_api::logbook::LogbookSpec;
use windlass_api::{Logbook, ReplicatedStatefulSet};
use windlass_core::kind::{Observed, Options};
use windlass_core::labels;
use windlass_core::memory::{Found, Memory};
use windlass_core::names::ReplicatedNames;
use windlass_core::ordinals::Ordinal;
use windlass_core::step::{Manifest, ObjectKind};
use windlass_core::views::{Children, ClaimView, Compact, Meta, ObjectView, PodView, REVISION, StatefulSetView};
use windlass_dice::{Dice, Documents, junk, text};

use super::super::facts::{Fact, Facts, Of};
use super::super::fixtures::{CLUSTER_UID, NAMESPACE, NO_DATA, exited, position, stored};
use super::super::hooks::{About, Deed, Exec, ExecEnd, HookRun};
use super::super::{Replicated, Validated, build};

const LOGBOOK_UID: &str = "logbook";

/// A logbook that says something in every entry.
pub(super) fn logbook() -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Logbook",
        "metadata": { "name": "rss-orders", "namespace": NAMESPACE, "uid": LOGBOOK_UID },
        "spec": {
            "clusterUid": CLUSTER_UID, "ownUid": LOGBOOK_UID, "edition": 3, "actedGeneration": 1,
            "claim": { "release": "ops/windlass", "version": "1", "holder": "process", "epoch": 7 },
            "counts": { "largest": 3, "restore": 3 },
            "histories": ["6f2c"],
            "pause": { "resources": { "acknowledged": time, "reason": "night" } },
            "intents": [{ "act": "Seed", "target": "rss-orders-0", "uid": "uid-rss-orders-0", "announced": time }],
            "acts": [{ "act": "DeletePod", "target": "rss-orders-1", "announced": time, "outcome": "Done" }],
            "unproven": [{ "entry": "counts", "why": "lost" }],
            "overrides": [{ "entry": "counts", "value": "3", "uid": LOGBOOK_UID, "used": time }],
        },
    })
}

pub(super) struct Surroundings {
    children: Children,
    facts: Facts,
    running: Vec<HookRun>,
    logbook: Option<LogbookSpec>,
    now: Timestamp,
}

impl Surroundings {
    pub(super) fn roll(
        dice: &mut Dice,
        resource: &ReplicatedStatefulSet,
        cluster: Option<&Validated>,
        logbooks: &Documents,
    ) -> Self {
        let now = Timestamp::from_second([0, 1_800_000_000, 253_402_200_000][dice.index(3)]).unwrap();
        let mut rolled =
            Self { children: Children::default(), facts: Facts::default(), running: Vec::new(), logbook: None, now };
        let set = resource
            .metadata
            .name
            .as_deref()
            .and_then(|name| ReplicatedNames::new(name).ok())
            .map_or_else(|| "rss-orders".to_owned(), |names| names.stateful_set());
        let size = match dice.below(1_000) {
            0 => 65_535,
            1..10 => 300,
            _ => dice.below(6),
        };
        if dice.chance(60) {
            rolled.objects(dice, &set, size, cluster);
        }
        for _ in 0..dice.below(8) {
            rolled.pod(dice, &set);
        }
        if dice.chance(70) {
            rolled.logbook = read(dice, logbooks);
        }
        rolled
    }

    /// The objects that the spec asks for, each as it should be, or not.
    fn objects(&mut self, dice: &mut Dice, set: &str, size: u16, cluster: Option<&Validated>) {
        let manifests = cluster.filter(|_| dice.chance(70)).map(|it| build::objects(it, size.min(9), &self.children).applied);
        for manifest in manifests.unwrap_or_default() {
            if dice.chance(80) {
                self.store(dice, &manifest, size);
            }
        }
        if self.children.stateful_sets.is_empty() && dice.chance(50) {
            let object = ObjectView { meta: meta(dice, set), spec: Compact::of(&junk(dice)) };
            let view = StatefulSetView {
                object,
                replicas: size,
                observed_generation: None,
                update_revision: None,
                ..StatefulSetView::default()
            };
            self.children.stateful_sets.insert(set.to_owned(), view);
        }
        for _ in 0..dice.below(3) {
            let name = format!("data-{set}-{}", dice.below(9));
            self.children.claims.insert(name.clone(), ClaimView { meta: meta(dice, &name), ..ClaimView::default() });
        }
    }

    fn store(&mut self, dice: &mut Dice, manifest: &Manifest, size: u16) {
        let mut object = stored(manifest, 1);
        let name = object.meta.name.clone();
        if dice.chance(20) {
            object.meta = meta(dice, &name);
        }
        if dice.chance(15) {
            object.spec = Compact::of(&junk(dice));
        }
        if dice.chance(15) {
            let edition = if dice.chance(50) { text(dice) } else { dice.below(9).to_string() };
            object.meta.annotations.insert(labels::LOGBOOK_EDITION.into(), edition);
        }
        match manifest.object.kind {
            ObjectKind::Service => self.children.services.insert(name, object),
            ObjectKind::PodDisruptionBudget => self.children.disruption_budgets.insert(name, object),
            ObjectKind::ControllerRevision => self.children.templates.insert(name, object),
            _ => {
                let observed_generation = object.meta.generation.filter(|_| dice.chance(80));
                let update_revision = dice.chance(80).then(|| "r1".to_owned());
                let view = StatefulSetView {
                    object,
                    replicas: size,
                    observed_generation,
                    update_revision,
                    ..StatefulSetView::default()
                };
                self.children.stateful_sets.insert(name, view);
            }
        }
    }

    /// A pod, and what was heard of its member.
    fn pod(&mut self, dice: &mut Dice, set: &str) {
        let ordinal = Ordinal::new(match dice.below(1_000) {
            0 => 65_535,
            1..10 => dice.below(300),
            _ => dice.below(6),
        });
        let name = if dice.chance(97) { ordinal.pod_name(set) } else { format!("{set}-{}", text(dice)) };
        let phase = dice.pick(&["Running", "Pending", "Failed", "Succeeded", "Unknown", ""]).to_owned();
        let process = dice.chance(80).then(|| format!("containerd://{ordinal}"));
        let mut view = PodView { meta: meta(dice, &name), phase, ready: dice.chance(50), process, ..PodView::default() };
        view.meta.labels.insert(REVISION.into(), dice.pick(&["r1", "r2", ""]).to_owned());
        if dice.chance(50) {
            view.meta.labels.insert(labels::RSS_ACTIVE_MEMBER.into(), dice.pick(&["true", "false", "?"]).to_owned());
        }
        let exec = Exec {
            namespace: NAMESPACE.into(),
            pod: name.clone(),
            pod_uid: view.meta.uid.clone(),
            process: view.process.clone().unwrap_or_default(),
            turn: 0,
            ordinal,
            container: "galera".into(),
            command: vec![text(dice)],
            timeout: Duration::from_secs(10),
        };
        for _ in 0..dice.below(4) {
            let of = [Of::Question(About::Status), Of::Question(About::Sequence), Of::Deed(deed(dice))][dice.index(3)];
            let turn = self.facts.of(ordinal, &view).map_or(0, |facts| facts.turn);
            let at = self.now.checked_sub(SignedDuration::from_secs(i64::from(dice.below(900)))).unwrap_or(self.now);
            self.facts.learn(Fact { exec: Exec { turn, ..exec.clone() }, of, end: end(dice) }, at);
        }
        if dice.chance(10) {
            self.running.push(HookRun { deed: deed(dice), exec });
        }
        self.children.pods.insert(name, view);
    }

    /// What the operator makes of the logbook.
    pub(super) fn memory(&self, resource: &ReplicatedStatefulSet) -> Memory {
        let found = self.logbook.as_ref().map(|logbook| Found { logbook, uid: LOGBOOK_UID });
        Memory::judge(found, resource.metadata.uid.as_deref().unwrap_or_default(), &self.children)
    }

    pub(super) fn observed<'a>(&'a self, resource: &'a ReplicatedStatefulSet, memory: &'a Memory) -> Observed<'a, Replicated> {
        static NOTHING_ANSWERED: BTreeMap<windlass_core::step::ObjectRef, windlass_core::likeness::Answered> = BTreeMap::new();
        Observed {
            resource,
            children: &self.children,
            settings: &(),
            options: &Options::None,
            facts: &self.facts,
            memory,
            answered: &NOTHING_ANSWERED,
            running: &self.running,
            settled: false,
            now: self.now,
        }
    }
}

/// A logbook as the watch reads it, if it can be read.
fn read(dice: &mut Dice, logbooks: &Documents) -> Option<LogbookSpec> {
    let text = logbooks.roll(dice).to_string();
    let DeserializeGuard(logbook) = serde_json::from_str::<DeserializeGuard<Logbook>>(&text).ok()?;
    let spec = logbook.ok()?.spec;
    let again: LogbookSpec = serde_json::from_value(serde_json::to_value(&spec).unwrap()).unwrap();
    assert_eq!(again, spec, "the logbook is not read as it was written");
    Some(spec)
}

fn meta(dice: &mut Dice, name: &str) -> Meta {
    Meta {
        namespace: NAMESPACE.into(),
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: dice.below(1_000).to_string(),
        created: dice.chance(50).then(|| Timestamp::from_second(i64::from(dice.below(1_000))).unwrap()),
        generation: [None, Some(1), Some(0), Some(i64::MAX), Some(-1)][dice.index(5)],
        labels: (0..dice.below(2)).map(|_| (text(dice), text(dice))).collect(),
        annotations: (0..dice.below(2)).map(|_| (text(dice), text(dice))).collect(),
        owner_uid: dice.chance(80).then(|| CLUSTER_UID.to_owned()),
        deleting: dice.chance(10),
    }
}

fn deed(dice: &mut Dice) -> Deed {
    [Deed::Seed, Deed::Primary, Deed::Secondary, Deed::Stop][dice.index(4)]
}

fn end(dice: &mut Dice) -> ExecEnd {
    match dice.below(9) {
        8 => ExecEnd::Unanswered { after: Duration::from_secs(dice.roll()) },
        0 => ExecEnd::Unknown { why: text(dice) },
        1 => ExecEnd::StillRunning { after: Duration::from_secs(dice.roll()) },
        2 => exited(0, &text(dice)),
        3 => exited(0, NO_DATA),
        4 => exited(0, &position("6f2c", dice.roll() >> dice.below(63))),
        _ => exited([8, 0, 7, 190, 1, -1, 255][dice.index(7)], ""),
    }
}
