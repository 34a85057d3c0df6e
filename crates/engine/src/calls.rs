//! One request to the API server: bounded in number, bounded in time, tried again only where that is safe.

use std::future::Future;
use std::time::Duration;

use kube::Client;
use thiserror::Error;
use tokio::sync::Semaphore;

/// How long one request may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(3);
/// How many requests are under way at once.
const AT_ONCE: usize = 64;
/// How often a request that the server turned away unseen is sent again.
const RETRIES: u32 = 2;

/// The way to the API server.
pub struct Calls {
    client: Client,
    places: Semaphore,
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
    /// Another writer was first.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 409)
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if source.code == 404)
    }

    /// Sending it again unchanged is of no use.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if matches!(source.code, 400 | 403 | 405 | 413 | 415 | 422))
    }
}

impl Calls {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self { client, places: Semaphore::new(AT_ONCE) }
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
            let answer = tokio::time::timeout(DEADLINE, request(self.client.clone())).await;
            drop(place);
            match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 429 | 503) && tried < RETRIES => {
                    let asked = status.details.as_ref().and_then(|details| u64::try_from(details.retry_after_seconds).ok());
                    tokio::time::sleep(wait.max(Duration::from_secs(asked.unwrap_or(0))).min(DEADLINE)).await;
                    wait *= 4;
                    tried += 1;
                }
                // These may have been answered by somebody on the way, after the server did it.
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 500 | 502 | 504) => {
                    return Err(CallError::Ambiguous { what: what(), why: status.to_string() });
                }
                Ok(Err(kube::Error::Api(source))) => return Err(CallError::Refused { what: what(), source }),
                Ok(Err(error)) => return Err(CallError::Ambiguous { what: what(), why: error.to_string() }),
                Err(_) => {
                    let why = format!("no answer within {} s", DEADLINE.as_secs());
                    return Err(CallError::Ambiguous { what: what(), why });
                }
            }
        }
    }
}
