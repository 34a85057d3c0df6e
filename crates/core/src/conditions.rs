//! The conditions of a status.
//!
//! Decides the whole list anew in every pass: all types present, in one order, each with its
//! generation. Of what was stored it takes one thing only, the time of the last change, and only
//! where that can be read; nothing stored is obeyed. The clock is an argument.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The conditions that every kind has, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray)]
pub enum Common {
    /// The cluster is as it should be: all members in their roles, nothing left to do.
    Ready,
    /// The cluster serves its clients.
    Available,
    /// Work is in hand.
    Progressing,
    /// The work cannot go on without a person.
    Stalled,
    /// The Resources lane is open.
    ReconciliationActive,
    /// The Clustering lane is open.
    ClusteringActive,
    /// This release owns the cluster.
    Managed,
}

/// The type of a condition: a common one, or one that a kind has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConditionType(&'static str);

impl ConditionType {
    /// A type of a kind's own. Use [`condition_type!`](crate::condition_type), which checks the
    /// word when it is compiled.
    #[doc(hidden)]
    pub const fn checked(word: &'static str) -> Self {
        assert!(is_camel_case(word), "a condition type must be CamelCase");
        Self(word)
    }

    /// The type as it is written.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl From<Common> for ConditionType {
    fn from(common: Common) -> Self {
        Self(common.into())
    }
}

/// Why a condition is as it is: one word for programs, the same in Events and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(&'static str);

impl Reason {
    /// A reason. Use [`reason!`](crate::reason), which checks the word when it is compiled.
    #[doc(hidden)]
    pub const fn checked(word: &'static str) -> Self {
        assert!(is_camel_case(word), "a reason must be CamelCase");
        Self(word)
    }

    /// The reason as it is written.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// A [`Reason`] whose form is checked when it is compiled.
///
/// ```
/// assert_eq!(windlass_core::reason!("QuorumLost").as_str(), "QuorumLost");
/// ```
/// ```compile_fail
/// let spaces = windlass_core::reason!("Scaling up");
/// ```
/// ```compile_fail
/// let small = windlass_core::reason!("scaling");
/// ```
#[macro_export]
macro_rules! reason {
    ($word:expr) => {
        const { $crate::conditions::Reason::checked($word) }
    };
}

/// A [`ConditionType`] whose form is checked when it is compiled.
///
/// ```compile_fail
/// let spaces = windlass_core::condition_type!("Not Ready");
/// ```
#[macro_export]
macro_rules! condition_type {
    ($word:expr) => {
        const { $crate::conditions::ConditionType::checked($word) }
    };
}

/// A capital, then letters and digits. The API server would also take `_`, `,` and `:`.
const fn is_camel_case(word: &str) -> bool {
    let bytes = word.as_bytes();
    let Some((first, mut rest)) = bytes.split_first() else {
        return false;
    };
    while let Some((byte, tail)) = rest.split_first() {
        if !byte.is_ascii_alphanumeric() {
            return false;
        }
        rest = tail;
    }
    first.is_ascii_uppercase()
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It cannot be told.
    Unknown,
}

impl Truth {
    /// The word as it is written.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn read(word: &str) -> Option<Self> {
        [Self::True, Self::False, Self::Unknown].into_iter().find(|truth| truth.as_str() == word)
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// The longest message that the API server takes, in characters.
const LONGEST_MESSAGE: usize = 32_768;
/// How much of the words of others goes into a message.
const BRIEF: usize = 600;

/// The times that were stored with earlier conditions; everything else in them is forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Previous(BTreeMap<String, (Truth, Timestamp)>);

impl Previous {
    /// Reads a stored list, whatever is in it. What cannot be read is as if it were absent; of two
    /// entries with one type the first counts.
    pub fn read(stored: &Value) -> Self {
        let mut previous = Self::default();
        for entry in stored.as_array().into_iter().flatten() {
            let text = |field: &str| entry.get(field).and_then(Value::as_str);
            let read = || {
                let truth = Truth::read(text("status")?)?;
                let since = text("lastTransitionTime")?.parse().ok()?;
                Some((text("type")?, truth, since))
            };
            if let Some((type_, truth, since)) = read() {
                previous.remember(type_, truth, since);
            }
        }
        previous
    }

