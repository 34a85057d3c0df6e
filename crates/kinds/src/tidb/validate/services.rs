//! What the user may say of Services.

use std::net::IpAddr;

use windlass_api::tidb::{ServiceSpec, TidbClusterSpec};

use super::Problems;
use super::cluster::one_of;

const TYPES: &[&str] = &["ClusterIP", "NodePort", "LoadBalancer"];

pub(super) fn check(spec: &TidbClusterSpec, problems: &mut Problems) {
    if let Some(service) = spec.pd.as_ref().and_then(|pd| pd.service.as_ref()) {
        check_one("spec.pd.service", service, problems);
    }
    if let Some(service) = spec.tidb.as_ref().and_then(|tidb| tidb.service.as_ref()) {
        check_one("spec.tidb.service", &service.service, problems);
        let policy = service.external_traffic_policy.as_ref();
        one_of("spec.tidb.service.externalTrafficPolicy", policy, &["Cluster", "Local"], problems);
        for (index, port) in service.additional_ports.iter().flatten().enumerate() {
            problems.check_part(format!("spec.tidb.service.additionalPorts[{index}]"), port.read(), "Service");
        }
    }
    for (index, service) in spec.services.iter().flatten().enumerate() {
        one_of(&format!("spec.services[{index}].type"), service.type_.as_ref(), TYPES, problems);
    }
}

fn check_one(field: &str, service: &ServiceSpec, problems: &mut Problems) {
    one_of(&format!("{field}.type"), service.type_.as_ref(), TYPES, problems);
    for (index, range) in service.load_balancer_source_ranges.iter().flatten().enumerate() {
        if !is_range(range) {
            let problem = format!("{range:?} is no range of addresses; write it as 10.0.0.0/8");
            problems.tell(format!("{field}.loadBalancerSourceRanges[{index}]"), problem);
        }
    }
}

fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.trim().split_once('/') else { return false };
    let Ok(length) = length.parse::<u8>() else { return false };
    match address.parse() {
        Ok(IpAddr::V4(_)) => length <= 32,
        Ok(IpAddr::V6(_)) => length <= 128,
        Err(_) => false,
    }
}
