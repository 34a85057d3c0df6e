//! Waiting for what is to happen.

use std::time::{Duration, Instant};

/// Generous: a test machine may be busy with a build.
const LIMIT: Duration = Duration::from_mins(2);

/// Waits until `check` holds.
pub async fn eventually(what: &str, check: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !check() {
        assert!(Instant::now() < deadline, "waited {} s in vain: {what}", LIMIT.as_secs());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
