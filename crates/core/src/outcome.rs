//! What came of a step, and when to look again.
//!
//! Outcomes are values, not errors used as control flow: one that waits or failed never stops an independent one.

use std::time::Duration;

use serde::Serialize;
use strum::IntoStaticStr;

/// An event tells of what outran a step. Should none come, what is known is wrong, and this soon it shows.
const SOON: Duration = Duration::from_secs(1);

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Serialize, IntoStaticStr)]
pub enum Outcome {
    /// It is so now. `changed` tells whether anything had to be sent for it.
    Done {
        /// Whether something was written.
        changed: bool,
    },
    /// It was started, or cannot be done yet; an event will tell.
    Waiting {
        /// For what.
        why: String,
    },
    /// Somebody changed the object after it was judged, so nothing was done. The newer state is on its way, and is judged next.
    Outrun,
    /// It could not be done, and is tried again.
    Retry {
        /// After this time at the earliest.
        after: Duration,
        /// What went wrong.
        why: String,
    },
    /// The object is there and was made by somebody else; it is not touched.
    Foreign {
        /// Which object, who made it, and what to do.
        why: String,
    },
    /// It was refused, and trying it again unchanged is of no use.
    Failed {
        /// What went wrong, on which object, and what to do.
        why: String,
    },
}

impl Outcome {
    /// The name of the outcome, for metrics.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// What to tell about it, when there is something to tell.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Done { .. } => None,
            Self::Outrun => Some("it changed meanwhile"),
            Self::Waiting { why } | Self::Retry { why, .. } | Self::Foreign { why } | Self::Failed { why } => Some(why),
        }
    }
}

/// When the next pass is due, if nothing happens before: the smallest of what the outcomes ask for and of `at_least_every`.
///
/// A failed step is tried again as well, but not sooner than `at_least_every`: an event (an edited spec) will usually come first.
pub fn next_pass<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>, at_least_every: Duration) -> Duration {
    outcomes
        .into_iter()
        .filter_map(|outcome| match outcome {
            Outcome::Retry { after, .. } => Some(*after),
            Outcome::Outrun => Some(SOON),
            Outcome::Done { .. } | Outcome::Waiting { .. } | Outcome::Foreign { .. } | Outcome::Failed { .. } => None,
        })
        .fold(at_least_every, Duration::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soonest_retry_decides() {
        let outcomes = [
            Outcome::Done { changed: true },
            Outcome::Retry { after: Duration::from_secs(5), why: "busy".into() },
            Outcome::Retry { after: Duration::from_secs(2), why: "busy".into() },
            Outcome::Failed { why: "refused".into() },
        ];
        assert_eq!(next_pass(&outcomes, Duration::from_mins(1)), Duration::from_secs(2));
    }

    #[test]
    fn without_a_retry_the_interval_decides() {
        let outcomes = [Outcome::Waiting { why: "a pod".into() }, Outcome::Failed { why: "refused".into() }];
        assert_eq!(next_pass(&outcomes, Duration::from_mins(1)), Duration::from_mins(1));
    }
}
