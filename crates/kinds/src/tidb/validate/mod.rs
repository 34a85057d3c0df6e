//! What a spec means once it was found good. Whatever is built or planned starts from [`Validated`], never from the raw spec.
//!
//! All that is wrong is told at once: the field, and what to do. What depends on other objects (Secrets with certificates, a storage
//! class) is not judged here, and neither is a change: there is only what is asked for now.

mod cluster;
mod config;
mod duration;
mod groups;
mod pods;
mod services;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::Resource as _;
use kube::core::ObjectMeta;
use thiserror::Error;
use windlass_api::tidb::{Component, ComponentSpec, PdSpec, TidbCluster, TidbClusterSpec};
use windlass_core::reclaim::RETAIN;
use windlass_core::step::Owner;

use super::build::Names;

pub use groups::{ConfigUpdate, Group, Parallelism};
pub use pods::Pods;
pub use volumes::ClaimTemplate;

/// A spec that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", problems.join("; "))]
pub struct Invalid {
    /// What is wrong: each names the field and says what to do.
    pub problems: Vec<String>,
}

/// A spec that was found good.
#[derive(Clone, Debug, PartialEq)]
pub struct Validated {
    /// The cluster's name.
    pub name: String,
    /// The namespace.
    pub namespace: String,
    /// Who owns what is built.
    pub owner: Owner,
    /// Whether components show certificates to each other.
    pub tls: bool,
    /// Whether discovery does as well.
    pub discovery_tls: bool,
    /// The DNS domain that hosts are named with.
    pub domain: Option<String>,
    /// The time zone of the pods.
    pub timezone: String,
    /// The image of the containers that print logs and set kernel parameters.
    pub helper_image: String,
    /// When that is pulled.
    pub helper_pull_policy: Option<String>,
    /// What becomes of volumes whose claims are deleted.
    pub volume_reclaim_policy: String,
    /// Whether claims of members that were removed are deleted.
    pub deletes_claims: bool,
    /// How long leaders are waited for before a store is restarted all the same.
    pub evict_leader_timeout: Duration,
    /// How long leaders are waited for after a restart.
    pub leaders_back_timeout: Duration,
    /// How long a capture may take to hand its tables over.
    pub graceful_shutdown_timeout: Duration,
    /// The components that there are. PD is always among them.
    pub groups: BTreeMap<Component, Group>,
    /// The pods of discovery.
    pub discovery: Pods,
    /// The rest, as the user wrote it.
    pub spec: TidbClusterSpec,
}

impl Validated {
    /// The names of its objects.
    pub fn names(&self) -> Names<'_> {
        Names::new(&self.name, &self.namespace, self.domain.as_deref())
    }

    /// A component, if it is asked for.
    pub fn group(&self, component: Component) -> Option<&Group> {
        self.groups.get(&component)
    }

    /// Whether clients and TiDB show certificates to each other.
    pub fn client_tls(&self) -> bool {
        self.spec.tidb.as_ref().and_then(|tidb| tidb.tls_client.as_ref()).is_some_and(|tls| tls.enabled)
    }

    /// `http` or `https`, as components speak to each other.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

/// What is wrong, as far as it was found.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    /// What is wrong with the cluster's own settings is found once for each component, and told once.
    fn tell(&mut self, field: impl Display, problem: impl Display) {
        let problem = format!("{field}: {problem}");
        if !self.0.contains(&problem) {
            self.0.push(problem);
        }
    }

    /// A part of Kubernetes that was read, or why it cannot be.
    fn check_part<T>(&mut self, field: impl Display, read: Result<T, serde_json::Error>, whole: &str) {
        if let Err(error) = read {
            self.tell(field, format!("{error}; write it as in a {whole}"));
        }
    }
}

/// How long leaders are waited for before a store is restarted all the same.
const EVICT_LEADER: Duration = Duration::from_hours(25);
/// How long leaders are waited for after a restart.
const LEADERS_BACK: Duration = Duration::from_secs(400);
/// How long a capture may take to hand its tables over.
const GRACEFUL_SHUTDOWN: Duration = Duration::from_mins(10);
const TIMEZONE: &str = "UTC";
const HELPER_IMAGE: &str = "busybox:1.26.2";

