//! What PD and the servers said. An answer is bound to the pod and the process that gave it, and has an age.
//!
//! What was not heard is not known. An answer that was asked for before a task about the same member ended tells of what was then,
//! and does not count for that member ([`Facts::is_settled`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_core::views::{Children, PodView};

use super::answers::{PdSeen, Read, Said, StoreState, Stores};
use super::deeds::{Deed, Server, Task};

/// The longest time between two attempts of the same task.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A longer silence than this ends what was known to last: nobody saw whether it did.
const GAP: Duration = Duration::from_secs(30);

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// What PD said.
    Pd {
        /// When it was asked, from the probe.
        asked: Timestamp,
        /// The member that answered, and what it said; or why none did.
        answer: Read<Box<(Server, PdSeen)>>,
    },
    /// What a server said of itself.
    Server {
        /// Which one.
        server: Box<Server>,
        /// When it was asked, from the probe.
        asked: Timestamp,
        /// What it said; or why it did not.
        answer: Read<Said>,
    },
    /// The labels of the node that a server's pod is on.
    Node {
        /// Which server.
        server: Box<Server>,
        /// When it was asked, from the probe.
        asked: Timestamp,
        /// The labels; or why they are not known.
        answer: Read<BTreeMap<String, String>>,
    },
    /// How a task ended.
    Ended {
        /// Which one.
        deed: Box<Deed>,
        /// How.
        end: End,
    },
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done,
    /// It was understood, and so many tables are left.
    Drains {
        /// How many.
        left: u64,
    },
    /// It was not done, and it was said why.
    Failed {
        /// What was said.
        why: String,
    },
    /// Nobody knows whether it was done: the answer did not come.
    Unknown {
        /// What went wrong.
        why: String,
    },
}

/// What is known of PD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdFacts {
    /// The member that answered.
    pub by: Option<Server>,
    /// What it said last.
    pub seen: Option<PdSeen>,
    /// When what it said was asked for.
    pub asked: Timestamp,
    /// When it was asked last, answered or not.
    pub tried: Timestamp,
    /// Why it did not answer since then, if it did not, and how often in a row.
    pub silent: Option<(String, u32)>,
    /// Since when each store and member is as it is.
    pub since: BTreeMap<Of, (Kept, Timestamp)>,
}

/// Something of PD that lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// A store, by id.
    Store(u64),
    /// A member, by id.
    Member(u64),
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A store's state.
    State(StoreState),
    /// A member's health.
    Healthy(bool),
}

/// What is known of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The pod that was asked.
    pub pod_uid: String,
    /// The process that was asked.
    pub process: String,
    /// What it said last; none while it is silent.
    pub said: Option<Said>,
    /// When what it said was asked for.
    pub asked: Timestamp,
    /// Since when it answers, or does not.
    pub since: Timestamp,
    /// Why it does not answer, if it does not, and how often in a row.
    pub silent: Option<(String, u32)>,
}

/// A task that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which one.
    pub task: Task,
    /// What was said.
    pub why: String,
    /// How often in a row.
    pub times: u32,
    /// When.
    pub at: Timestamp,
}

impl Failed {
    /// When it is tried again: soon at first, and then less and less often.
    pub fn again(&self) -> Timestamp {
        let wait = Duration::from_millis(500).saturating_mul(2_u32.saturating_pow(self.times.min(10)));
        after(self.at, wait.min(LONGEST_WAIT))
    }
}

/// A task that ended otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Which one.
    pub task: Task,
    /// How many tables it left, where it is of that sort.
    pub left: Option<u64>,
    /// When.
    pub at: Timestamp,
}

/// All that is known of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// What PD said.
    pub pd: Option<PdFacts>,
    /// What servers said, by pod.
    servers: BTreeMap<String, ServerFacts>,
    /// The labels of the nodes of pods, by the UID of the pod, and when they were asked for. A pod stays where it is.
    nodes: BTreeMap<String, (Timestamp, Read<BTreeMap<String, String>>)>,
    /// When the last task about a member ended.
    touched: BTreeMap<String, Timestamp>,
    /// The task about a member that failed last. It is forgotten when one succeeds.
    failures: BTreeMap<String, Failed>,
    /// The task about a member that was done last.
    done: BTreeMap<String, Ended>,
    /// The pods that were there when it was looked last.
    pods: BTreeSet<String>,
    /// Pods that are gone, and how many answers of PD have to come before one was surely asked for since.
    gone: BTreeMap<String, u8>,
}

