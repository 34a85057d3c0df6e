//! An authority for certificates, and calls to the agent with what it issued.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::agent::exchange;

pub(crate) struct Authority {
    root: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

fn parameters(name: &str) -> CertificateParams {
    let mut parameters = CertificateParams::new(vec!["agent".to_owned()]).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        // Another test of this process may have been first.
        let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let mut parameters = parameters(name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = parameters.self_signed(&key).unwrap();
        Self { root, issuer: Issuer::new(parameters, key) }
    }

    pub(crate) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        Issued { certificate: parameters(name).signed_by(&key, &self.issuer).unwrap(), key }
    }

    /// Puts a certificate for the agent and this authority where the agent looks.
    pub(crate) fn write(&self, directory: &Path) {
        let agent = self.issue("agent");
        let files = [("tls.crt", agent.certificate.pem()), ("tls.key", agent.key.serialize_pem()), ("ca.crt", self.root.pem())];
        for (name, text) in files {
            std::fs::write(directory.join("certificates").join(name), text).unwrap();
        }
    }

    /// Calls `/v1/clone` of an agent that this authority vouches for.
    pub(crate) async fn call(
        &self,
        address: SocketAddr,
        as_whom: Option<&Issued>,
        method: &str,
        body: Option<Value>,
    ) -> std::io::Result<(u16, Value)> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.der().clone()).unwrap();
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let configuration = match as_whom {
            Some(Issued { certificate, key }) => {
                let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
                builder.with_client_auth_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap()).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        let stream = loop {
            match TcpStream::connect(address).await {
                Ok(stream) => break stream,
                // The agent has just been started.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        };
        let name = ServerName::try_from("agent").unwrap();
        let stream = TlsConnector::from(Arc::new(configuration)).connect(name, stream).await?;
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let head = format!("{method} /v1/clone HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: {}", body.len());
        let (status, text) = exchange(stream, &format!("{head}\r\n\r\n{body}")).await?;
        Ok((status, serde_json::from_str(&text).unwrap_or_default()))
    }
}
