//! The time that decisions get as a value.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Where the time comes from.
#[derive(Clone, Copy, Debug, Default)]
pub enum Clock {
    /// The clock of the machine.
    #[default]
    Wall,
    /// Counted from a start by the runtime's timer, so that in tests simulated time moves decisions as well.
    Counted {
        /// The time at the start.
        start: Timestamp,
        /// The start.
        since: Instant,
    },
}

impl Clock {
    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::Wall => Timestamp::now(),
            Self::Counted { start, since } => {
                let passed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
                start.saturating_add(passed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}
