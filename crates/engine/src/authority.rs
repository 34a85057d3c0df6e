//! The release's own authority: its roots, and the certificates that it signs.
//!
//! The roots are in one Secret in the release's namespace, with their keys, which are read where something is signed and are sent nowhere
//! else. What is due with them is decided in `windlass_core::certificates`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use windlass_clients::papers::{Papers, Registry};
use windlass_core::certificates::{CERTIFICATE, COPY_OF, Due, ROOT, ROOTS, due, is_renewed, name_roots, signer};
use windlass_core::labels::{FIELD_MANAGER, MANAGED_BY, MANAGED_BY_WINDLASS};
use windlass_core::secrets::Certificate;

use crate::calls::{CallError, Calls, written_by};
use crate::clock::Clock;

/// The common name by which agents know the operator.
const CONTROLLER: &str = "moco-controller";
/// Clocks of nodes differ: what is made now is good a little earlier.
const EARLIER: SignedDuration = SignedDuration::from_mins(10);
/// How long what was read of the roots is believed.
const FRESH: SignedDuration = SignedDuration::from_mins(10);
/// How often a write is tried again that somebody else was faster with.
const TRIES: usize = 3;

/// The keys of a Secret with a certificate.
const CERTIFICATE_KEY: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";
const ROOTS_KEY: &str = "ca.crt";

/// A root.
#[derive(Clone)]
struct Root {
    made: Timestamp,
    certificate: String,
    key: String,
}

/// A certificate with its key, in PEM.
struct Issued {
    certificate: String,
    key: String,
}

/// A certificate with its key and those that it is believed by, as a Secret has them, and what is said about it.
pub struct Certified {
    /// What the Secret holds.
    pub texts: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: Vec<(&'static str, String)>,
}

/// The roots as they were read, and when that was.
#[derive(Clone)]
struct Roots {
    all: Vec<Root>,
    read: Timestamp,
}

impl Roots {
    fn made(&self) -> Vec<Timestamp> {
        self.all.iter().map(|root| root.made).collect()
    }

    /// The names of all.
    fn names(&self) -> String {
        name_roots(&self.made())
    }

    /// Their certificates.
    fn bundle(&self) -> String {
        self.all.iter().map(|root| root.certificate.as_str()).collect()
    }

    fn signer(&self, now: Timestamp) -> Result<&Root, AuthorityError> {
        let made = signer(&self.made(), now);
        made.and_then(|made| self.all.iter().find(|root| root.made == made)).ok_or(AuthorityError::NoRoot)
    }

    /// Signs a certificate of a server with these host names, or of the operator.
    fn issue(&self, names: &[String], now: Timestamp) -> Result<Issued, AuthorityError> {
        let root = self.signer(now)?;
        let mut parameters = CertificateParams::new(names.to_vec())?;
        let (name, purpose) = match names.first() {
            Some(name) => (name.as_str(), ExtendedKeyUsagePurpose::ServerAuth),
            None => (CONTROLLER, ExtendedKeyUsagePurpose::ClientAuth),
        };
        parameters.distinguished_name = DistinguishedName::new();
        // A common name has 64 characters at most; the host names are told elsewhere.
        parameters.distinguished_name.push(DnType::CommonName, name.chars().take(64).collect::<String>());
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        parameters.extended_key_usages = vec![purpose];
        let ends = now.checked_add(CERTIFICATE).unwrap_or(now).min(root.made.checked_add(ROOT).unwrap_or(now));
        set_life(&mut parameters, before(now), ends);
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(parameters_of_root(root.made)?, KeyPair::from_pem(&root.key)?);
        let certificate = parameters.signed_by(&key, &issuer)?;
        Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// A request to the API server failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing could be signed.
    #[error("a certificate cannot be made: {0}")]
    Sign(#[from] rcgen::Error),
    /// The Secret is not what we wrote.
    #[error("Secret {name:?} in namespace {namespace:?} cannot be used: {why}; delete it, and the certificates are made anew")]
    Spoilt {
        /// The Secret.
        name: String,
        /// Where.
        namespace: String,
        /// What is wrong.
        why: String,
    },
    /// Others change it all the time.
    #[error("the roots were changed by somebody else while they were written")]
    Outrun,
    /// None of the roots is good now.
    #[error("none of the roots is good now: is the clock right?")]
    NoRoot,
}

/// The authority of one release.
pub struct Authority {
    calls: Calls,
    namespace: String,
    name: String,
    clock: Clock,
    roots: Mutex<Option<Roots>>,
    own: Mutex<Option<(Timestamp, Arc<Papers>)>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authority {}/{}", self.namespace, self.name)
    }
}

impl Authority {
    /// The authority of a release. Nothing is made before it is needed.
    pub fn new(client: kube::Client, namespace: &str, release: &str, clock: Clock) -> Self {
        Self {
            calls: Calls::new(client),
            namespace: namespace.to_owned(),
            name: format!("{release}-authority"),
            clock,
            roots: Mutex::default(),
            own: Mutex::default(),
        }
    }