/// One answer may have been under way when a pod was seen to be gone. PD is not asked twice at once: so the next one was not.
const ANSWERS: u8 = 2;

impl Facts {
    /// Takes in what came.
    pub fn learn(&mut self, fact: Fact, now: Timestamp) {
        match fact {
            Fact::Pd { asked, answer } => self.hear_pd(asked, answer, now),
            Fact::Server { server, asked, answer } => self.hear_server(*server, asked, answer, now),
            Fact::Node { server, asked, answer } => drop(self.nodes.insert(server.pod_uid, (asked, answer))),
            Fact::Ended { deed, end } => self.end(*deed, end, now),
        }
    }

    fn hear_pd(&mut self, asked: Timestamp, answer: Read<Box<(Server, PdSeen)>>, now: Timestamp) {
        let fresh = PdFacts { by: None, seen: None, asked, tried: asked, silent: None, since: BTreeMap::new() };
        let pd = self.pd.get_or_insert(fresh);
        match answer {
            Ok(told) => {
                let (by, seen) = *told;
                let lasts =
                    pd.seen.as_ref().is_some_and(|before| before.cluster == seen.cluster) && asked <= after(pd.asked, GAP);
                let before = if lasts { std::mem::take(&mut pd.since) } else { BTreeMap::new() };
                pd.since = since(&seen, &before, now);
                (pd.by, pd.seen, pd.asked, pd.silent) = (Some(by), Some(seen), asked, None);
                self.gone.values_mut().for_each(|answers| *answers -= 1);
                self.gone.retain(|_, answers| *answers > 0);
            }
            Err(why) => {
                let times = pd.silent.take().map_or(1, |(_, times)| times.saturating_add(1));
                pd.silent = Some((why, times));
            }
        }
        pd.tried = asked;
    }

    fn hear_server(&mut self, server: Server, asked: Timestamp, answer: Read<Said>, now: Timestamp) {
        let Server { pod, pod_uid, process, .. } = server;
        let fresh = ServerFacts { pod_uid, process, said: None, asked, since: now, silent: None };
        let known = self.servers.entry(pod).or_insert_with(|| fresh.clone());
        if (&known.pod_uid, &known.process) != (&fresh.pod_uid, &fresh.process) || asked > after(known.asked, GAP) {
            *known = fresh;
        }
        known.asked = asked;
        match answer {
            Ok(said) => {
                if known.silent.take().is_some() {
                    known.since = now;
                }
                known.said = Some(said);
            }
            Err(why) => {
                let times = known.silent.take().map_or(1, |(_, times)| times.saturating_add(1));
                if known.said.take().is_some() {
                    known.since = now;
                }
                known.silent = Some((why, times));
            }
        }
    }

    fn end(&mut self, deed: Deed, end: End, now: Timestamp) {
        let Deed { about, task, .. } = deed;
        self.touched.insert(about.clone(), now);
        let before = self.failures.remove(&about);
        let left = match end {
            End::Done => None,
            End::Drains { left } => Some(left),
            End::Failed { why } | End::Unknown { why } => {
                let times = before.filter(|it| it.task == task).map_or(1, |it| it.times.saturating_add(1));
                self.failures.insert(about, Failed { task, why, times, at: now });
                return;
            }
        };
        self.done.insert(about, Ended { task, left, at: now });
    }

    /// Drops what came of pods and processes that are not there any more.
    pub fn forget(&mut self, children: &Children) {
        let is_there = |pod: &str, uid: &str, process: &str| {
            children.pods.get(pod).is_some_and(|it| it.meta.uid == uid && it.process.as_deref() == Some(process))
        };
        self.servers.retain(|pod, facts| is_there(pod, &facts.pod_uid, &facts.process));
        if let Some(pd) = &mut self.pd
            && pd.by.as_ref().is_some_and(|by| !is_there(&by.pod, &by.pod_uid, &by.process))
        {
            (pd.by, pd.seen) = (None, None);
        }
        self.nodes.retain(|uid, _| children.pods.values().any(|pod| pod.meta.uid == *uid));
        let gone = self.pods.iter().filter(|pod| !children.pods.contains_key(pod));
        self.gone.extend(gone.map(|pod| (pod.clone(), ANSWERS)));
        self.pods = children.pods.keys().cloned().collect();
    }

