//! What a server answered, or why it did not.

use hyper::StatusCode;
use hyper::body::Bytes;
use serde::de::DeserializeOwned;

/// How much of what a server says is told: it goes into status and Events.
const TOLD: usize = 512;

/// Why something is not known, or not done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It was not tried.
    #[error("{act} was not tried at {host}: {why}")]
    Untried {
        /// What.
        act: &'static str,
        /// Where.
        host: String,
        /// Why.
        why: String,
    },
    /// The server could not be reached: nothing was sent.
    #[error("{act}: {host} cannot be reached: {why}")]
    Unreached {
        /// What was tried.
        act: &'static str,
        /// Where.
        host: String,
        /// Why.
        why: String,
    },
    /// It was sent, and nobody knows what came of it.
    #[error("{act}: {host} did not answer: {why}")]
    Lost {
        /// What was tried.
        act: &'static str,
        /// Where.
        host: String,
        /// What happened.
        why: String,
    },
    /// The server said no.
    #[error("{act}: {host} answers with status {status}: {said}")]
    Said {
        /// What was tried.
        act: &'static str,
        /// Where.
        host: String,
        /// The status of the answer.
        status: u16,
        /// What it said.
        said: String,
    },
    /// The server said something that cannot be understood.
    #[error("{act}: what {host} answered cannot be understood: {why}")]
    Strange {
        /// What was tried.
        act: &'static str,
        /// Where.
        host: String,
        /// Why.
        why: String,
    },
}

impl Failure {
    /// Whether the server is silent: it makes no sense to ask it something else now.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self, Self::Unreached { .. } | Self::Lost { .. } | Self::Untried { .. })
    }

    /// Whether something that was to be changed can have been changed.
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(self, Self::Lost { .. } | Self::Said { .. } | Self::Strange { .. })
    }

    /// The status of an answer that is no.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Said { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) act: &'static str,
    pub(crate) host: String,
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The answer, if it is yes.
    pub(crate) fn yes(self) -> Result<Self, Failure> {
        if self.status.is_success() { Ok(self) } else { Err(self.no()) }
    }

    /// The answer as a refusal.
    pub(crate) fn no(&self) -> Failure {
        let said = self.said();
        Failure::Said { act: self.act, host: self.host.clone(), status: self.status.as_u16(), said }
    }

    /// What is in it.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| self.strange(error.to_string()))
    }

    /// What is in it, as text.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.body).map_err(|error| self.strange(error.to_string()))
    }

    pub(crate) fn strange(&self, why: impl Into<String>) -> Failure {
        Failure::Strange { act: self.act, host: self.host.clone(), why: why.into() }
    }

    /// What the server said, on one line. Refusals are texts, some of them within quotation marks.
    pub(crate) fn said(&self) -> String {
        let whole = serde_json::from_slice::<String>(&self.body);
        let whole = whole.unwrap_or_else(|_| String::from_utf8_lossy(&self.body).into_owned());
        whole.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(TOLD).collect()
    }
}
