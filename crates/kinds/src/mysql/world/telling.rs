//! What is told of the plays: each thing once, in the words that scripts look for.

use windlass_api::logbook::LogbookSpec;
use windlass_api::mysql::MySQLClusterStatus;
use windlass_core::gate::{Door, Gate};
use windlass_core::kind::{Figures, News, Passed, Report};
use windlass_core::labels::AS_GOOD_AS;
use windlass_core::metrics::Measure;
use windlass_core::views::REVISION;

use super::super::facts::End;
use super::super::gtid::{GtidSet, Uuid};
use super::super::news::Told;
use super::*;

impl World {
    /// With what a pass reports of itself.
    fn reported<T>(
        &self,
        gate: &Gate,
        remembered: &LogbookSpec,
        look: impl FnOnce(&Observed<'_, MySql>, &Report<'_, Deed>) -> T,
    ) -> T {
        self.watched(|observed| {
            let plan = MySql::plan(observed);
            look(observed, &Report { plan: &plan, gate, held: &[], taken: &[], remembered })
        })
    }

    /// Tells what happened, as the engine would after the logbook was written.
    pub(super) fn tell(&mut self, written: &LogbookSpec) {
        let mut told = std::mem::take(&mut self.memory_of_telling);
        let gate = Gate::new(Door::Open, Door::Open);
        let news = self.reported(&gate, written, |observed, report| MySql::news(&mut told, observed, report));
        self.memory_of_telling = told;
        self.news.extend(news);
    }

    pub(super) fn status(&self, gate: &Gate) -> (MySQLClusterStatus, Figures) {
        self.reported(gate, &self.logbook, |observed, report| {
            let status = MySql::status(observed, report);
            let figures = MySql::figures(observed, report, &status);
            (status, figures)
        })
    }

    /// The Events so far, as `reason: note`; they are forgotten by that.
    pub(super) fn events(&mut self) -> Vec<String> {
        let news = std::mem::take(&mut self.news);
        let line = |news| match news {
            News::Event { warning, reason, note } => Some(format!("{}{reason}: {note}", if warning { "! " } else { "" })),
            News::Measured(_) => None,
        };
        news.into_iter().filter_map(line).collect()
    }

    /// What was counted, and how often what took how many seconds.
    fn measures(&self) -> Vec<(&'static str, Option<u64>)> {
        let measure = |news: &News| match news {
            News::Measured(Measure::Count(metric)) => Some((metric.name, None)),
            News::Measured(Measure::Took(metric, took)) => Some((metric.name, Some(took.as_secs()))),
            News::Event { .. } => None,
        };
        self.news.iter().filter_map(measure).collect()
    }

    fn passes(&mut self, count: usize) {
        for _ in 0..count {
            self.pass(0);
        }
    }

    fn ask_to_hand_over(&mut self, number: usize) {
        let pod = self.children.pods.get_mut(&pod_name(number)).unwrap();
        pod.meta.annotations.insert(keys::DEMOTE.into(), "true".into());
    }

    /// Another process looks after the cluster, with nothing in mind.
    pub(super) fn restart_operator(&mut self) {
        self.memory_of_telling = Told::default();
        self.facts = Facts::default();
        self.news.clear();
    }
}

fn settled(size: u16, seed: u64) -> World {
    let mut world = World::new(size, seed);
    world.settle();
    world.live();
    world.settle();
    world
}

fn value(figures: &Figures, name: &str) -> Option<f64> {
    figures.own.iter().find(|(metric, _)| metric.name == format!("moco_cluster_{name}")).map(|(_, value)| *value)
}

#[test]
fn a_new_cluster_tells_once_that_it_takes_writes() {
    let mut world = settled(3, 1);
    assert_eq!(world.measures(), []);
    assert_eq!(world.events(), ["Writable: The primary became writable"]);
    world.restart_operator();
    world.passes(20);
    assert_eq!(world.events(), Vec::<String>::new(), "what another process told is not told again");
}

