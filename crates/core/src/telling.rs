//! What every kind tells in the same words: what is in hand, what waits for a person, and how the lanes are.

use kube::Resource as _;

use crate::conditions::{Common, Conditions, Reason, Truth, brief};
use crate::gate::Door;
use crate::kind::{Kind, Observed, Report};
use crate::lane::Lane;
use crate::outcome::Outcome;
use crate::reason;
use crate::step::{Act, ObjectKind, Step};

/// The reason of an object that somebody else made.
pub const FOREIGN_OBJECT: Reason = reason!("ForeignObject");

/// What is being done, without anything that changes by itself.
pub fn busy<K: Kind>(observed: &Observed<'_, K>, report: &Report<'_, K::Action>) -> Option<String> {
    let running = observed.running.iter().map(ToString::to_string);
    let goes_on = |(step, outcome): &&(Step<K::Action>, Outcome)| match outcome {
        Outcome::Done { changed } => *changed && sets_going(&step.act),
        _ => true,
    };
    let taken = report.taken.iter().filter(goes_on).map(|(step, outcome)| {
        let trouble = matches!(outcome, Outcome::Retry { .. }).then(|| outcome.why()).flatten();
        trouble.map_or_else(|| step.to_string(), |why| format!("{step} ({why})"))
    });
    let waiting = report.plan.waiting.iter().filter(|it| !it.stalled).map(|it| it.message.clone());
    let mut all: Vec<String> = Vec::new();
    for text in running.chain(taken).chain(waiting) {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}

/// Whether others go on with it when it was done: what they do is seen, and told, from the next pass on. Whoever reads before that
/// must not read that nothing is in hand.
fn sets_going<A>(act: &Act<A>) -> bool {
    match act {
        Act::SetReplicas { .. } => true,
        Act::Apply(manifest) => manifest.object.kind == ObjectKind::StatefulSet,
        Act::Delete { object, .. } => object.kind == ObjectKind::Pod,
        _ => false,
    }
}

/// What waits for a person: what the plan says, else a step that was refused.
pub fn stalled<A: crate::step::Action>(report: &Report<'_, A>) -> Option<(Reason, String)> {
    let failed = report.taken.iter().find_map(|(step, outcome)| match outcome {
        Outcome::Failed { why } => Some((reason!("StepFailed"), format!("{step}: {}", brief(why)))),
        Outcome::Foreign { why } => Some((FOREIGN_OBJECT, why.clone())),
        _ => None,
    });
    report.plan.waiting.iter().find(|it| it.stalled).map(|it| (it.reason, it.message.clone())).or(failed)
}

/// Tells what is in hand, and what waits for a person.
pub fn tell_work(busy: Option<&String>, stalled: Option<&(Reason, String)>, at: Option<i64>, conditions: &mut Conditions) {
    match busy {
        Some(busy) => conditions.set(Common::Progressing, true, reason!("Working"), busy),
        None => conditions.set(Common::Progressing, false, reason!("Idle"), "nothing is in hand"),
    };
    match (stalled, at) {
        (Some((reason, message)), Some(generation)) => conditions.set_at(Common::Stalled, true, *reason, message, generation),
        (Some((reason, message)), None) => conditions.set(Common::Stalled, true, *reason, message),
        (None, _) => conditions.set(Common::Stalled, false, reason!("NothingBlocked"), "nothing waits for a person"),
    };
}

/// Tells how the lanes are, for the newest generation: a pause is known at once.
pub fn tell_lanes<K: Kind>(observed: &Observed<'_, K>, report: &Report<'_, K::Action>, conditions: &mut Conditions) {
    let newest = observed.resource.meta().generation.unwrap_or_default();
    let requests = K::pause(observed.resource);
    for (type_, lane) in [(Common::ReconciliationActive, Lane::Resources), (Common::ClusteringActive, Lane::Clustering)] {
        let why = &requests.lane(lane).reason;
        let because = if why.is_empty() { String::new() } else { format!(": {why}") };
        let (truth, reason, message) = match report.gate.door(lane) {
            Door::Open => (true, reason!("Active"), "steps are taken".to_owned()),
            Door::Opening => {
                (true, reason!("Resuming"), "the pause is withdrawn; steps are taken from the next pass on".to_owned())
            }
            Door::Closing { awaiting } => {
                (true, reason!("Pausing"), format!("no step starts; awaiting the end of: {}", awaiting.join("; ")))
            }
            Door::Closed => (false, reason!("Paused"), format!("nothing is written, by the user's wish{because}")),
        };
        conditions.set_at(type_, truth, reason, message, newest);
    }
}

/// Tells who looks after the cluster.
pub fn tell_owner<K: Kind>(
    observed: &Observed<'_, K>,
    report: &Report<'_, K::Action>,
    stalled: Option<&(Reason, String)>,
    conditions: &mut Conditions,
) {
    let newest = observed.resource.meta().generation.unwrap_or_default();
    let owner = report.remembered.claim.as_ref().map(|claim| format!("release {} manages the cluster", claim.release));
    if let Some((FOREIGN_OBJECT, why)) = stalled {
        conditions.set_at(Common::Managed, Truth::Unknown, FOREIGN_OBJECT, why, newest);
    } else {
        let message = owner.unwrap_or_else(|| "this operator manages the cluster".to_owned());
        conditions.set_at(Common::Managed, true, reason!("Owned"), message, newest);
    }
}
