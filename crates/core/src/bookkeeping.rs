//! What a pass writes into the logbook: acknowledged pauses, the plan, intents before what cannot be undone, and what came of them.
//!
//! Pure. The engine writes the result by compare-and-swap; a [`Change::Duty`] is written before any step is taken.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kube::Resource as _;
use windlass_api::logbook::{Act as Deed, Intent, LogbookSpec, PauseRecord, PlannedStep, PlannedSteps, RunningStep, Summary};

use crate::claim::Identity;
use crate::gate::{Door, Gate, Parted};
use crate::kind::{Kind, Observed};
use crate::labels::SPARED;
use crate::lane::Lane;
use crate::memory::noted_edition;
use crate::plan::{Percent, Plan};
use crate::step::{Act, Action, ObjectKind, Step};
use crate::sync;
use crate::views::{Children, Meta, PodView};

/// How many acts are kept.
const KEPT_ACTS: usize = 16;

/// The intent to delete an object.
const DELETE: &str = "DeletePod";
/// The intent to make a `StatefulSet` smaller.
const SCALE_IN: &str = "ScaleIn";
/// The intent to delete a `StatefulSet` alone and to make it again.
const RECREATE: &str = "RecreateSet";

/// The state of the lanes.
pub fn gate<K: Kind>(resource: &K::Resource, running: &[K::Action], entries: &LogbookSpec) -> Gate {
    let requests = K::pause(resource);
    let unfinished_change = K::halfway(entries);
    // What was acknowledged is over: nothing is finished behind the back of somebody who works by hand.
    let finishes = !unfinished_change.is_empty() && entries.pause.clustering.is_none();
    let mut running: Vec<String> = running.iter().map(ToString::to_string).collect();
    running.extend(unfinished_change.into_iter().filter(|_| finishes));
    let halfway: BTreeSet<String> =
        entries.intents.iter().filter(|it| it.act == RECREATE).map(|it| it.target.clone()).collect();
    let unfinished = halfway.iter().map(|set| format!("make StatefulSet {set} again")).collect();
    let resources = Door::decide(requests.resources.paused, entries.pause.resources.is_some(), unfinished);
    let clustering = Door::decide(requests.clustering.paused, entries.pause.clustering.is_some(), running);
    let epoch = entries.claim.as_ref().map_or(0, |claim| claim.epoch);
    Gate::new(resources, clustering).in_epoch(epoch).halfway_with(halfway).finishing(finishes)
}

/// The intent that has to be announced before a step, if it cannot be undone.
pub fn intent_of<A: Action>(step: &Step<A>, now: Timestamp) -> Option<Intent> {
    let (act, target, uid, to) = match &step.act {
        Act::Member(action) if action.irreversible() => (action.name(), action.target().to_owned(), action.target_uid(), None),
        Act::Delete { object, over } if object.kind == ObjectKind::Pod => {
            (DELETE, object.name.clone(), over.uid.as_str(), None)
        }
        Act::DeleteAlone { object, over } => (RECREATE, object.name.clone(), over.uid.as_str(), None),
        Act::SetReplicas { object, over, from, to } if to < from => {
            (SCALE_IN, object.name.clone(), over.uid.as_str(), Some(*to))
        }
        _ => return None,
    };
    let (act, uid, reason) = (act.to_owned(), uid.to_owned(), format!("{step}: {}", step.reason));
    Some(Intent { act, target, uid, announced: whole_seconds(now), to, reason, ..Intent::default() })
}

/// An announced intent that this release does not know: only the one that announced it can tell what it means.
pub fn unknown_intent<K: Kind>(entries: &LogbookSpec) -> Option<&Intent> {
    entries.intents.iter().find(|it| !K::INTENTS.contains(&it.act.as_str()) && !is_about_an_object(it))
}

/// Those about members are the kind's.
fn is_about_an_object(intent: &Intent) -> bool {
    matches!(intent.act.as_str(), DELETE | SCALE_IN | RECREATE)
}

/// What a pass itself adds to the memory.
pub fn note_pass<K: Kind>(
    observed: &Observed<'_, K>,
    me: &Identity,
    plan: &Plan<K::Action>,
    gate: &Gate,
    parted: &Parted<K::Action>,
    entries: &mut LogbookSpec,
) {
    note_pauses(observed, gate, entries);
    // Who did not ask the members yet, as after a restart, does not know what is held back.
    if parted.held.is_empty() && !K::is_invalid(observed) && (gate.is_open() || !K::is_blind(observed)) {
        entries.acted_generation = observed.resource.meta().generation;
    }
    note_plan(observed, plan, parted, entries);
    settle(observed, plan, me, entries);
    drop_unbegun(observed.children, parted, entries);
    for intent in parted.go.iter().filter_map(|step| intent_of(step, observed.now)) {
        match entries.intents.iter_mut().find(|it| same_target(it, &intent)) {
            // The same set is to become smaller still, or not as small.
            Some(announced) => announced.to = intent.to,
            None => entries.intents.push(intent),
        }
    }
    K::note_intents(observed, entries);
}

