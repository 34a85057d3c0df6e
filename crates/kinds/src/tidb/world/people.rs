//! People and misfortune: what happens to a cluster without the operator's doing.

use windlass_api::tidb::{Component, ScalePolicy, SuspendAction, TidbCluster, keys};
use windlass_core::labels::{CLUSTERING_PAUSED, RESOURCES_PAUSED};
use windlass_core::plan::{Plan, Waiting};
use windlass_core::views::{PodView, REVISION};

use super::super::answers::StoreState;
use super::super::deeds::Deed;
use super::super::facts::Facts;
use super::super::simulation::SimulatedStore;
use super::{BAD, COMPONENTS, Event, MOST, World};

impl World {
    /// Somebody does something, or something breaks.
    pub(super) fn trouble(&mut self) {
        match self.dice.below(29) {
            0..=5 => {
                let replicas = 1 + self.dice.below(MOST);
                self.edit(|resource| resource.spec.tikv.as_mut().unwrap().replicas = replicas);
            }
            6 => {
                let policy = ScalePolicy {
                    scale_in_parallelism: Some(1 + self.dice.below(4)),
                    scale_out_parallelism: Some(1 + self.dice.below(4)),
                };
                self.edit(|resource| resource.spec.tikv.as_mut().unwrap().scale_policy = Some(policy));
            }
            7 => {
                let replicas = self.dice.below(4);
                self.edit(|resource| {
                    if let Some(tiflash) = &mut resource.spec.tiflash {
                        tiflash.replicas = replicas;
                    }
                });
            }
            8 => {
                let replicas = 1 + self.dice.below(5);
                self.edit(|resource| resource.spec.pd.as_mut().unwrap().replicas = replicas);
            }
            9 => {
                let replicas = self.dice.below(4);
                self.edit(|resource| resource.spec.tidb.as_mut().unwrap().replicas = replicas);
            }
            10 => self.edit(|resource| resource.spec.paused = !resource.spec.paused),
            11 => self.annotate(if self.ids.is_multiple_of(2) { RESOURCES_PAUSED } else { CLUSTERING_PAUSED }),
            12..=13 => {
                let version = if self.dice.chance(20) { BAD.to_owned() } else { format!("v{}", 1 + self.dice.below(4)) };
                self.edit(|resource| resource.spec.version = Some(version));
            }
            14..=15 => self.kill_some(),
            16 => {
                let pod = self.any_pod();
                self.delete_pod(&pod);
            }
            17..=18 => self.operator_restarts(),
            19 => {
                // Somebody evicts leaders for his own reasons.
                let stores: Vec<u64> = self.pd.stores.keys().copied().collect();
                let place = self.dice.index(stores.len());
                self.pd.evicting.extend(stores.get(place));
            }
            20 => {
                // Somebody lets PD forget those that have left.
                let left = |(id, it): (&u64, &SimulatedStore)| (it.state == StoreState::Tombstone).then_some(*id);
                self.forgotten.extend(self.pd.stores.iter().filter_map(left));
                self.pd.stores.retain(|_, store| store.state != StoreState::Tombstone);
            }
            21 => self.send_away_by_hand(),
            22 => self.ask_for_restart(),
            23..=25 => self.trouble_with_volumes(),
            26 => self.edit(|resource| {
                let suspend = SuspendAction { suspend_stateful_set: true };
                let is_asked = resource.spec.suspend_action.is_some();
                resource.spec.suspend_action = (!is_asked).then_some(suspend);
            }),
            27 => {
                // Somebody changes how many copies there are.
                self.pd.max_replicas = if self.pd.max_replicas == 3 { 1 } else { 3 };
                self.disturbed = self.now;
            }
            _ => {
                let size = self.size(Component::Tikv);
                // Somebody adds pods by hand; the spec still counts.
                if size > 0 && size + 1 < MOST {
                    self.resize(Component::Tikv, size + 1);
                }
            }
        }
    }

    pub(super) fn edit(&mut self, change: impl FnOnce(&mut TidbCluster)) {
        change(&mut self.resource);
        self.resource.metadata.generation = self.resource.metadata.generation.map(|it| it + 1);
    }

    fn annotate(&mut self, key: &str) {
        let annotations = self.resource.metadata.annotations.get_or_insert_default();
        if annotations.remove(key).is_none() {
            annotations.insert(key.into(), "true".into());
        }
    }

    fn any_pod(&mut self) -> String {
        let pods: Vec<String> = self.children.pods.keys().cloned().collect();
        let place = self.dice.index(pods.len());
        pods.get(place).cloned().unwrap_or_default()
    }

    /// Some processes end, and are started again after a while.
    fn kill_some(&mut self) {
        let pods: Vec<String> =
            self.children.pods.values().filter(|pod| pod.process.is_some()).map(|pod| pod.meta.name.clone()).collect();
        for pod in pods {
            if self.dice.chance(15) {
                self.process_ends(&pod);
                self.disturbed = self.now;
                let uid = self.children.pods[pod.as_str()].meta.uid.clone();
                let wait = match self.dice.below(20) {
                    0 => 900,
                    1..=3 => 100,
                    _ => 1 + self.dice.below(5),
                };
                self.after(wait, Event::Starts { pod, uid });
            }
        }
    }

