//! Who is asked, and when: PD every second while a store or a member is on its way, every few seconds while something is not as it
//! should be, else now and then. Servers are asked about what only they know, while somebody waits for it.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::tidb::Component;
use windlass_core::kind::Observed;
use windlass_core::ordinals::Ordinal;

use super::Tidb;
use super::answers::StoreState;
use super::component::has_stores;
use super::deeds::Probe;
use super::facts::{Failed, after};
use super::membership::Standing;
use super::places;
use super::scene::{Group, Scene};
use super::walk::Walk;

/// While somebody is on the way.
const MOVING: Duration = Duration::from_secs(1);
/// While something is not as it should be.
const UNSETTLED: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_secs(15);

/// How long to wait after so many silences in a row.
fn backoff(times: u32) -> Duration {
    Duration::from_secs(1).saturating_mul(2_u32.saturating_pow(times.min(6)).max(1) / 2).min(QUIET)
}

/// Whether members of a component come, go or are replaced.
fn moves(scene: &Scene<'_>, group: &Group<'_>) -> bool {
    group.wish.as_ref().is_some_and(|wish| !wish.suspended)
        && (group.size() != group.wanted() || Walk::of(scene, group.component) != Walk::Done)
}

/// Whether every member of a component is there and well, as far as PD and the pods tell.
fn is_well(scene: &Scene<'_>, group: &Group<'_>) -> bool {
    let ready = |ordinal: Ordinal| group.pods.get(&ordinal).is_some_and(|pod| pod.ready);
    let stands = |ordinal: Ordinal| match group.component {
        Component::Pd => matches!(scene.membership(ordinal), Standing::Is(member) if scene.is_healthy(member)),
        component if has_stores(component) => {
            matches!(scene.standing(component, ordinal), Standing::Is(store) if store.state == StoreState::Up)
        }
        _ => true,
    };
    (0..group.wanted()).map(Ordinal::new).all(|ordinal| ready(ordinal) && stands(ordinal))
}

fn pace(scene: &Scene<'_>) -> Duration {
    let announced = scene.intents.iter().any(|intent| super::INTENTS.contains(&intent.act.as_str()));
    let named = || scene.groups().filter(|group| group.wish.as_ref().is_some_and(|wish| !wish.suspended));
    if announced || !scene.observed.running.is_empty() || named().any(|group| moves(scene, group)) {
        MOVING
    } else if named().any(|group| !is_well(scene, group)) {
        UNSETTLED
    } else {
        QUIET
    }
}

/// Whether a component's servers are asked now: always where nobody else knows how they are.
fn is_asked(scene: &Scene<'_>, component: Component, ordinal: Ordinal) -> bool {
    match component {
        Component::Tidb | Component::Ticdc | Component::Tiproxy | Component::Pump => true,
        Component::Pd | Component::Tiflash => Walk::of(scene, component) != Walk::Done,
        // How many regions it leads changes faster than it tells PD.
        Component::Tikv => {
            let pod = scene.names.pod(component, ordinal);
            scene.evictions().any(|(evicted, _)| evicted == pod)
        }
    }
}

/// When each question is due.
fn questions(scene: &Scene<'_>) -> Vec<(Timestamp, Probe)> {
    let (pace, now, facts) = (pace(scene), scene.observed.now, scene.observed.facts);
    let mut questions = Vec::new();
    if let Some(place) = scene.pd_place() {
        let is_old = |asked| facts.touched_since(asked);
        let at = match &facts.pd {
            None => Timestamp::MIN,
            Some(pd) => match &pd.silent {
                Some((_, times)) => after(pd.tried, backoff(*times)),
                None if pd.seen.is_none() || is_old(pd.asked) => Timestamp::MIN,
                None => after(pd.asked, pace),
            },
        };
        questions.push((at, Probe::Pd { pd: place, asked: now }));
    }
    for group in scene.groups() {
        let component = group.component;
        for ordinal in group.pods.keys().copied().filter(|ordinal| is_asked(scene, component, *ordinal)) {
            let Some(server) = scene.server(component, ordinal) else { continue };
            let at = match scene.server_facts(component, ordinal) {
                None => Timestamp::MIN,
                Some(known) => match &known.silent {
                    Some((_, times)) => after(known.asked, backoff(*times)),
                    None if !facts.is_settled(&server.pod, known.asked) => Timestamp::MIN,
                    None => after(known.asked, pace.max(if component == Component::Tikv { MOVING } else { UNSETTLED })),
                },
            };
            questions.push((at, Probe::Look { server, asked: now }));
        }
    }
    questions.extend(places::questions(scene));
    questions
}

/// The questions that are due now.
pub(super) fn due(observed: &Observed<'_, Tidb>) -> Vec<Probe> {
    let scene = Scene::of(observed, &observed.memory.entries());
    questions(&scene).into_iter().filter(|(at, _)| *at <= observed.now).map(|(_, probe)| probe).collect()
}

/// When the next question or attempt is due. What is due now is under way, and its end is an event.
pub(super) fn look_again(observed: &Observed<'_, Tidb>) -> Duration {
    let scene = Scene::of(observed, &observed.memory.entries());
    let again = observed.facts.failures().map(|(_, failed)| Failed::again(failed));
    let soonest = questions(&scene).into_iter().map(|(at, _)| at).chain(again).filter(|at| *at > observed.now).min();
    let wait = soonest.and_then(|at| Duration::try_from(at.duration_since(observed.now)).ok());
    wait.unwrap_or(QUIET).clamp(Duration::from_millis(50), QUIET)
}

/// Whether PD, or a server that is asked always, was never asked since the operator started.
pub(super) fn is_blind(observed: &Observed<'_, Tidb>) -> bool {
    let scene = Scene::of(observed, &observed.memory.entries());
    let pd = scene.pd_place().is_some() && observed.facts.pd.is_none();
    let unasked = |group: &Group<'_>| {
        let mut ordinals = group.pods.keys().copied().filter(|it| is_asked(&scene, group.component, *it));
        ordinals.any(|it| scene.server(group.component, it).is_some() && scene.server_facts(group.component, it).is_none())
    };
    pd || scene.groups().any(unasked)
}
