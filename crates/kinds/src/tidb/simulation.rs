//! A PD and its stores, as far as decisions depend on them: who is a member, who leads, which store holds how much, and how regions move.
//! For tests: the world of this crate and the crash harness act on it.
//!
//! It judges what is done to it by what is true in it, and complains: of a majority that is lost by our doing, and of copies that have
//! no place any more. It knows nothing of the operator.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::answers::{PdConfig, PdMember, PdSeen, Store, StoreState, Stores};
use super::deeds::Task;
use super::facts::End;

/// After so many seconds without a sign, a store is told as disconnected.
const DISCONNECTED: u32 = 20;
/// After so many, as down.
const DOWN: u32 = 60;
/// So many regions a store has when they are spread.
const SPREAD: u64 = 12;

/// A member of PD.
#[derive(Clone, Debug)]
pub struct SimulatedMember {
    /// Its name.
    pub name: String,
    /// Whether it runs.
    pub alive: bool,
}

/// A store.
#[derive(Clone, Debug)]
pub struct SimulatedStore {
    /// Its address.
    pub address: String,
    /// Whether it holds columns.
    pub columns: bool,
    /// Whether it runs.
    pub alive: bool,
    /// Up, Offline or Tombstone; the rest follows from its silence.
    pub state: StoreState,
    /// Whether somebody said that it will never come back: its address is free then.
    pub destroyed: bool,
    /// For how many seconds it was silent.
    pub silent: u32,
    /// How many regions it holds.
    pub regions: u64,
    /// How many of them it leads.
    pub leaders: u64,
    /// How many regions it gives away in a second.
    pub speed: u64,
    /// When it was started last.
    pub started: Timestamp,
    /// When it was heard last.
    pub heard: Timestamp,
}

impl SimulatedStore {
    /// How PD tells of it.
    pub fn told(&self) -> StoreState {
        match (self.state, self.silent) {
            (StoreState::Up, DOWN..) => StoreState::Down,
            (StoreState::Up, DISCONNECTED..) => StoreState::Disconnected,
            (state, _) => state,
        }
    }
}

/// PD and its stores.
#[derive(Clone, Debug)]
pub struct SimulatedPd {
    /// The id of the cluster; none before it was founded.
    pub cluster: Option<u64>,
    /// The members, by id.
    pub members: BTreeMap<u64, SimulatedMember>,
    /// Who leads.
    pub leader: Option<u64>,
    /// The stores, by id.
    pub stores: BTreeMap<u64, SimulatedStore>,
    /// The stores whose leaders are evicted.
    pub evicting: BTreeSet<u64>,
    /// How many copies there are of everything.
    pub max_replicas: u16,
    /// How many of them are columns.
    pub columns: u16,
    /// Whether copies are placed by rules.
    pub placement_rules: bool,
    /// The labels by which copies are placed apart.
    pub location_labels: Vec<String>,
    /// The labels of stores, by id.
    pub places: BTreeMap<u64, BTreeMap<String, String>>,
    /// What went wrong.
    pub complaints: Vec<String>,
    now: Timestamp,
    /// Up to when regions and leaders have moved.
    ticked: Timestamp,
    /// How often each came with nothing.
    born: BTreeMap<String, u64>,
}

impl SimulatedPd {
    /// A PD that was not founded yet.
    pub fn new(now: Timestamp) -> Self {
        Self {
            cluster: None,
            members: BTreeMap::new(),
            leader: None,
            stores: BTreeMap::new(),
            evicting: BTreeSet::new(),
            max_replicas: 3,
            columns: 0,
            placement_rules: false,
            location_labels: Vec::new(),
            places: BTreeMap::new(),
            complaints: Vec::new(),
            now,
            ticked: now,
            born: BTreeMap::new(),
        }
    }

