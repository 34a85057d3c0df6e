//! Rotates the slow log: the file gets another name, and the server is told to open a new one.
//!
//! Only one old file is kept; whoever ships the log reads it before the next rotation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use jiff::Timestamp;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::schedule::{Cause, Schedule, decide};
use crate::session::Failure;

const LOOK: Duration = Duration::from_secs(1);

pub(crate) struct Rotation {
    pub(crate) log: PathBuf,
    pub(crate) schedule: Schedule,
    /// Bytes; 0 is no limit.
    pub(crate) limit: u64,
    pub(crate) keeper: Arc<Keeper>,
    pub(crate) metrics: Arc<Metrics>,
}

#[derive(Debug, thiserror::Error)]
enum RotateFailure {
    #[error("{log:?} cannot be renamed: {source}")]
    Rename { log: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Flush(#[from] Failure),
}

impl Rotation {
    /// Rotates whenever it is due, for ever.
    pub(crate) async fn run(self) {
        let mut due = self.schedule.next_after(Timestamp::now());
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = Timestamp::now();
            let size = std::fs::metadata(&self.log).ok().map(|log| log.len());
            let Some(cause) = decide(due, now, size, self.limit) else { continue };
            if cause == Cause::Schedule {
                due = self.schedule.next_after(now);
            }
            let began = Instant::now();
            let result = self.rotate().await;
            self.metrics.rotated(result.is_ok(), began.elapsed());
            match result {
                Ok(()) => tracing::debug!(log = %self.log.display(), ?cause, "the slow log was rotated"),
                Err(why) => tracing::warn!(log = %self.log.display(), %why, "the slow log was not rotated"),
            }
        }
    }

    async fn rotate(&self) -> Result<(), RotateFailure> {
        move_away(&self.log).map_err(|source| RotateFailure::Rename { log: self.log.clone(), source })?;
        // Also where there was no file: an earlier rotation may have failed here, and the server writes on to the old one.
        let act = "opening a new slow log";
        self.keeper.ask(act, |session| session.run(act, "FLUSH LOCAL SLOW LOGS").boxed()).await?;
        Ok(())
    }
}

fn move_away(log: &Path) -> std::io::Result<()> {
    let mut old = log.as_os_str().to_owned();
    old.push(".0");
    match std::fs::rename(log, old) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_moves_away_and_a_missing_one_is_no_failure() {
        let scratch = tempfile::tempdir().unwrap();
        let log = scratch.path().join("mysql.slow");
        move_away(&log).unwrap();
        for text in ["first", "second"] {
            std::fs::write(&log, text).unwrap();
            move_away(&log).unwrap();
            assert_eq!(std::fs::read_to_string(scratch.path().join("mysql.slow.0")).unwrap(), text);
        }
        assert!(!log.exists());
    }
}