#[test]
fn a_failover_is_told_counted_and_timed_once() {
    let mut world = settled(3, 2);
    world.events();
    world.servers.all[0].crash();
    world.passes(30);
    let measures = world.measures();
    assert_eq!(measures.len(), 2, "{measures:?}");
    assert_eq!(measures[0], ("moco_cluster_failover", None));
    assert!(matches!(measures[1], ("moco_cluster_failover_seconds", Some(1..10))), "{measures:?}");
    let note = format!("FailOver: The primary was changed to instance {} due to a failover", world.primary());
    assert_eq!(world.events(), [note, "Writable: The primary became writable".to_owned()]);
}

#[test]
fn a_switchover_is_told_counted_and_timed_once() {
    let mut world = settled(3, 3);
    world.events();
    world.ask_to_hand_over(0);
    world.settle();
    let measures = world.measures();
    assert_eq!(measures.len(), 2, "{measures:?}");
    assert_eq!(measures[0], ("moco_cluster_switchover", None));
    assert!(matches!(measures[1], ("moco_cluster_switchover_seconds", Some(1..10))), "{measures:?}");
    let told =
        ["SwitchOver: The primary was changed to instance 1 due to a switchover", "Writable: The primary became writable"];
    assert_eq!(world.events(), told);
}

#[test]
fn a_wish_that_is_taken_back_is_no_switchover() {
    let mut world = settled(3, 4);
    world.events();
    world.ask_to_hand_over(0);
    world.passes(1);
    for pod in world.children.pods.values_mut() {
        pod.meta.annotations.clear();
    }
    world.settle();
    assert_eq!(world.measures(), []);
    assert_eq!((world.primary(), world.state()), (0, State::Healthy));
}

#[test]
fn what_holds_a_change_up_is_told_once_and_not_at_once() {
    let mut world = settled(3, 5);
    world.events();
    for number in 0..2 {
        world.servers.all[number].crash();
    }
    world.passes(3);
    assert_eq!(world.events(), Vec::<String>::new(), "a moment is no failure");
    world.passes(60);
    let told = world.events();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("! FailOverFailed: The primary could not be changed: instance 0 is lost"), "{told:?}");
    world.settle();
    world.events();
    for number in (0..3).filter(|number| *number != world.primary()).collect::<Vec<_>>() {
        world.servers.all[number].crash();
    }
    world.ask_to_hand_over(world.primary());
    world.passes(60);
    let told = world.events();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("! SwitchOverFailed: The primary could not be changed: "), "{told:?}");
}

#[test]
fn an_errant_instance_is_told_once_even_by_another_process() {
    let mut world = settled(3, 6);
    world.events();
    let stray = GtidSet::of_range(Uuid::new(77).into(), 1..=1);
    world.servers.all[2].executed = world.servers.all[2].executed.joined_with(&stray);
    world.passes(20);
    let told = "! ErrantReplica: Instance 2 has transactions that the primary never had, and takes no part any more";
    assert_eq!(world.events(), [told]);
    world.restart_operator();
    world.passes(20);
    assert_eq!(world.events(), Vec::<String>::new());
}

#[test]
fn a_copy_is_told_when_it_is_there_and_a_failure_once_per_cause() {
    let mut world = settled(3, 7);
    world.events();
    world.servers.all[2].crash();
    world.passes(5);
    world.servers.all[2].wipe(99);
    world.servers.all[2].up = true;
    // It is seen, and nothing is done yet.
    world.pass(100);
    let plan = world.watched(MySql::plan);
    let clone = plan.steps.into_iter().find_map(|step| match step.act {
        Act::Member(deed) if deed.to_string().starts_with("copy the data") => Some(deed),
        _ => None,
    });
    let clone = clone.unwrap();
    let mut told = Told::default();
    let gate = Gate::new(Door::Open, Door::Open);
    let tell = |world: &World, told: &mut Told, running: &[Deed]| {
        let logbook = world.logbook.clone();
        world.reported(&gate, &logbook, |observed, report| MySql::news(told, &Observed { running, ..*observed }, report))
    };
    let fail = |world: &mut World, why: &str| {
        let end = End::Failed { why: why.to_owned() };
        let news = super::News::Ended { task: clone.task.clone(), end };
        world.facts.learn(Fact { place: clone.place.clone(), news }, world.now);
    };
    assert_eq!(tell(&world, &mut told, std::slice::from_ref(&clone)), []);
    for (why, times) in [("no room", 1), ("no room", 0), ("no donor", 1)] {
        fail(&mut world, why);
        world.news = tell(&world, &mut told, &[]);
        let told: Vec<String> = world.events();
        assert_eq!(told.len(), times, "{told:?}");
        assert!(told.iter().all(|it| *it == format!("! CloneFailed: Clone from the primary failed for instance 2: {why}")));
    }
    world.news = tell(&world, &mut told, &[clone]);
    assert_eq!(world.measures(), [("moco_cluster_errors", None)], "what failed last was not mended yet");
    assert_eq!(world.events(), Vec::<String>::new());
    world.settle();
    world.news = tell(&world, &mut told, &[]);
    assert_eq!(world.events(), ["Cloned: Clone from the primary succeeded for instance 2"]);
}

