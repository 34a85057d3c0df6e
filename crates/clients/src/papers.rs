//! What proves to others who the operator is, and by what it knows them.

use std::sync::Arc;

use futures::future::BoxFuture;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

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

impl Papers {
    /// How connections are made with them. It says what is wrong with them, and not what is in them.
    pub fn client_configuration(&self) -> Result<ClientConfig, String> {
        let (roots, chain, key) = self.read()?;
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| unusable("protocol", &error))?.with_root_certificates(roots);
        builder.with_client_auth_cert(chain, key).map_err(|error| unusable("certificate", &error))
    }

    /// How connections of those are answered who have papers of the same authorities.
    pub fn server_configuration(&self) -> Result<ServerConfig, String> {
        let (roots, chain, key) = self.read()?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let verifier = verifier.map_err(|error| unusable("authorities", &error))?;
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| unusable("protocol", &error))?.with_client_cert_verifier(verifier);
        builder.with_single_cert(chain, key).map_err(|error| unusable("certificate", &error))
    }

    fn read(&self) -> Result<(RootCertStore, Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(self.roots.as_bytes()) {
            let root = root.map_err(|error| unusable("authorities", &error))?;
            roots.add(root).map_err(|error| unusable("authorities", &error))?;
        }
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| unusable("certificate", &error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| unusable("key", &error))?;
        Ok((roots, chain, key))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn unusable(what: &str, error: &dyn std::fmt::Display) -> String {
    format!("our {what} cannot be used: {error}")
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
