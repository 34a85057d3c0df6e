//! The time that decisions get as a value.

use std::time::Duration;

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
    /// How long the machine has been running, its sleep included.
    pub fn uptime(&self) -> Duration {
        match self {
            Self::Wall => {
                let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
                Duration::new(u64::try_from(uptime.tv_sec).unwrap_or(0), u32::try_from(uptime.tv_nsec).unwrap_or(0))
            }
            // A start of zero would be a time before every deadline.
            Self::Counted { since, .. } => Duration::from_secs(1) + since.elapsed(),
        }
    }

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
