//! What happened to a cluster, told once: Events with the words that scripts of users look for, and what is counted with them.
//!
//! A change of the primary is told when it is on record. What a process saw only with its own eyes (that the primary was closed, that
//! an instance copies data) is told when it sees the end of it; a process that starts in between stays silent rather than guess.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_api::mysql::conditions as types;
use windlass_core::conditions::{Reason, brief};
use windlass_core::gate::Door;
use windlass_core::kind::{News, Observed, Report};
use windlass_core::lane::Lane;
use windlass_core::metrics::Measure;
use windlass_core::ordinals::Ordinal;
use windlass_core::outcome::Outcome;
use windlass_core::reason;

use super::MySql;
use super::deeds::{Deed, Task};
use super::facts::{Failed, InstanceFacts};
use super::figures::ERRORS;
use super::instance::CloneState;
use super::office::{Change, Office, office};
use super::remember::entries;
use super::scene::Scene;
use super::state::Upstream;
use super::status;

/// How long something must hold a change of the primary up before it is told. Most of what does is over at the next look.
const HELD_UP: SignedDuration = SignedDuration::from_secs(5);
/// How many causes are told of one change. More than that are the same in ever new words.
const CAUSES: usize = 8;

/// What this process saw and told of a cluster.
#[derive(Debug, Default)]
pub struct Told {
    /// Since when the primary is to change.
    changing: Option<Timestamp>,
    /// How it changed, until the new one takes writes.
    changed: Option<Change>,
    /// What held the change up, since when, and whether that was told.
    causes: BTreeMap<String, (Timestamp, bool)>,
    /// Whether the primary was seen closed to writes.
    closed: bool,
    /// Who was seen to copy data.
    cloning: BTreeSet<Ordinal>,
    /// Why the last copy of an instance failed.
    clone_failures: BTreeMap<Ordinal, String>,
    /// Why the last copy from elsewhere failed.
    outside_failure: Option<String>,
    /// The policy of which was told that it has no effect.
    policy: Option<String>,
}

fn event(warning: bool, reason: Reason, note: impl Into<String>) -> News {
    News::Event { warning, reason, note: note.into() }
}

pub(super) fn news(told: &mut Told, observed: &Observed<'_, MySql>, report: &Report<'_, Deed>) -> Vec<News> {
    let mut news = Vec::new();
    told.primary(observed, report, &mut news);
    let scene = Scene::of(observed, entries(report.remembered));
    told.writable(&scene, &mut news);
    told.clones(&scene, &mut news);
    told.outside(observed, report, &mut news);
    told.backup(observed, &mut news);
    errant(observed, report, &mut news);
    errors(&scene, report, &mut news);
    news
}

impl Told {
    /// How the office of the primary changes hands, and what holds that up.
    fn primary(&mut self, observed: &Observed<'_, MySql>, report: &Report<'_, Deed>, news: &mut Vec<News>) {
        let remembered = observed.memory.entries();
        let (before, after) = (entries(&remembered), entries(report.remembered));
        let scene = Scene::of(observed, before);
        let stopped = *report.gate.door(Lane::Clustering) == Door::Closed;
        let office = if observed.memory.lost().is_some() || stopped { Office::Stay } else { office(&scene) };
        match &office {
            Office::Stay => {
                let serves = scene.known(scene.primary()).is_some_and(|known| scene.serves(known));
                if stopped || serves {
                    self.causes.clear();
                }
                if stopped || (serves && self.changed.is_none()) {
                    (self.changing, self.changed) = (None, None);
                }
            }
            _ => _ = self.changing.get_or_insert(observed.now),
        }
        if let Office::Hand { by, .. } = office
            && after.primary != scene.primary().get()
        {
            let (reason, how) = match by {
                Change::Switchover => (reason!("SwitchOver"), "switchover"),
                Change::Failover => (reason!("FailOver"), "failover"),
            };
            let note = format!("The primary was changed to instance {} due to a {how}", after.primary);
            news.push(event(false, reason, note));
            news.push(News::Measured(by.count()));
            self.changed = Some(by);
            self.causes.clear();
        }
        if let Some(why) = held_up(&scene, &office) {
            self.held_up(&scene, &why, news);
        }
    }

    fn held_up(&mut self, scene: &Scene<'_>, why: &str, news: &mut Vec<News>) {
        let now = scene.observed.now;
        if !self.causes.contains_key(why) && self.causes.len() >= CAUSES {
            return;
        }
        let (since, is_told) = self.causes.entry(why.to_owned()).or_insert((now, false));
        if *is_told || now.duration_since(*since) < HELD_UP {
            return;
        }
        *is_told = true;
        let serves = scene.known(scene.primary()).is_some_and(|known| !scene.cluster().lost_its_data(known));
        let reason = if serves { reason!("SwitchOverFailed") } else { reason!("FailOverFailed") };
        news.push(event(true, reason, format!("The primary could not be changed: {}", brief(why))));
    }

    fn writable(&mut self, scene: &Scene<'_>, news: &mut Vec<News>) {
        let Some(primary) = scene.known(scene.primary()) else { return };
        if primary.read_only {
            self.closed = true;
        }
        if !scene.serves(primary) {
            return;
        }
        if !primary.read_only && std::mem::take(&mut self.closed) {
            news.push(event(false, reason!("Writable"), "The primary became writable"));
        }
        if let Some(by) = self.changed.take() {
            let took = self.changing.take().map(|began| scene.observed.now.duration_since(began));
            let took = took.and_then(|took| Duration::try_from(took).ok());
            news.extend(took.map(|took| News::Measured(by.took(took))));
        }
    }

