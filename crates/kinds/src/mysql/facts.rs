//! What instances said. An answer is bound to the pod and the process that gave it; after a restart nothing is known.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use windlass_core::shelf::Shelf;
use windlass_core::views::{Children, PodView};

use super::deeds::{Place, Task};
use super::instance::Known;

/// The longest time between two attempts of the same task.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What came from an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// Which one.
    pub place: Place,
    /// What.
    pub news: News,
}

/// What can come from an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It told everything.
    Seen(Box<Known>),
    /// It did not.
    Silent {
        /// How.
        how: Silence,
        /// Why, as far as that is known.
        why: String,
    },
    /// It was watched, and that ended.
    Gone {
        /// How.
        how: Silence,
        /// How long ago it was heard last.
        quiet: Duration,
        /// Why, as far as that is known.
        why: String,
    },
    /// How a task ended.
    Ended {
        /// Which one.
        task: Task,
        /// How.
        end: End,
    },
    /// What the Secret of the server elsewhere says.
    Source(SourceRead),
}

/// What the Secret of the server elsewhere says, without what nobody needs to know to decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRead {
    /// The Secret.
    pub secret: String,
    /// What came of reading it.
    pub read: Result<SourceAt, Unreadable>,
    /// The authority by which the operator proves to agents who it is, where it has one.
    pub authority: Option<String>,
}

/// Where the server elsewhere is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceAt {
    /// The version of the Secret.
    pub version: String,
    /// The host.
    pub host: String,
}

/// Why nobody knows where the server elsewhere is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The Secret, or something in it, is missing; it says what.
    Missing(String),
    /// It could not be read now.
    Unknown(String),
}

/// How an instance does not answer. Only the first is a sign; the others are the lack of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Its server closed the connection, or lets nobody connect: the process is gone.
    Closed,
    /// Its node takes connections, and its server greets nobody.
    Hangs,
    /// No answer comes back: it, its node or the network.
    Unreachable,
    /// It answered, but not what was asked.
    Refused,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "its server is gone",
            Self::Hangs => "its server hangs",
            Self::Unreachable => "no answer comes back from it",
            Self::Refused => "it refuses",
        })
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done,
    /// It was not done, and the server said why.
    Failed {
        /// What it said.
        why: String,
    },
    /// Nobody knows whether it was done: the connection ended before the answer.
    Unknown {
        /// What went wrong.
        why: String,
    },
    /// It still runs, and nobody waits for it any longer.
    StillRunning,
}

/// What is known of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFacts {
    /// The pod that answered.
    pub pod_uid: String,
    /// The process that answered.
    pub process: String,
    /// What it said last; nothing after a task on it ended, for what it said before tells of what was then.
    pub known: Option<Known>,
    /// When it was asked last.
    pub asked: Timestamp,
    /// When it answered last; when it never did, when it was asked first.
    pub heard: Timestamp,
    /// How it was silent since then, if it was.
    pub silent: Option<Silence>,
    /// The task that failed last. It is forgotten when a task succeeds.
    pub failure: Option<Failed>,
    /// The task that was done last, and when.
    pub done: Option<(Task, Timestamp)>,
    /// What was put beside its data directory last.
    pub saved: Option<String>,
    /// Whether its data is being replaced although nobody waits for it any longer. The end of it will be heard of.
    pub copying: bool,
}

/// A task that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which one.
    pub task: Task,
    /// What the server said.
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

/// What is known of all instances, by the names of their pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    all: Shelf<InstanceFacts>,
    /// What is known of the server elsewhere. It is not bound to a process: a copy of that server ends the one that it is made for.
    pub outside: OutsideFacts,
}

/// What is known of the server elsewhere that a cluster follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsideFacts {
    /// What its Secret says, and when that was read.
    pub source: Option<(SourceRead, Timestamp)>,
    /// The version of the Secret with which an instance was last told to follow, by pod.
    pub told: Option<(String, String)>,
    /// The last copy that failed. It is forgotten when one succeeds.
    pub failure: Option<Failed>,
}

impl OutsideFacts {
    fn learn(&mut self, pod: &str, task: &Task, end: &End, now: Timestamp) {
        match (task, end) {
            (Task::CloneFromOutside { .. }, End::Failed { why } | End::Unknown { why }) => {
                let times = self.failure.take().filter(|it| it.task == *task).map_or(1, |it| it.times.saturating_add(1));
                self.failure = Some(Failed { task: task.clone(), why: why.clone(), times, at: now });
            }
            (Task::CloneFromOutside { .. }, End::Done) => self.failure = None,
            (Task::FollowOutside { outside }, End::Done) => self.told = Some((pod.to_owned(), outside.version.clone())),
            _ => {}
        }
    }
}

