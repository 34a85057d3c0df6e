//! How readiness is probed: by a connection, or by a question to the component itself.

use serde_json::{Value, json};
use windlass_api::tidb::{Component, Probe};

use super::super::validate::{Group, Validated};
use super::services::{main_port, status_port};
use super::tls;
use crate::fields::{fields_of, without_nothing};

/// After how many seconds the first probe comes, where the user says nothing else.
const FIRST: i32 = 10;

/// The probe, if there is one. Only TiDB has one without being asked: clients must not be led to a server that does not listen.
pub(super) fn readiness(cluster: &Validated, group: &Group) -> Option<Value> {
    let given = group.pods.readiness.as_ref();
    if given.is_none() && group.component != Component::Tidb {
        return None;
    }
    let given = given.cloned().unwrap_or_default();
    let mut probe = by_connection(main_port(group.component), &given, FIRST);
    if let (Some("command"), Some(url)) = (given.type_.as_deref(), status_url(cluster, group.component)) {
        probe.as_object_mut().into_iter().for_each(|probe| drop(probe.remove("tcpSocket")));
        probe["exec"] = json!({ "command": question(cluster, group.component, url) });
    }
    Some(probe)
}

/// A probe that opens a connection.
pub(super) fn by_connection(port: u16, given: &Probe, first: i32) -> Value {
    let probe = json!({
        "tcpSocket": { "port": port },
        "initialDelaySeconds": given.initial_delay_seconds.unwrap_or(first),
        "periodSeconds": given.period_seconds,
    });
    without_nothing(fields_of(&probe)).into()
}

fn status_url(cluster: &Validated, component: Component) -> Option<String> {
    let path = match component {
        // Its answer is each member's own; most others are the leader's.
        Component::Pd => "/pd/api/v1/version",
        Component::Tikv | Component::Tidb | Component::Ticdc => "/status",
        Component::Tiproxy => "/api/debug/health",
        // These have nothing that could be asked so.
        Component::Tiflash | Component::Pump => return None,
    };
    Some(format!("{}://127.0.0.1:{}{path}", super::status_scheme(cluster, component), status_port(component)))
}

fn question(cluster: &Validated, component: Component, url: String) -> Vec<String> {
    let mut command: Vec<String> =
        ["curl", "--silent", "--show-error", "--fail", "--location", "--max-time", "5"].map(Into::into).into();
    if component == Component::Tiproxy {
        // It asks for no certificate, and may show one that has another name.
        command.push("--insecure".to_owned());
    } else if cluster.tls {
        let path = tls::cluster_path(component.as_str());
        let files = [("--cacert", tls::authority(&path)), ("--cert", tls::certificate(&path)), ("--key", tls::key(&path))];
        command.extend(files.into_iter().flat_map(|(argument, file)| [argument.to_owned(), file]));
    }
    command.push(url);
    command
}