#[test]
fn figures_are_those_of_the_status_and_nan_while_clustering_is_stopped() {
    let mut world = settled(3, 8);
    let open = Gate::new(Door::Open, Door::Open);
    let (_, figures) = world.status(&open);
    let told = [("available", 1.0), ("healthy", 1.0), ("replicas", 3.0), ("ready_replicas", 3.0), ("errant_replicas", 0.0)];
    for (name, expected) in told.into_iter().chain([("clustering_stopped", 0.0), ("reconciliation_stopped", 0.0)]) {
        assert_eq!(value(&figures, name), Some(expected), "{name}");
    }
    let stopped = Gate::new(Door::Open, Door::Closed);
    let check = |world: &World| {
        let (_, figures) = world.status(&stopped);
        for name in ["available", "healthy", "ready_replicas", "errant_replicas"] {
            assert!(value(&figures, name).unwrap().is_nan(), "{name}");
        }
        assert_eq!((value(&figures, "clustering_stopped"), value(&figures, "replicas")), (Some(1.0), Some(3.0)));
        assert_eq!(value(&figures, "reconciliation_stopped"), Some(0.0));
    };
    check(&world);
    world.restart_operator();
    check(&world);
    let (_, figures) = world.status(&Gate::new(Door::Closed, Door::Open));
    assert_eq!((value(&figures, "reconciliation_stopped"), value(&figures, "clustering_stopped")), (Some(1.0), Some(0.0)));
    assert_eq!(value(&figures, "available"), None, "nobody was asked yet");
    assert_eq!(value(&figures, "ready_replicas"), Some(3.0), "the pods are seen at once");
}

#[test]
fn a_cluster_with_a_pod_of_an_older_template_is_not_ready() {
    let mut world = settled(3, 12);
    world.resource.status = None;
    let mut ready = |revision: &str, observed: i64| {
        let set = world.children.stateful_sets.get_mut("moco-harbour").unwrap();
        (set.object.meta.generation, set.observed_generation) = (Some(2), Some(observed));
        set.update_revision = Some("new".into());
        set.object.meta.annotations.insert(AS_GOOD_AS.into(), "as good".into());
        for pod in world.children.pods.values_mut() {
            pod.meta.labels.insert(REVISION.into(), revision.into());
        }
        let none = Plan::default();
        let gate = Gate::new(Door::Open, Door::Open);
        let status = world.watched(|observed| {
            let report = Report { plan: &none, gate: &gate, held: &[], taken: &[], remembered: &world.logbook };
            MySql::status(observed, &report)
        });
        let found = status.conditions.into_iter().find(|it| it.type_ == "Ready").unwrap();
        (found.status, found.reason)
    };
    assert_eq!(ready("new", 2), ("True".into(), "Healthy".into()));
    assert_eq!(ready("new", 1), ("False".into(), "StatefulSetNotReady".into()), "it may be about to get another template");
    assert_eq!(ready("old", 2), ("False".into(), "StatefulSetNotReady".into()));
    assert_eq!(ready("as good", 2), ("True".into(), "Healthy".into()), "it was taken over");
}