    /// An id that nobody had. It depends on who comes and how often, and not on who came before: so two plays can be compared.
    fn fresh(&mut self, who: &str) -> u64 {
        let times = self.born.entry(who.to_owned()).or_default();
        *times += 1;
        // FNV-1a.
        let hash =
            who.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        hash % 10_000_000 * 1_000 + *times
    }

    /// Whether a majority runs.
    pub fn serves(&self) -> bool {
        let alive = self.members.values().filter(|member| member.alive).count();
        !self.members.is_empty() && alive * 2 > self.members.len()
    }

    fn elect(&mut self) {
        let leads = self.leader.and_then(|id| self.members.get(&id)).is_some_and(|member| member.alive);
        if !self.serves() {
            self.leader = None;
        } else if !leads {
            self.leader = self.members.iter().find(|(_, member)| member.alive).map(|(id, _)| *id);
        }
    }

    /// A member starts: with what it was, or with nothing. Gives what it is now, if it is one.
    pub fn start_member(&mut self, name: &str, was: Option<u64>) -> Option<u64> {
        let id = match was {
            // Who was removed may not come back.
            Some(id) => self.members.contains_key(&id).then_some(id)?,
            None if self.cluster.is_none() => {
                self.cluster = Some(self.fresh("cluster"));
                self.fresh(name)
            }
            None if self.serves() && self.members.values().all(|member| member.alive) => self.fresh(name),
            None => return None,
        };
        self.members.entry(id).or_insert(SimulatedMember { name: name.to_owned(), alive: true }).alive = true;
        self.elect();
        Some(id)
    }

    /// A member ends.
    pub fn stop_member(&mut self, id: u64) {
        if let Some(member) = self.members.get_mut(&id) {
            member.alive = false;
        }
        self.elect();
    }

    /// A store starts: with what it was, or with nothing. Gives what it is now, if PD takes it.
    pub fn start_store(&mut self, address: &str, columns: bool, speed: u64, was: Option<u64>) -> Option<u64> {
        if !self.serves() {
            return None;
        }
        if let Some(store) = was.and_then(|id| self.stores.get_mut(&id)) {
            if store.state == StoreState::Tombstone {
                return None;
            }
            (store.alive, store.silent, store.started, store.heard) = (true, 0, self.now, self.now);
            return was;
        }
        let holds = |it: &SimulatedStore| it.state != StoreState::Tombstone && !it.destroyed;
        let taken = self.stores.values().any(|it| it.address == address && holds(it));
        if taken || (columns && !self.placement_rules) {
            return None;
        }
        // One that PD has forgotten comes back as what it was.
        let id = was.unwrap_or_else(|| self.fresh(address));
        let first = !self.stores.values().any(|it| it.state != StoreState::Tombstone && !it.columns);
        let store = SimulatedStore {
            address: address.to_owned(),
            columns,
            alive: true,
            state: StoreState::Up,
            destroyed: false,
            silent: 0,
            regions: if first { SPREAD } else { 0 },
            leaders: 0,
            speed,
            started: self.now,
            heard: self.now,
        };
        self.stores.insert(id, store);
        Some(id)
    }

    /// A store ends.
    pub fn stop_store(&mut self, id: u64) {
        if let Some(store) = self.stores.get_mut(&id) {
            store.alive = false;
            store.leaders = 0;
        }
    }

    /// How many stores of a sort are up and stay.
    pub fn up(&self, columns: bool) -> usize {
        self.stores.values().filter(|it| it.columns == columns && it.told() == StoreState::Up && it.alive).count()
    }

    /// How many stores of a sort must stay.
    pub fn least(&self, columns: bool) -> usize {
        usize::from(if columns { self.columns } else { self.max_replicas })
    }

    /// Time goes on, second by second: regions and leaders move, and the silent become silent for longer.
    pub fn pass(&mut self, to: Timestamp) {
        loop {
            let next = self.ticked.checked_add(jiff::SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX);
            if next > to {
                break;
            }
            (self.ticked, self.now) = (next, next);
            self.second();
        }
        self.now = to;
    }