impl Facts {
    /// Takes in what came from an instance.
    pub fn learn(&mut self, fact: Fact, now: Timestamp) {
        let Place { pod, pod_uid, process, .. } = fact.place;
        match &fact.news {
            News::Source(source) => return self.outside.source = Some((source.clone(), now)),
            News::Ended { task, end } => self.outside.learn(&pod, task, end, now),
            _ => {}
        }
        let fresh = InstanceFacts {
            pod_uid,
            process,
            known: None,
            asked: now,
            heard: now,
            silent: None,
            failure: None,
            done: None,
            saved: None,
            copying: false,
        };
        let known = self.all.get_or_insert_with(pod, || fresh.clone());
        if (&known.pod_uid, &known.process) != (&fresh.pod_uid, &fresh.process) {
            *known = fresh;
        }
        match fact.news {
            News::Seen(seen) => {
                (known.known, known.silent) = (Some(*seen), None);
                (known.asked, known.heard) = (now, now);
            }
            News::Silent { how, .. } => (known.known, known.silent, known.asked) = (None, Some(how), now),
            // It is asked at once: what it says now decides.
            News::Gone { how, quiet, .. } => {
                (known.known, known.silent) = (None, Some(how));
                known.heard = known.heard.max(before(now, quiet));
            }
            News::Source(_) => {}
            News::Ended { task, end } => {
                known.known = None;
                if matches!(task, Task::Clone { .. } | Task::Replace { .. }) {
                    known.copying = end == End::StillRunning;
                    // That was of the server before; the next one has another identity, perhaps in the same process.
                    known.saved = None;
                }
                known.done = (end == End::Done).then(|| (task.clone(), now));
                known.failure = match (task, end) {
                    (Task::Save { set }, End::Done) => {
                        known.saved = Some(set);
                        None
                    }
                    // What is known of a copy from elsewhere outlives the process that it was made for.
                    (task, End::Failed { why }) if !matches!(task, Task::CloneFromOutside { .. }) => {
                        let times =
                            known.failure.take().filter(|it| it.task == task).map_or(1, |it| it.times.saturating_add(1));
                        Some(Failed { task, why, times, at: now })
                    }
                    (_, End::Done | End::Unknown { .. } | End::StillRunning | End::Failed { .. }) => None,
                };
            }
        }
    }

    /// Whether an instance that serves says what it said before.
    pub fn has_heard(&self, fact: &Fact) -> bool {
        let (News::Seen(seen), Some(facts)) = (&fact.news, self.all.get(&fact.place.pod)) else { return false };
        (&facts.pod_uid, &facts.process) == (&fact.place.pod_uid, &fact.place.process)
            && facts.silent.is_none()
            && facts.known.as_ref().is_some_and(|known| seen.is_like(known))
    }

    /// Drops what is known of pods that are not there any more.
    pub fn forget(&mut self, children: &Children) {
        self.all.retain(|pod, facts| children.pods.get(pod).is_some_and(|it| it.meta.uid == facts.pod_uid));
    }

    /// When a pod's server, this one or one before it, answered last.
    pub fn heard(&self, pod: &str) -> Option<Timestamp> {
        self.all.get(pod).map(|facts| facts.heard)
    }

    /// What is known of this very process.
    pub fn of(&self, pod: &PodView) -> Option<&InstanceFacts> {
        let facts = self.all.get(&pod.meta.name)?;
        (facts.pod_uid == pod.meta.uid && Some(&facts.process) == pod.process.as_ref()).then_some(facts)
    }
}

/// A moment after another one.
pub(super) fn after(at: Timestamp, wait: Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| at.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}

fn before(now: Timestamp, ago: Duration) -> Timestamp {
    SignedDuration::try_from(ago).ok().and_then(|ago| now.checked_sub(ago).ok()).unwrap_or(Timestamp::MIN)
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) | Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl Fact {
    /// What it is about and what came of it, for metrics.
    pub fn named(&self) -> (&'static str, &'static str) {
        match &self.news {
            News::Seen(_) => ("Look", "answered"),
            News::Silent { .. } => ("Look", "unknown"),
            News::Gone { .. } => ("Watch", "ended"),
            News::Source(SourceRead { read: Ok(_), .. }) => ("Source", "answered"),
            News::Source(_) => ("Source", "unknown"),
            News::Ended { task, end } => {
                let how = match end {
                    End::Done => "done",
                    End::Failed { .. } => "failed",
                    End::Unknown { .. } => "unknown",
                    End::StillRunning => "running",
                };
                (task.into(), how)
            }
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pod = &self.place.pod;
        match &self.news {
            News::Seen(_) => write!(f, "{pod} answered"),
            News::Silent { why, .. } => write!(f, "{pod} did not answer: {why}"),
            News::Gone { why, .. } => write!(f, "{pod} was watched, and is silent now: {why}"),
            News::Source(SourceRead { secret, read: Ok(_), .. }) => write!(f, "Secret {secret} tells whom {pod} is to follow"),
            News::Source(SourceRead { read: Err(why), .. }) => write!(f, "nobody knows whom {pod} is to follow: {why}"),
            News::Ended { task, end } => {
                let name: &str = task.into();
                match end {
                    End::Done => write!(f, "{name} on {pod}: done"),
                    End::Failed { why } => write!(f, "{name} on {pod} failed: {why}"),
                    End::Unknown { why } => write!(f, "{name} on {pod}: nobody knows what came of it: {why}"),
                    End::StillRunning => write!(f, "{name} on {pod} still runs"),
                }
            }
        }
    }
}