    fn secrets(&self, client: kube::Client) -> Api<Secret> {
        Api::namespaced(client, &self.namespace)
    }

    /// The time.
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The roots, after what is due with them was done.
    async fn roots(&self) -> Result<Roots, AuthorityError> {
        let now = self.now();
        let known = self.roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && now.duration_since(known.read) < FRESH
            && due(&known.made(), now) == Due::Keep
        {
            return Ok(known);
        }
        for _ in 0..TRIES {
            let stored = self.read(&self.name).await?;
            let mut all = stored.as_ref().map_or(Ok(Vec::new()), |secret| self.understand(secret))?;
            let made: Vec<Timestamp> = all.iter().map(|root| root.made).collect();
            let roots = match due(&made, now) {
                Due::Keep => Some(Roots { all, read: now }),
                what => {
                    match what {
                        Due::Forget(made) => all.retain(|root| root.made != made),
                        _ => all.push(make_root(now)?),
                    }
                    tracing::info!(?what, authority = ?self, "the roots of the release's certificates change");
                    self.write(stored, &all).await?.then_some(Roots { all, read: now })
                }
            };
            if let Some(roots) = roots {
                *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = Some(roots.clone());
                return Ok(roots);
            }
        }
        Err(AuthorityError::Outrun)
    }

    /// A Secret of the release's namespace.
    async fn read(&self, name: &str) -> Result<Option<Secret>, CallError> {
        let what = || format!("read Secret {name} in namespace {:?}", self.namespace);
        let read = |client| {
            let api = self.secrets(client);
            async move { api.get_opt(name).await }
        };
        self.calls.send(what, read).await
    }

    fn understand(&self, secret: &Secret) -> Result<Vec<Root>, AuthorityError> {
        let spoilt = |why: String| AuthorityError::Spoilt { name: self.name.clone(), namespace: self.namespace.clone(), why };
        let data = secret.data.iter().flatten();
        let texts: BTreeMap<&str, &str> =
            data.filter_map(|(key, value)| Some((key.as_str(), std::str::from_utf8(&value.0).ok()?))).collect();
        let mut roots = Vec::new();
        for (key, certificate) in &texts {
            let Some(second) = key.strip_suffix(".crt") else { continue };
            let made = second.parse().ok().and_then(|second| Timestamp::from_second(second).ok());
            let made = made.ok_or_else(|| spoilt(format!("{key} does not say when it was made")))?;
            let private =
                texts.get(format!("{second}.key").as_str()).ok_or_else(|| spoilt(format!("{second}.key is missing")))?;
            KeyPair::from_pem(private).map_err(|_| spoilt(format!("{second}.key is no private key")))?;
            roots.push(Root { made, certificate: (*certificate).to_owned(), key: (*private).to_owned() });
        }
        Ok(roots)
    }

