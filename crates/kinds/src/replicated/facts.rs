//! What members answered. An answer is bound to the pod and the process that gave it; after a restart it is unknown again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{Children, PodView};

use super::hooks::{About, Deed, Exec, ExecEnd};

/// The exit code of a running secondary.
const SECONDARY: i32 = 0;
/// The exit code of a stopped member.
const STOPPED: i32 = 7;
/// The exit code of a running primary.
const PRIMARY: i32 = 8;
/// The exit code of a member that runs and lost its peers.
const STRANDED: i32 = 9;
/// The exit code of a member that is on its way: starting, joining.
const STARTING: i32 = 190;
/// Other words for the same answer are told when they came so often in a row.
const CONVINCING: u32 = 3;

/// What a member was seen to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs as a primary.
    Primary,
    /// It runs as a secondary.
    Secondary,
    /// It does not run.
    Stopped,
    /// It runs, but lost too many peers at once: it serves nobody, and cannot go on by itself.
    Stranded,
    /// It starts or joins.
    Starting,
    /// The hook reported a failure.
    Failed {
        /// Its exit code.
        code: i32,
        /// What it said.
        said: String,
    },
}

/// What a member holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Nothing: it never had data, or was interrupted before it had.
    Empty,
    /// Data of this history up to this sequence.
    At {
        /// The history; absent when the hook prints only a number.
        history: Option<String>,
        /// The sequence.
        sequence: u64,
    },
}

/// An answer, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// It is not known.
    Unknown {
        /// Why.
        why: String,
        /// Whether nothing came back at all. That happens on a busy day whatever else is wrong, and hides no cause that was told.
        silent: bool,
    },
    /// It is known.
    Known(T),
}

/// What can be the same although it is told in other words.
trait Alike: PartialEq {
    /// Whether the two differ in words at most.
    fn is_like(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether it has no words of its own for what the other one tells.
    fn is_silent(&self) -> bool {
        false
    }
}

impl Alike for Position {}

impl Alike for Role {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed { code, .. }, Self::Failed { code: other, .. }) => code == other,
            _ => self == other,
        }
    }
}

impl<T: Alike> Alike for Answer<T> {
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown { .. }, Self::Unknown { .. }) => true,
            (Self::Known(known), Self::Known(other)) => known.is_like(other),
            _ => false,
        }
    }

    fn is_silent(&self) -> bool {
        matches!(self, Self::Unknown { silent: true, .. })
    }
}

/// An answer and when it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dated<T> {
    /// The answer. It goes into status, which must not change by itself; so it keeps its words while others come for the same now
    /// and then: one timeout among many refusals, a hook that prints the time.
    pub answer: Answer<T>,
    /// The other words that came last, and how often in a row.
    reworded: Option<(Answer<T>, u32)>,
    /// When.
    pub at: Timestamp,
    /// Since when it was always the same, whatever its words.
    pub since: Timestamp,
    /// How often in a row it was unknown.
    pub misses: u32,
}

/// A hook that failed, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it was to do.
    pub deed: Deed,
    /// How often in a row.
    pub count: u32,
    /// When last.
    pub at: Timestamp,
    /// What it said.
    pub why: String,
}

/// What is known of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// The pod that answered.
    pub pod_uid: String,
    /// The process that answered.
    pub process: String,
    /// How often it changed, as far as that was seen. An answer to a question from before a change tells of what was then.
    pub turn: u32,
    /// What it was seen to be.
    pub role: Option<Dated<Role>>,
    /// What it holds.
    pub position: Option<Dated<Position>>,
    /// The hook that still runs although nobody waits for it any longer. Its end will be heard of.
    pub lingers: Option<Deed>,
    /// The last hook that did not succeed.
    pub failure: Option<Failure>,
}

/// What came from a member.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Who was asked.
    pub exec: Exec,
    /// What was asked or done.
    pub of: Of,
    /// How it ended.
    pub end: ExecEnd,
}

impl std::fmt::Display for Fact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} ", self.named().0, self.exec.pod)?;
        match &self.end {
            ExecEnd::Exited { code, errors, .. } => write!(f, "ended with exit code {code} {errors}"),
            ExecEnd::Unknown { why } => write!(f, "has no known end: {why}"),
            ExecEnd::Unanswered { after } => write!(f, "was not answered within {} s", after.as_secs()),
            ExecEnd::StillRunning { after } => write!(f, "still runs after {} s", after.as_secs()),
        }
    }
}

impl Fact {
    /// What was asked or done, and what came of it, for metrics.
    pub(super) fn named(&self) -> (&'static str, &'static str) {
        let outcome = match (&self.end, self.of) {
            // Every exit code of the first says something.
            (ExecEnd::Exited { .. }, Of::Question(About::Status))
            | (ExecEnd::Exited { code: 0, .. }, Of::Question(About::Sequence)) => "Answered",
            (ExecEnd::Exited { code: 0, .. }, Of::Deed(_)) => "Done",
            (ExecEnd::Exited { .. }, _) => "Failed",
            (ExecEnd::Unknown { .. } | ExecEnd::Unanswered { .. }, _) => "Unknown",
            (ExecEnd::StillRunning { .. }, _) => "StillRunning",
        };
        let hook = match self.of {
            Of::Question(about) => about.into(),
            Of::Deed(deed) => deed.into(),
        };
        (hook, outcome)
    }
}

/// What was asked or done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A question.
    Question(About),
    /// A deed.
    Deed(Deed),
}

/// What is known of all members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    members: BTreeMap<Ordinal, MemberFacts>,
}

impl Facts {
    /// What is known of the member behind this pod. Answers of an earlier pod or process are not.
    pub fn of(&self, ordinal: Ordinal, pod: &PodView) -> Option<&MemberFacts> {
        self.members.get(&ordinal).filter(|facts| facts.pod_uid == pod.meta.uid && Some(&facts.process) == pod.process.as_ref())
    }

