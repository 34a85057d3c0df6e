//! What the user may say of pods, claims and Services: names, ports and volumes that the operator needs are its own.
//!
//! The schema refuses most of this already. It is told again for definitions that an older release installed, and for what the schema
//! cannot see: names that are given twice, parts that Kubernetes could not read.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaimSpec, PodSpec};
use serde_json::Value;
use windlass_api::mysql::{ClaimTemplate, ContainerTemplate, MySQLClusterSpec, Part, PodSpecTemplate, ServiceTemplate, read};

use super::super::build::{DATA, RESERVED_CONTAINERS, RESERVED_INIT_CONTAINERS, RESERVED_VOLUMES, SERVER_PORTS};
use super::{MYSQLD, Problems};

const POD: &str = "spec.podTemplate.spec";

pub(super) fn check(spec: &MySQLClusterSpec, problems: &mut Problems) {
    check_pod(&spec.pod_template.spec, problems);
    check_overwrites(spec, problems);
    check_claims(&spec.volume_claim_templates, problems);
    check_service("spec.primaryServiceTemplate", spec.primary_service_template.as_ref(), problems);
    check_service("spec.replicaServiceTemplate", spec.replica_service_template.as_ref(), problems);
}

fn check_pod(pod: &PodSpecTemplate, problems: &mut Problems) {
    if let Err(error) = read::<PodSpec>(pod) {
        problems.tell(POD, format!("{error}; write it as in a Pod"));
    }
    if !pod.containers.iter().any(|container| container.name == MYSQLD) {
        problems.tell(format!("{POD}.containers"), format!("add a container called {MYSQLD}, with the server's image"));
    }
    let init_containers = pod.init_containers.as_deref().unwrap_or_default();
    check_containers("containers", &pod.containers, problems);
    check_containers("initContainers", init_containers, problems);
    let mut seen = BTreeSet::new();
    let names = pod.containers.iter().chain(init_containers).map(|container| container.name.as_str());
    for twice in names.filter(|name| !name.is_empty() && !seen.insert(*name)) {
        problems.tell(POD, format!("two containers are called {twice:?}; give each its own name"));
    }
    for container in pod.containers.iter().filter(|container| container.name == MYSQLD) {
        check_ports(container, problems);
    }
    for (index, volume) in pod.volumes.iter().flatten().enumerate() {
        let field = format!("{POD}.volumes[{index}].name");
        match volume.name.as_deref() {
            None | Some("") => problems.tell(field, "every volume needs a name"),
            Some(name) if RESERVED_VOLUMES.contains(&name) => {
                problems.tell(field, format!("{name:?} is a volume of the operator's; choose another name"));
            }
            Some(_) => {}
        }
    }
}

fn check_containers(list: &str, containers: &[ContainerTemplate], problems: &mut Problems) {
    for (index, container) in containers.iter().enumerate() {
        let field = format!("{POD}.{list}[{index}]");
        let name = container.name.as_str();
        if name.is_empty() {
            problems.tell(format!("{field}.name"), "every container needs a name");
        }
        // Names are unique among all containers of a pod, so neither list can have one of the other's.
        if RESERVED_CONTAINERS.contains(&name) || RESERVED_INIT_CONTAINERS.contains(&name) {
            problems.tell(format!("{field}.name"), format!("{name:?} is a container of the operator's; choose another name"));
        }
        let image = container.rest.get("image").and_then(Value::as_str).unwrap_or_default();
        if image.is_empty() {
            problems.tell(format!("{field}.image"), "every container needs an image");
        }
    }
}

fn check_ports(mysqld: &ContainerTemplate, problems: &mut Problems) {
    let field = format!("{POD}.containers: {MYSQLD}: ports");
    for port in mysqld.ports.iter().flatten() {
        let number = port.container_port.and_then(|number| u16::try_from(number).ok());
        if let Some(ours) = SERVER_PORTS.iter().find(|ours| number == Some(ours.number)) {
            problems.tell(&field, format!("{} is a port of the operator's; leave it out", ours.number));
        }
        if let Some(ours) = SERVER_PORTS.iter().find(|ours| port.name.as_deref() == Some(ours.name)) {
            problems.tell(&field, format!("{:?} is a port of the operator's; choose another name", ours.name));
        }
    }
}

fn check_overwrites(spec: &MySQLClusterSpec, problems: &mut Problems) {
    for (index, given) in spec.pod_template.overwrite_containers.iter().flatten().enumerate() {
        let field = format!("spec.podTemplate.overwriteContainers[{index}]");
        if let Some(Err(error)) = given.resources.as_ref().map(Part::read) {
            problems.tell(format!("{field}.resources"), format!("{error}; write it as in a container"));
        }
        if let Some(Err(error)) = given.security_context.as_ref().map(Part::read) {
            problems.tell(format!("{field}.securityContext"), format!("{error}; write it as in a container"));
        }
    }
}

fn check_claims(claims: &[ClaimTemplate], problems: &mut Problems) {
    let field = "spec.volumeClaimTemplates";
    let name = |claim: &ClaimTemplate| claim.metadata.name.clone().unwrap_or_default();
    if !claims.iter().any(|claim| name(claim) == DATA) {
        problems.tell(field, format!("add a claim called {DATA}, which holds the data"));
    }
    let mut seen = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let (field, name) = (format!("{field}[{index}]"), name(claim));
        if name.is_empty() {
            problems.tell(format!("{field}.metadata.name"), "every claim needs a name");
        } else if RESERVED_VOLUMES.contains(&name.as_str()) {
            let problem = format!("{name:?} is a volume of the operator's; choose another name");
            problems.tell(format!("{field}.metadata.name"), problem);
        } else if !seen.insert(name.clone()) {
            problems.tell(format!("{field}.metadata.name"), format!("{name:?} is there twice; give each claim its own name"));
        }
        let requests = claim.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        if !requests.is_some_and(|requests| requests.contains_key("storage")) {
            problems.tell(format!("{field}.spec.resources.requests.storage"), "say how large the volume is, for example 10Gi");
        }
        if let Err(error) = read::<PersistentVolumeClaimSpec>(&claim.spec) {
            problems.tell(format!("{field}.spec"), format!("{error}; write it as in a PersistentVolumeClaim"));
        }
    }
}

fn check_service(field: &str, template: Option<&ServiceTemplate>, problems: &mut Problems) {
    if let Some(Err(error)) = template.and_then(|template| template.spec.as_ref()).map(Part::read) {
        problems.tell(format!("{field}.spec"), format!("{error}; write it as in a Service"));
    }
}