/// Judges a spec.
pub fn validate(resource: &TidbCluster) -> Result<Validated, Invalid> {
    let (metadata, spec) = (&resource.metadata, &resource.spec);
    let mut problems = Problems::default();
    cluster::check(resource, &mut problems);
    let groups = groups::read_all(resource, &mut problems);
    let discovery = spec.discovery.clone().unwrap_or_default();
    let discovery = pods::read(spec, &discovery.component, "spec.discovery", &["discovery"], &mut problems);
    let (tikv, ticdc) = (spec.tikv.as_ref(), spec.ticdc.as_ref());
    let mut timeout = |field: &str, text: Option<&String>, default: Duration| {
        let Some(text) = given(text) else { return default };
        duration::parse(text).filter(|it| !it.is_zero()).unwrap_or_else(|| {
            problems.tell(field, format!("{text:?} is no duration that one can wait; write for example 30m or 1h30m"));
            default
        })
    };
    let evict = tikv.and_then(|it| it.evict_leader_timeout.as_ref());
    let evict_leader_timeout = timeout("spec.tikv.evictLeaderTimeout", evict, EVICT_LEADER);
    let back = tikv.and_then(|it| it.wait_leader_transfer_back_timeout.as_ref());
    let leaders_back_timeout = timeout("spec.tikv.waitLeaderTransferBackTimeout", back, LEADERS_BACK);
    let graceful = ticdc.and_then(|it| it.graceful_shutdown_timeout.as_ref());
    let graceful_shutdown_timeout = timeout("spec.ticdc.gracefulShutdownTimeout", graceful, GRACEFUL_SHUTDOWN);
    if !problems.0.is_empty() {
        return Err(Invalid { problems: problems.0 });
    }
    let name = metadata.name.clone().unwrap_or_default();
    let tls = spec.tls_cluster.as_ref();
    let helper = spec.helper.as_ref();
    let helper_pull_policy =
        given(helper.and_then(|it| it.image_pull_policy.as_ref())).or(given(spec.image_pull_policy.as_ref()));
    Ok(Validated {
        owner: Owner {
            api_version: TidbCluster::api_version(&()).into_owned(),
            kind: TidbCluster::kind(&()).into_owned(),
            name: name.clone(),
            uid: metadata.uid.clone().unwrap_or_default(),
        },
        name,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        tls: tls.is_some_and(|tls| tls.enabled),
        discovery_tls: tls.is_some_and(|tls| tls.enabled && tls.enable_discovery_mtls),
        domain: given(spec.cluster_domain.as_ref()).cloned(),
        timezone: or(spec.timezone.as_ref(), TIMEZONE),
        helper_image: or(helper.and_then(|it| it.image.as_ref()), HELPER_IMAGE),
        helper_pull_policy: helper_pull_policy.cloned(),
        volume_reclaim_policy: or(spec.pv_reclaim_policy.as_ref(), RETAIN),
        deletes_claims: spec.enable_pv_reclaim.unwrap_or_default(),
        evict_leader_timeout,
        leaders_back_timeout,
        graceful_shutdown_timeout,
        groups,
        discovery,
        spec: spec.clone(),
    })
}

/// What a refused spec says all the same of what is there already: the cluster's name, and whether its members show certificates.
pub fn bare(resource: &TidbCluster) -> Result<Validated, Invalid> {
    let TidbCluster { metadata, spec, .. } = resource;
    let storage = BTreeMap::from([("storage".to_owned(), Quantity("1Gi".to_owned()))]);
    let component = ComponentSpec { requests: Some(storage), ..ComponentSpec::default() };
    let metadata = ObjectMeta { labels: None, annotations: None, ..metadata.clone() };
    let spec = TidbClusterSpec {
        tls_cluster: spec.tls_cluster.clone(),
        prefer_ipv6: spec.prefer_ipv6,
        // What its members run is not asked here.
        version: Some("any".to_owned()),
        pd: Some(PdSpec { replicas: 1, component, ..PdSpec::default() }),
        ..TidbClusterSpec::default()
    };
    validate(&TidbCluster { metadata, spec, status: None })
}

/// What the user gave, where an empty text is nothing.
fn given(text: Option<&String>) -> Option<&String> {
    text.filter(|text| !text.is_empty())
}

fn or(text: Option<&String>, default: &str) -> String {
    given(text).map_or(default, String::as_str).to_owned()
}
