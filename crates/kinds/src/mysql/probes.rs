//! Which instances are asked, and when: at once after an event, every second while the cluster is not healthy, else every few seconds.
//! The primary is watched besides: its end is an event. While it is silent, what the others say counts, and they are asked at once.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::mysql::conditions::State;
use windlass_core::kind::Observed;
use windlass_core::ordinals::Ordinal;

use super::MySql;
use super::deeds::Probe;
use super::facts::{Failed, after};
use super::remember::entries;
use super::scene::Scene;

/// While the primary is silent.
const URGENT: Duration = Duration::from_millis(200);
const UNSETTLED: Duration = Duration::from_secs(1);
const QUIET: Duration = Duration::from_secs(5);
/// What is due within this part of the time between two questions is asked now: then one pass asks all instances.
const SOON: u32 = 5;
/// Between two readings of the Secret of a server elsewhere.
const SOURCE: Duration = Duration::from_secs(15);

/// How often instances are asked.
fn pace(scene: &Scene<'_>) -> Duration {
    if scene.has_history() && scene.size > 1 && scene.silence(scene.primary()).is_some() {
        URGENT
    } else if scene.state() == State::Healthy && scene.observed.running.is_empty() && scene.is_council_settled() {
        QUIET
    } else {
        UNSETTLED
    }
}

/// When each instance that can be asked is asked next.
fn questions(scene: &Scene<'_>) -> Vec<(Timestamp, Probe)> {
    let pace = pace(scene);
    let ask = |ordinal: Ordinal| {
        let asked = scene.place(ordinal)?;
        if scene.running(ordinal).is_some() {
            return None;
        }
        let facts = scene.observed.facts.of(scene.pod(ordinal)?);
        // What was said before a task tells of what was then.
        let at = match facts {
            Some(facts) if facts.known.is_some() || facts.silent.is_some() => after(facts.asked, pace),
            _ => Timestamp::MIN,
        };
        Some((at, Probe::Look(asked)))
    };
    scene.instances.iter().filter_map(|it| ask(it.ordinal)).collect()
}

/// The watch of the primary. One that cannot be asked cannot be watched either.
fn watch(scene: &Scene<'_>) -> Option<Probe> {
    scene.known(scene.primary())?;
    scene.place(scene.primary()).map(Probe::Watch)
}

/// Where the server elsewhere is, and when that is to be read next. Whoever changes it should not have to wait for long.
fn source(scene: &Scene<'_>) -> Option<(Timestamp, Probe)> {
    let secret = scene.outside()?.to_owned();
    let place = scene.place(scene.primary())?;
    let read = scene.observed.facts.outside.source.as_ref().filter(|(it, _)| it.secret == secret);
    let wait = match read {
        Some((it, _)) if it.read.is_ok() => SOURCE,
        _ => QUIET,
    };
    Some((read.map_or(Timestamp::MIN, |(_, at)| after(*at, wait)), Probe::Source { place, secret }))
}

/// The questions that are due now, or soon.
pub(super) fn due(observed: &Observed<'_, MySql>) -> Vec<Probe> {
    let scene = Scene::of(observed, entries(&observed.memory.entries()));
    let soon = after(observed.now, pace(&scene) / SOON);
    let looks = questions(&scene).into_iter().chain(source(&scene)).filter(|(at, _)| *at <= soon).map(|(_, look)| look);
    looks.chain(watch(&scene)).collect()
}

/// When the next question is due. What is due now is under way, and its end is an event.
pub(super) fn look_again(observed: &Observed<'_, MySql>) -> Duration {
    let scene = Scene::of(observed, entries(&observed.memory.entries()));
    let lost = scene.lost_at(scene.primary());
    let failed = scene.instances.iter().filter_map(|it| scene.failed(it.ordinal));
    let again = failed.chain(scene.observed.facts.outside.failure.as_ref()).map(Failed::again);
    let repeats = scene.instances.iter().filter_map(|it| scene.repeats(it.ordinal));
    let soonest = questions(&scene)
        .into_iter()
        .chain(source(&scene))
        .map(|(at, _)| at)
        .chain(lost)
        .chain(again)
        .chain(repeats)
        .filter(|at| *at > observed.now)
        .min();
    let wait = soonest.and_then(|at| Duration::try_from(at.duration_since(observed.now)).ok());
    wait.unwrap_or(QUIET).clamp(Duration::from_millis(50), QUIET)
}

/// Whether an instance that can be asked was never asked since the operator started.
pub(super) fn is_blind(observed: &Observed<'_, MySql>) -> bool {
    let scene = Scene::of(observed, entries(&observed.memory.entries()));
    let unasked = |ordinal: Ordinal| {
        scene.place(ordinal).is_some() && scene.pod(ordinal).is_some_and(|pod| observed.facts.of(pod).is_none())
    };
    scene.instances.iter().any(|it| unasked(it.ordinal))
}

#[cfg(test)]
#[path = "probes_tests.rs"]
mod tests;
