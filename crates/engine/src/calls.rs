//! One request to the API server: bounded in number, bounded in time, tried again only where that is safe.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::Client;
use kube::api::PostParams;
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::fence::Fenced;

/// How long one request may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(3);
/// How many requests are under way at once at most. A server that cannot keep up gets fewer; see [`Calls::ease`].
const AT_ONCE: usize = 64;
/// How many Services are made at once. The server gives out their addresses one after another, whoever waits.
const ALLOCATIONS: usize = 8;
/// And at least.
const AT_LEAST: usize = 4;
/// How often a request that the server turned away unseen is sent again.
const RETRIES: u32 = 2;

/// The parameters of a write by this field manager.
pub(crate) fn written_by(field_manager: &str) -> PostParams {
    PostParams { field_manager: Some(field_manager.to_owned()), ..PostParams::default() }
}

/// The way to the API server.
pub struct Calls {
    client: Client,
    places: Semaphore,
    /// How many places there are now.
    limit: AtomicUsize,
    allocations: Semaphore,
}

/// A request that did not succeed.
#[derive(Debug, Error)]
pub enum CallError {
    /// The server refused it: the request has no effect.
    #[error("{what}: the API server refused it: {source}")]
    Refused {
        /// What was tried, on which object.
        what: String,
        /// Its answer.
        source: Box<kube::core::Status>,
    },
    /// It makes no sense to send it.
    #[error("{what}: {why}")]
    Senseless {
        /// What was tried, on which object.
        what: String,
        /// Why.
        why: String,
    },
    /// It was not sent: this process does not hold its Lease any more.
    #[error("{what}: {source}")]
    NotSent {
        /// What was tried, on which object.
        what: String,
        /// Why.
        source: Fenced,
    },
    /// No answer came: whether it had an effect is not known.
    #[error("{what}: {why}; whether it had an effect is looked up before anything else is done")]
    Ambiguous {
        /// What was tried, on which object.
        what: String,
        /// What happened.
        why: String,
    },
}

impl CallError {
    /// Another field manager holds a field that was asked for without force.
    pub fn is_field_conflict(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        let causes = source.details.iter().flat_map(|details| &details.causes);
        source.code == 409 && causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
    }

    /// Another writer was first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 409)
    }

    /// It is not allowed, by who asks or by what is asked.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 403)
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 404)
    }

    /// Sending it again unchanged is of no use.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Refused { source, .. } => matches!(source.code, 400 | 403 | 405 | 413 | 415 | 422),
            Self::Senseless { .. } => true,
            Self::NotSent { .. } | Self::Ambiguous { .. } => false,
        }
    }
}

impl Calls {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            places: Semaphore::new(AT_ONCE),
            limit: AtomicUsize::new(AT_ONCE),
            allocations: Semaphore::new(ALLOCATIONS),
        }
    }

    /// The server is too slow: half as many requests at once. Without this, requests that were given up and sent again would
    /// keep a busy server busy for ever.
    fn ease(&self) {
        let limit = self.limit.load(Ordering::Relaxed);
        let fewer = self.places.forget_permits(limit.saturating_sub((limit / 2).max(AT_LEAST)));
        self.limit.fetch_sub(fewer, Ordering::Relaxed);
    }

    /// The server answered soon: one more at once.
    fn grow(&self) {
        let grown =
            self.limit.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |limit| (limit < AT_ONCE).then_some(limit + 1));
        if grown.is_ok() {
            self.places.add_permits(1);
        }
    }

    /// Waits for a turn to make something that the server makes one after another. It ends with what is returned.
    pub(crate) async fn allocation(&self) -> Option<SemaphorePermit<'_>> {
        self.allocations.acquire().await.ok()
    }

    /// The client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Sends a request. Only an answer that says "not now, and nothing was done" (429, 503) is tried again.
    pub async fn send<T, F>(&self, what: impl Fn() -> String, request: impl Fn(Client) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<T, kube::Error>>,
    {
        let mut wait = Duration::from_millis(50);
        let mut tried = 0;
        loop {
            let Ok(place) = self.places.acquire().await else {
                return Err(CallError::Ambiguous { what: what(), why: "the operator is stopping".into() });
            };
            let started = Instant::now();
            let answer = tokio::time::timeout(DEADLINE, request(self.client.clone())).await;
            drop(place);
            match &answer {
                Err(_) => self.ease(),
                Ok(Err(kube::Error::Api(status))) if status.code == 429 => self.ease(),
                Ok(_) if started.elapsed() < DEADLINE / 4 => self.grow(),
                Ok(_) => {}
            }
            match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 429 | 503) && tried < RETRIES => {
                    let asked = status.details.as_ref().map_or(0, |details| u64::from(details.retry_after_seconds));
                    tokio::time::sleep(wait.max(Duration::from_secs(asked)).min(DEADLINE)).await;
                    wait *= 4;
                    tried += 1;
                }
                // These may have been answered by somebody on the way, after the server did it.
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 500 | 502 | 504) => {
                    return Err(CallError::Ambiguous { what: what(), why: status.to_string() });
                }
                Ok(Err(kube::Error::Api(source))) => return Err(CallError::Refused { what: what(), source }),
                Ok(Err(kube::Error::Service(error))) if error.is::<Fenced>() => {
                    return Err(CallError::NotSent { what: what(), source: Fenced });
                }
                Ok(Err(error)) => {
                    return Err(CallError::Ambiguous { what: what(), why: error.to_string() });
                }
                Err(_) => {
                    let why = format!("no answer within {} s", DEADLINE.as_secs());
                    return Err(CallError::Ambiguous { what: what(), why });
                }
            }
        }
    }
}
