//! The connections that are kept from one call to the next: one for each server, for as long as it is the same process.
//!
//! A connection that is in use is not here: two who want the same server at once have one each, and the later one to end is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What nobody asked for as long as this is closed: its pod is gone, or belongs to a cluster that is.
pub(crate) const FORGOTTEN: Duration = Duration::from_mins(2);
/// Between two looks for what is to be closed: with thousands of servers each of them takes a while.
const SWEEP: Duration = Duration::from_secs(1);

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The server, as long as there is one of this name.
    pub(crate) server: String,
    /// Which process it is, and where: what is kept for one serves no other.
    pub(crate) process: String,
}

/// Something kept for a process.
struct Idle<T> {
    process: String,
    until: Instant,
    it: T,
}

struct All<T> {
    by_server: HashMap<String, Idle<T>>,
    swept: Instant,
}

/// What is kept, by server.
pub(crate) struct Kept<T> {
    all: Mutex<All<T>>,
}

impl<T> Kept<T> {
    pub(crate) fn new() -> Self {
        Self { all: Mutex::new(All { by_server: HashMap::new(), swept: Instant::now() }) }
    }

    /// Takes out what is kept for this very process. What is kept for another one of the same server is dropped.
    pub(crate) fn take(&self, spot: &Spot) -> Option<T> {
        let idle = self.all.lock().unwrap_or_else(PoisonError::into_inner).by_server.remove(&spot.server)?;
        (idle.process == spot.process).then_some(idle.it)
    }

    /// Keeps it until it is asked for again, or nobody did for so long.
    pub(crate) fn keep(&self, spot: Spot, it: T, patience: Duration) {
        let now = Instant::now();
        let idle = Idle { process: spot.process, until: now + patience, it };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let former = all.by_server.insert(spot.server, idle);
        let mut forgotten = Vec::new();
        if now.duration_since(all.swept) >= SWEEP {
            all.swept = now;
            forgotten.extend(all.by_server.extract_if(|_, idle| now > idle.until));
        }
        drop(all);
        // They say good-bye when they go, and nobody should wait for that.
        drop((former, forgotten));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(server: &str, process: &str) -> Spot {
        Spot { server: server.into(), process: process.into() }
    }

    #[tokio::test]
    async fn what_is_kept_for_a_process_serves_no_other() {
        let kept = Kept::new();
        kept.keep(spot("a", "1"), 1, FORGOTTEN);
        assert_eq!(kept.take(&spot("b", "1")), None);
        assert_eq!(kept.take(&spot("a", "2")), None);
        assert_eq!(kept.take(&spot("a", "1")), None, "it was dropped when another process asked");
        kept.keep(spot("a", "2"), 3, FORGOTTEN);
        assert_eq!(kept.take(&spot("a", "2")), Some(3));
        assert_eq!(kept.take(&spot("a", "2")), None, "it is in use");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_goes() {
        let kept = Kept::new();
        kept.keep(spot("a", "1"), 1, FORGOTTEN);
        tokio::time::advance(FORGOTTEN + Duration::from_secs(1)).await;
        kept.keep(spot("b", "1"), 2, FORGOTTEN);
        assert_eq!(kept.take(&spot("a", "1")), None);
        assert_eq!(kept.take(&spot("b", "1")), Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_kept_for_a_short_time_goes_before_the_rest() {
        let (kept, short) = (Kept::new(), Duration::from_secs(5));
        kept.keep(spot("a", "1"), 1, short);
        kept.keep(spot("b", "1"), 2, FORGOTTEN);
        tokio::time::advance(short).await;
        kept.keep(spot("c", "1"), 3, short);
        assert_eq!(kept.take(&spot("a", "1")), Some(1), "its time is not over yet");
        kept.keep(spot("a", "1"), 1, short);
        tokio::time::advance(short + SWEEP).await;
        kept.keep(spot("c", "1"), 3, short);
        assert_eq!(kept.take(&spot("a", "1")), None);
        assert_eq!(kept.take(&spot("b", "1")), Some(2));
    }
}
