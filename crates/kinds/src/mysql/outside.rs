//! A cluster that follows a server elsewhere: its data is copied from there once, and its primary then follows that server and takes no
//! writes until somebody takes the source away.
//!
//! Whether the copy is there is on record. A cluster that was to be a copy and is none is never opened: nobody may take it for one.

use std::time::Duration;

use windlass_api::logbook::mysql::MySqlEntries;
use windlass_api::mysql::DEFAULT_STARTUP_WAIT_SECONDS;
use windlass_core::kind::Observed;
use windlass_core::reason;

use super::deeds::{CATCH_UP, Outside, Task};
use super::facts::{SourceAt, Unreadable};
use super::instance::{CloneState, Known};
use super::plan::Planner;
use super::scene::Scene;
use super::state::Upstream;
use super::{MySql, OPEN_TO_WRITES};

/// How long statements may hold up the closing of a primary that somebody opened by hand.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether it is announced that an instance of a cluster which is to follow a server elsewhere takes writes.
pub(super) fn is_announced(observed: &Observed<'_, MySql>, entries: &MySqlEntries) -> bool {
    let named = observed.resource.spec.replication_source_secret_name.is_some();
    named && entries.cloned && observed.memory.entries().intents.iter().any(|intent| intent.act == OPEN_TO_WRITES)
}

impl<'a> Scene<'a> {
    /// The Secret of the server elsewhere, while that is followed. A cluster that ever took writes of its own follows nobody.
    pub(super) fn outside(&self) -> Option<&'a str> {
        let secret = self.observed.resource.spec.replication_source_secret_name.as_deref()?;
        (!self.was_opened()).then_some(secret)
    }

    /// The server elsewhere that the cluster follows.
    pub(super) fn upstream(&self) -> Option<Upstream> {
        self.outside().map(|_| if self.entries.cloned { Upstream::Cloned } else { Upstream::ToBeCloned })
    }

    /// Whether an instance took writes, or may have: what was announced may have been done.
    pub(super) fn was_opened(&self) -> bool {
        self.entries.opened || self.announced
    }

    /// Whether all data came from a server elsewhere: no instance ever took a write.
    pub(super) fn is_copy(&self) -> bool {
        self.entries.cloned && !self.entries.opened
    }

    /// Whether there is data that must not be lost.
    pub(super) fn has_history(&self) -> bool {
        self.entries.opened || self.entries.cloned
    }

    /// Whether a server follows somebody who is no instance of this cluster.
    pub(super) fn follows_outside(&self, known: &Known) -> bool {
        let is_ours = |host: &str| self.instances.iter().any(|it| self.names.host(it.ordinal) == host);
        known.replication.as_ref().is_some_and(|it| !is_ours(&it.source_host))
    }

    /// Whether a primary does what its office asks for: to take writes, or to follow the server elsewhere.
    pub(super) fn serves(&self, primary: &Known) -> bool {
        match self.outside() {
            Some(_) => self.follows_outside(primary) && primary.replication.as_ref().is_some_and(|it| it.connects),
            None => !primary.read_only,
        }
    }

    /// Whether a copy was asked for that is not there, and nobody asks for it any more.
    fn is_abandoned(&self) -> bool {
        let entries = &self.entries;
        self.observed.resource.spec.replication_source_secret_name.is_none()
            && entries.copy_asked
            && !entries.cloned
            && !entries.opened
    }
}