    /// Somebody deletes a store in PD by hand, as long as the copies have a place.
    fn send_away_by_hand(&mut self) {
        let stores: Vec<u64> = self.pd.stores.iter().filter(|(_, it)| it.told() == StoreState::Up).map(|(id, _)| *id).collect();
        let place = self.dice.index(stores.len());
        let Some(id) = stores.get(place) else { return };
        let columns = self.pd.stores[id].columns;
        let places = self.pd.stores.values().filter(|it| it.columns == columns && it.told() == StoreState::Up).count();
        if places > self.pd.least(columns) && self.dice.chance(40) {
            self.pd.stores.get_mut(id).unwrap().state = StoreState::Offline;
            self.disturbed = self.now;
            self.disturbed_by_hand = true;
        }
    }

    fn ask_for_restart(&mut self) {
        let pod = self.any_pod();
        if pod.is_empty() {
            return;
        }
        let (component, _) = Self::place(&pod);
        let key = match component {
            Component::Tikv => keys::EVICT_LEADER,
            Component::Pd => keys::PD_TRANSFER_LEADER,
            _ => return,
        };
        let value = if self.dice.chance(50) { keys::THEN_DELETE_POD } else { keys::THEN_NONE };
        let version = self.fresh().to_string();
        if let Some(pod) = self.children.pods.get_mut(&pod) {
            pod.meta.annotations.insert(key.to_owned(), value.to_owned());
            pod.meta.resource_version = version;
        }
    }

    /// The operator forgets all but its logbook, and does not hear of what it started.
    fn operator_restarts(&mut self) {
        self.facts = Facts::default();
        self.running.clear();
        self.asking.clear();
        self.events.retain(|(_, event)| !matches!(event, Event::Answers { .. } | Event::Reported { .. }));
        for (_, event) in &mut self.events {
            if let Event::Acts { heard, .. } = event {
                *heard = false;
            }
        }
    }

    /// Everybody wants the cluster to run as it says now, and says only what can be.
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
        self.resource.metadata.annotations = None;
        let least = self.pd.max_replicas;
        let (tikv, tiflash) = (least + self.dice.below(4), self.pd.columns + self.dice.below(2));
        let recovers = self.dice.chance(50);
        self.edit(|resource| {
            resource.spec.paused = false;
            resource.spec.suspend_action = None;
            resource.spec.tikv.as_mut().unwrap().recover_failover = recovers;
            resource.spec.version = Some("v9".into());
            resource.spec.tikv.as_mut().unwrap().replicas = tikv;
            if let Some(it) = &mut resource.spec.tiflash {
                it.replicas = tiflash;
            }
        });
        for pod in self.children.pods.values_mut() {
            pod.meta.annotations.clear();
        }
    }

    /// Does what a stalled plan asks a person to do. False when it asks for nothing.
    pub(super) fn help(&mut self, plan: &Plan<Deed>) -> bool {
        plan.waiting.iter().filter(|waiting| waiting.stalled).any(|waiting| self.help_with(waiting))
    }

    fn help_with(&mut self, waiting: &Waiting) -> bool {
        match waiting.reason.as_str() {
            "VolumeInTheWay" => {
                let name =
                    waiting.message.split_whitespace().skip_while(|word| *word != "PersistentVolumeClaim").nth(1).unwrap();
                let name = name.trim_end_matches([',', ':']).to_owned();
                let Some(claim) = self.children.claims.get_mut(&name) else { return false };
                claim.meta.deleting = true;
                true
            }
            "StoreCannotLeave" => {
                let id = waiting.message.split_whitespace().nth(1).and_then(|id| id.parse().ok()).unwrap();
                let held = self.is_held(id);
                let Some(store) = self.pd.stores.get_mut(&id).filter(|it| it.state == StoreState::Offline) else {
                    return false;
                };
                // What was on a volume that was lost cannot stay.
                if held {
                    store.state = StoreState::Up;
                } else {
                    store.destroyed = true;
                }
                true
            }
            "TombstoneInTheWay" | "PDMemberVanished" => {
                let words = waiting.message.split_whitespace().map(|word| word.trim_matches(['(', ')']));
                let pod = words.into_iter().find(|word| self.children.pods.contains_key(word));
                let Some(pod) = pod.map(str::to_owned) else { return false };
                let claims = self.children.claims.values_mut().filter(|it| it.meta.name.ends_with(&format!("-{pod}")));
                claims.for_each(|claim| claim.meta.deleting = true);
                self.delete_pod(&pod);
                true
            }
            _ => false,
        }
    }

    /// A person lets stores be replaced one by one though others do not run: these have a version with which nothing starts. False when
    /// there are none, or it is so already.
    pub(super) fn force(&mut self) -> bool {
        let is_bad = |pod: &PodView| pod.meta.labels.get(REVISION).is_some_and(|image| image.ends_with(BAD));
        let of = |component| self.ordinals(component).into_iter().map(move |ordinal| Self::pod(component, ordinal.get()));
        let bad = of(Component::Tikv).any(|pod| self.children.pods.get(&pod).is_some_and(is_bad));
        let pd = of(Component::Pd).all(|pod| self.children.pods.get(&pod).is_some_and(|it| it.ready && !is_bad(it)));
        let annotations = self.resource.metadata.annotations.get_or_insert_default();
        bad && pd && annotations.insert(keys::FORCE_UPGRADE.into(), "true".into()).is_none()
    }

    /// Whether everything is as the spec says.
    pub(super) fn is_at_rest(&self) -> bool {
        COMPONENTS.into_iter().all(|component| {
            let wanted = self.size(component);
            let image = self.image(component);
            let is_well = |ordinal: u16| {
                let pod = Self::pod(component, ordinal);
                self.children
                    .pods
                    .get(&pod)
                    .is_some_and(|it| it.ready && !it.meta.deleting && it.meta.labels.get(REVISION) == image.as_deref())
            };
            (0..wanted).all(is_well)
        })
    }
}
