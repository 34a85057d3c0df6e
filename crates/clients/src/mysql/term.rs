//! The term in which this process looks after servers. A former leader is kept out in two parts: nothing is sent any more when the
//! Lease is not held ([`Guard`]), and whoever comes next ends the sessions of everybody before it, with whatever is still on its way in
//! them, before it changes anything.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;

use super::dialect;
use super::session::{ADMIN, Failure, Session, code};
use crate::guard::Guard;

/// A term.
#[derive(Clone)]
pub(super) struct Term {
    /// What its sessions are known by. No other term has it, of whichever process.
    mark: Arc<str>,
    guard: Guard,
}

impl Term {
    /// A term that nothing ends.
    pub(super) fn new() -> Self {
        let chance = || RandomState::new().build_hasher().finish();
        Self { mark: format!("{:016x}{:016x}", chance(), chance()).into(), guard: Guard::open() }
    }

    /// One in which changes are sent only while this says so.
    pub(super) fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// Whether something may be changed now. It is asked right before each statement.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.guard.check().map_err(Failure::Untried)
    }

    /// Ends the sessions of all other terms.
    pub(super) async fn end_others(&self, session: &mut Session) -> Result<(), Failure> {
        let rows =
            session.all("looking for sessions of a former leader", &dialect::sessions_of_others(ADMIN, &self.mark)).await?;
        for row in rows {
            let id: u64 = match row.text("ID").map(str::parse) {
                Ok(Ok(id)) => id,
                other => return Err(Failure::Untried(format!("the server lists a session that has no number: {other:?}"))),
            };
            tracing::info!(id, "a session of a former leader is ended");
            match session.run("ending a session of a former leader", &format!("KILL {id}")).await {
                // It went by itself.
                Err(failure) if failure.code() == Some(code::NO_SUCH_THREAD) => {}
                end => end?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_terms_have_the_same_mark() {
        assert_ne!(Term::new().mark(), Term::new().mark());
    }

    #[test]
    fn nothing_is_sent_when_the_lease_is_gone() {
        let term = Term::new();
        assert!(term.check().is_ok());
        let ended = term.guarded(Guard::new(|| Err("the Lease is gone".into()))).check();
        assert!(matches!(ended, Err(Failure::Untried(why)) if why == "the Lease is gone"));
    }
}