    fn second(&mut self) {
        let serves = self.serves();
        let room = [self.up(false) >= self.least(false), self.up(true) >= self.least(true)];
        let others = |id: u64, stores: &BTreeMap<u64, SimulatedStore>| {
            stores.iter().any(|(other, it)| *other != id && it.alive && !it.columns && it.state == StoreState::Up)
        };
        let ids: Vec<u64> = self.stores.keys().copied().collect();
        for id in ids {
            let has_others = others(id, &self.stores);
            let evicted = self.evicting.contains(&id);
            let now = self.now;
            let Some(store) = self.stores.get_mut(&id) else { continue };
            if store.state == StoreState::Tombstone {
                continue;
            }
            if store.alive {
                (store.silent, store.heard) = (0, now);
            } else {
                store.silent = store.silent.saturating_add(1);
            }
            match store.state {
                StoreState::Offline if serves && room[usize::from(store.columns)] => {
                    store.regions = store.regions.saturating_sub(store.speed);
                    store.leaders = store.leaders.min(store.regions);
                    if store.regions == 0 {
                        store.state = StoreState::Tombstone;
                        store.leaders = 0;
                    }
                }
                StoreState::Up if store.alive && serves => store.regions = (store.regions + 2).min(SPREAD),
                _ => {}
            }
            let wanted = if store.columns || evicted || !store.alive { 0 } else { store.regions / 3 };
            if store.leaders > wanted && (has_others || !store.alive) {
                store.leaders -= 1;
            } else if store.leaders < wanted {
                store.leaders += 1;
            }
        }
    }

    /// What one round at PD tells; nothing when nobody serves.
    pub fn look(&self) -> Option<PdSeen> {
        if !self.serves() {
            return None;
        }
        let members = self.members.iter();
        let told = |(id, store): (&u64, &SimulatedStore)| {
            let mut labels = self.places.get(id).cloned().unwrap_or_default();
            labels.extend(store.columns.then(|| ("engine".to_owned(), "tiflash".to_owned())));
            let store = Store {
                id: *id,
                address: store.address.clone(),
                state: store.told(),
                labels,
                leaders: store.leaders,
                regions: store.regions,
                started: Some(store.started),
                heard: Some(store.heard),
            };
            (*id, store)
        };
        let Self { max_replicas, placement_rules, .. } = *self;
        let config = PdConfig { max_replicas, location_labels: self.location_labels.clone(), placement_rules };
        let stores = if self.stores.is_empty() {
            Stores::NotBootstrapped
        } else {
            Stores::Listed(self.stores.iter().map(told).collect())
        };
        Some(PdSeen {
            cluster: self.cluster?,
            health: Ok(members.clone().map(|(id, member)| (*id, member.alive)).collect()),
            members: Ok(members
                .map(|(id, member)| PdMember { id: *id, name: member.name.clone(), client_url: String::new() })
                .collect()),
            leader: Ok(self.leader),
            config: Ok(config),
            tiflash_copies: Ok(self.columns),
            stores: Ok(stores),
            evicting: Ok(self.evicting.clone()),
        })
    }

    /// Does what is asked. What must not be done is done as well, and complained of.
    pub fn act(&mut self, cluster: Option<u64>, task: &Task) -> End {
        let failed = |why: &str| End::Failed { why: why.to_owned() };
        if !self.serves() {
            return failed("no leader");
        }
        if cluster.is_none() || cluster != self.cluster {
            return failed("another cluster");
        }
        match task {
            Task::EvictLeaders { store } => drop(self.evicting.insert(*store)),
            Task::StopEvicting { store } => drop(self.evicting.remove(store)),
            Task::DeleteStore { store, address } => return self.delete_store(*store, address),
            Task::RestoreStore { store, address } => match self.stores.get_mut(store) {
                Some(it) if it.address == *address && it.state != StoreState::Tombstone => it.state = StoreState::Up,
                _ => return failed("it has left"),
            },
            Task::TransferPdLeader { to } => {
                let Some((id, _)) = self.members.iter().find(|(_, it)| it.name == *to && it.alive) else {
                    return failed("no such member");
                };
                self.leader = Some(*id);
            }
            Task::DeletePdMember { id, name } => return self.delete_member(*id, name),
            Task::EnablePlacementRules => self.placement_rules = true,
            Task::SetStoreLabels { store, labels, .. } => self.places.entry(*store).or_default().extend(labels.clone()),
            Task::ResignTiCdcOwner | Task::DrainCapture { .. } | Task::PumpOffline { .. } => {
                return failed("PD knows nothing of it");
            }
        }
        End::Done
    }

