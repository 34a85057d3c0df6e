//! What counts for the cluster as a whole: its name, what is not supported yet, and texts that must be one of a few.

use windlass_api::tidb::{Component, TidbCluster, TidbClusterSpec, keys};
use windlass_core::names::LONGEST_STATEFUL_SET;

use super::{Problems, given};

/// What scripts of the second version can do beside.
const FLAGS: [&str; 2] = ["WaitForDnsNameIpMatch", "PreferPDAddressesOverDiscovery"];

pub(super) fn check(resource: &TidbCluster, problems: &mut Problems) {
    check_name(resource, problems);
    check_unsupported(&resource.spec, problems);
    check_words(&resource.spec, problems);
}

fn check_name(resource: &TidbCluster, problems: &mut Problems) {
    let name = resource.metadata.name.as_deref().unwrap_or_default();
    let longest =
        Component::ALL.into_iter().filter(|it| is_asked_for(&resource.spec, *it)).map(|it| it.as_str().len() + 1).max();
    let room = LONGEST_STATEFUL_SET - longest.unwrap_or_default();
    if name.len() > room {
        let length = name.len();
        let problem = format!(
            "it has {length} characters and may have at most {room} with these components; create the cluster under a shorter name"
        );
        problems.tell("metadata.name", problem);
    }
    // Custom resources may have dots in their names and digits in front, Services may not.
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || name.ends_with('-') || !name.bytes().all(is_allowed) {
        let problem = format!(
            "{name:?} cannot be part of a Service's name: create the cluster under a name of lower-case letters, digits and \"-\", with a letter in front and not \"-\" at its end"
        );
        problems.tell("metadata.name", problem);
    }
    // Objects of the cluster are found by it, and selectors that cannot be changed contain it.
    let instance = resource.metadata.labels.as_ref().and_then(|labels| labels.get(keys::INSTANCE));
    if let Some(instance) = instance.filter(|instance| *instance != name) {
        let problem = format!("{instance:?} is not the cluster's name, which is not supported yet; remove the label");
        problems.tell(format!("metadata.labels[{}]", keys::INSTANCE), problem);
    }
}

fn is_asked_for(spec: &TidbClusterSpec, component: Component) -> bool {
    match component {
        Component::Pd => spec.pd.is_some(),
        Component::Tikv => spec.tikv.is_some(),
        Component::Tidb => spec.tidb.is_some(),
        Component::Tiflash => spec.tiflash.is_some(),
        Component::Ticdc => spec.ticdc.is_some(),
        Component::Tiproxy => spec.tiproxy.is_some(),
        Component::Pump => spec.pump.is_some(),
    }
}

fn check_unsupported(spec: &TidbClusterSpec, problems: &mut Problems) {
    let mut refuse = |field: &str, what: &str| problems.tell(field, format!("{what} is not supported yet; remove the field"));
    if spec.cluster.is_some() {
        refuse("spec.cluster", "joining another TidbCluster");
    }
    if spec.across_k8s {
        refuse("spec.acrossK8s", "a cluster on more than one Kubernetes");
    }
    if spec.pdms.as_ref().is_some_and(|all| !all.is_empty()) {
        refuse("spec.pdms", "running parts of PD on their own");
    }
    if spec.pd.as_ref().and_then(|pd| given(pd.mode.as_ref())).is_some() {
        refuse("spec.pd.mode", "running parts of PD on their own");
    }
    for (index, address) in spec.pd_addresses.iter().flatten().enumerate() {
        let field = format!("spec.pdAddresses[{index}]");
        if address.starts_with("http://") || address.starts_with("https://") {
            problems.tell(field, "joining PDs elsewhere is not supported yet; remove the field");
        } else {
            problems
                .tell(field, format!("{address:?} is no address of a PD; write it as http://HOST:2379 or https://HOST:2379"));
        }
    }
    match &spec.pd {
        None => problems.tell("spec.pd", "every cluster needs a PD, and joining one elsewhere is not supported yet; add it"),
        Some(pd) if pd.replicas == 0 => {
            let problem =
                "a cluster without a PD cannot be told what to do; write 1 or more, and spec.suspendAction to stop the cluster";
            problems.tell("spec.pd.replicas", problem);
        }
        Some(_) => {}
    }
}

fn check_words(spec: &TidbClusterSpec, problems: &mut Problems) {
    one_of("spec.pvReclaimPolicy", spec.pv_reclaim_policy.as_ref(), &["Retain", "Delete", "Recycle"], problems);
    one_of("spec.startScriptVersion", spec.start_script_version.as_ref(), &["v1", "v2"], problems);
    let helper = spec.helper.as_ref().and_then(|helper| helper.image_pull_policy.as_ref());
    one_of("spec.helper.imagePullPolicy", helper, PULL_POLICIES, problems);
    let layout = spec.tiproxy.as_ref().and_then(|tiproxy| tiproxy.cert_layout.as_ref());
    one_of("spec.tiproxy.certLayout", layout, &["v1"], problems);
    for (index, flag) in spec.start_script_v2_feature_flags.iter().flatten().enumerate() {
        one_of(&format!("spec.startScriptV2FeatureFlags[{index}]"), Some(flag), &FLAGS, problems);
    }
    if let Some(domain) = given(spec.cluster_domain.as_ref())
        && !domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    {
        problems.tell("spec.clusterDomain", format!("{domain:?} is no DNS domain; write it as cluster.local"));
    }
}

/// When images are pulled.
pub(super) const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];

/// A text that must be one of a few, where it is given.
pub(super) fn one_of(field: &str, text: Option<&String>, known: &[&str], problems: &mut Problems) {
    if let Some(text) = given(text).filter(|text| !known.contains(&text.as_str())) {
        problems.tell(field, format!("{text:?} is unknown; write {}, or leave it out", known.join(" or ")));
    }
}
