//! The containers that every pod has: the program is copied, the instance is prepared, the server runs, the agent looks after it.
//!
//! The server's container is the user's. Only what the cluster rests on is set over what the user says; who runs it, with which image,
//! resources and rights, is the user's to say. The other containers can run where only restricted pods may.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::mysql::{DEFAULT_MAX_DELAY_SECONDS, DEFAULT_STARTUP_WAIT_SECONDS, SystemContainer};
use windlass_core::views::PodView;

use super::super::validate::Validated;
use super::volumes::{self, DATA_PATH, INSTANCE_CNF_PATH, MY_CNF_PATH, PROGRAM_PATH};
use super::{
    Fields, HEALTH, Inputs, Port, SERVER_PORTS, TCP, config_maps, fields_of, put_default, stateful_set, take_fields, take_list,
    without_nothing,
};

const AGENT: &str = "agent";
/// What the program is told to be an agent.
const AGENT_COMMAND: &str = "mysql-agent";
/// What it is told to run the server.
const RUN_COMMAND: &str = "mysql-run";
const COPY: &str = "copy-moco-init";
const INIT: &str = "moco-init";

/// Names of containers that the user cannot have.
pub(in super::super) const RESERVED_CONTAINERS: [&str; 1] = [AGENT];
/// Names of init containers that the user cannot have.
pub(in super::super) const RESERVED_INIT_CONTAINERS: [&str; 2] = [COPY, INIT];

/// The ports of the agent: the controller, and metrics.
const AGENT_PORTS: [Port; 2] = [Port { name: "agent", number: 9080 }, Port { name: "agent-metrics", number: 8080 }];
/// How long a server that is to stop goes on first: in this time another instance becomes the primary.
const LINGER_SECONDS: i64 = 20;
/// Between two probes, where the user says nothing else.
const PROBE_SECONDS: i64 = 10;
/// How long a probe may take. The server's default of one second makes pods of busy nodes come and go.
const PROBE_TIMEOUT_SECONDS: i64 = 5;

/// The server: the user's container, and over it what the cluster rests on.
pub(super) fn mysqld(cluster: &Validated) -> Value {
    let mut container = fields_of(&cluster.mysqld);
    // A server takes this as its first argument or not at all.
    let mut args = vec![json!(format!("--defaults-file={MY_CNF_PATH}/{}", config_maps::MY_CNF))];
    args.extend(take_list(&mut container, "args"));
    let command = command(take_list(&mut container, "command"));
    let lifecycle = lifecycle(cluster, take_fields(&mut container, "lifecycle"));
    with_protocols(&mut container);
    let ports: Vec<Value> = take_list(&mut container, "ports").into_iter().chain(ports(&SERVER_PORTS)).collect();
    let mounts: Vec<Value> = take_list(&mut container, "volumeMounts").into_iter().chain(volumes::of_mysqld()).collect();
    let startup = startup_probe(cluster, take_fields(&mut container, "startupProbe"));
    let liveness = probe("/healthz", take_fields(&mut container, "livenessProbe"));
    let readiness = probe("/readyz", take_fields(&mut container, "readinessProbe"));
    container.extend([
        ("command".to_owned(), command.into()),
        ("args".to_owned(), args.into()),
        ("lifecycle".to_owned(), lifecycle.into()),
        ("ports".to_owned(), ports.into()),
        ("volumeMounts".to_owned(), mounts.into()),
        ("startupProbe".to_owned(), startup.into()),
        ("livenessProbe".to_owned(), liveness.into()),
        ("readinessProbe".to_owned(), readiness.into()),
    ]);
    without_nothing(container).into()
}

/// Our program runs the server: one that is told to stop by itself tells clients of commits that nobody acknowledged.
fn command(given: Vec<Value>) -> Vec<Value> {
    let server = if given.is_empty() { vec![json!("mysqld")] } else { given };
    [json!(format!("{PROGRAM_PATH}/windlass")), json!(RUN_COMMAND)].into_iter().chain(server).collect()
}