fn note_pauses<K: Kind>(observed: &Observed<'_, K>, gate: &Gate, entries: &mut LogbookSpec) {
    let requests = K::pause(observed.resource);
    let acknowledge = |lane: Lane, record: &mut Option<PauseRecord>| {
        let reason = &requests.lane(lane).reason;
        match (gate.door(lane), record) {
            (Door::Closed, record @ None) => {
                *record = Some(PauseRecord {
                    acknowledged: whole_seconds(observed.now),
                    reason: reason.clone(),
                    ..PauseRecord::default()
                });
            }
            (Door::Closed, Some(record)) => record.reason.clone_from(reason),
            _ => {}
        }
    };
    acknowledge(Lane::Resources, &mut entries.pause.resources);
    acknowledge(Lane::Clustering, &mut entries.pause.clustering);
}

fn note_plan<K: Kind>(
    observed: &Observed<'_, K>,
    plan: &Plan<K::Action>,
    parted: &Parted<K::Action>,
    entries: &mut LogbookSpec,
) {
    let held: Vec<PlannedStep> = parted.held.iter().map(planned).collect();
    // Operations run for a while; objects are written in this very pass, and telling of them would be one more write.
    let operations = observed.running.iter().map(|action| RunningStep { step: action.to_string(), ..RunningStep::default() });
    let under_way = plan.under_way.iter().map(|it| RunningStep {
        step: it.what.clone(),
        since: it.since,
        percent: it.percent.map(Percent::get),
    });
    // What goes on by itself is in the status; here is what waits for a person.
    let stalled = plan.waiting.iter().filter(|waiting| waiting.stalled);
    let next: Vec<PlannedStep> = stalled
        .map(|it| PlannedStep { lane: String::new(), step: it.message.clone(), reason: it.reason.to_string() })
        .collect();
    entries.summary = Summary {
        held: u16::try_from(held.len()).unwrap_or(u16::MAX),
        next: held.iter().chain(&next).next().map(|step| step.step.clone()).unwrap_or_default(),
    };
    entries.plan = PlannedSteps { next, held, running: operations.chain(under_way).collect() };
}

/// An intent that is not planned in this pass may be planned in the next one; only a plan with nothing left to do has no use for it.
fn has_no_use<K: Kind>(observed: &Observed<'_, K>, plan: &Plan<K::Action>) -> bool {
    plan.is_empty() && !K::is_blind(observed)
}

/// The notes on pods that were to be deleted and are not any more.
pub fn spare<K: Kind>(observed: &Observed<'_, K>, plan: &Plan<K::Action>, entries: &LogbookSpec) -> Vec<Step<K::Action>> {
    let intents = entries.intents.iter().filter(|it| it.act == DELETE && has_no_use(observed, plan));
    let pods =
        intents.filter_map(|it| Some((it, pod_of(it, observed.children)?))).filter(|(it, pod)| !is_spared(it, &pod.meta));
    pods.map(|(intent, pod)| sync::note(ObjectKind::Pod, &pod.meta, (SPARED.to_owned(), intent.announced.to_string())))
        .collect()
}

fn pod_of<'a>(intent: &Intent, children: &'a Children) -> Option<&'a PodView> {
    children.pods.values().find(|pod| pod.meta.uid == intent.uid && !pod.meta.deleting)
}

fn is_spared(intent: &Intent, pod: &Meta) -> bool {
    pod.annotations.get(SPARED).is_some_and(|noted| noted == intent.announced.to_string())
}

/// Ends intents about objects by what is observed. Those about members are the kind's to end.
///
/// The deletion of a pod may have been sent, and arrive late: it is withdrawn when the pod has another version than it was sent for.
fn settle<K: Kind>(observed: &Observed<'_, K>, plan: &Plan<K::Action>, me: &Identity, entries: &mut LogbookSpec) {
    let of_no_use = has_no_use(observed, plan);
    let mut ended = Vec::new();
    entries.intents.retain(|intent| {
        let outcome = match is_done(intent, observed.children) {
            Some(true) => Some("Done"),
            Some(false)
                if of_no_use
                    && intent.act != RECREATE
                    && pod_of(intent, observed.children).is_none_or(|pod| is_spared(intent, &pod.meta)) =>
            {
                Some("Withdrawn")
            }
            _ => None,
        };
        if let Some(outcome) = outcome {
            ended.push(done(intent, me, outcome));
        }
        outcome.is_none()
    });
    entries.acts.extend(ended);
    let surplus = entries.acts.len().saturating_sub(KEPT_ACTS);
    entries.acts.drain(..surplus);
}

