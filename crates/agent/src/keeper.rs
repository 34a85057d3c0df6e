//! One kept connection of the agent's own account.
//!
//! It is kept because clients may take up all connections of a server: probes must still be answered then. A question that was cut
//! short leaves its connection in an unknown state, so a connection is put back only by whoever got a whole answer.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;

use crate::accounts::{AGENT, Passwords};
use crate::session::{Failure, Session, Socket};

/// How long one question may take, log-in included.
const ANSWER: Duration = Duration::from_secs(5);

/// Something to ask in a session; it may be asked twice.
pub(crate) trait Question<T>: for<'a> Fn(&'a mut Session) -> BoxFuture<'a, Result<T, Failure>> + Sync {}

impl<T, Q: for<'a> Fn(&'a mut Session) -> BoxFuture<'a, Result<T, Failure>> + Sync> Question<T> for Q {}

pub(crate) struct Keeper {
    socket: Socket,
    passwords: Passwords,
    kept: Mutex<Option<Session>>,
}

impl Keeper {
    pub(crate) fn new(socket: Socket, passwords: Passwords) -> Self {
        Self { socket, passwords, kept: Mutex::new(None) }
    }

    /// Asks with the kept connection, or with a new one where it is in use or broken.
    pub(crate) async fn ask<T>(&self, act: &'static str, ask: impl Question<T>) -> Result<T, Failure> {
        let late = |_| Failure::Act { act, code: None, said: format!("no answer within {} s", ANSWER.as_secs()) };
        tokio::time::timeout(ANSWER, self.try_to_ask(&ask)).await.map_err(late)?
    }

    async fn try_to_ask<T>(&self, ask: &impl Question<T>) -> Result<T, Failure> {
        let kept = self.kept().take();
        if let Some(mut session) = kept {
            match ask(&mut session).await {
                // The server restarted since, most likely: a new connection tells.
                Err(failure) if failure.code().is_none() => {}
                answer => {
                    self.kept().replace(session);
                    return answer;
                }
            }
        }
        let mut session = self.socket.log_in(AGENT, self.passwords.of(AGENT)).await?;
        let answer = ask(&mut session).await;
        if answer.is_ok() {
            self.kept().replace(session);
        }
        answer
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Session>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
