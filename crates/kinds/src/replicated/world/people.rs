//! People and misfortune: what happens to a cluster without the operator's doing.

use windlass_core::labels::{CLUSTERING_PAUSED, RESOURCES_PAUSED};
use windlass_core::plan::{Plan, Waiting};

use super::super::facts::Facts;
use super::super::fixtures::SET;
use super::super::hooks::HookRun;
use super::{Event, LARGEST, World};

impl World {
    /// Somebody does something, or something breaks.
    pub(super) fn trouble(&mut self) {
        match self.dice.below(21) {
            0..=3 => {
                let replicas = self.dice.below(LARGEST);
                self.ask_for(replicas);
            }
            4 => self.edit(|resource| resource.spec.paused = !resource.spec.paused),
            5 => self.annotate(RESOURCES_PAUSED),
            6 => self.annotate(CLUSTERING_PAUSED),
            7 => {
                let image = format!("galera:{}", 1 + self.dice.below(3));
                self.edit(|resource| resource.spec.pod.containers[0].image = Some(image));
            }
            8..=9 => self.servers_crash(true),
            10..=11 => self.servers_crash(false),
            12..=13 => {
                let ordinal = self.dice.below(LARGEST);
                self.delete_pod(ordinal);
            }
            14 => self.whole_cluster_crashes(),
            15..=16 => self.operator_restarts(),
            17 => {
                self.children.stateful_sets.remove(SET);
                self.objects_changed = true;
                for ordinal in 0..LARGEST {
                    self.delete_pod(ordinal);
                }
            }
            18 if self.dice.chance(50) => {
                let ordinal = self.dice.below(LARGEST);
                self.lose_volume(ordinal);
            }
            18 => {
                self.children.services.clear();
                self.objects_changed = true;
            }
            19 => {
                let ordinal = self.dice.below(LARGEST);
                self.database.cut_off(ordinal);
                self.disturbed = self.now;
            }
            _ => {}
        }
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut windlass_api::ReplicatedStatefulSet)) {
        change(&mut self.resource);
        self.resource.metadata.generation = self.resource.metadata.generation.map(|it| it + 1);
        self.objects_changed = true;
    }

    pub(super) fn ask_for(&mut self, replicas: u16) {
        if self.resource.spec.replicas != Some(replicas) {
            self.edit(|resource| resource.spec.replicas = Some(replicas));
        }
    }

    fn annotate(&mut self, key: &str) {
        let annotations = self.resource.metadata.annotations.get_or_insert_default();
        if annotations.remove(key).is_none() {
            annotations.insert(key.into(), "true".into());
        }
    }

    fn servers_crash(&mut self, with_container: bool) {
        let mut pods = self.running_pods();
        pods.retain(|_| self.dice.chance(40));
        self.crash(&pods);
        for ordinal in pods.into_iter().filter(|_| with_container) {
            self.restart_container(ordinal);
        }
    }

    fn whole_cluster_crashes(&mut self) {
        let pods = self.running_pods();
        self.crash(&pods);
        for ordinal in pods {
            self.restart_container(ordinal);
        }
    }

    /// The operator forgets all but its logbook, and does not hear of what it started.
    fn operator_restarts(&mut self) {
        self.facts = Facts::default();
        self.running.clear();
        self.asking.clear();
        self.events.retain(|(_, event)| !matches!(event, Event::Answers { .. } | Event::Reported { .. }));
        for hook in self.hooks.values_mut() {
            hook.reports = None;
        }
        self.objects_changed = true;
    }

    /// Everybody wants the cluster to run with this many members.
    pub(super) fn calm_down(&mut self, replicas: u16) {
        self.calm = true;
        self.resource.metadata.annotations = None;
        self.edit(|resource| resource.spec.paused = false);
        self.ask_for(replicas);
    }

    /// Does what a stalled plan asks a person to do. False when it asks for nothing.
    pub(super) fn help(&mut self, plan: &Plan<HookRun>) -> bool {
        plan.waiting.iter().filter(|waiting| waiting.stalled).any(|waiting| self.help_with(waiting))
    }

    fn help_with(&mut self, waiting: &Waiting) -> bool {
        let restore = self.logbook.as_ref().map_or(0, |logbook| logbook.counts.restore);
        let message = &waiting.message;
        match waiting.reason.as_str() {
            "ReplicasBelowRestore" => {
                self.ask_for(restore);
                true
            }
            "SeedUndecided" if message.contains("set spec.replicas to") => {
                self.ask_for(restore);
                true
            }
            "SeedUndecided" if message.contains("is lost with its volume") => {
                let said: Vec<(String, String)> = message
                    .split_whitespace()
                    .filter_map(|word| word.split_once('='))
                    .map(|(k, v)| (k.into(), v.into()))
                    .collect();
                self.resource.metadata.annotations.get_or_insert_default().extend(said);
                self.database.accept_losses();
                true
            }
            "SeedUndecided" if message.contains("delete that pod") => {
                let pod = message.split_whitespace().next().unwrap();
                self.delete_pod(Self::ordinal(pod));
                true
            }
            _ => false,
        }
    }
}
