//! A small world in which the operator's decisions are carried out: an API server, controllers of sets, kubelets, a PD whose regions
//! really move, people who change their minds, and time.
//!
//! Requests and answers get lost or come late; pods, processes, volumes and the operator die at any moment. Then all that ends, and
//! the cluster must become what is asked for, and stay so.

mod adopting;
mod histories;
mod kubernetes;
mod mishaps;
mod operator;
mod people;
mod policies;
mod refused;
mod scenarios;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::{Component, TidbCluster};
use windlass_core::ordinals::Ordinal;
use windlass_core::views::Children;
use windlass_dice::Dice;

use super::answers::Said;
use super::build::Names;
use super::deeds::{At, Deed, Probe, Server, Task};
use super::facts::{End, Fact, Facts};
use super::simulation::SimulatedPd;

const CLUSTER: &str = "a";
const NAMESPACE: &str = "shop";
const UID: &str = "cluster-uid";
/// More members than any spec here asks for, those in place of failed ones included.
const LARGEST: u16 = 14;
/// The most that a spec asks for.
const MOST: u16 = 7;
/// A version with which nothing starts.
const BAD: &str = "bad";
/// The components that there are.
const COMPONENTS: [Component; 4] = [Component::Pd, Component::Tikv, Component::Tiflash, Component::Tidb];

const NAMES: Names<'static> = Names::new(CLUSTER, NAMESPACE, None);

/// What happens at a time.
#[derive(Debug)]
enum Event {
    /// Somebody answers. What is said was true when it was asked, or is true now.
    Answers {
        probe: Probe,
        sampled: Option<Fact>,
    },
    /// A task reaches whom it is for; the operator hears of it, or not.
    Acts {
        deed: Deed,
        heard: bool,
    },
    /// The operator is told of a task.
    Reported {
        deed: Deed,
        end: End,
    },
    Starts {
        pod: String,
        uid: String,
    },
    Ends {
        pod: String,
        uid: String,
    },
}

struct World {
    dice: Dice,
    now: Timestamp,
    /// Nothing goes wrong any more.
    calm: bool,
    resource: TidbCluster,
    children: Children,
    pd: SimulatedPd,
    /// What is on a volume, by the UID of its claim: a store, or a member.
    held: BTreeMap<String, u64>,
    /// How fast the stores of a pod give away what they have.
    speeds: Vec<u64>,
    events: Vec<(Timestamp, Event)>,
    ids: u64,
    /// When something was lost without the operator's doing.
    disturbed: Timestamp,
    // What the operator has in its memory and in its logbook.
    facts: Facts,
    logbook: Option<LogbookSpec>,
    /// What there was when all objects were as they should be.
    rest: Option<(TidbCluster, Children, Option<LogbookSpec>)>,
    running: Vec<Deed>,
    asking: BTreeSet<String>,
    passes: u64,
    /// How many stores of one component were under way at once, at most.
    most: usize,
    /// Whether failed members are replaced.
    failover: bool,
    /// Whether somebody deleted stores by hand.
    disturbed_by_hand: bool,
    /// Stores that PD was made to forget.
    forgotten: BTreeSet<u64>,
    /// What becomes of volumes when their claims go, by name.
    policies: BTreeMap<String, String>,
    /// Chance of its own for what happens to these, so that they change nothing else in a history.
    policy_dice: Dice,
    /// Volumes that are slow to go, and until when.
    lingering: BTreeMap<String, Timestamp>,
}

