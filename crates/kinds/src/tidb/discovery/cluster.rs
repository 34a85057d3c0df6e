//! What discovery needs to know of a TidbCluster and of its volume claims. It is read from the bare objects, and nothing else in them can
//! stand in the way of a member that starts.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::Value;
use windlass_api::tidb::keys::{CLUSTER_ID, COMPONENT, INSTANCE};
use windlass_core::ordinals::{Layout, Ordinal, Ordinals};

/// The annotation with the members of PD that are left out.
const DELETE_SLOTS: &str = "pd.tidb.pingcap.com/delete-slots";

/// Another cluster whose PD is joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The domain of its Kubernetes, if that is another one.
    pub domain: String,
}

/// A member of PD that is not this cluster's, and is joined with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where clients reach it.
    pub client_url: String,
    /// Whether it was healthy when the status was written.
    pub healthy: bool,
}

/// Who speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Nobody.
    Off,
    /// The servers.
    Servers,
    /// The servers and discovery, which asks for certificates.
    Everywhere,
}

impl Tls {
    /// Whether the servers do.
    pub fn at_servers(self) -> bool {
        self != Self::Off
    }

    /// Whether discovery does.
    pub fn at_discovery(self) -> bool {
        self == Self::Everywhere
    }
}

/// A cluster, as far as its members need it to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// What its objects are labelled with.
    pub instance: String,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// The members of PD that are wanted, those included that stand in for others.
    pub members_wanted: Ordinals,
    /// The cluster whose PD is joined.
    pub elsewhere: Option<Elsewhere>,
    /// The addresses of a PD that is joined.
    pub addresses: Vec<String>,
    /// Whether members of PD are called by their host names.
    pub names_are_hosts: bool,
    /// Who speaks TLS.
    pub tls: Tls,
    /// The id in its status.
    pub recorded: Option<String>,
    /// The members of PD in its status.
    pub members: Vec<String>,
    /// Members of PD elsewhere, as in its status.
    pub peers: Vec<Peer>,
}

/// A TidbCluster with something in it that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} of TidbCluster {name:?} cannot be read: {why}")]
pub struct Unreadable {
    name: String,
    field: &'static str,
    why: String,
}

impl Cluster {
    /// Reads a TidbCluster.
    pub fn read(object: &Value) -> Result<Self, Unreadable> {
        let (metadata, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let name = text(&metadata["name"]).unwrap_or_default();
        let unreadable = |field, why: String| Unreadable { name: name.clone(), field, why };
        let namespace = text(&metadata["namespace"]).unwrap_or_default();
        let elsewhere = match &spec["cluster"] {
            Value::Null => None,
            cluster => Some(Elsewhere {
                name: text(&cluster["name"]).ok_or_else(|| unreadable("spec.cluster", "it has no name".to_owned()))?,
                namespace: text(&cluster["namespace"]).unwrap_or_else(|| namespace.clone()),
                domain: text(&cluster["clusterDomain"]).unwrap_or_default(),
            }),
        };
        let addresses = match &spec["pdAddresses"] {
            Value::Null => Vec::new(),
            Value::Array(all) => all
                .iter()
                .map(|it| text(it).ok_or_else(|| unreadable("spec.pdAddresses", format!("{it} is no address"))))
                .collect::<Result<_, _>>()?,
            other => return Err(unreadable("spec.pdAddresses", format!("{other} is no list"))),
        };
        let recorded = match &status["clusterID"] {
            Value::Null => None,
            Value::String(id) if id.is_empty() => None,
            // Whatever it is: something was there.
            Value::String(id) => Some(id.clone()),
            other => Some(other.to_string()),
        };
        let names = |of: &Value| of.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default();
        let peer = |it: &Value| Some(Peer { client_url: text(&it["clientURL"])?, healthy: it["health"] == Value::Bool(true) });
        let peers = status["pd"]["peerMembers"].as_object().into_iter().flatten().filter_map(|(_, it)| peer(it)).collect();
        let is_on = |name: &str| spec["tlsCluster"][name] == Value::Bool(true);
        let tls = match (is_on("enabled"), is_on("enableDiscoveryMTLS")) {
            (false, _) => Tls::Off,
            (true, false) => Tls::Servers,
            (true, true) => Tls::Everywhere,
        };
        Ok(Self {
            members_wanted: members_wanted(object).map_err(|(field, why)| unreadable(field, why))?,
            instance: text(&metadata["labels"][INSTANCE]).unwrap_or_else(|| name.clone()),
            deleting: !metadata["deletionTimestamp"].is_null(),
            elsewhere,
            addresses,
            names_are_hosts: text(&spec["clusterDomain"]).is_some() || spec["acrossK8s"] == Value::Bool(true),
            tls,
            recorded,
            members: names(&status["pd"]["members"]),
            peers,
            name,
            namespace,
        })
    }

    /// How its servers are spoken to.
    pub(super) fn scheme(&self) -> &'static str {
        if self.tls.at_servers() { "https" } else { "http" }
    }

