//! Where the fake server's timestamps come from.
//!
//! Tests must not depend on the wall clock, so the default advances one second with every revision.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of timestamps.
#[derive(Clone, Debug)]
pub enum Clock {
    /// One second per revision, from 2026-01-01T00:00:00Z.
    Counter,
    /// The given moment plus the time that passed on tokio's clock, paused or not.
    Tokio {
        /// The moment that `since` stands for.
        origin: Timestamp,
        /// When the counting began.
        since: Instant,
    },
    /// The machine's clock.
    Real,
}

/// 2026-01-01T00:00:00Z.
const COUNTER_ORIGIN_SECONDS: i64 = 1_767_225_600;

impl Clock {
    /// A clock that starts at `origin` now and follows tokio's time.
    pub fn tokio(origin: Timestamp) -> Self {
        Self::Tokio { origin, since: Instant::now() }
    }

    /// The time of a write at `revision`, in whole seconds as the API writes it.
    pub(crate) fn at(&self, revision: u64) -> String {
        let moment = match self {
            Self::Counter => {
                let seconds = i64::try_from(revision).unwrap_or(i64::MAX / 2);
                Timestamp::from_second(COUNTER_ORIGIN_SECONDS + seconds).unwrap_or_default()
            }
            Self::Tokio { origin, since } => {
                let passed = SignedDuration::try_from(since.elapsed()).unwrap_or_default();
                *origin + passed
            }
            Self::Real => Timestamp::now(),
        };
        Timestamp::from_second(moment.as_second()).unwrap_or(moment).to_string()
    }
}
