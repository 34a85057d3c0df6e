//! Whether something may be changed now.
//!
//! Kubernetes refuses what a former leader sends by its versions. Members know no versions: nothing is sent to them any more when the
//! Lease is not held, and this is asked right before each call that changes something.

use std::sync::Arc;

/// Asks before each change.
#[derive(Clone)]
pub struct Guard(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Guard {
    /// Nothing is ever in the way.
    pub fn open() -> Self {
        Self::new(|| Ok(()))
    }

    /// This says whether something is.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Whether something may be changed now, or why not.
    pub fn check(&self) -> Result<(), String> {
        (self.0)()
    }
}
