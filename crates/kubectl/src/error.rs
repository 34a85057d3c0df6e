//! What can go wrong, in words for a person, and the exit code of each.

use std::error::Error as _;
use std::io;

/// Why a verb did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line says something that cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// There is no kubeconfig, or it is wrong.
    #[error("cannot tell which Kubernetes to talk to: {0}; set KUBECONFIG, or use --kubeconfig and --context")]
    Configure(String),
    /// The API server refused, or did not answer.
    #[error("cannot {act}: {why}")]
    Call {
        /// What was tried, on which object.
        act: String,
        /// What came back.
        why: String,
    },
    /// There is no such cluster.
    #[error("there is no {handle} in namespace {namespace:?}{hint}")]
    NoSuchCluster {
        /// `rss/harbour`.
        handle: String,
        /// Where it was looked for.
        namespace: String,
        /// Where it is, perhaps.
        hint: String,
    },
    /// The cluster went away during the wait.
    #[error("{0} was deleted meanwhile")]
    Gone(String),
    /// What was waited for did not come.
    #[error("{0}")]
    NotMet(String),
    /// The answer cannot be written in the form that was asked for.
    #[error("cannot write the answer: {0}")]
    Form(String),
    /// The answer cannot be printed.
    #[error("cannot print the answer: {0}")]
    Print(#[source] io::Error),
}

impl Error {
    /// 1 error, 2 usage, 3 condition not met.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotMet(_) => 3,
            _ => 1,
        }
    }

    /// Whether the reader went away, as `head` does. That is not worth a word.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The failure of a call.
    pub(crate) fn call(act: impl Into<String>, error: &kube::Error) -> Self {
        Self::Call { act: act.into(), why: explain(error) }
    }
}

/// What the server said, without the words of the library around it.
pub(crate) fn explain(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        let status =
            if status.message.is_empty() { format!("{} {}", status.code, status.reason) } else { status.message.clone() };
        return status;
    }
    // The deepest cause is the one that says something: "connection refused" and not "client error".
    let mut causes = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    causes.dedup();
    causes.join(": ")
}

/// The HTTP status of a refusal.
pub(crate) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