    /// Whether PD may have been asked last while a pod was there that is gone now: what it was by then, nobody knows yet.
    pub fn is_just_gone(&self, pod: &str) -> bool {
        self.gone.contains_key(pod)
    }

    /// What is known of this very process.
    pub fn of(&self, pod: &PodView) -> Option<&ServerFacts> {
        let facts = self.servers.get(&pod.meta.name)?;
        (facts.pod_uid == pod.meta.uid && Some(&facts.process) == pod.process.as_ref()).then_some(facts)
    }

    /// The labels of the node that a pod is on, or why they are not known, and when they were asked for.
    pub fn node(&self, pod: &PodView) -> Option<&(Timestamp, Read<BTreeMap<String, String>>)> {
        self.nodes.get(&pod.meta.uid)
    }

    /// Whether an answer that was asked for at this time tells of a member as it is after the last task about it.
    pub fn is_settled(&self, about: &str, asked: Timestamp) -> bool {
        self.touched.get(about).is_none_or(|touched| asked > *touched)
    }

    /// Whether any task ended after an answer was asked for.
    pub fn touched_since(&self, asked: Timestamp) -> bool {
        self.touched.values().any(|touched| asked <= *touched)
    }

    /// The task about a member that failed last.
    pub fn failed(&self, about: &str) -> Option<&Failed> {
        self.failures.get(about)
    }

    /// All tasks that failed last.
    pub fn failures(&self) -> impl Iterator<Item = (&String, &Failed)> {
        self.failures.iter()
    }

    /// The task about a member that was done last.
    pub fn done(&self, about: &str) -> Option<&Ended> {
        self.done.get(about)
    }
}

/// Since when everything is as it is.
fn since(seen: &PdSeen, before: &BTreeMap<Of, (Kept, Timestamp)>, now: Timestamp) -> BTreeMap<Of, (Kept, Timestamp)> {
    let stores = match &seen.stores {
        Ok(Stores::Listed(stores)) => Some(stores),
        _ => None,
    };
    let stores = stores.into_iter().flatten().map(|(id, store)| (Of::Store(*id), Kept::State(store.state)));
    let members = seen.health.iter().flatten().map(|(id, healthy)| (Of::Member(*id), Kept::Healthy(*healthy)));
    let dated = |(of, kept): (Of, Kept)| {
        let at = before.get(&of).filter(|(was, _)| *was == kept).map_or(now, |(_, at)| *at);
        (of, (kept, at))
    };
    stores.chain(members).map(dated).collect()
}

/// A moment after another one.
pub(super) fn after(at: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| at.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}

impl Fact {
    /// What it is about and what came of it, for metrics.
    pub fn named(&self) -> (&'static str, &'static str) {
        match self {
            Self::Pd { answer: Ok(_), .. } => ("Pd", "answered"),
            Self::Pd { answer: Err(_), .. } => ("Pd", "unknown"),
            Self::Server { answer: Ok(said), .. } => (said.about(), "answered"),
            Self::Server { answer: Err(_), .. } => ("Look", "unknown"),
            Self::Node { answer: Ok(_), .. } => ("Node", "answered"),
            Self::Node { answer: Err(_), .. } => ("Node", "unknown"),
            Self::Ended { deed, end } => {
                let how = match end {
                    End::Done => "done",
                    End::Drains { .. } => "running",
                    End::Failed { .. } => "failed",
                    End::Unknown { .. } => "unknown",
                };
                ((&deed.task).into(), how)
            }
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pd { answer: Ok(_), .. } => write!(f, "PD answered"),
            Self::Pd { answer: Err(why), .. } => write!(f, "PD did not answer: {why}"),
            Self::Server { server, answer: Ok(_), .. } => write!(f, "{} answered", server.pod),
            Self::Server { server, answer: Err(why), .. } => write!(f, "{} did not answer: {why}", server.pod),
            Self::Node { server, answer: Ok(_), .. } => write!(f, "the node of {} is known", server.pod),
            Self::Node { server, answer: Err(why), .. } => write!(f, "the node of {} is not known: {why}", server.pod),
            Self::Ended { deed, end: End::Done } => write!(f, "{deed}: done"),
            Self::Ended { deed, end: End::Drains { left } } => write!(f, "{deed}: {left} tables are left"),
            Self::Ended { deed, end: End::Failed { why } } => write!(f, "{deed} failed: {why}"),
            Self::Ended { deed, end: End::Unknown { why } } => write!(f, "{deed}: nobody knows what came of it: {why}"),
        }
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