/// The sleep is the node's: an image may have no program for it. It takes no more than half of the time that a pod has to end, so that
/// the server can stop in the other half; Kubernetes refuses one that takes more than all of it, and one of no time.
fn lifecycle(cluster: &Validated, mut given: Fields) -> Fields {
    let linger = LINGER_SECONDS.min(stateful_set::grace_seconds(cluster) / 2);
    given.remove("preStop");
    if linger > 0 {
        given.insert("preStop".to_owned(), json!({ "sleep": { "seconds": linger } }));
    }
    given
}

/// A server may take its time, to recover or to read a large volume.
fn startup_probe(cluster: &Validated, mut given: Fields) -> Fields {
    let period = given.get("periodSeconds").and_then(Value::as_i64).filter(|period| *period > 0).unwrap_or(PROBE_SECONDS);
    let wait = cluster.spec.startup_wait_seconds.unwrap_or(DEFAULT_STARTUP_WAIT_SECONDS);
    put_default(&mut given, "periodSeconds", period);
    put_default(&mut given, "failureThreshold", (i64::from(wait) / period).max(1));
    probe("/healthz", given)
}

/// The user may say how often and how patiently is asked, but not who: only the agent knows what an answer means.
fn probe(path: &str, mut given: Fields) -> Fields {
    given.retain(|field, _| !["exec", "tcpSocket", "grpc"].contains(&field.as_str()));
    given.insert("httpGet".to_owned(), json!({ "path": path, "port": HEALTH.name, "scheme": "HTTP" }));
    put_default(&mut given, "timeoutSeconds", PROBE_TIMEOUT_SECONDS);
    given
}

/// Whether our own agent runs in a pod. One that another operator made has another one, or none.
pub(in super::super) fn has_agent(pod: &PodView) -> bool {
    pod.arguments.get(AGENT).is_some_and(|told| told == AGENT_COMMAND)
}

/// What the containers of such a pod are told.
#[cfg(test)]
pub(in super::super) fn with_agent() -> BTreeMap<String, String> {
    BTreeMap::from([(AGENT.to_owned(), AGENT_COMMAND.to_owned())])
}

/// The agent. The arguments are those of `windlass mysql-agent`; the image starts the program.
pub(super) fn agent(cluster: &Validated, inputs: &Inputs<'_>) -> Value {
    let spec = &cluster.spec;
    let max_delay = spec.max_delay_seconds.unwrap_or(DEFAULT_MAX_DELAY_SECONDS);
    let mut args = vec![AGENT_COMMAND.to_owned(), format!("--max-delay={max_delay}s")];
    if let Some(schedule) = spec.log_rotation_schedule.as_ref().filter(|schedule| !schedule.is_empty()) {
        args.push(format!("--log-rotation-schedule={schedule}"));
    }
    if let Some(size) = spec.log_rotation_size.filter(|size| *size > 0) {
        args.push(format!("--log-rotation-size={size}"));
    }
    let container = json!({
        "name": AGENT,
        "image": inputs.agent_image,
        "args": args,
        "env": [pod_name(), { "name": "CLUSTER_NAME", "value": cluster.name }],
        "envFrom": [{ "secretRef": { "name": cluster.names().credentials() } }],
        "ports": ports(&AGENT_PORTS),
        "volumeMounts": volumes::of_agent(),
    });
    finished(cluster, SystemContainer::Agent, fields_of(&container), same_requests_and_limits("100m", "100Mi"))
}

/// The init containers of the operator: the program comes out of its image, and runs in that of the server.
pub(super) fn init_containers(cluster: &Validated, inputs: &Inputs<'_>) -> [Value; 2] {
    [copy(cluster, inputs), init(cluster, inputs)]
}

fn copy(cluster: &Validated, inputs: &Inputs<'_>) -> Value {
    let container = json!({
        "name": COPY,
        "image": inputs.agent_image,
        "args": ["copy-self", format!("--to={PROGRAM_PATH}")],
        "volumeMounts": volumes::of_copy(),
    });
    finished(cluster, SystemContainer::CopyMocoInit, fields_of(&container), same_requests_and_limits("100m", "512Mi"))
}