    fn remember(&mut self, type_: &str, truth: Truth, since: Timestamp) {
        self.0.entry(type_.to_owned()).or_insert((truth, since));
    }
}

impl From<&[Condition]> for Previous {
    fn from(stored: &[Condition]) -> Self {
        let mut previous = Self::default();
        for condition in stored {
            if let Some(truth) = Truth::read(&condition.status) {
                previous.remember(&condition.type_, truth, condition.last_transition_time.0);
            }
        }
        previous
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    truth: Truth,
    reason: Reason,
    message: String,
    observed_generation: i64,
}

/// The conditions of one pass. Those that nobody sets are `Unknown`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    observed_generation: i64,
    statements: Vec<(ConditionType, Statement)>,
}

impl Conditions {
    /// All common conditions and then the kind's `own`, `Unknown` so far.
    ///
    /// `observed_generation` is the generation that was acted upon: while a lane is closed, that
    /// is an older one than the object has.
    pub fn new(observed_generation: i64, own: &[ConditionType]) -> Self {
        use strum::VariantArray as _;
        let mut conditions = Self { observed_generation, statements: Vec::new() };
        let common = Common::VARIANTS.iter().copied().map(ConditionType::from);
        for type_ in common.chain(own.iter().copied()) {
            conditions.set(type_, Truth::Unknown, reason!("NotObserved"), "Not observed yet.");
        }
        conditions
    }

    /// Says how one condition is. A type that is not in the list yet comes to its end.
    pub fn set(
        &mut self,
        type_: impl Into<ConditionType>,
        truth: impl Into<Truth>,
        reason: Reason,
        message: impl Into<String>,
    ) -> &mut Self {
        let generation = self.observed_generation;
        self.set_at(type_, truth, reason, message, generation)
    }

    /// As [`Conditions::set`], for a condition that follows another generation than the rest: that
    /// a lane is closed is known for the newest one at once.
    pub fn set_at(
        &mut self,
        type_: impl Into<ConditionType>,
        truth: impl Into<Truth>,
        reason: Reason,
        message: impl Into<String>,
        observed_generation: i64,
    ) -> &mut Self {
        let type_ = type_.into();
        let mut message: String = message.into();
        if let Some((end, _)) = message.char_indices().nth(LONGEST_MESSAGE) {
            message.truncate(end);
        }
        let statement = Statement { truth: truth.into(), reason, message, observed_generation };
        let place = self.statements.iter_mut().find(|(known, _)| *known == type_);
        match place {
            Some((_, known)) => *known = statement,
            None => self.statements.push((type_, statement)),
        }
        self
    }

    /// How a condition stands in this pass.
    pub fn truth(&self, type_: impl Into<ConditionType>) -> Truth {
        let type_ = type_.into();
        self.statements.iter().find(|(known, _)| *known == type_).map_or(Truth::Unknown, |(_, statement)| statement.truth)
    }

    /// The list to store. The time of a condition is kept unless its status flipped, and is in
    /// whole seconds, as stored times are: else every pass would see a change. A stored time
    /// that lies in the future is not believed.
    pub fn build(&self, previous: &Previous, now: Timestamp) -> Vec<Condition> {
        let now = whole_seconds(now);
        self.statements
            .iter()
            .map(|(type_, statement)| {
                let since = previous
                    .0
                    .get(type_.as_str())
                    .filter(|(truth, _)| *truth == statement.truth)
                    .map(|(_, since)| whole_seconds(*since))
                    .filter(|since| *since <= now)
                    .unwrap_or(now);
                Condition {
                    type_: type_.as_str().to_owned(),
                    status: statement.truth.as_str().to_owned(),
                    reason: statement.reason.as_str().to_owned(),
                    message: statement.message.clone(),
                    observed_generation: Some(statement.observed_generation),
                    last_transition_time: Time(since),
                }
            })
            .collect()
    }
}

/// The beginning of a text that others wrote: some answers of the server repeat the whole object that they refuse.
pub fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}... (the whole text is in the operator's log)", &text[..end]),
        None => text.to_owned(),
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    // Floor, also before 1970, so that the same instant always gives the same second.
    let second = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
    Timestamp::from_second(second).unwrap_or(time)
}

/// The fields of a condition that tell a time.
const TIMES: [&str; 4] = ["lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"];

/// Whether two statuses say the same, the times of their conditions aside. Works on the JSON form,
/// so that a stored status which is junk can be compared too.
pub fn same_but_for_times(one: &Value, other: &Value) -> bool {
    without_times(one) == without_times(other)
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.retain(|field, _| !TIMES.contains(&field.as_str()));
        }
    }
    status
}
