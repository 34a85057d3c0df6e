//! Which pod of a component is replaced next, by what is seen: from the highest ordinal down, one after the other.
//!
//! A pod that has the newest template must be well, and for as long as the user says, before the next one goes; the last one too. Whoever
//! waits is waited for where it stands: nothing that was let go is called back, and a newer template begins at the top again.
//!
//! Nobody waits for the sake of a pod that has not run for a while: it serves nobody, and it may be what keeps those above it from being
//! well. A PD of which most members have a template that does not start would never come up again.

use std::time::Duration;

use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{PodView, StatefulSetView};

use super::answers::{Said, StoreState};
use super::facts::after;
use super::membership::Standing;
use super::scene::{Group, Scene};

/// A pod that became ready only now may still be on its way to be well.
const RECENT: Duration = Duration::from_secs(30);
/// A pod that ran within this time may be about to run again.
const DEAD: Duration = Duration::from_mins(1);

/// How far the replacement of a component's pods is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// Every pod is of the newest template, and well.
    Done,
    /// Nobody knows before the controller has seen the newest template.
    Unknown,
    /// This pod is of the newest template, and not well yet.
    Settles { ordinal: Ordinal, why: String },
    /// This pod is next.
    Next { ordinal: Ordinal },
    /// This pod was let go, and the controller replaces it.
    Goes { ordinal: Ordinal },
    /// This pod was let go and does not run; the controller waits for one above it, and so does not replace it.
    Abandoned { ordinal: Ordinal },
}

impl Walk {
    pub(super) fn of(scene: &Scene<'_>, component: Component) -> Self {
        let group = scene.group(component);
        let (Some(set), Some(wish)) = (group.live_set(), group.wish.as_ref()) else { return Self::Done };
        let mut ordinals = (0..set.replicas).rev().map(Ordinal::new);
        if set.update_revision.is_none() || set.observed_generation != set.object.meta.generation {
            return Self::Unknown;
        }
        let is_old = |pod: &PodView| set.is_outdated(pod);
        if !group.pods.values().any(|pod| is_old(pod)) {
            let unwell = ordinals.find_map(|ordinal| Some((ordinal, ailment(scene, group, ordinal)?)));
            // Without a replacement under way it is for others to say who is not well.
            let under_way = unwell
                .filter(|(ordinal, _)| set.is_rolling() || became_ready(scene, group, *ordinal, wish.settles.max(RECENT)));
            return under_way.map_or(Self::Done, |(ordinal, why)| Self::Settles { ordinal, why });
        }
        let mut settles = None;
        for ordinal in ordinals {
            let Some(pod) = group.pods.get(&ordinal).filter(|pod| is_old(pod)) else {
                let unwell = || ailment(scene, group, ordinal).map(|why| Self::Settles { ordinal, why });
                settles = settles.or_else(unwell);
                continue;
            };
            let let_go = partition(set) <= ordinal.get();
            return match settles {
                None if ordinal.get() < wish.lowest => Self::Done,
                None if let_go || pod.meta.deleting => Self::Goes { ordinal },
                Some(settles) if ordinal.get() < wish.lowest || !is_dead(scene, pod) => settles,
                Some(_) if let_go => Self::Abandoned { ordinal },
                None | Some(_) => Self::Next { ordinal },
            };
        }
        settles.unwrap_or(Self::Done)
    }

    /// The pod that is on its way, if one is.
    pub(super) fn ordinal(&self) -> Option<Ordinal> {
        match self {
            Self::Done | Self::Unknown => None,
            Self::Settles { ordinal, .. } | Self::Next { ordinal } | Self::Goes { ordinal } | Self::Abandoned { ordinal } => {
                Some(*ordinal)
            }
        }
    }
}

/// Whether nothing runs in a pod, and has not for a while.
pub(super) fn is_dead(scene: &Scene<'_>, pod: &PodView) -> bool {
    let since = pod.ready_since.or(pod.meta.created);
    let long_ago = since.is_some_and(|since| after(since, DEAD) <= scene.observed.now);
    !pod.ready && !pod.meta.deleting && pod.process.is_none() && long_ago
}

/// The ordinal from which on the controller replaces pods.
pub(super) fn partition(set: &StatefulSetView) -> u16 {
    let spec = set.object.spec.value();
    let partition = spec.pointer("/updateStrategy/rollingUpdate/partition").and_then(serde_json::Value::as_u64);
    partition.and_then(|it| u16::try_from(it).ok()).unwrap_or(0)
}

/// Whether pods of a component have another template than the newest.
pub(super) fn has_outdated(group: &Group<'_>) -> bool {
    group.set.is_some_and(|set| group.pods.values().any(|pod| set.is_outdated(pod)))
}

/// Whether a member became ready within this time.
fn became_ready(scene: &Scene<'_>, group: &Group<'_>, ordinal: Ordinal, within: Duration) -> bool {
    let pod = group.pods.get(&ordinal);
    pod.is_some_and(|pod| pod.ready && pod.ready_since.is_some_and(|since| after(since, within) > scene.observed.now))
}

/// What a member of the newest template lacks, if anything.
pub(super) fn ailment(scene: &Scene<'_>, group: &Group<'_>, ordinal: Ordinal) -> Option<String> {
    let component = group.component;
    let pod = scene.names.pod(component, ordinal);
    let Some(view) = group.pods.get(&ordinal) else { return Some(format!("{pod} is made")) };
    if view.meta.deleting {
        return Some(format!("{pod} ends"));
    }
    if !view.ready {
        return Some(format!("{pod} is not ready"));
    }
    let settles = group.wish.as_ref().map(|wish| wish.settles).unwrap_or_default();
    if became_ready(scene, group, ordinal, settles) {
        return Some(format!("{pod} is to be ready for {} s", settles.as_secs()));
    }
    let said = || scene.said(component, ordinal);
    let is_well = match component {
        Component::Pd => {
            matches!(scene.membership(ordinal), Standing::Is(member) if scene.is_healthy(member))
                && matches!(said(), Some(Said::Pd { ready: true }))
        }
        Component::Tikv => is_up(scene, component, ordinal),
        Component::Tiflash => is_up(scene, component, ordinal) && matches!(said(), Some(Said::Tiflash { running: true })),
        Component::Ticdc => matches!(said(), Some(Said::Ticdc { listed: Ok(true), .. })),
        Component::Tidb | Component::Tiproxy | Component::Pump => said().is_some(),
    };
    (!is_well).then(|| match component {
        Component::Pd => format!("{pod} is no healthy member of PD"),
        Component::Tikv | Component::Tiflash => format!("the store of {pod} is not up"),
        _ => format!("{pod} does not answer as it should"),
    })
}

fn is_up(scene: &Scene<'_>, component: Component, ordinal: Ordinal) -> bool {
    matches!(scene.standing(component, ordinal), Standing::Is(store) if store.state == StoreState::Up)
}
