//! The webhook's own certificates: what is kept in the Secret, when something of it is due, and what it is replaced by.
//!
//! An authority of our own signs the server's certificate. Whoever asks trusts the bundle of authorities that is in the registrations; so
//! a new authority is first only added to it, and signs nothing before the bundle had time to get there. At most one thing changes at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// For how many days an authority is good, and when the next one is made.
const AUTHORITY_DAYS: i64 = 3650;
const AUTHORITY_RENEWED: i64 = 365;
/// The same of a certificate.
const CERTIFICATE_DAYS: i64 = 90;
const CERTIFICATE_RENEWED: i64 = 30;

const BUNDLE: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITY_ENDS: &str = "ca.expires";
const CERTIFICATE_ENDS: &str = "tls.expires";
const NAME: &str = "tls.name";

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadCertificate {
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    #[error("the certificate cannot be used: {0}")]
    Use(String),
}

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The authorities that are trusted, the newest first.
    pub(super) bundle: String,
    authority_key: String,
    authority_ends: Timestamp,
    certificate: String,
    key: String,
    certificate_ends: Timestamp,
    /// The host that the certificate is for.
    host: String,
}

impl Kept {
    /// Reads what is kept. What is not whole counts as nothing.
    pub(super) fn read(data: &BTreeMap<String, Vec<u8>>) -> Option<Self> {
        let text = |key: &str| String::from_utf8(data.get(key)?.clone()).ok();
        let kept = Self {
            bundle: text(BUNDLE)?,
            authority_key: text(AUTHORITY_KEY)?,
            authority_ends: text(AUTHORITY_ENDS)?.parse().ok()?,
            certificate: text(CERTIFICATE)?,
            key: text(KEY)?,
            certificate_ends: text(CERTIFICATE_ENDS)?.parse().ok()?,
            host: text(NAME)?,
        };
        kept.configuration().is_ok().then_some(kept)
    }

    /// What is written.
    pub(super) fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let (authority_ends, certificate_ends) = (self.authority_ends.to_string(), self.certificate_ends.to_string());
        let all = [
            (BUNDLE, &self.bundle),
            (AUTHORITY_KEY, &self.authority_key),
            (AUTHORITY_ENDS, &authority_ends),
            (CERTIFICATE, &self.certificate),
            (KEY, &self.key),
            (CERTIFICATE_ENDS, &certificate_ends),
            (NAME, &self.host),
        ];
        all.into_iter().map(|(key, value)| (key.to_owned(), value.clone().into_bytes())).collect()
    }

    /// What connections are spoken with.
    pub(super) fn configuration(&self) -> Result<Arc<ServerConfig>, BadCertificate> {
        let unusable = |error: &dyn std::fmt::Display| BadCertificate::Use(error.to_string());
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| unusable(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| unusable(&error))?;
        let configuration = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        Ok(Arc::new(configuration.map_err(|error| unusable(&error))?))
    }

    /// Everything new.
    fn made(host: &str, now: Timestamp) -> Result<Self, BadCertificate> {
        let authority = KeyPair::generate()?;
        let (parameters, ends) = authority_parameters(now);
        let bundle = parameters.self_signed(&authority)?.pem();
        let kept = Self {
            bundle,
            authority_key: authority.serialize_pem(),
            authority_ends: ends,
            certificate: String::new(),
            key: String::new(),
            certificate_ends: now,
            host: host.to_owned(),
        };
        kept.with_new_certificate(host, now)
    }

    /// Another authority is trusted as well; the certificate stays as it is.
    fn with_new_authority(&self, now: Timestamp) -> Result<Self, BadCertificate> {
        let authority = KeyPair::generate()?;
        let (parameters, authority_ends) = authority_parameters(now);
        // The last one before it has signed the certificate; those before that sign nothing that is in use.
        let last = first_certificate(&self.bundle);
        let bundle = format!("{}{last}", parameters.self_signed(&authority)?.pem());
        Ok(Self { bundle, authority_key: authority.serialize_pem(), authority_ends, ..self.clone() })
    }

    /// The newest authority signs another certificate.
    fn with_new_certificate(&self, host: &str, now: Timestamp) -> Result<Self, BadCertificate> {
        let (authority, _) = authority_parameters(now);
        let issuer = Issuer::new(authority, KeyPair::from_pem(&self.authority_key)?);
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(vec![host.to_owned()])?;
        parameters.use_authority_key_identifier_extension = true;
        let certificate_ends = span(&mut parameters, now, CERTIFICATE_DAYS);
        let certificate = parameters.signed_by(&key, &issuer)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), certificate_ends, host: host.to_owned(), ..self.clone() })
    }
}

/// What is to be kept instead, if something is due.
pub(super) fn due(kept: Option<&Kept>, host: &str, now: Timestamp) -> Result<Option<Kept>, BadCertificate> {
    let Some(kept) = kept else { return Kept::made(host, now).map(Some) };
    let left = |ends: Timestamp| (ends - now).total(jiff::Unit::Hour).unwrap_or(0.0) / 24.0;
    #[expect(clippy::cast_precision_loss, reason = "a number of days")]
    let is_due = |ends, days: i64| left(ends) < days as f64;
    if left(kept.authority_ends) <= 0.0 {
        return Kept::made(host, now).map(Some);
    }
    if is_due(kept.authority_ends, AUTHORITY_RENEWED) {
        return kept.with_new_authority(now).map(Some);
    }
    if kept.host != host || is_due(kept.certificate_ends, CERTIFICATE_RENEWED) {
        return kept.with_new_certificate(host, now).map(Some);
    }
    Ok(None)
}

fn first_certificate(bundle: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----";
    bundle.find(END).map_or(bundle, |at| &bundle[..(at + END.len() + 1).min(bundle.len())])
}

fn authority_parameters(now: Timestamp) -> (CertificateParams, Timestamp) {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "windlass-webhook");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ends = span(&mut parameters, now, AUTHORITY_DAYS);
    (parameters, ends)
}

/// Good from yesterday on, for clocks that go behind, until midnight of the last day.
fn span(parameters: &mut CertificateParams, now: Timestamp, days: i64) -> Timestamp {
    let today = now.to_zoned(TimeZone::UTC).date();
    let day = |date: jiff::civil::Date| {
        let small = |number: i8| u8::try_from(number).unwrap_or(1);
        rcgen::date_time_ymd(date.year().into(), small(date.month()), small(date.day()))
    };
    let last = today.saturating_add(days.days());
    (parameters.not_before, parameters.not_after) = (day(today.saturating_sub(1.day())), day(last));
    last.to_zoned(TimeZone::UTC).map_or(now, |midnight| midnight.timestamp())
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