    /// Takes a fact in.
    pub fn learn(&mut self, fact: Fact, now: Timestamp) {
        let Fact { exec, of, end } = fact;
        let member = self.members.entry(exec.ordinal).or_default();
        if member.pod_uid != exec.pod_uid || member.process != exec.process {
            *member = MemberFacts { pod_uid: exec.pod_uid.clone(), process: exec.process.clone(), ..MemberFacts::default() };
        }
        match of {
            Of::Question(_) if exec.turn != member.turn => {}
            Of::Question(About::Status) => {
                let role = dated(role(end), now, member.role.as_ref());
                // What a member holds was true of it as it was then: one that ran since may hold more.
                if !member.role.as_ref().is_some_and(|before| before.answer.is_like(&role.answer)) {
                    member.turn += 1;
                    member.position = None;
                }
                member.role = Some(role);
            }
            Of::Question(About::Sequence) => member.position = Some(dated(position(end), now, member.position.as_ref())),
            Of::Deed(deed) => {
                // Whatever a deed came to, what was known before it is not known any more.
                member.turn += 1;
                member.role = None;
                member.position = None;
                member.lingers = matches!(end, ExecEnd::StillRunning { .. }).then_some(deed);
                member.failure = failure(deed, end, now, member.failure.take());
            }
        }
    }

    /// Drops what is known of members without a pod.
    pub fn forget(&mut self, children: &Children) {
        self.members.retain(|_, facts| children.pods.values().any(|pod| pod.meta.uid == facts.pod_uid));
    }
}

fn dated<T: Alike + Clone>(heard: Answer<T>, at: Timestamp, before: Option<&Dated<T>>) -> Dated<T> {
    let misses = match heard {
        Answer::Known(_) => 0,
        Answer::Unknown { .. } => before.map_or(0, |before| before.misses) + 1,
    };
    let Some(before) = before.filter(|before| before.answer.is_like(&heard)) else {
        return Dated { answer: heard, reworded: None, at, since: at, misses };
    };
    let since = before.since;
    match (before.answer.is_silent(), heard.is_silent()) {
        (false, true) => return Dated { answer: before.answer.clone(), reworded: before.reworded.clone(), at, since, misses },
        (true, false) => return Dated { answer: heard, reworded: None, at, since, misses },
        _ => {}
    }
    let repeated = before.reworded.as_ref().filter(|(words, _)| *words == heard).map_or(0, |(_, times)| *times);
    if before.answer == heard || repeated + 1 >= CONVINCING {
        return Dated { answer: heard, reworded: None, at, since, misses };
    }
    Dated { answer: before.answer.clone(), reworded: Some((heard, repeated + 1)), at, since, misses }
}

fn unknown<T>(end: ExecEnd) -> Answer<T> {
    let silent = matches!(end, ExecEnd::Unanswered { .. });
    let why = match end {
        ExecEnd::Unknown { why } => why,
        ExecEnd::Unanswered { after } => format!("the request to run the hook was not answered within {} s", after.as_secs()),
        ExecEnd::StillRunning { after } => format!("the hook did not end within {} s", after.as_secs()),
        ExecEnd::Exited { code, errors, .. } => format!("the hook ended with exit code {code}: {errors}"),
    };
    Answer::Unknown { why, silent }
}

fn role(end: ExecEnd) -> Answer<Role> {
    match end {
        ExecEnd::Exited { code: PRIMARY, .. } => Answer::Known(Role::Primary),
        ExecEnd::Exited { code: SECONDARY, .. } => Answer::Known(Role::Secondary),
        ExecEnd::Exited { code: STOPPED, .. } => Answer::Known(Role::Stopped),
        ExecEnd::Exited { code: STRANDED, .. } => Answer::Known(Role::Stranded),
        ExecEnd::Exited { code: STARTING, .. } => Answer::Known(Role::Starting),
        ExecEnd::Exited { code, errors, .. } => Answer::Known(Role::Failed { code, said: errors }),
        end => unknown(end),
    }
}

/// The structured answer of the hook `sequence`.
#[derive(Deserialize)]
struct Structured {
    history: Option<String>,
    sequence: Option<i64>,
    kind: String,
}

fn position(end: ExecEnd) -> Answer<Position> {
    let ExecEnd::Exited { code: 0, output, .. } = &end else {
        return unknown(end);
    };
    let text = output.trim();
    if let Ok(sequence) = text.parse::<u64>() {
        return Answer::Known(Position::At { history: None, sequence });
    }
    let unreadable = || Answer::Unknown {
        why: format!("the hook printed neither a number nor its structured answer: {text:?}"),
        silent: false,
    };
    let Ok(answer) = serde_json::from_str::<Structured>(text) else {
        return unreadable();
    };
    match (answer.kind.as_str(), answer.history, answer.sequence) {
        ("none", _, _) => Answer::Known(Position::Empty),
        ("clean" | "recovered" | "running", Some(history), Some(sequence)) => match u64::try_from(sequence) {
            Ok(sequence) => Answer::Known(Position::At { history: Some(history), sequence }),
            Err(_) => unreadable(),
        },
        _ => unreadable(),
    }
}

fn failure(deed: Deed, end: ExecEnd, at: Timestamp, before: Option<Failure>) -> Option<Failure> {
    let why = match end {
        ExecEnd::Exited { code: 0, .. } => return None,
        end => match unknown::<()>(end) {
            Answer::Unknown { why, .. } => why,
            Answer::Known(()) => String::new(),
        },
    };
    let count = before.map_or(0, |before| before.count) + 1;
    Some(Failure { deed, count, at, why })
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
