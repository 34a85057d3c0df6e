//! What can be asked of an instance, and what can be done to it, as values.
//!
//! Each task is one change that can be read back from the server afterwards, so that a task whose end nobody heard of is simply
//! decided anew. What a task may touch is said here; whether it may be done now is decided elsewhere.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;
use strum::IntoStaticStr;
use windlass_core::ordinals::Ordinal;
use windlass_core::step::Action;

/// How long an instance is given to apply what it received, at a time.
pub(super) const CATCH_UP: Duration = Duration::from_secs(10);

/// Where an instance is reached, and which one it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The namespace.
    pub namespace: String,
    /// The Secret with the passwords of the cluster's accounts.
    pub credentials: String,
    /// The pod.
    pub pod: String,
    /// Its UID: another pod of the same name is another process on perhaps another volume.
    pub pod_uid: String,
    /// The id of the server's container: after a restart its settings are gone.
    pub process: String,
    /// The address of the pod.
    pub address: String,
    /// The instance's number.
    pub ordinal: Ordinal,
}

/// What is asked of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Everything that decisions rest on, read in one go.
    Look(Place),
    /// Nothing; but the end of its server, or of its answers, is told as soon as it can be known.
    Watch(Place),
    /// Where the server elsewhere is that the cluster follows, as its Secret says.
    Source {
        /// The instance that is to follow it.
        place: Place,
        /// The Secret, in the same namespace.
        secret: String,
    },
}

impl Probe {
    /// Who is asked, and about what: the same is not asked twice at once.
    pub(super) fn target(&self) -> String {
        match self {
            Self::Look(place) => place.pod.clone(),
            Self::Watch(place) => format!("{} (watch)", place.pod),
            Self::Source { place, .. } => format!("{} (source)", place.pod),
        }
    }
}

/// A server that another one follows, or copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The Secret that tells where a server elsewhere is, and how to log in there. What it says is read where it is used, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// The Secret, in the namespace of the cluster.
    pub secret: String,
    /// Its version when this was decided. Another one may name another server.
    pub version: String,
}

/// What is done to an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
pub enum Task {
    /// Let it take no writes, of anybody. Who holds that up for longer than `patience` is disconnected.
    CloseToWrites {
        /// How long statements that run may take.
        patience: Duration,
    },
    /// Let it take writes, and follow nobody. Clients that read from it are disconnected: after a change of role they must find out.
    OpenToWrites,
    /// Let a server that is not the primary any more take no writes. Its clients are cut off first: commits that wait for
    /// acknowledgements end with it, and nobody may be told that they succeeded.
    Depose,
    /// Let its commits wait for so many acknowledgements, for ever; for none of them with zero.
    AwaitAcknowledgements {
        /// How many.
        count: u16,
    },
    /// Let it follow a source, from where it is.
    Follow {
        /// Whom.
        source: Source,
        /// Whether it acknowledges what it receives.
        acknowledges: bool,
    },
    /// Let it receive nothing any more; what it received it goes on to apply.
    StopReceiving,
    /// Let an instance that receives nothing acknowledge nothing either, when it does again.
    StopAcknowledging,
    /// Wait until it has executed all of a set of transactions.
    CatchUp {
        /// The set, as the server writes it.
        set: String,
        /// How long.
        within: Duration,
    },
    /// Replace its data, which must be nothing, by a copy of another instance's. The server ends and starts again with that.
    Clone {
        /// Whose.
        donor: Source,
    },
    /// Put transactions that only this instance has beside its data directory, as they are in its binary logs. From its next start on
    /// it is another server: who acknowledged something with data that is about to be replaced does not count any more.
    Save {
        /// Which ones, as the server writes them.
        set: String,
    },
    /// Replace its data by a copy of another instance's. The server ends and starts again with that.
    Replace {
        /// Whose.
        donor: Source,
        /// What it may have at most: more than this was not judged, and is not thrown away.
        over: String,
    },
    /// Replace its data, which must be nothing, by a copy of a server elsewhere. Its agent does it, and puts the cluster's own accounts
    /// into the copy. The server ends and starts again with that.
    CloneFromOutside {
        /// Whose.
        outside: Outside,
        /// How long the server may take to start with the copy.
        boot: Duration,
    },
    /// Let it follow a server elsewhere, from where it is. It acknowledges nothing, and waits for nobody.
    FollowOutside {
        /// Whom.
        outside: Outside,
    },
}

impl Task {
    /// Whether the server cannot do it by itself, and the agent beside it has to.
    pub(super) fn needs_agent(&self) -> bool {
        matches!(self, Self::Save { .. } | Self::CloneFromOutside { .. })
    }
}

/// A task for one instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deed {
    /// Which instance.
    pub place: Place,
    /// What.
    pub task: Task,
}

impl Action for Deed {
    fn target(&self) -> &str {
        &self.place.pod
    }

    fn target_uid(&self) -> &str {
        &self.place.pod_uid
    }

    fn irreversible(&self) -> bool {
        // From the first write on, a history has begun that no other instance may contradict. And what was replaced is gone.
        matches!(self.task, Task::OpenToWrites | Task::Replace { .. })
    }

    fn name(&self) -> &'static str {
        (&self.task).into()
    }
}

impl Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pod = &self.place.pod;
        match &self.task {
            Task::CloseToWrites { .. } => write!(f, "close {pod} to writes"),
            Task::OpenToWrites => write!(f, "open {pod} to writes"),
            Task::AwaitAcknowledgements { count: 0 } => write!(f, "let commits on {pod} wait for nobody"),
            Task::AwaitAcknowledgements { count } => write!(f, "let commits on {pod} wait for {count} acknowledgements"),
            Task::Follow { source, acknowledges: true } => write!(f, "let {pod} follow {} and acknowledge", source.host),
            Task::Follow { source, acknowledges: false } => write!(f, "let {pod} follow {}", source.host),
            Task::StopReceiving => write!(f, "let {pod} receive nothing"),
            Task::StopAcknowledging => write!(f, "let {pod} acknowledge nothing"),
            Task::CatchUp { .. } => write!(f, "wait until {pod} has caught up"),
            Task::Depose => write!(f, "cut off the clients of {pod}, and close it to writes"),
            Task::Clone { donor } => write!(f, "copy the data of {} to {pod}", donor.host),
            Task::Save { set } if set.is_empty() => write!(f, "let {pod} be another server when its data is replaced"),
            Task::Save { set } => write!(f, "save {} of {pod}", set.replace('\n', "")),
            Task::Replace { donor, .. } => write!(f, "replace the data of {pod} by a copy of {}", donor.host),
            Task::CloneFromOutside { outside, .. } => {
                write!(f, "copy the data of the server that Secret {} names to {pod}", outside.secret)
            }
            Task::FollowOutside { outside } => write!(f, "let {pod} follow the server that Secret {} names", outside.secret),
        }
    }
}
