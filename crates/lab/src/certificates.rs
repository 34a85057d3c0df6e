//! The lab's certificate authority and what it signs.
//!
//! Certificates do not expire: they live and die with the lab's state directory, which is made anew
//! whenever the lab starts afresh.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::layout::Layout;

/// A certificate with its key.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The authority that every part of the lab trusts.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority and writes it into the lab's state.
    pub(crate) fn create(layout: &Layout) -> Result<Self> {
        let key = KeyPair::generate()?;
        let certificate = parameters(layout)?.self_signed(&key)?.pem();
        write(&layout.key_file("ca.key"), &key.serialize_pem())?;
        write(&layout.key_file("ca.crt"), &certificate)?;
        Ok(Self { certificate, issuer: Issuer::new(parameters(layout)?, key) })
    }

    /// The authority of a lab that is up.
    pub(crate) fn open(layout: &Layout) -> Result<Self> {
        let read = |name: &str| {
            let path = layout.key_file(name);
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}: is the lab up?", path.display()))
        };
        let key = KeyPair::from_pem(&read("ca.key")?).context("the lab's ca.key is damaged: bring the lab down and up")?;
        Ok(Self { certificate: read("ca.crt")?, issuer: Issuer::new(parameters(layout)?, key) })
    }

    /// A certificate for a server.
    pub(crate) fn server(&self, name: &str, hosts: &[&str], addresses: &[Ipv4Addr]) -> Result<Signed> {
        let mut parameters = CertificateParams::new(hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>())?;
        parameters.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress((*address).into())));
        parameters.distinguished_name = subject(name, &[])?;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&parameters)
    }

    /// A certificate for a user of the API server.
    pub(crate) fn client(&self, user: &str, groups: &[&str]) -> Result<Signed> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject(user, groups)?;
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&parameters)
    }

    fn sign(&self, parameters: &CertificateParams) -> Result<Signed> {
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?.pem();
        Ok(Signed { certificate, key: key.serialize_pem() })
    }
}

impl Signed {
    /// Writes `NAME.crt` and `NAME.key`.
    pub(crate) fn write(&self, layout: &Layout, name: &str) -> Result<()> {
        write(&layout.key_file(&format!("{name}.crt")), &self.certificate)?;
        write(&layout.key_file(&format!("{name}.key")), &self.key)
    }
}

/// The pair of keys with which service account tokens are signed and checked.
pub(crate) fn write_token_keys(layout: &Layout) -> Result<()> {
    let key = KeyPair::generate()?;
    write(&layout.key_file("tokens.key"), &key.serialize_pem())?;
    write(&layout.key_file("tokens.pub"), &key.public_key_pem())
}

/// Writes a file that only its owner may read.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}

fn parameters(layout: &Layout) -> Result<CertificateParams> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = subject(&format!("{}-authority", layout.group()), &[])?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(parameters)
}

/// Kubernetes reads the user from the common name and the groups from the organisations.
fn subject(user: &str, groups: &[&str]) -> Result<DistinguishedName> {
    /// The attribute "organisation" once more, since a name holds each kind of attribute only once.
    const ORGANISATION: [u64; 4] = [2, 5, 4, 10];
    let mut name = DistinguishedName::new();
    match groups {
        [] => {}
        [one] => name.push(DnType::OrganizationName, *one),
        [one, two] => {
            name.push(DnType::OrganizationName, *one);
            name.push(DnType::CustomDnType(ORGANISATION.to_vec()), *two);
        }
        more => bail!("a lab certificate holds two groups at most, not {}: bind roles to the user {user} instead", more.len()),
    }
    name.push(DnType::CommonName, user);
    Ok(name)
}