impl Planner<'_> {
    /// Whether the data of a server elsewhere is still to be copied. Until it is there, nothing else is done to servers.
    pub(super) fn is_to_be_copied(&mut self) -> bool {
        if self.scene.is_abandoned() {
            let message = "spec.replicationSourceSecretName was taken away before the data was copied; the cluster is no copy of \
                           anything and takes no writes, so that nobody takes it for one: name the Secret again, or delete the cluster \
                           and make it again without a source";
            self.wait(reason!("CopyAbandoned"), message, true);
            return true;
        }
        let named = self.scene.observed.resource.spec.replication_source_secret_name.as_deref();
        if let Some(secret) = named.filter(|_| self.scene.was_opened()) {
            let message = format!(
                "spec.replicationSourceSecretName is {secret}, and this cluster took writes of its own: it cannot follow another server \
                 any more, and goes on by itself; take the field away"
            );
            self.wait(reason!("ReplicationSourceRefused"), message, true);
        }
        if self.scene.upstream() != Some(Upstream::ToBeCloned) {
            return false;
        }
        self.copy();
        true
    }

    /// Lets the first instance copy the data, if it has none.
    fn copy(&mut self) {
        let ordinal = self.scene.primary();
        let Some((outside, _)) = self.source() else { return };
        let waits = match self.scene.known(ordinal) {
            Some(known) if known.clone == Some(CloneState::Unfinished) => Some("copies the data of the server elsewhere"),
            // It is recorded in this pass.
            Some(_) if !self.scene.cluster().is_cloning() => return,
            Some(_) => None,
            // After a copy, an agent that ended too early leaves a server that knows the other server's accounts alone.
            None if self.scene.is_refused(ordinal) => None,
            None => Some("does not answer yet, and is to copy the data of the server elsewhere"),
        };
        if let Some(what) = waits {
            return self.wait(reason!("Cloning"), format!("instance {ordinal} {what}"), false);
        }
        let failure = self.scene.observed.facts.outside.failure.as_ref();
        if let Some((times, why, again)) = failure.map(|it| (it.times, it.why.clone(), it.again())) {
            let message = format!("the copy from elsewhere failed {times} times and is tried again: {why}");
            self.wait(reason!("ExternalCloneFailed"), message, false);
            if again > self.scene.observed.now {
                return;
            }
        }
        let seconds = self.scene.observed.resource.spec.startup_wait_seconds.unwrap_or(DEFAULT_STARTUP_WAIT_SECONDS);
        let boot = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.task(ordinal, Task::CloneFromOutside { outside, boot }, "it has no data yet");
    }

    /// The primary of a cluster that follows a server elsewhere: closed, and following.
    pub(super) fn intermediate(&mut self) {
        let ordinal = self.scene.primary();
        let Some(primary) = self.scene.known(ordinal).cloned() else { return };
        if !primary.super_read_only {
            let task = Task::CloseToWrites { patience: PATIENCE };
            return self.task(ordinal, task, "it follows a server elsewhere, and takes no writes");
        }
        let Some((outside, at)) = self.source() else { return };
        let is_told = self.scene.is_told(ordinal, &outside);
        match &primary.replication {
            // To name another source throws away what was received and not applied: that is looked at while nothing arrives any more.
            Some(it) if it.source_host != at.host && it.connects => {
                self.task(ordinal, Task::StopReceiving, "it is to follow another server");
            }
            Some(it) if it.source_host != at.host && !it.received.is_within(&primary.executed) => {
                let Some(task) = primary.catch_up(CATCH_UP) else { return };
                self.task(ordinal, task, "it has received more than it applied");
            }
            Some(it) if it.source_host == at.host && is_told && it.error.is_some() && !(it.receives && it.applies) => {
                // What the server says changes with every attempt, and names accounts.
                let message = format!(
                    "instance {ordinal} cannot follow the server that Secret {} names; SHOW REPLICA STATUS there tells why",
                    outside.secret
                );
                self.wait(reason!("SourceNotFollowed"), message, !(it.connects && it.applies));
            }
            Some(it) if it.source_host == at.host && is_told && it.connects && it.applies => {}
            _ => self.task(ordinal, Task::FollowOutside { outside }, "it is to follow the server elsewhere"),
        }
    }

    /// Where the server elsewhere is. What keeps us from knowing it is told.
    fn source(&mut self) -> Option<(Outside, SourceAt)> {
        let secret = self.scene.outside()?.to_owned();
        let read = self.scene.observed.facts.outside.source.as_ref().filter(|(it, _)| it.secret == secret);
        match read.map(|(it, _)| it.read.clone()) {
            Some(Ok(at)) => return Some((Outside { secret, version: at.version.clone() }, at)),
            Some(Err(Unreadable::Missing(why))) => self.wait(reason!("ReplicationSourceMissing"), why, true),
            Some(Err(Unreadable::Unknown(why))) => self.wait(reason!("ReplicationSourceUnknown"), why, false),
            None => {
                let message = format!("Secret {secret} of spec.replicationSourceSecretName was not read yet");
                self.wait(reason!("ReplicationSourceUnknown"), message, false);
            }
        }
        None
    }
}