    /// Whether it was written. When not, somebody else was faster.
    async fn write(&self, stored: Option<Secret>, all: &[Root]) -> Result<bool, AuthorityError> {
        let pairs = all.iter().flat_map(|root| {
            let second = root.made.as_second();
            [(format!("{second}.crt"), &root.certificate), (format!("{second}.key"), &root.key)]
        });
        let data = pairs.map(|(key, text)| (key, ByteString(text.clone().into_bytes()))).collect();
        let exists = stored.is_some();
        let fresh = || Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                labels: Some(BTreeMap::from([(MANAGED_BY.to_owned(), MANAGED_BY_WINDLASS.to_owned())])),
                ..ObjectMeta::default()
            },
            ..Secret::default()
        };
        // The version that was read comes along: whoever changed it since is noticed.
        let secret = Secret { data: Some(data), ..stored.unwrap_or_else(fresh) };
        let (secret, parameters): (&Secret, &PostParams) = (&secret, &written_by(FIELD_MANAGER));
        let what = || format!("write Secret {} in namespace {:?}", self.name, self.namespace);
        let write = |client| {
            let api = self.secrets(client);
            async move {
                if exists { api.replace(&self.name, parameters, secret).await } else { api.create(parameters, secret).await }
            }
        };
        match self.calls.send(what, write).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Has a certificate made, or takes the one that somebody else made. Whoever shows it believes our roots: by them the operator is
    /// known.
    pub async fn certify(&self, wanted: &Certificate) -> Result<Certified, AuthorityError> {
        let roots = self.roots().await?;
        let mut annotations = vec![(ROOTS, roots.names())];
        let found = self.read(&wanted.instead).await?;
        let of = |key| found.as_ref().and_then(|secret| text_of(secret, key));
        let theirs = of(CERTIFICATE_KEY).zip(of(PRIVATE_KEY)).zip(of(ROOTS_KEY));
        let (certificate, key, believed) = if let Some(((certificate, key), root)) = theirs {
            annotations.push((COPY_OF, wanted.instead.clone()));
            (certificate, key, format!("{root}{}", roots.bundle()))
        } else {
            let issued = roots.issue(&wanted.names, self.now())?;
            (issued.certificate, issued.key, roots.bundle())
        };
        let texts = [(CERTIFICATE_KEY, certificate), (PRIVATE_KEY, key), (ROOTS_KEY, believed)];
        Ok(Certified { texts: texts.map(|(key, text)| (key.to_owned(), text)).into(), annotations })
    }

    async fn own(&self) -> Result<Arc<Papers>, AuthorityError> {
        let (now, roots) = (self.now(), self.roots().await?);
        let authority = name_roots(&[roots.signer(now)?.made]);
        let fits = |(made, papers): &(Timestamp, Arc<Papers>)| {
            !is_renewed(*made, CERTIFICATE, now) && papers.authority == authority && papers.roots == roots.bundle()
        };
        let known = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(fits);
        if let Some((_, papers)) = known {
            return Ok(papers);
        }
        let Issued { certificate, key } = roots.issue(&[], now)?;
        let papers = Arc::new(Papers { certificate, key, roots: roots.bundle(), authority });
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, Arc::clone(&papers)));
        Ok(papers)
    }
}

/// The Secret with a certificate that cert-manager made for the agents of a cluster, in the release's namespace.
fn made_by_others(namespace: &str, cluster: &str) -> String {
    format!("moco-agent-{namespace}.{cluster}")
}

impl Registry for Authority {
    fn papers(&self, namespace: &str, cluster: &str) -> BoxFuture<'_, Result<Arc<Papers>, String>> {
        let others = made_by_others(namespace, cluster);
        async move {
            let own = self.own().await.map_err(|error| error.to_string())?;
            // Agents whose certificate somebody else made are known by that one's root.
            let found = self.read(&others).await.map_err(|error| error.to_string())?;
            let Some(root) = found.and_then(|secret| text_of(&secret, ROOTS_KEY)) else { return Ok(own) };
            Ok(Arc::new(Papers { roots: format!("{}{root}", own.roots), ..Papers::clone(&own) }))
        }
        .boxed()
    }
}

/// A text of a Secret, with an end of line.
fn text_of(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    let text = std::str::from_utf8(bytes).ok()?.trim();
    (!text.is_empty()).then(|| format!("{text}\n"))
}

fn make_root(now: Timestamp) -> Result<Root, rcgen::Error> {
    // What is remembered of it has no more than seconds.
    let made = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let key = KeyPair::generate()?;
    let certificate = parameters_of_root(made)?.self_signed(&key)?.pem();
    Ok(Root { made, certificate, key: key.serialize_pem() })
}

/// The same for the same time: by them a root is made, and later signs.
fn parameters_of_root(made: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut parameters = CertificateParams::new(Vec::new())?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, format!("windlass authority {}", made.as_second()));
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let ends = made.checked_add(ROOT).unwrap_or(made);
    set_life(&mut parameters, before(made), ends);
    Ok(parameters)
}

fn before(now: Timestamp) -> Timestamp {
    now.checked_sub(EARLIER).unwrap_or(now)
}

/// From when to when it is good, as certificates count time.
fn set_life(parameters: &mut CertificateParams, from: Timestamp, to: Timestamp) {
    let since_1970 = |at: Timestamp| Duration::from_secs(u64::try_from(at.as_second()).unwrap_or_default());
    parameters.not_before = rcgen::date_time_ymd(1970, 1, 1) + since_1970(from);
    parameters.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970(to);
}
