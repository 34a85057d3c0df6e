//! What a script does to PD and the servers, and what it can see of them.

use windlass_api::tidb::Component;
use windlass_kinds::tidb::answers::StoreState;
use windlass_kinds::tidb::simulation::SimulatedStore;

use super::places::{Place, places, pod_name};
use super::quay::Quay;

fn place(component: Component, ordinal: u16) -> Place {
    let name = pod_name(component, ordinal);
    places().find(|place| place.pod() == name).unwrap()
}

impl Quay {
    /// A server ends at once, and stays so until somebody lets it start.
    pub(super) fn kill(&self, component: Component, ordinal: u16) {
        let mut inner = self.lock();
        inner.kill(place(component, ordinal));
        inner.held_down.insert(pod_name(component, ordinal));
    }

    pub(super) fn let_start(&self, component: Component, ordinal: u16) {
        self.lock().held_down.remove(&pod_name(component, ordinal));
    }

    /// From now on a store gives away so many regions in a second.
    pub(super) fn pace(&self, component: Component, ordinal: u16, speed: u64) {
        let (mut inner, place) = (self.lock(), place(component, ordinal));
        inner.speeds.insert(place.pod(), speed);
        for store in inner.pd.stores.values_mut().filter(|it| it.address == place.address()) {
            store.speed = speed;
        }
    }

    /// How the newest store of a pod is.
    pub(super) fn store(&self, component: Component, ordinal: u16) -> Option<StoreState> {
        let (inner, address) = (self.lock(), place(component, ordinal).address());
        let live = inner.pd.stores.values().filter(|it| it.address == address && it.state != StoreState::Tombstone);
        let left = inner.pd.stores.values().filter(|it| it.address == address);
        live.chain(left).next().map(SimulatedStore::told)
    }

    /// How many stores of rows are up, and how many members PD has.
    pub(super) fn counts(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.pd.up(false), inner.pd.members.len())
    }

    /// Of how many stores PD evicts the leaders.
    pub(super) fn evictions(&self) -> usize {
        self.lock().pd.evicting.len()
    }

    /// How many copies of columns there have to be.
    pub(super) fn ask_for_columns(&self, copies: u16) {
        self.lock().pd.columns = copies;
    }

    /// From now on what is not known of stores is taken for gone.
    pub fn believe_silence(&self) {
        self.lock().gullible = true;
    }
}
