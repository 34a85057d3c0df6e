//! Whether a cluster is ready: the first thing that is not so counts, in the order that users know.
//!
//! A store that leaves because it is asked to is nothing that is missing. What PD does not tell is unknown, and not false.

use windlass_api::tidb::Component;
use windlass_api::tidb::conditions::ReadyReason;
use windlass_core::conditions::{Reason, Truth};
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::views::StatefulSetView;

use super::super::answers::{Said, StoreState};
use super::super::scene::{Group, Scene};
use super::super::walk::has_outdated;

/// Whether a cluster is ready, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Ready {
    pub(in super::super) truth: Truth,
    pub(in super::super) reason: Reason,
    pub(in super::super) message: String,
}

/// The components that make a cluster not ready, in the order in which they count.
const CHECKED: [(Component, ReadyReason); 6] = [
    (Component::Pd, ReadyReason::PdUnhealthy),
    (Component::Tikv, ReadyReason::TikvStoreNotUp),
    (Component::Tidb, ReadyReason::TidbUnhealthy),
    (Component::Tiflash, ReadyReason::TiflashStoreNotUp),
    (Component::Ticdc, ReadyReason::TicdcCaptureNotReady),
    (Component::Tiproxy, ReadyReason::TiproxyUnhealthy),
];

/// The components whose pods count when they are replaced.
const REPLACED: [Component; 4] = [Component::Pd, Component::Tikv, Component::Tidb, Component::Tiflash];

impl Ready {
    pub(in super::super) fn of(scene: &Scene<'_>) -> Self {
        let is_replaced = |component: Component| {
            let group = scene.group(component);
            group.set.is_some_and(StatefulSetView::is_rolling) || has_outdated(group)
        };
        if REPLACED.into_iter().any(is_replaced) {
            return Self::told(ReadyReason::StatefulSetNotUpToDate);
        }
        for (component, reason) in CHECKED {
            let group = scene.group(component);
            let (true, wanted) = (group.wish.is_some(), group.wanted()) else { continue };
            let pods_are_there = (0..wanted).map(Ordinal::new).all(|ordinal| group.runs(ordinal));
            let asks_pd = matches!(component, Component::Pd | Component::Tikv | Component::Tiflash) && wanted > 0;
            if let (true, true, Err(unheard)) = (asks_pd, pods_are_there, &scene.pd) {
                return Self { truth: Truth::Unknown, reason: reason!("PDUnknown"), message: unheard.why.clone() };
            }
            if !(0..wanted).map(Ordinal::new).all(|ordinal| is_member_well(scene, group, ordinal)) {
                return Self::told(reason);
            }
        }
        Self::told(ReadyReason::Ready)
    }

    fn told(reason: ReadyReason) -> Self {
        let word = match reason {
            ReadyReason::StatefulSetNotUpToDate => reason!(ReadyReason::StatefulSetNotUpToDate.as_str()),
            ReadyReason::PdUnhealthy => reason!(ReadyReason::PdUnhealthy.as_str()),
            ReadyReason::TikvStoreNotUp => reason!(ReadyReason::TikvStoreNotUp.as_str()),
            ReadyReason::TidbUnhealthy => reason!(ReadyReason::TidbUnhealthy.as_str()),
            ReadyReason::TiflashStoreNotUp => reason!(ReadyReason::TiflashStoreNotUp.as_str()),
            ReadyReason::TicdcCaptureNotReady => reason!(ReadyReason::TicdcCaptureNotReady.as_str()),
            ReadyReason::TiproxyUnhealthy => reason!(ReadyReason::TiproxyUnhealthy.as_str()),
            ReadyReason::Ready => reason!(ReadyReason::Ready.as_str()),
        };
        let truth = Truth::from(reason == ReadyReason::Ready);
        Self { truth, reason: word, message: reason.message().to_owned() }
    }
}

/// Whether a member does what it is there for.
pub(in super::super) fn is_member_well(scene: &Scene<'_>, group: &Group<'_>, ordinal: Ordinal) -> bool {
    let component = group.component;
    let said = || scene.last_said(component, ordinal);
    match component {
        Component::Pd => scene.own_members().get(&ordinal).is_some_and(|member| scene.is_healthy(member)),
        Component::Tikv | Component::Tiflash => {
            scene.own_stores(component).get(&ordinal).is_some_and(|store| store.state == StoreState::Up)
        }
        Component::Ticdc => matches!(said(), Some(Said::Ticdc { listed: Ok(true), .. })),
        Component::Tidb | Component::Tiproxy => said().is_some(),
        Component::Pump => matches!(said(), Some(Said::Pump { state, .. }) if state == "online"),
    }
}
