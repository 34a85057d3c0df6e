//! The connections that are kept from one look to the next: one for each pod, for as long as it is the same process.
//!
//! A connection that is in use is not here: two who want the same pod at once have one each, and the later one to end is kept.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use windlass_kinds::mysql::deeds::Place;

/// What nobody asked for as long as this is closed: its pod is gone, or belongs to a cluster that is.
const FORGOTTEN: Duration = Duration::from_mins(2);

/// Something kept for a process.
struct Idle<T> {
    pod_uid: String,
    process: String,
    address: String,
    since: Instant,
    it: T,
}

/// What is kept, by namespace and pod.
pub(super) struct Kept<T> {
    all: Mutex<HashMap<(String, String), Idle<T>>>,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        Self { all: Mutex::default() }
    }

    /// Takes out what is kept for this very process. What is kept for another one of the same pod is dropped.
    pub(super) fn take(&self, place: &Place) -> Option<T> {
        let idle = self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(place))?;
        let same = (&idle.pod_uid, &idle.process, &idle.address) == (&place.pod_uid, &place.process, &place.address);
        same.then_some(idle.it)
    }

    /// Keeps it.
    pub(super) fn keep(&self, place: &Place, it: T) {
        let Place { pod_uid, process, address, .. } = place.clone();
        let now = Instant::now();
        let idle = Idle { pod_uid, process, address, since: now, it };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let former = all.insert(key(place), idle);
        let forgotten: Vec<_> = all.extract_if(|_, idle| now.duration_since(idle.since) > FORGOTTEN).collect();
        drop(all);
        // They say good-bye when they go, and nobody should wait for that.
        drop((former, forgotten));
    }
}

fn key(place: &Place) -> (String, String) {
    (place.namespace.clone(), place.pod.clone())
}

#[cfg(test)]
mod tests {
    use windlass_core::ordinals::Ordinal;

    use super::*;

    fn place(pod: &str, process: &str) -> Place {
        Place {
            namespace: "n".into(),
            credentials: "c".into(),
            pod: pod.into(),
            pod_uid: "u".into(),
            process: process.into(),
            address: "10.0.0.1".into(),
            ordinal: Ordinal::new(0),
        }
    }

    #[tokio::test]
    async fn what_is_kept_for_a_process_serves_no_other() {
        let kept = Kept::new();
        kept.keep(&place("a", "1"), 1);
        assert_eq!(kept.take(&place("b", "1")), None);
        assert_eq!(kept.take(&place("a", "2")), None);
        assert_eq!(kept.take(&place("a", "1")), None, "it was dropped when another process asked");
        kept.keep(&place("a", "2"), 2);
        assert_eq!(kept.take(&Place { pod_uid: "v".into(), ..place("a", "2") }), None);
        kept.keep(&place("a", "2"), 3);
        assert_eq!(kept.take(&place("a", "2")), Some(3));
        assert_eq!(kept.take(&place("a", "2")), None, "it is in use");
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_asks_for_goes() {
        let kept = Kept::new();
        kept.keep(&place("a", "1"), 1);
        tokio::time::advance(FORGOTTEN + Duration::from_secs(1)).await;
        kept.keep(&place("b", "1"), 2);
        assert_eq!(kept.take(&place("a", "1")), None);
        assert_eq!(kept.take(&place("b", "1")), Some(2));
    }
}
