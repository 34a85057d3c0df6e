//! Who may talk to the agent: whoever shows a certificate of the cluster's authority that names the controller.
//!
//! The files are read again when they changed; new ones that cannot be used leave the old ones in force.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::subject::common_name;

/// The common name in the controller's certificate.
pub(crate) const CONTROLLER: &str = "moco-controller";
const FILES: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// Why nobody can be let in.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadCertificates {
    #[error("{path:?} cannot be read: {source}")]
    Look { path: PathBuf, source: std::io::Error },
    #[error("{path:?} cannot be used: {why}")]
    Use { path: PathBuf, why: String },
}

/// What tells a file from the one that was there before; a Secret's volume replaces its files by others.
type Version = [(u64, i64, i64, u64); FILES.len()];

pub(crate) struct Certificates {
    directory: PathBuf,
    loaded: Mutex<Option<(Version, Arc<ServerConfig>)>>,
}

impl Certificates {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), loaded: Mutex::new(None) }
    }

    /// What a connection that comes now is to be spoken with.
    pub(crate) fn current(&self) -> Result<Arc<ServerConfig>, BadCertificates> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = self.version().and_then(|version| match &*loaded {
            Some((of, configuration)) if *of == version => Ok((version, Arc::clone(configuration))),
            _ => Ok((version, Arc::new(load(&self.directory)?))),
        });
        match (fresh, &*loaded) {
            (Ok((version, configuration)), _) => {
                *loaded = Some((version, Arc::clone(&configuration)));
                Ok(configuration)
            }
            (Err(why), Some((_, configuration))) => {
                tracing::warn!(%why, "the certificates cannot be read again; the former ones stay in force");
                Ok(Arc::clone(configuration))
            }
            (Err(why), None) => Err(why),
        }
    }

    fn version(&self) -> Result<Version, BadCertificates> {
        let mut version = Version::default();
        for (name, version) in FILES.into_iter().zip(&mut version) {
            let path = self.directory.join(name);
            let file = std::fs::metadata(&path).map_err(|source| BadCertificates::Look { path, source })?;
            *version = (file.ino(), file.mtime(), file.mtime_nsec(), file.len());
        }
        Ok(version)
    }
}

fn load(directory: &Path) -> Result<ServerConfig, BadCertificates> {
    let [certificate, key, authority] = FILES.map(|name| directory.join(name));
    let unusable = |path: &Path, why: String| BadCertificates::Use { path: path.to_owned(), why };
    let mut roots = RootCertStore::empty();
    for root in read_all(&authority)? {
        roots.add(root).map_err(|error| unusable(&authority, error.to_string()))?;
    }
    let verifier =
        WebPkiClientVerifier::builder(Arc::new(roots)).build().map_err(|error| unusable(&authority, error.to_string()))?;
    let chain = read_all(&certificate)?;
    let key_of = PrivateKeyDer::from_pem_file(&key).map_err(|error| unusable(&key, error.to_string()))?;
    let configuration = ServerConfig::builder().with_client_cert_verifier(verifier).with_single_cert(chain, key_of);
    configuration.map_err(|error| unusable(&certificate, error.to_string()))
}

fn read_all(path: &Path) -> Result<Vec<CertificateDer<'static>>, BadCertificates> {
    let unusable = |why: String| BadCertificates::Use { path: path.to_owned(), why };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))?.collect();
    match found {
        Ok(found) if found.is_empty() => Err(unusable("it has no certificate".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// Whether the other side is the controller. Its certificate is known to be the authority's already.
pub(crate) fn admit(connection: &ServerConnection) -> Result<(), String> {
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    let name = certificate
        .and_then(|certificate| webpki::EndEntityCert::try_from(certificate).ok().and_then(|it| common_name(it.subject())));
    match name.as_deref() {
        Some(CONTROLLER) => Ok(()),
        Some(other) => Err(format!("the client's certificate names {other:?}; only {CONTROLLER:?} may talk to the agent")),
        None => Err(format!("the client's certificate has no common name; only {CONTROLLER:?} may talk to the agent")),
    }
}
