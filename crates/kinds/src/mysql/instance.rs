//! What is known of one instance, and what follows from it alone.
//!
//! What was not heard is not known: an instance whose pod is missing, or whose server does not answer, has no [`Known`] part, and no
//! decision takes that for an empty or a stopped one.

use std::time::Duration;

use windlass_core::ordinals::Ordinal;

use super::deeds::Task;
use super::gtid::{GtidSet, Uuid};

/// One instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its number.
    pub ordinal: Ordinal,
    /// Whether its pod is ready.
    pub ready: bool,
    /// Whether its pod is about to go, or somebody asked that it be no primary any more.
    pub leaving: bool,
    /// What its server said, if it did.
    pub known: Option<Known>,
}

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who it is.
    pub server: Uuid,
    /// What it has executed.
    pub executed: GtidSet,
    /// What it has executed and can give to nobody any more.
    pub purged: GtidSet,
    /// Whether it takes no writes of clients.
    pub read_only: bool,
    /// Whether it takes no writes of anybody.
    pub super_read_only: bool,
    /// From whom it replicates, if from anybody.
    pub replication: Option<Replication>,
    /// The server ids of those that replicate from it.
    pub followers: Vec<u32>,
    /// How a clone of its data went, if there was one.
    pub clone: Option<CloneState>,
    /// For how many acknowledgements its commits wait; none when they do not wait.
    pub awaits: Option<u16>,
    /// Whether it acknowledges what it receives.
    pub acknowledges: bool,
    /// How many commits wait for acknowledgements.
    pub waiting_commits: u32,
}

/// How an instance replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// From which host.
    pub source_host: String,
    /// What it has received, executed or not.
    pub received: GtidSet,
    /// Whether the thread that receives runs, connected or not.
    pub connects: bool,
    /// Whether it is connected.
    pub receives: bool,
    /// How long ago its source last gave a sign of life, where the server knows.
    pub quiet: Option<Duration>,
    /// Whether it applies what it received.
    pub applies: bool,
    /// How far it is behind, in seconds, where the server knows.
    pub behind: Option<u64>,
    /// The last error of receiving or applying.
    pub error: Option<String>,
}

/// How a clone went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneState {
    /// It has not begun, or runs.
    Unfinished,
    /// It ended, and the data is whole.
    Completed,
    /// It ended, and there is no data.
    Failed,
}

/// A source that gave a sign of life as short a time ago as this is there: it gives one every second.
const SHORTLY: Duration = Duration::from_secs(3);

impl Known {
    /// Whether it says the same as another answer, but for how far it is. That differs each time while clients write, and so does the time
    /// since the source gave a sign of life, which means nothing while it is short.
    pub fn is_like(&self, other: &Self) -> bool {
        self.gist() == other.gist()
    }

    fn gist(&self) -> impl PartialEq + '_ {
        let Self { server, purged, read_only, super_read_only, replication, followers, clone, awaits, acknowledges, .. } = self;
        let replication = replication.as_ref().map(|it| {
            let Replication { source_host, connects, receives, quiet, applies, error, .. } = it;
            (source_host, connects, receives, quiet.filter(|quiet| *quiet >= SHORTLY), applies, error)
        });
        (server, purged, read_only, super_read_only, replication, followers, clone, awaits, acknowledges)
    }

    /// What it has, executed or only received.
    pub fn has(&self) -> GtidSet {
        match &self.replication {
            Some(replication) => self.executed.joined_with(&replication.received),
            None => self.executed.clone(),
        }
    }

    /// What lets it apply everything that it received; nothing when it has.
    pub fn catch_up(&self, within: Duration) -> Option<Task> {
        let received = &self.replication.as_ref()?.received;
        (!received.is_within(&self.executed)).then(|| Task::CatchUp { set: received.to_string(), within })
    }

    /// Whether it needs transactions that the primary can give to nobody any more.
    pub fn is_too_old_for(&self, primary: &Known) -> bool {
        !primary.purged.is_within(&self.has())
    }

    /// Whether the data that it was to copy is there.
    pub fn is_copied(&self) -> bool {
        match self.clone {
            Some(clone) => clone == CloneState::Completed,
            None => !self.executed.is_empty(),
        }
    }

    /// Whether it has transactions that no order of replication explains. Those of the primary's own making are explained: it may have
    /// made them since it was asked.
    pub fn is_errant(&self, primary: &Known) -> bool {
        !primary.executed.is_empty() && !self.executed.without(&primary.executed).without_uuid(primary.server).is_empty()
    }
}
