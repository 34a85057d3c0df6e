//! Who holds the office of the primary, and how it changes hands: by a switchover, in order, or by a failover, when the primary is lost.
//!
//! Both are read off from what servers say: there is no memory of how far one has come besides the recorded primary, so that a crash,
//! a pause or a change of mind in the middle leaves nothing behind. The one decision that cannot be taken back, another recorded
//! primary, is [`Office::Hand`]; it is written into the logbook before anything is done to a server because of it.

use std::time::Duration;

use windlass_core::ordinals::Ordinal;

use super::acknowledging::{Reading, Refusal, Voter, judge, judge_copies};
use super::deeds::{CATCH_UP, Task};
use super::gtid::GtidSet;
use super::instance::{Instance, Known};
use super::scene::Scene;

/// How long statements may hold up a switchover before they are ended.
const PATIENCE: Duration = Duration::from_secs(8);
/// What is to be done about the office.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Office {
    /// Nothing: the primary stays.
    Stay,
    /// These tasks first.
    Prepare(Vec<(Ordinal, Task, String)>),
    /// The office goes to this one.
    Hand {
        /// Who gets it.
        to: Ordinal,
        /// By what: a word for Events.
        by: Change,
    },
    /// It should change hands, and cannot now.
    Wait {
        /// Why.
        why: String,
        /// Whether only a person can help.
        stalled: bool,
    },
}

/// How the office changed hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Switchover,
    Failover,
}

pub(super) fn office(scene: &Scene<'_>) -> Office {
    if scene.offline || scene.size < 2 || !scene.has_history() {
        return Office::Stay;
    }
    match scene.known(scene.primary()) {
        Some(primary) if scene.cluster().lost_its_data(primary) => fail_over(scene, true),
        Some(_) if scene.is_to_hand_over() => switch_over(scene),
        None if scene.is_lost(scene.primary()) => fail_over(scene, false),
        Some(primary) if scene.is_copy() && scene.outside().is_none() => begin(scene, primary),
        // It is well, or it was not asked since something was done to it.
        Some(_) | None => Office::Stay,
    }
}

/// Closes the primary, lets the candidate catch up, and hands over.
fn switch_over(scene: &Scene<'_>) -> Office {
    let Some(primary) = scene.known(scene.primary()) else { return Office::Stay };
    let cluster = scene.cluster();
    // Somebody who was just asked, or had something done to it, answers in a moment: it may be the one.
    if scene.replicas().any(|it| it.known.is_none() && scene.is_about_to_answer(it.ordinal)) {
        return Office::Prepare(Vec::new());
    }
    // The lowest of those that follow and stay.
    let candidate = cluster.following().into_iter().find(|ordinal| scene.instance(*ordinal).is_some_and(|it| !it.leaving));
    let Some(candidate) = candidate else {
        let why = format!("instance {} is to hand over, and no other one follows it", scene.primary());
        return Office::Wait { why, stalled: false };
    };
    // Commits that wait for somebody who receives nothing, or does not acknowledge, would hold it open for ever: they are helped first.
    let acknowledges = |it: &&Instance| it.known.as_ref().is_some_and(|known| known.acknowledges);
    let helpers = scene.replicas().filter(|it| scene.is_following(it.ordinal)).filter(acknowledges).count();
    if !primary.super_read_only && helpers < scene.settings(primary).count {
        return Office::Stay;
    }
    let receives = primary.replication.as_ref().is_some_and(|it| it.connects);
    if scene.is_copy() && primary.super_read_only && receives && scene.follows_outside(primary) {
        let why = "it hands over to another instance, which is to have all that it received from elsewhere";
        return Office::Prepare(vec![(scene.primary(), Task::StopReceiving, why.to_owned())]);
    }
    if !primary.super_read_only {
        let task = Task::CloseToWrites { patience: PATIENCE };
        return Office::Prepare(vec![(scene.primary(), task, "it hands over to another instance".to_owned())]);
    }
    // It may have got the office only a moment ago, and have received more than it applied.
    if let Some(task) = primary.catch_up(CATCH_UP) {
        return Office::Prepare(vec![(scene.primary(), task, "it has received more than it applied".to_owned())]);
    }
    let behind = scene.known(candidate).is_none_or(|known| !primary.executed.is_within(&known.executed));
    if behind {
        let task = Task::CatchUp { set: primary.executed.to_string(), within: CATCH_UP };
        return Office::Prepare(vec![(candidate, task, "it becomes the primary".to_owned())]);
    }
    Office::Hand { to: candidate, by: Change::Switchover }
}

