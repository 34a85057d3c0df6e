//! Waiting for something to become so.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Enough for one thing to happen on a busy machine with two cores.
pub const LONG: Duration = Duration::from_mins(5);
/// Enough for a cluster to replace all its members, one after another, on such a machine.
pub const LONGEST: Duration = Duration::from_mins(20);

const POLL: Duration = Duration::from_millis(200);

/// Looks until `look` succeeds. An error means "not yet", and the last one is told when the limit is reached.
pub async fn wait_for<T>(what: &str, limit: Duration, mut look: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    loop {
        match look().await {
            Ok(found) => return Ok(found),
            Err(seen) if began.elapsed() > limit => {
                bail!("waited {} s in vain until {what}; last seen: {seen:#}", limit.as_secs());
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}