/// A set that was to be made again and is still whole was not touched. It is announced anew when it goes; until then a pause must not
/// wait for it.
fn drop_unbegun<A: Action>(children: &Children, parted: &Parted<A>, entries: &mut LogbookSpec) {
    let goes = |uid: &str| {
        let of_set = |step: &Step<A>| matches!(&step.act, Act::DeleteAlone { over, .. } if over.uid == uid);
        parted.go.iter().any(of_set)
    };
    let is_whole = |intent: &Intent| {
        children
            .stateful_sets
            .get(&intent.target)
            .is_some_and(|set| set.object.meta.uid == intent.uid && !set.object.meta.deleting)
    };
    entries.intents.retain(|intent| intent.act != RECREATE || goes(&intent.uid) || !is_whole(intent));
}

/// Whether an intent about an object was carried out; none for intents about members.
fn is_done(intent: &Intent, children: &Children) -> Option<bool> {
    match intent.act.as_str() {
        DELETE => Some(pod_of(intent, children).is_none()),
        SCALE_IN => {
            let mut sets = children.stateful_sets.values();
            let set = sets.find(|set| set.object.meta.uid == intent.uid);
            Some(set.is_none_or(|set| intent.to.is_some_and(|to| set.replicas <= to)))
        }
        RECREATE => Some(children.stateful_sets.get(&intent.target).is_some_and(|set| set.object.meta.uid != intent.uid)),
        _ => None,
    }
}

/// Records the intents about members that observation ended since.
pub fn record_ended(before: &[Intent], me: &Identity, entries: &mut LogbookSpec) {
    for intent in before.iter().filter(|it| !entries.intents.iter().any(|still| same_target(still, it))) {
        entries.acts.push(done(intent, me, "Done"));
    }
}

fn same_target(one: &Intent, other: &Intent) -> bool {
    (&one.act, &one.uid) == (&other.act, &other.uid)
}

/// The record of an intent that ended.
fn done(intent: &Intent, me: &Identity, outcome: &str) -> Deed {
    let Intent { act, target, uid, announced, reason, .. } = intent.clone();
    Deed { act, target, uid, announced, reason, by: me.signature(), outcome: outcome.to_owned(), ..Deed::default() }
}

/// How much of a stored logbook a pass changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing. Its own UID alone is not worth a write: it goes along with the next one.
    None,
    /// What runs right now.
    Runs,
    /// What is told of this pass.
    Told,
    /// Something that a step may rest upon.
    Duty,
}

/// What a pass changes.
pub fn change(stored: Option<&LogbookSpec>, entries: &LogbookSpec) -> Change {
    let Some(stored) = stored else { return Change::Duty };
    let mut like = LogbookSpec { own_uid: entries.own_uid.clone(), ..stored.clone() };
    if like == *entries {
        return Change::None;
    }
    like.plan.running.clone_from(&entries.plan.running);
    if like == *entries {
        return Change::Runs;
    }
    like.acted_generation = entries.acted_generation;
    like.plan = entries.plan.clone();
    like.summary = entries.summary.clone();
    like.acts.clone_from(&entries.acts);
    if like == *entries { Change::Told } else { Change::Duty }
}

/// Counts the edition up when what steps rest upon changed. Intents about objects are left out: the objects themselves tell.
///
/// It also grows when another process begins to act. The edition is noted on the `StatefulSet`s, so these get another version, and
/// what the process before sent late is refused, whether or not the new one has anything to do to them.
pub fn count_edition(stored: Option<&LogbookSpec>, children: &Children, entries: &mut LogbookSpec) {
    let of_members =
        |spec: &LogbookSpec| -> Vec<Intent> { spec.intents.iter().filter(|it| !is_about_an_object(it)).cloned().collect() };
    let same = stored.is_some_and(|stored| {
        stored.counts == entries.counts
            && stored.histories == entries.histories
            && stored.mysql == entries.mysql
            && stored.tidb == entries.tidb
            && stored.overrides == entries.overrides
            && stored.claim.as_ref().map(|it| it.epoch) == entries.claim.as_ref().map(|it| it.epoch)
            && of_members(stored) == of_members(entries)
    });
    let newest = stored.map_or(0, |stored| stored.edition).max(noted_edition(children));
    entries.edition = if same { newest } else { newest.saturating_add(1) };
}

/// Whether there is data, so that an old copy of the logbook could do harm.
pub fn speaks_of_data(entries: &LogbookSpec) -> bool {
    entries.counts.restore > 0 || !entries.histories.is_empty() || entries.mysql.as_ref().is_some_and(|mysql| mysql.opened)
}

fn planned<A: Action>(step: &Step<A>) -> PlannedStep {
    let lane = step.lane().map_or_else(String::new, |lane| lane.to_string());
    PlannedStep { lane, step: step.to_string(), reason: step.reason.clone() }
}

/// Stored times are in seconds; a finer one would differ from what comes back.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