/// Before the first of a cluster that followed a server elsewhere takes writes: it must be the one that has most of what came from there.
/// Another one may, if it had the office before and was not there when it was replaced.
fn begin(scene: &Scene<'_>, primary: &Known) -> Office {
    // While it still receives, or applies, nobody knows what it will have.
    let receives = primary.replication.as_ref().is_some_and(|it| it.connects);
    if receives && scene.follows_outside(primary) || primary.catch_up(CATCH_UP).is_some() {
        return Office::Stay;
    }
    let errant = scene.cluster().errant();
    let others = scene.replicas().filter(|it| !errant.contains(&it.ordinal));
    let more = others.filter_map(|it| Some((it.ordinal, it.known.as_ref()?)));
    let Some((ordinal, other)) =
        more.filter(|(_, it)| !it.has().is_within(&primary.has())).max_by_key(|(_, it)| it.has().count())
    else {
        return Office::Stay;
    };
    if !primary.has().is_within(&other.has()) {
        let refusal: Refusal = Refusal::Diverged { one: scene.primary(), other: ordinal };
        let why = format!("instance {} is to take writes, and must not: {refusal}", scene.primary());
        return Office::Wait { why, stalled: true };
    }
    if other.replication.as_ref().is_some_and(|it| it.connects) {
        let why = "it has more than the primary of what came from elsewhere".to_owned();
        return Office::Prepare(vec![(ordinal, Task::StopReceiving, why)]);
    }
    Office::Hand { to: ordinal, by: Change::Switchover }
}

/// Lets nobody receive anything any more, and asks who has everything that clients were told of.
fn fail_over(scene: &Scene<'_>, heard: bool) -> Office {
    let still: Vec<Ordinal> = scene.replicas().filter(|it| scene.hears_the_primary(it.ordinal)).map(|it| it.ordinal).collect();
    if !heard && !still.is_empty() {
        // It cannot be heard by us, but those that follow it can hear it: it serves.
        let why = format!("instance {} does not answer, but instance {} still receives from it", scene.primary(), still[0]);
        return Office::Wait { why, stalled: false };
    }
    let errant = scene.cluster().errant();
    let how = scene.silence(scene.primary()).map_or_else(|| "its data is gone".to_owned(), |(how, _)| how.to_string());
    let why = format!("the primary is lost ({how}), and must not be acknowledged any more");
    let stop: Vec<_> = scene
        .replicas()
        .filter(|it| it.known.as_ref().is_some_and(|known| known.replication.as_ref().is_some_and(|it| it.connects)))
        .map(|it| (it.ordinal, Task::StopReceiving, why.clone()))
        .collect();
    if !stop.is_empty() {
        return Office::Prepare(stop);
    }
    let readings: Vec<Reading<GtidSet>> = scene
        .replicas()
        .filter(|it| !errant.contains(&it.ordinal))
        .filter_map(|it| {
            let known = it.known.as_ref().filter(|known| !scene.is_copy() || !known.has().is_empty())?;
            let voter = Voter { ordinal: it.ordinal, server: known.server, generation: 0 };
            Some(Reading { voter, has: known.has() })
        })
        .collect();
    // What nobody made here, nobody acknowledged: then most of all instances have to tell what they have.
    let all = scene.instances.iter().all(|it| it.known.is_some());
    let judged =
        if scene.is_copy() { judge_copies(scene.size.into(), all, &readings) } else { judge(&scene.record(), &readings) };
    match judged {
        Ok(promotion) => Office::Hand { to: promotion.ordinal, by: Change::Failover },
        Err(refusal) => {
            // Who answers as somebody else will never be heard again: its data is gone.
            let stalled = match &refusal {
                Refusal::TooFewHeard { missing, .. } => missing.iter().any(|ordinal| scene.known(*ordinal).is_some()),
                Refusal::NobodyAcknowledges => false,
                // Who answers and has nothing will have nothing later either.
                Refusal::NoMajority { .. } => scene.replicas().all(|it| it.known.is_some()),
                Refusal::Diverged { .. } | Refusal::BelowFloor { .. } => true,
            };
            let why = format!("instance {} is lost, and no other one may replace it: {refusal}", scene.primary());
            Office::Wait { why, stalled }
        }
    }
}