    /// The labels by which its claims are found.
    pub fn selector(&self) -> String {
        format!("{INSTANCE}={}", self.instance)
    }
}

/// A text that is not empty.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn members_wanted(object: &Value) -> Result<Ordinals, (&'static str, String)> {
    let slots = match &object["metadata"]["annotations"][DELETE_SLOTS] {
        Value::String(slots) if !slots.is_empty() => Ordinals::from_annotation(slots)
            .map_err(|error| ("annotation pd.tidb.pingcap.com/delete-slots", error.to_string()))?,
        _ => Ordinals::new(),
    };
    let pd = &object["spec"]["pd"];
    if pd.is_null() {
        return Ok(Ordinals::new());
    }
    let replicas = pd["replicas"].as_u64().and_then(|replicas| u16::try_from(replicas).ok());
    let replicas = replicas.ok_or_else(|| ("spec.pd.replicas", format!("{} is no number of members", pd["replicas"])))?;
    // A member that was deleted because it failed is stood in for by another one.
    let failed = object["status"]["pd"]["failureMembers"].as_object().into_iter().flatten();
    let stand_ins = failed.filter(|(_, it)| it["memberDeleted"] == Value::Bool(true)).count();
    let stand_ins = u16::try_from(stand_ins).unwrap_or(u16::MAX);
    Ok(Layout::with_slots(replicas.saturating_add(stand_ins), slots).members())
}

/// A volume claim of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub name: String,
    /// Its UID: another claim of the same name has other data.
    pub uid: String,
    /// The member of PD whose it is, if it is one's.
    pub ordinal: Option<Ordinal>,
    /// The id of the cluster whose data is on it.
    pub cluster_id: Option<String>,
    /// Whether there is a volume, or was one. What never had one has no data.
    pub is_bound: bool,
}

impl Claim {
    /// Reads a claim of this cluster.
    pub fn read(claim: &PersistentVolumeClaim, cluster: &str) -> Self {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let label = |key: &str| claim.metadata.labels.as_ref().and_then(|labels| labels.get(key)).filter(|it| !it.is_empty());
        let set = format!("-{cluster}-pd");
        let of_pd = label(COMPONENT).is_some_and(|component| component == "pd");
        let ordinal = Ordinal::split_pod_name(&name).filter(|(owner, _)| of_pd && owner.ends_with(&set)).map(|(_, it)| it);
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()).unwrap_or_default();
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
        Self {
            uid: claim.metadata.uid.clone().unwrap_or_default(),
            ordinal,
            cluster_id: label(CLUSTER_ID).cloned(),
            is_bound: !volume.is_empty() || phase != "Pending",
            name,
        }
    }

    /// The UIDs of the claims of one member.
    pub fn of(claims: &[Self], ordinal: Ordinal) -> BTreeSet<String> {
        claims.iter().filter(|claim| claim.ordinal == Some(ordinal)).map(|claim| claim.uid.clone()).collect()
    }
}
