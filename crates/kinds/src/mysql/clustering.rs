//! What is done to the servers: the office of the primary first, then every instance in its role, then who may be found by clients.
//!
//! Each instance gets one task at a time, and only after it was asked since the last one. Nothing is done to an instance that does not
//! answer, and nothing is concluded from its silence.

use std::collections::{BTreeMap, BTreeSet};

use windlass_api::mysql::keys;
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::{Act, ObjectKind, ObjectRef, Step};

use super::acknowledging::{Next, Voter, next};
use super::build;
use super::deeds::{CATCH_UP, Deed, Place, Source, Task};
use super::gtid::GtidSet;
use super::instance::{CloneState, Instance, Known};
use super::office::{Office, office};
use super::plan::Planner;
use super::scene::ADMIN_PORT;

impl Planner<'_> {
    /// Plans everything that is done to servers. Without a trusted memory that is nothing: who the primary is would be a guess, and the
    /// one that serves could be taken for a replica.
    pub(super) fn servers(&mut self, trusted: bool) {
        if !trusted || self.scene.offline || self.scene.set.is_none() || self.is_to_be_restored() {
            return;
        }
        if self.is_to_be_copied() {
            return;
        }
        if let Some(message) = self.scene.bad_grace() {
            self.wait(reason!("InvalidAnnotation"), message, false);
        }
        if self.scene.is_to_be_let_alone() && self.scene.entries.changing {
            return self.finish();
        }
        let office = office(&self.scene);
        match &office {
            Office::Stay => {}
            Office::Prepare(tasks) => {
                for (ordinal, task, why) in tasks {
                    self.task(*ordinal, task.clone(), why);
                }
            }
            // It is recorded in this pass, and acted upon in the next.
            Office::Hand { to, .. } => {
                self.wait(reason!("ChangingPrimary"), format!("instance {to} becomes the primary"), false);
            }
            Office::Wait { why, stalled } => self.wait(reason!("PrimaryLost"), why.clone(), *stalled),
        }
        // Whoever waits for another one to follow must let it. But a server that has lost the cluster's data is nobody's source, and
        // takes no writes.
        let stays = matches!(office, Office::Stay | Office::Wait { .. }) && !self.scene.has_lost_its_primary();
        if stays {
            self.replicas();
            self.lead();
        }
        self.roles(stays);
    }

    /// The primary in its role: it takes writes, or follows the server elsewhere.
    fn lead(&mut self) {
        if self.scene.outside().is_some() {
            self.intermediate();
        } else {
            self.primary();
        }
    }

    /// What a change of the primary left halfway is finished, or undone when nobody else got the office yet: the one that is on record
    /// takes writes, and the others receive from it. Then the servers are let alone.
    fn finish(&mut self) {
        if self.scene.has_lost_its_primary() {
            return;
        }
        if self.scene.known(self.scene.primary()).is_some() {
            self.replicas();
            self.lead();
            return self.roles(true);
        }
        // It may be gone. Whoever followed it goes on to try, as if nothing had begun.
        let stopped = |it: &Instance| {
            let known = it.known.as_ref()?;
            let is_stopped = known.replication.as_ref().is_some_and(|it| !it.connects);
            is_stopped.then_some((it.ordinal, known.acknowledges))
        };
        let (source, stopped): (_, Vec<_>) = (self.scene.source(), self.scene.replicas().filter_map(stopped).collect());
        for (ordinal, acknowledges) in stopped {
            let task = Task::Follow { source: source.clone(), acknowledges };
            self.task(ordinal, task, "the change of the primary is undone, because clustering is to stop");
        }
    }

    /// Whether somebody waits for the data of a backup. Empty servers that take writes would pass for restored ones.
    fn is_to_be_restored(&mut self) -> bool {
        let restore = self.scene.observed.resource.spec.restore.as_ref();
        let Some(restore) = restore.filter(|_| self.scene.cluster().restoring) else { return false };
        let message = format!(
            "spec.restore asks for the data of {}/{}, and this version of Windlass restores no backups; the cluster takes no writes, so \
             that nobody takes it for restored: delete it, make it again without spec.restore, and load the data yourself",
            restore.source_namespace, restore.source_name
        );
        self.wait(reason!("RestoreNotImplemented"), message, true);
        true
    }

    /// Every replica follows the primary, or is told of.
    fn replicas(&mut self) {
        let primary = self.scene.known(self.scene.primary()).cloned();
        let errant = self.scene.cluster().errant();
        let replicas: Vec<Instance> = self.scene.replicas().cloned().collect();
        for it in replicas {
            let Some(known) = &it.known else { continue };
            if known.clone == Some(CloneState::Unfinished) || self.scene.is_copying(it.ordinal) {
                self.wait(reason!("Cloning"), format!("instance {} copies data", it.ordinal), false);
            } else if !known.super_read_only || known.waiting_commits > 0 {
                self.task(it.ordinal, Task::Depose, "it is not the primary, and takes writes");
            } else if errant.contains(&it.ordinal) {
                self.errant(it.ordinal, known, primary.as_ref());
            } else if let Some(primary) = &primary {
                self.replica(it.ordinal, known, primary);
            }
        }
    }

    /// What was told to nobody is saved, and then replaced. What else the primary never had is for a person to judge.
    fn errant(&mut self, ordinal: Ordinal, known: &Known, primary: Option<&Known>) {
        if known.replication.as_ref().is_some_and(|it| it.connects) {
            return self.task(ordinal, Task::StopReceiving, "it has transactions that the primary never had");
        }
        let surplus = primary.and_then(|primary| self.scene.surplus(known, primary));
        if let (Some(surplus), Some(place)) = (surplus, self.scene.place(self.scene.primary())) {
            if !self.scene.is_saved(known, &surplus) {
                let task = Task::Save { set: surplus.to_string() };
                return self.task(ordinal, task, "no client was told of these transactions");
            }
            return self.replace(
                ordinal,
                known,
                place,
                "its surplus was told to no client, and is saved beside its data directory",
            );
        }
        let message = format!(
            "instance {ordinal} has transactions that the primary never had, and takes no part; save what it has if you need it, then \
             delete its claim and its pod: it comes back with a copy of the primary's data"
        );
        self.wait(reason!("ErrantReplica"), message, false);
    }

    /// It needs what the primary can give to nobody any more, and the primary has all that it has: a copy loses nothing.
    fn too_old(&mut self, ordinal: Ordinal, known: &Known, primary: &Known) {
        if known.replication.as_ref().is_some_and(|it| it.connects) {
            return self.task(ordinal, Task::StopReceiving, "the primary cannot give it what it needs any more");
        }
        let place = self.scene.place(self.scene.primary()).filter(|_| known.has().is_within(&primary.executed));
        if let Some(place) = place {
            let why = "it needs transactions that the primary has purged from its binary logs";
            if !self.scene.is_saved(known, &GtidSet::default()) {
                return self.task(ordinal, Task::Save { set: String::new() }, why);
            }
            return self.replace(ordinal, known, place, why);
        }
        let message = format!(
            "instance {ordinal} needs transactions that the primary has purged from its binary logs; it gets a copy of the primary's data \
             when the primary was heard to have everything that it has"
        );
        self.wait(reason!("ReplicaTooOld"), message, false);
    }

    fn replace(&mut self, ordinal: Ordinal, known: &Known, primary: Place, why: &str) {
        let donor = Source { host: primary.address, port: ADMIN_PORT };
        self.task(ordinal, Task::Replace { donor, over: known.executed.to_string() }, why);
    }

    fn replica(&mut self, ordinal: Ordinal, known: &Known, primary: &Known) {
        let source = self.scene.source();
        if known.executed.is_empty() && !primary.executed.is_empty() && known.replication.is_none() {
            if let Some(place) = self.scene.place(self.scene.primary()) {
                let donor = Source { host: place.address, port: ADMIN_PORT };
                self.task(ordinal, Task::Clone { donor }, "it has no data yet");
            }
            return;
        }
        if known.is_too_old_for(primary) {
            return self.too_old(ordinal, known, primary);
        }
        // Nobody waits for acknowledgements of what came from elsewhere.
        let acknowledges = known.acknowledges && self.scene.outside().is_none();
        let as_it_should = acknowledges == known.acknowledges;
        match &known.replication {
            Some(it) if it.source_host == source.host && it.connects && it.applies && as_it_should => {}
            Some(it) if it.source_host == source.host && it.error.is_some() => {
                let error = it.error.as_deref().unwrap_or_default();
                self.wait(reason!("ReplicationFailed"), format!("instance {ordinal} cannot follow: {error}"), true);
            }
            // To name another source throws away what was received and not applied: that is looked at while nothing arrives any more.
            Some(it) if it.source_host != source.host && it.connects => {
                self.task(ordinal, Task::StopReceiving, "it follows another instance than the primary");
            }
            Some(it)
                if it.source_host != source.host && !it.received.is_within(&known.executed.joined_with(&primary.has())) =>
            {
                let Some(task) = known.catch_up(CATCH_UP) else { return };
                self.task(ordinal, task, "it has received what the primary is not known to have");
            }
            _ => self.task(ordinal, Task::Follow { source, acknowledges }, "it does not follow the primary"),
        }
    }

    /// Who acknowledges first, then writes.
    fn primary(&mut self) {
        let ordinal = self.scene.primary();
        let Some(primary) = self.scene.known(ordinal).cloned() else { return };
        if self.scene.follows_outside(&primary) && primary.replication.as_ref().is_some_and(|it| it.connects) {
            return self.task(ordinal, Task::StopReceiving, "the cluster follows no other server any more");
        }
        if let Some(task) = primary.catch_up(CATCH_UP) {
            return self.task(ordinal, task, "it becomes the primary, and has received more than it applied");
        }
        let council = self.scene.wanted_council();
        let needed = usize::from(self.scene.size / 2);
        let seen = self.scene.settings(&primary);
        match next(&self.scene.record(), &seen, &council) {
            Next::Enable(voters) => self.acknowledge(&voters, true),
            Next::Count(count) => {
                let count = u16::try_from(count).unwrap_or(u16::MAX);
                self.task(
                    ordinal,
                    Task::AwaitAcknowledgements { count },
                    "so many have to have a commit before a client is told of it",
                );
            }
            Next::Disable(voters) => self.acknowledge(&voters, false),
            // Both are written into the logbook, not to a server.
            Next::Record(_) | Next::Settle | Next::Nothing => {}
        }
        if !primary.read_only {
            return;
        }
        if council.count < needed || seen.count < needed {
            let message = format!(
                "instance {ordinal} takes no writes before {needed} of the others follow it and acknowledge; {} do",
                council.voters.len()
            );
            return self.wait(reason!("ReplicasMissing"), message, false);
        }
        // The first that takes writes has all that any of them has; who was not asked since something was done to it may have more.
        if self.scene.is_copy()
            && self.scene.instances.iter().any(|it| it.known.is_none() && self.scene.is_to_be_asked(it.ordinal))
        {
            return;
        }
        self.task(ordinal, Task::OpenToWrites, "it is the primary");
    }

    fn acknowledge(&mut self, voters: &BTreeSet<Voter>, acknowledges: bool) {
        let source = self.scene.source();
        // Another server in its place is not meant, and one that was not asked since the last task has been told already, perhaps.
        let is_meant = |voter: &&Voter| self.scene.known(voter.ordinal).is_some_and(|known| known.server == voter.server);
        let meant: Vec<Ordinal> = voters.iter().filter(is_meant).map(|voter| voter.ordinal).collect();
        let errant = self.scene.cluster().errant();
        for ordinal in meant {
            let why = if acknowledges { "it is to acknowledge" } else { "it is not to acknowledge any more" };
            // One that takes no part is not made to follow for the sake of it.
            let task = if errant.contains(&ordinal) {
                Task::StopAcknowledging
            } else {
                Task::Follow { source: source.clone(), acknowledges }
            };
            self.task(ordinal, task, why);
        }
    }

    /// Who may be found by clients: the primary, and replicas that follow it. An instance that does not answer keeps its role, unless
    /// it is gone, or another one has the office now.
    ///
    /// A new primary can be found as soon as it is on record, a moment before it takes writes: it takes the nodes of the cluster a
    /// while to hear of it.
    fn roles(&mut self, settled: bool) {
        let following: BTreeSet<Ordinal> = self.scene.cluster().following().into_iter().collect();
        for (ordinal, pod) in self.scene.by_pod() {
            let has = pod.meta.labels.get(keys::ROLE);
            let wanted = match self.scene.known(ordinal) {
                None if pod.process.is_some() && (ordinal == self.scene.primary() || has != Some(keys::ROLE_PRIMARY)) => {
                    continue;
                }
                None => None,
                Some(known) if ordinal == self.scene.primary() => {
                    (settled && (self.scene.has_history() || !known.read_only)).then_some(keys::ROLE_PRIMARY)
                }
                Some(_) => following.contains(&ordinal).then_some(keys::ROLE_REPLICA),
            };
            // A wish to hand over is granted when another one has the office.
            let asks = ordinal != self.scene.primary() && pod.meta.annotations.contains_key(keys::DEMOTE);
            let annotations: BTreeMap<_, _> = asks.then(|| (keys::DEMOTE.to_owned(), None)).into_iter().collect();
            if has == wanted && annotations.is_empty() {
                continue;
            }
            let namespace = self.scene.namespace.to_owned();
            let object = ObjectRef { kind: ObjectKind::Pod, namespace, name: pod.meta.name.clone() };
            let labels = BTreeMap::from([(keys::ROLE.to_owned(), wanted.map(str::to_owned))]);
            let why = match wanted {
                Some(keys::ROLE_PRIMARY) if self.scene.outside().is_some() => "it follows the server elsewhere",
                Some(keys::ROLE_PRIMARY) => "it takes writes",
                Some(_) => "it follows the primary",
                None => "it has no role now",
            };
            self.plan.steps.push(Step::new(Act::Label { object, over: pod.meta.as_judged(), labels, annotations }, why));
        }
    }

    /// A task for an instance on which nothing else runs, and which was asked since the last one: it answered, or let us not in. One that
    /// failed is tried again after a while.
    pub(super) fn task(&mut self, ordinal: Ordinal, task: Task, why: &str) {
        let was_asked = self.scene.known(ordinal).is_some() || self.scene.is_refused(ordinal);
        let Some(place) = self.scene.place(ordinal).filter(|_| was_asked && !self.scene.is_copying(ordinal)) else { return };
        if let Some(failed) = self.scene.failed(ordinal).filter(|failed| failed.task == task) {
            let (named, times): (&str, _) = ((&task).into(), failed.times);
            let message = format!("{named} on instance {ordinal} failed {times} times and is tried again: {}", failed.why);
            let again = failed.again();
            self.wait(reason!("TaskFailed"), message, false);
            if again > self.scene.observed.now {
                self.put_off = true;
                return;
            }
        }
        // Whatever was done just now and has no effect is not done again at once: a mistake must not become a storm.
        if self.scene.repeats_at(ordinal, &task).is_some_and(|at| at > self.scene.observed.now) {
            self.put_off = true;
            return;
        }
        if task.needs_agent() && !self.scene.pod(ordinal).is_some_and(build::has_agent) {
            return self.wait(reason!("AgentMissing"), without_agent(&Deed { place, task }), true);
        }
        let deed = Deed { place, task };
        if self.scene.running(ordinal).is_none()
            && !self.plan.steps.iter().any(|it| matches!(&it.act, Act::Member(other) if other.place == deed.place))
        {
            self.plan.steps.push(Step::new(Act::Member(deed), why));
        }
    }
}

/// What somebody can do about a pod that another operator made.
fn without_agent(deed: &Deed) -> String {
    format!(
        "to {deed}, its pod needs the agent of Windlass, and runs none: another operator made it; restart the cluster with `kubectl \
         windlass restart`, pod by pod, and each comes back with one"
    )
}
