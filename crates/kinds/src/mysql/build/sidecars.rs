//! The two containers that users know beside the server: one prints the log of slow queries, one exports metrics.
//!
//! The API names no image for either, and the operator brings none. So there is one only where the pod template has a container of that
//! name, which names the image; it then gets all that it needs to know of the server. Without such a container it is left out.

use serde_json::{Value, json};
use windlass_api::mysql::{ContainerTemplate, SystemContainer};

use super::super::validate::Validated;
use super::containers::{finished, ports, same_requests_and_limits, with_protocols};
use super::volumes::{self, CREDENTIALS_PATH};
use super::{Port, fields_of, secrets, take_list};

/// The log of slow queries, as my.cnf has it.
pub(super) const SLOW_LOG_FILE: &str = "/var/log/mysql/mysql.slow";
/// Where the exporter answers.
const METRICS: Port = Port { name: "mysqld-metrics", number: 9104 };

pub(super) const SLOW_LOG: &str = "slow-log";
pub(super) const EXPORTER: &str = "mysqld-exporter";

/// The user's container that is to print slow queries.
pub(super) fn given_slow_log(cluster: &Validated) -> Option<&ContainerTemplate> {
    if cluster.spec.disable_slow_query_log_container {
        return None;
    }
    given(cluster, SLOW_LOG)
}

/// The user's container that is to export metrics.
pub(super) fn given_exporter(cluster: &Validated) -> Option<&ContainerTemplate> {
    collectors(cluster).next()?;
    given(cluster, EXPORTER)
}

fn given<'a>(cluster: &'a Validated, name: &str) -> Option<&'a ContainerTemplate> {
    cluster.spec.pod_template.spec.containers.iter().find(|container| container.name == name)
}

fn collectors(cluster: &Validated) -> impl Iterator<Item = &String> {
    cluster.spec.collectors.iter().flatten()
}

/// Those of the two that the pods have.
pub(super) fn sidecars(cluster: &Validated) -> Vec<Value> {
    let slow_log = given_slow_log(cluster).map(|given| slow_log(cluster, given));
    let exporter = given_exporter(cluster).map(|given| exporter(cluster, given));
    slow_log.into_iter().chain(exporter).collect()
}

fn slow_log(cluster: &Validated, given: &ContainerTemplate) -> Value {
    let mut container = fields_of(given);
    with_protocols(&mut container);
    let mounts: Vec<Value> = take_list(&mut container, "volumeMounts").into_iter().chain(volumes::of_slow_log()).collect();
    container.insert("volumeMounts".to_owned(), mounts.into());
    finished(cluster, SystemContainer::SlowLog, container, same_requests_and_limits("100m", "20Mi"))
}

fn exporter(cluster: &Validated, given: &ContainerTemplate) -> Value {
    let mut container = fields_of(given);
    with_protocols(&mut container);
    let account = format!("--config.my-cnf={CREDENTIALS_PATH}/{}", secrets::exporter_file());
    let wanted = collectors(cluster).map(|collector| format!("--collect.{collector}"));
    let ours = std::iter::once(account).chain(wanted).map(Value::from);
    let args: Vec<Value> = ours.chain(take_list(&mut container, "args")).collect();
    let mounts: Vec<Value> = take_list(&mut container, "volumeMounts").into_iter().chain(volumes::of_exporter()).collect();
    let ports: Vec<Value> = take_list(&mut container, "ports").into_iter().chain(ports(&[METRICS])).collect();
    container.extend([
        ("args".to_owned(), json!(args)),
        ("volumeMounts".to_owned(), mounts.into()),
        ("ports".to_owned(), ports.into()),
    ]);
    finished(cluster, SystemContainer::MysqldExporter, container, same_requests_and_limits("200m", "100Mi"))
}
