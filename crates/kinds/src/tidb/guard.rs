//! How many stores may leave: so many must stay that every copy has a place.
//!
//! Counted over all removals under way. Stores of other clusters on the same PD count as well: they hold copies.

use windlass_api::tidb::Component;
use windlass_core::ordinals::{Ordinal, Ordinals};
use windlass_core::scale;

use super::answers::{Store, StoreState};
use super::membership::{Standing, pod_at};
use super::scene::Scene;

/// How many stores of a component may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    /// How many must stay.
    pub(super) least: usize,
    /// How many are up and not on their way out.
    pub(super) up: usize,
    /// How many PD does not see leaving. When these are too few, no store can ever give away all that it has.
    pub(super) able: usize,
    /// How many there would be in the end, by the spec.
    pub(super) planned: usize,
    /// Stores that are to leave and serve nobody now.
    idle: Ordinals,
    component: Component,
}

impl Guard {
    /// The guard of a component's stores, or why nobody knows it.
    pub(super) fn of(scene: &Scene<'_>, component: Component) -> Result<Self, String> {
        let heard = scene.pd.as_ref().map_err(|unheard| unheard.why.clone())?;
        let least = match component {
            Component::Tiflash => {
                heard.seen.tiflash_copies.clone().map_err(|why| format!("PD did not tell its rules: {why}"))?
            }
            _ => heard.seen.config.as_ref().map_err(|why| format!("PD did not tell its settings: {why}"))?.max_replicas,
        };
        scene.stores()?;
        let stores = scene.stores_of(component);
        let wanted = scene.group(component).wanted();
        let own = |store: &Store| pod_at(&scene.names, component, &store.address);
        let leaves = |store: &Store| own(store).filter(|ordinal| ordinal.get() >= wanted);
        let stays_up = |store: &&&Store| scene.is_up(component, store) && !is_under_way(scene, component, store, leaves(store));
        // Those that PD does not know any more give nothing either.
        let vanished = (wanted..scene.group(component).size()).map(Ordinal::new);
        let vanished = vanished.filter(|ordinal| matches!(scene.standing(component, *ordinal), Standing::Vanished(_)));
        let idle = stores.iter().filter(|store| !scene.is_up(component, store)).filter_map(|store| leaves(store));
        let foreign = stores.iter().filter(|store| own(store).is_none() && store.state != StoreState::Offline).count();
        Ok(Self {
            least: least.into(),
            up: stores.iter().filter(stays_up).count(),
            able: stores.iter().filter(|store| store.state != StoreState::Offline).count(),
            planned: usize::from(wanted) + foreign,
            idle: idle.chain(vanished).collect(),
            component,
        })
    }

    /// Whether as many as must stay are up. Else a store that is to leave could never give away all that it has.
    pub(super) fn holds(&self) -> bool {
        self.up >= self.least
    }

    /// Whether so many leave, by whose doing ever, that none of them will be done.
    pub(super) fn is_stuck(&self) -> bool {
        self.able < self.least
    }

    /// Why so few as the spec asks for cannot be, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        let Self { least, planned, component, .. } = self;
        let setting = match component {
            Component::Tiflash => "the rules of PD's group tiflash ask for",
            _ => "max-replicas of PD asks for",
        };
        (planned < least).then(|| {
            format!(
                "spec.{component}.replicas leaves {planned} stores, and {setting} {least} copies, each on another store; nothing is \
                 removed: ask for at least {least}, or for fewer copies first"
            )
        })
    }

    /// For the planner of sizes.
    pub(super) fn limit(&self) -> (scale::Guard, Ordinals) {
        let Self { least, up, component, .. } = self;
        let because = match self.refusal() {
            Some(refusal) => refusal,
            None => format!("{least} stores of {} must stay up, and {up} are", component.title()),
        };
        let more = if self.refusal().is_some() { 0 } else { up.saturating_sub(*least) };
        let more = u16::try_from(more).unwrap_or(u16::MAX);
        let idle = if self.holds() && self.refusal().is_none() { self.idle.clone() } else { Ordinals::new() };
        (scale::Guard::AtMost { more, because }, idle)
    }
}

/// Whether a store that is to leave has begun to.
fn is_under_way(scene: &Scene<'_>, component: Component, store: &Store, leaves: Option<Ordinal>) -> bool {
    let Some(ordinal) = leaves else { return false };
    scene.is_announced(super::EVICT_LEADERS, store.id)
        || scene.is_announced(super::DELETE_STORE, store.id)
        || scene.running(&scene.names.pod(component, ordinal)).is_some()
}