#[test]
fn pods_are_counted_by_their_template() {
    let mut world = settled(3, 9);
    world.children.stateful_sets.get_mut("moco-harbour").unwrap().update_revision = Some("new".into());
    let mut roll = |numbers: std::ops::Range<usize>, revision: &str| {
        for number in numbers {
            let pod = world.children.pods.get_mut(&pod_name(number)).unwrap();
            pod.meta.labels.insert(REVISION.into(), revision.into());
        }
        let (_, figures) = world.status(&Gate::new(Door::Open, Door::Open));
        (value(&figures, "current_replicas").unwrap(), value(&figures, "updated_replicas").unwrap())
    };
    assert_eq!(roll(0..3, "old"), (3.0, 0.0));
    assert_eq!(roll(2..3, "new"), (2.0, 1.0));
    assert_eq!(roll(0..2, "new"), (3.0, 3.0));
}

#[test]
fn a_pass_is_counted_and_timed_and_so_is_what_went_wrong() {
    let took = std::time::Duration::from_secs(2);
    let names = |failed| -> Vec<&str> {
        let name = |measure: Measure| match measure {
            Measure::Count(metric) | Measure::Took(metric, _) => metric.name,
        };
        MySql::passed(&Passed { failed, took }).into_iter().map(name).collect()
    };
    assert_eq!(names(false), ["moco_cluster_checks", "moco_cluster_processing_time_seconds"]);
    assert_eq!(names(true).last(), Some(&"moco_cluster_errors"));
}

#[test]
fn that_a_policy_has_no_effect_is_a_condition_and_told_once() {
    let mut world = settled(3, 10);
    let gate = Gate::new(Door::Open, Door::Open);
    let condition = |status: &MySQLClusterStatus| {
        let found = status.conditions.iter().find(|it| it.type_ == "BackupActive").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    assert_eq!(condition(&world.status(&gate).0), ("False".into(), "NoBackupPolicy".into()));
    world.events();
    world.resource.spec.backup_policy_name = Some("nightly".into());
    world.passes(5);
    let told = world.events();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("! BackupNotImplemented: spec.backupPolicyName is nightly"), "{told:?}");
    let (status, _) = world.status(&gate);
    assert_eq!(condition(&status), ("False".into(), "BackupNotImplemented".into()));
    assert_eq!(world.state(), State::Healthy, "the cluster is none the worse for it");
    world.resource.status = Some(status);
    world.restart_operator();
    world.passes(5);
    assert_eq!(world.events(), Vec::<String>::new());
}

#[test]
fn a_cluster_that_asks_for_a_restore_is_never_opened_and_says_why() {
    let mut world = World::new(3, 11);
    let restore = json!({
        "sourceName": "pier", "sourceNamespace": "shop", "restorePoint": "2026-01-31T12:00:00Z",
        "jobConfig": { "serviceAccountName": "restorer", "bucketConfig": { "bucketName": "b" }, "workVolume": { "emptyDir": {} } },
    });
    world.resource.spec.restore = Some(serde_json::from_value(restore).unwrap());
    world.settle();
    assert_eq!(world.state(), State::Restoring);
    assert!(world.servers.all.iter().all(|server| server.read_only && server.source.is_none()), "{}", world.told());
    let gate = Gate::new(Door::Open, Door::Open);
    let (status, _) = world.status(&gate);
    let told = |type_: &str| {
        let found = status.conditions.iter().find(|it| it.type_ == type_).unwrap();
        (found.status.as_str(), found.reason.as_str())
    };
    assert_eq!(told("Stalled").0, "True");
    let waiting = world.watched(MySql::plan).waiting;
    assert!(waiting.iter().any(|it| it.stalled && it.reason.as_str() == "RestoreNotImplemented"), "{waiting:?}");
    assert_eq!((told("Initialized"), told("Available")), (("False", "Restoring"), ("False", "Restoring")));
    assert_eq!(told("Ready").0, "False");
    // What somebody else restored, or what is in use, is looked after as always.
    world.resource.status = Some(MySQLClusterStatus {
        restored_time: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(world.now)),
        ..MySQLClusterStatus::default()
    });
    world.settle();
    assert_eq!(world.state(), State::Healthy);
    world.resource.status = None;
    world.settle();
    assert_eq!(world.state(), State::Healthy, "a lost status closes nobody");
}
