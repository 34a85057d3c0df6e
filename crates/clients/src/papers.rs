//! What proves to others who the operator is, and by what it knows them.

use std::sync::Arc;

use futures::future::BoxFuture;

/// A certificate with its key, those whom we believe, and by which name others know our authority.
#[derive(Clone)]
pub struct Papers {
    /// The certificate, and then those that vouch for it, in PEM.
    pub certificate: String,
    /// Its private key, in PEM.
    pub key: String,
    /// The authorities whose certificates we believe, in PEM.
    pub roots: String,
    /// The name of the authority that signed the certificate. Who does not list it will not let us in.
    pub authority: String,
}

impl std::fmt::Debug for Papers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Papers by {}", self.authority)
    }
}

/// Whoever has papers for us.
pub trait Registry: Send + Sync + 'static {
    /// Papers that are good now, to talk to the agents of one cluster. It says why there are none.
    fn papers(&self, namespace: &str, cluster: &str) -> BoxFuture<'_, Result<Arc<Papers>, String>>;
}

/// Nobody has.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRegistry;

impl Registry for NoRegistry {
    fn papers(&self, _namespace: &str, _cluster: &str) -> BoxFuture<'_, Result<Arc<Papers>, String>> {
        Box::pin(async { Err("this operator has no authority for certificates".to_owned()) })
    }
}