    fn delete_store(&mut self, id: u64, address: &str) -> End {
        let Some(store) = self.stores.get(&id) else { return End::Done };
        if store.state != StoreState::Up {
            return End::Done;
        }
        if store.address != address {
            return End::Failed { why: "another address".to_owned() };
        }
        let columns = store.columns;
        let serves = store.told() == StoreState::Up && store.alive;
        let rest = self.up(columns) - usize::from(serves);
        if rest < self.least(columns) {
            let least = self.least(columns);
            self.complaints.push(format!("store {id} is sent away, {rest} stay and {least} must"));
        }
        if let Some(store) = self.stores.get_mut(&id) {
            store.state = StoreState::Offline;
        }
        End::Done
    }

    fn delete_member(&mut self, id: u64, name: &str) -> End {
        match self.members.get(&id) {
            None => return End::Done,
            Some(member) if member.name != name => return End::Failed { why: "another name".to_owned() },
            Some(_) => {}
        }
        self.members.remove(&id);
        if !self.serves() {
            self.complaints.push(format!("member {id} was deleted, and the rest has no majority"));
        }
        self.elect();
        End::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn founded(stores: u16) -> SimulatedPd {
        let mut pd = SimulatedPd::new(after(0));
        pd.start_member("a-pd-0", None).unwrap();
        for number in 0..stores {
            pd.start_store(&format!("a-tikv-{number}:1"), false, 4, None).unwrap();
        }
        pd.pass(after(30));
        pd
    }

    #[test]
    fn a_store_that_is_sent_away_empties_and_leaves() {
        let mut pd = founded(4);
        let cluster = pd.cluster;
        let (id, address) = pd.stores.iter().next_back().map(|(id, it)| (*id, it.address.clone())).unwrap();
        assert_eq!(pd.act(cluster, &Task::DeleteStore { store: id, address }), End::Done);
        assert_eq!(pd.stores[&id].told(), StoreState::Offline);
        pd.pass(after(40));
        assert_eq!(pd.stores[&id].told(), StoreState::Tombstone);
        assert!(pd.complaints.is_empty());
    }

    #[test]
    fn a_store_without_which_copies_have_no_place_never_leaves() {
        let mut pd = founded(3);
        let cluster = pd.cluster;
        let (id, address) = pd.stores.iter().next_back().map(|(id, it)| (*id, it.address.clone())).unwrap();
        pd.act(cluster, &Task::DeleteStore { store: id, address });
        pd.pass(after(600));
        assert_eq!(pd.stores[&id].told(), StoreState::Offline);
        assert_eq!(pd.complaints.len(), 1);
    }

    #[test]
    fn an_address_belongs_to_one_store_until_that_has_left() {
        let mut pd = founded(4);
        let (id, address) = pd.stores.iter().next_back().map(|(id, it)| (*id, it.address.clone())).unwrap();
        assert_eq!(pd.start_store(&address, false, 1, None), None);
        pd.stores.get_mut(&id).unwrap().state = StoreState::Tombstone;
        assert_eq!(pd.start_store(&address, false, 1, Some(id)), None);
        assert!(pd.start_store(&address, false, 1, None).is_some());
    }
}