fn init(cluster: &Validated, inputs: &Inputs<'_>) -> Value {
    let spec = &cluster.spec;
    let mut command = vec![
        format!("{PROGRAM_PATH}/windlass"),
        "mysql-init".to_owned(),
        format!("--data-dir={DATA_PATH}"),
        format!("--conf-dir={INSTANCE_CNF_PATH}"),
        format!("--server-id-base={}", inputs.server_id_base),
    ];
    if spec.agent_use_localhost {
        command.push("--mysqld-localhost".to_owned());
    }
    if let Some(value) = lower_case_table_names(inputs.options) {
        command.push(format!("--lower-case-table-names={value}"));
    }
    if spec.initialize_timezone_data {
        command.push("--init-timezones".to_owned());
    }
    let mut container = fields_of(&json!({
        "name": INIT,
        "command": command,
        "env": [pod_name()],
        "volumeMounts": volumes::of_init(),
    }));
    for field in ["image", "imagePullPolicy"] {
        if let Some(value) = cluster.mysqld.rest.get(field) {
            container.insert(field.to_owned(), value.clone());
        }
    }
    finished(cluster, SystemContainer::MocoInit, container, init_resources(cluster))
}

/// A server that initialises its data gets what the server gets: the two never run at once, so it costs nothing.
fn init_resources(cluster: &Validated) -> Value {
    let given = cluster.mysqld.rest.get("resources").map(fields_of).unwrap_or_default();
    let amounts: Fields = given.into_iter().filter(|(field, _)| matches!(field.as_str(), "requests" | "limits")).collect();
    if !amounts.is_empty() {
        return amounts.into();
    }
    // Without a limit of processor time, with which an initialisation would take minutes.
    json!({ "requests": { "cpu": "100m", "memory": "512Mi" }, "limits": { "memory": "512Mi" } })
}

/// The one setting that counts at initialisation. With a value that no server has it is left to the server to complain.
fn lower_case_table_names(options: &BTreeMap<String, String>) -> Option<u8> {
    let is_it = |key: &str| {
        let name = key.replace('-', "_");
        name.strip_prefix("loose_").unwrap_or(&name) == "lower_case_table_names"
    };
    let value = options.iter().filter(|(key, _)| is_it(key)).map(|(_, value)| value).next_back()?;
    value.trim().parse().ok().filter(|value| *value <= 2)
}

/// A container of the user's own.
pub(super) fn users(given: &windlass_api::mysql::ContainerTemplate) -> Value {
    let mut container = fields_of(given);
    with_protocols(&mut container);
    without_nothing(container).into()
}

/// A container of the operator's, with the resources and the rights that it has by default, or that the user gives it.
pub(super) fn finished(cluster: &Validated, which: SystemContainer, mut container: Fields, resources: Value) -> Value {
    put_default(&mut container, "resources", resources);
    put_default(&mut container, "securityContext", locked(cluster));
    for given in cluster.spec.pod_template.overwrite_containers.iter().flatten().filter(|given| given.name == which) {
        // In place of all that it has, as users know it.
        if let Some(resources) = &given.resources {
            container.insert("resources".to_owned(), resources.fields.clone().into());
        }
        if let Some(context) = &given.security_context {
            container.insert("securityContext".to_owned(), context.fields.clone().into());
        }
    }
    without_nothing(container).into()
}

/// As few rights as possible. Whoever lets the server run as root gets files that only root can read, so then all do.
fn locked(cluster: &Validated) -> Value {
    let (user, group) = stateful_set::runs_as(cluster);
    let mut context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "readOnlyRootFilesystem": true,
        "runAsUser": user,
        "runAsGroup": group,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    if user != 0 {
        context["runAsNonRoot"] = true.into();
    }
    context
}

/// As much as is requested and no more, so that a pod whose server has the same gets the highest class of service.
pub(super) fn same_requests_and_limits(cpu: &str, memory: &str) -> Value {
    let amounts = json!({ "cpu": cpu, "memory": memory });
    json!({ "requests": amounts, "limits": amounts })
}

/// Ports of the operator's.
pub(super) fn ports(ports: &[Port]) -> Vec<Value> {
    ports.iter().map(|port| json!({ "name": port.name, "containerPort": port.number, "protocol": TCP })).collect()
}

/// Ports are told apart by number and protocol, so an applied one says both.
pub(super) fn with_protocols(container: &mut Fields) {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            put_default(port, "protocol", TCP);
        }
    }
}

/// The server would fill the version in, and every later comparison would find it different.
fn pod_name() -> Value {
    json!({ "name": "POD_NAME", "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.name" } } })
}