fn resource(tikv: u16, tiflash: u16) -> TidbCluster {
    let mut cluster = json!({
        "apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster",
        "metadata": { "name": CLUSTER, "namespace": NAMESPACE, "uid": UID, "generation": 1 },
        "spec": {
            "version": "v1",
            "pd": { "replicas": 3, "requests": { "storage": "1Gi" } },
            "tikv": { "replicas": tikv, "requests": { "storage": "1Gi" }, "evictLeaderTimeout": "2m" },
            "tidb": { "replicas": 1 },
        },
    });
    if tiflash > 0 {
        cluster["spec"]["tiflash"] = json!({
            "replicas": tiflash, "storageClaims": [{ "resources": { "requests": { "storage": "1Gi" } } }],
        });
    }
    serde_json::from_value(cluster).unwrap()
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let now = Timestamp::from_second(1_000_000).unwrap();
        let tiflash = if dice.chance(30) { 1 + dice.below(3) } else { 0 };
        let mut resource = resource(1 + dice.below(5), tiflash);
        let mut policy_dice = Dice::new(!seed);
        resource.spec.enable_pv_reclaim = policy_dice.chance(25).then_some(true);
        let mut pd = SimulatedPd::new(now);
        pd.max_replicas = if dice.chance(80) { 3 } else { 1 };
        pd.columns = dice.below(2).min(tiflash);
        let equal = dice.chance(50);
        let failover = dice.chance(50);
        let speeds = (0..LARGEST).map(|_| if equal { 3 } else { 1 + u64::from(dice.below(6)) }).collect();
        Self {
            dice,
            now,
            calm: false,
            resource,
            children: Children::default(),
            pd,
            held: BTreeMap::new(),
            speeds,
            events: Vec::new(),
            ids: 100,
            disturbed: now,
            facts: Facts::default(),
            logbook: None,
            rest: None,
            running: Vec::new(),
            asking: BTreeSet::new(),
            passes: 0,
            most: 0,
            failover,
            disturbed_by_hand: false,
            forgotten: BTreeSet::new(),
            policies: BTreeMap::new(),
            policy_dice,
            lingering: BTreeMap::new(),
        }
    }

    fn fresh(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// How long something takes.
    fn seconds(&mut self, least: u16, spread: u16) -> u16 {
        if self.calm { least.max(1) } else { least + self.dice.below(spread) }
    }

    fn after(&mut self, seconds: u16, event: Event) {
        let at = self.now.checked_add(SignedDuration::from_secs(i64::from(seconds))).unwrap();
        self.events.push((at, event));
    }

    /// Goes to the next event, or to the time at which the operator looks again, and lets all happen that is due.
    fn advance(&mut self, look_again: Timestamp) {
        let next = self.events.iter().map(|(at, _)| *at).min().map_or(look_again, |at| at.min(look_again));
        // Nothing takes no time at all.
        let least = self.now.checked_add(SignedDuration::from_millis(1)).unwrap();
        self.now = least.max(next);
        self.pd.pass(self.now);
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.events).into_iter().partition(|(at, _)| *at <= self.now);
        self.events = later;
        for (_, event) in due {
            self.happen(event);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Answers { probe, sampled } => {
                let fact = sampled.unwrap_or_else(|| self.sample(&probe));
                self.asking.remove(&probe.target());
                self.facts.learn(fact, self.now);
            }
            Event::Acts { deed, heard } => {
                let end = self.act(&deed);
                if heard {
                    self.happen(Event::Reported { deed, end });
                }
            }
            Event::Reported { deed, end } => {
                self.running.retain(|other| *other != deed);
                self.facts.learn(Fact::Ended { deed: Box::new(deed), end }, self.now);
            }
            Event::Starts { pod, uid } => self.process_starts(&pod, &uid),
            Event::Ends { pod, uid } => self.pod_ends(&pod, &uid),
        }
    }

    fn reaches(&self, server: &Server) -> bool {
        let pod = self.children.pods.get(&server.pod);
        pod.is_some_and(|pod| pod.meta.uid == server.pod_uid && pod.process.as_ref() == Some(&server.process))
    }

    /// What would be answered now.
    fn sample(&self, probe: &Probe) -> Fact {
        match probe {
            Probe::Pd { pd, asked } => {
                let by = pd.servers.iter().find(|server| self.reaches(server));
                let told = by.and_then(|by| Some(Box::new((by.clone(), self.pd.look()?))));
                Fact::Pd { asked: *asked, answer: told.ok_or_else(|| "no leader".to_owned()) }
            }
            Probe::Look { server, asked } => {
                let said = if self.reaches(server) { self.say(server) } else { None };
                Fact::Server {
                    server: Box::new(server.clone()),
                    asked: *asked,
                    answer: said.ok_or_else(|| "refused".to_owned()),
                }
            }
            Probe::Node { server, asked } => {
                let node = BTreeMap::from([("kubernetes.io/hostname".to_owned(), format!("node-of-{}", server.pod))]);
                Fact::Node { server: Box::new(server.clone()), asked: *asked, answer: Ok(node) }
            }
        }
    }

    fn say(&self, server: &Server) -> Option<Said> {
        let on = self.on(&server.pod);
        Some(match server.component {
            Component::Pd => Said::Pd { ready: on.is_some_and(|id| self.pd.members.contains_key(&id)) },
            Component::Tikv => Said::Tikv { leaders: self.pd.stores.get(&on?)?.leaders },
            Component::Tiflash => Said::Tiflash { running: self.pd.stores.contains_key(&on?) },
            _ => Said::Tidb,
        })
    }

    fn silence(probe: &Probe) -> Fact {
        match probe {
            Probe::Pd { asked, .. } => Fact::Pd { asked: *asked, answer: Err("timed out".to_owned()) },
            Probe::Look { server, asked } => {
                Fact::Server { server: Box::new(server.clone()), asked: *asked, answer: Err("timed out".to_owned()) }
            }
            Probe::Node { server, asked } => {
                Fact::Node { server: Box::new(server.clone()), asked: *asked, answer: Err("timed out".to_owned()) }
            }
        }
    }

    /// A part of what PD says cannot be read.
    fn unreadable(&mut self, mut fact: Fact) -> Fact {
        if let Fact::Pd { answer: Ok(told), .. } = &mut fact {
            let (seen, why) = (&mut told.1, "unreadable".to_owned());
            match self.dice.below(7) {
                0 => seen.health = Err(why),
                1 => seen.members = Err(why),
                2 => seen.leader = Err(why),
                3 => seen.config = Err(why),
                4 => seen.tiflash_copies = Err(why),
                5 => seen.stores = Err(why),
                _ => seen.evicting = Err(why),
            }
        }
        fact
    }

    fn ask(&mut self, probe: Probe) {
        if !self.asking.insert(probe.target()) {
            return;
        }
        let wait = if self.calm { 0 } else { self.dice.below(3) };
        let sampled = match self.dice.below(10) {
            0 if !self.calm => Some(Self::silence(&probe)),
            1 if !self.calm => {
                let sampled = self.sample(&probe);
                Some(self.unreadable(sampled))
            }
            0..=5 => Some(self.sample(&probe)),
            _ => None,
        };
        self.after(wait, Event::Answers { probe, sampled });
    }

    /// The operator sends a task. It may never arrive, or arrive and never be heard of.
    fn start(&mut self, deed: Deed) {
        self.running.push(deed.clone());
        let wait = if self.calm { 0 } else { self.dice.below(3) };
        let lost = || End::Unknown { why: "connection reset".to_owned() };
        match if self.calm { 9 } else { self.dice.below(12) } {
            0 => self.after(wait, Event::Reported { deed, end: lost() }),
            1 => {
                // It takes effect, perhaps after the operator gave up.
                let later = wait + self.dice.below(4);
                self.after(later, Event::Acts { deed: deed.clone(), heard: false });
                self.after(wait, Event::Reported { deed, end: lost() });
            }
            _ => self.after(wait, Event::Acts { deed, heard: true }),
        }
    }

    fn act(&mut self, deed: &Deed) -> End {
        let At::Pd(pd) = &deed.at else { return End::Failed { why: "nobody there".to_owned() } };
        if !pd.servers.iter().any(|server| self.reaches(server)) {
            return End::Failed { why: "refused".to_owned() };
        }
        let before = self.pd.complaints.len();
        let end = self.pd.act(pd.cluster, &deed.task);
        self.judge_deed(deed, before);
        end
    }

    /// What is on the volume of a pod.
    fn on(&self, pod: &str) -> Option<u64> {
        let of_pod = format!("-{pod}");
        let claim = self.children.claims.values().find(|claim| claim.meta.name.ends_with(&of_pod))?;
        self.held.get(&claim.meta.uid).copied()
    }

    /// The component and the ordinal of a pod.
    fn place(pod: &str) -> (Component, Ordinal) {
        COMPONENTS.into_iter().find_map(|it| Some((it, Ordinal::of_pod(&NAMES.set(it), pod)?))).unwrap()
    }

    fn pod(component: Component, ordinal: u16) -> String {
        NAMES.pod(component, Ordinal::new(ordinal))
    }

    /// Whether a task begins to send a store away.
    fn sends_away(task: &Task) -> bool {
        matches!(task, Task::DeleteStore { .. } | Task::EvictLeaders { .. })
    }
}
