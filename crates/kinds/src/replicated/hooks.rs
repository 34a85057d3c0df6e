//! Hooks: commands that run in a member's first container, as values.
//!
//! A hook that asks is a [`Question`]; a hook that changes something is a [`HookRun`] and goes through the gate.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;
use strum::IntoStaticStr;
use windlass_api::logbook::Intent;
use windlass_core::kind::Kind as _;
use windlass_core::ordinals::Ordinal;
use windlass_core::step::Action;

use super::Replicated;

/// Everything that is needed to run a command in a member.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exec {
    /// The namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Its UID: another pod of the same name is another member.
    pub pod_uid: String,
    /// The id of the container: after a restart it is another process, and answers of the old one mean nothing.
    pub process: String,
    /// How often the member had been seen to change when this was planned.
    pub turn: u32,
    /// The member's number.
    pub ordinal: Ordinal,
    /// The container's name.
    pub container: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// When our waiting ends. The program may still run then.
    pub timeout: Duration,
}

/// What a member can be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Which question.
    pub about: About,
    /// How to ask it.
    pub exec: Exec,
}

/// The questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum About {
    /// The hook `status`.
    Status,
    /// The hook `sequence`.
    Sequence,
}

impl Question {
    /// One question of a sort at a time per pod.
    pub fn target(&self) -> String {
        let about: &str = self.about.into();
        format!("{}/{about}", self.exec.pod)
    }
}

/// What a hook does to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
pub enum Deed {
    /// Starts the first member of a new cluster.
    Seed,
    /// Starts a member as a primary of an existing cluster.
    Primary,
    /// Starts a member as a secondary.
    Secondary,
    /// Stops a member.
    Stop,
    /// Makes a member that runs and lost its peers the first one of a cluster again.
    Promote,
}

/// Whether an intent was announced for a hook that decides which data is the cluster's.
pub(super) fn is_decisive(intent: &Intent) -> bool {
    Replicated::INTENTS.contains(&intent.act.as_str())
}

/// A hook that changes something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookRun {
    /// What it does.
    pub deed: Deed,
    /// How it is run.
    pub exec: Exec,
}

impl Action for HookRun {
    fn target(&self) -> &str {
        &self.exec.pod
    }

    fn target_uid(&self) -> &str {
        &self.exec.pod_uid
    }

    fn irreversible(&self) -> bool {
        // Both decide which data is the cluster's; nothing else that a hook does cannot be undone by another hook.
        matches!(self.deed, Deed::Seed | Deed::Promote)
    }

    fn name(&self) -> &'static str {
        self.deed.into()
    }
}

impl Display for HookRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.deed {
            Deed::Seed => "seed the cluster from",
            Deed::Primary => "start as primary",
            Deed::Secondary => "start as secondary",
            Deed::Stop => "stop",
            Deed::Promote => "promote in place",
        };
        write!(f, "{verb} {}", self.exec.pod)
    }
}

/// How running a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecEnd {
    /// It ended with this exit code.
    Exited {
        /// The exit code.
        code: i32,
        /// What it printed, shortened.
        output: String,
        /// What it printed as errors, shortened.
        errors: String,
    },
    /// It is not known whether it ran: the connection or the server failed. Nothing may rest on it.
    Unknown {
        /// What went wrong.
        why: String,
    },
    /// It is not known whether it ran: nobody answered in time. Nothing may rest on it, and it says nothing about the cause.
    Unanswered {
        /// How long was waited.
        after: Duration,
    },
    /// Our waiting ended; the program still runs in the pod.
    StillRunning {
        /// How long was waited.
        after: Duration,
    },
}