    fn clones(&mut self, scene: &Scene<'_>, news: &mut Vec<News>) {
        // The copy from elsewhere is told in other words.
        let outside = (scene.upstream() == Some(Upstream::ToBeCloned)).then(|| scene.primary());
        for it in scene.instances.iter().filter(|it| Some(it.ordinal) != outside) {
            let runs =
                scene.running(it.ordinal).is_some_and(|deed| matches!(deed.task, Task::Clone { .. } | Task::Replace { .. }));
            let clone = it.known.as_ref().and_then(|known| known.clone);
            if runs || clone == Some(CloneState::Unfinished) {
                self.cloning.insert(it.ordinal);
                continue;
            }
            let failed = match facts(scene, it.ordinal).and_then(|facts| facts.failure.as_ref()) {
                Some(Failed { task: Task::Clone { .. } | Task::Replace { .. }, why, .. }) => Some(brief(why)),
                _ => None,
            };
            if let Some(why) = failed {
                self.cloning.remove(&it.ordinal);
                if self.clone_failures.get(&it.ordinal) != Some(&why) {
                    let note = format!("Clone from the primary failed for instance {}: {why}", it.ordinal);
                    news.push(event(true, reason!("CloneFailed"), note));
                    self.clone_failures.insert(it.ordinal, why);
                }
            } else if it.known.as_ref().is_some_and(|known| !known.executed.is_empty()) && self.cloning.remove(&it.ordinal) {
                self.clone_failures.remove(&it.ordinal);
                let note = format!("Clone from the primary succeeded for instance {}", it.ordinal);
                news.push(event(false, reason!("Cloned"), note));
            }
        }
    }

    /// That the data came from elsewhere is on record, and so is told once. Of failures each cause is told once.
    fn outside(&mut self, observed: &Observed<'_, MySql>, report: &Report<'_, Deed>, news: &mut Vec<News>) {
        let failure = observed.facts.outside.failure.as_ref().map(|failed| brief(&failed.why));
        if let Some(why) = failure.as_ref().filter(|why| self.outside_failure.as_ref() != Some(*why)) {
            news.push(event(true, reason!("InitCloneFailed"), format!("Clone from an external mysqld failed: {why}")));
        }
        self.outside_failure = failure.or_else(|| self.outside_failure.take());
        let (before, after) = (entries(&observed.memory.entries()), entries(report.remembered));
        if after.cloned && !before.cloned && observed.memory.lost().is_none() {
            self.outside_failure = None;
            news.push(event(false, reason!("InitCloned"), "Clone from an external mysqld succeeded"));
        }
    }

    /// That a policy has no effect is told when the status does not say so yet.
    fn backup(&mut self, observed: &Observed<'_, MySql>, news: &mut Vec<News>) {
        let policy = &observed.resource.spec.backup_policy_name;
        if *policy == self.policy {
            return;
        }
        self.policy.clone_from(policy);
        let Some(policy) = policy else { return };
        let (reason, note) = status::backup(Some(policy));
        let stored = observed.resource.status.iter().flat_map(|it| &it.conditions);
        let mut stored = stored.filter(|it| it.type_ == types::BACKUP_ACTIVE);
        if !stored.any(|it| it.message == note) {
            news.push(event(true, reason, note));
        }
    }
}

/// What keeps the office from changing hands, if it is to.
fn held_up(scene: &Scene<'_>, office: &Office) -> Option<String> {
    match office {
        Office::Stay | Office::Hand { .. } => None,
        Office::Wait { why, .. } => Some(why.clone()),
        Office::Prepare(tasks) => tasks.iter().find_map(|(ordinal, ..)| {
            let Failed { why, .. } = facts(scene, *ordinal)?.failure.as_ref()?;
            Some(format!("instance {ordinal}: {why}"))
        }),
    }
}

fn facts<'a>(scene: &Scene<'a>, ordinal: Ordinal) -> Option<&'a InstanceFacts> {
    scene.observed.facts.of(scene.pod(ordinal)?)
}

/// Who was found errant is on record, and so is told once, whichever process finds it.
fn errant(observed: &Observed<'_, MySql>, report: &Report<'_, Deed>, news: &mut Vec<News>) {
    let before = entries(&observed.memory.entries()).errant;
    for ordinal in entries(report.remembered).errant.into_iter().filter(|ordinal| !before.contains(ordinal)) {
        let note = format!("Instance {ordinal} has transactions that the primary never had, and takes no part any more");
        news.push(event(true, reason!("ErrantReplica"), note));
    }
}

/// Every refused step, and every instance whose last task failed, is an error of this pass.
fn errors(scene: &Scene<'_>, report: &Report<'_, Deed>, news: &mut Vec<News>) {
    let refused = report.taken.iter().any(|(_, it)| matches!(it, Outcome::Failed { .. } | Outcome::Foreign { .. }));
    let failed = scene.instances.iter().any(|it| facts(scene, it.ordinal).is_some_and(|facts| facts.failure.is_some()))
        || scene.observed.facts.outside.failure.is_some();
    if refused || failed {
        news.push(News::Measured(Measure::Count(&ERRORS)));
    }
}
