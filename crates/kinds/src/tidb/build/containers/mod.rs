//! What runs in the pods of a component: its own container first, then those that print its logs, and those that run before.
//!
//! What of it is the user's (variables, mounts, resources, security) is put in here as well; containers that the user merges into ours
//! or sets beside them come last, in `pods`.

mod logs;
mod stores;
mod tidb;

use serde_json::{Value, json};
use windlass_api::tidb::Component;

use super::super::validate::{Group, Validated};
use super::config_map::{CONFIG, PUMP_CONFIG, SCRIPT};
use super::services::{Port, main_port, status_port};
use super::tls::{self, Mounted};
use super::{TCP, configs, merge, probes, scripts};
use crate::fields::{Fields, fields_of, without_nothing};

pub(super) use tidb::{AUTH_TOKEN_FILE, BOOTSTRAP_FILE};

/// What the pods of a component consist of.
pub(super) struct Parts {
    /// The component's own container.
    main: Fields,
    /// Our containers beside it.
    beside: Vec<Value>,
    /// Our containers that run first.
    first: Vec<Value>,
    /// Volumes, without claims.
    volumes: Vec<Value>,
}

impl Parts {
    /// The containers, ours with the user's merged in: the component's own comes first, since its process is known by that.
    pub(super) fn containers(&self, group: &Group) -> Vec<Value> {
        let main = Value::Object(without_nothing(self.main.clone()));
        let ours = std::iter::once(main).chain(self.beside.iter().cloned()).collect();
        merge::containers(ours, &group.pods.additional_containers)
    }

    /// The containers that run first.
    pub(super) fn init_containers(&self, cluster: &Validated, group: &Group) -> Vec<Value> {
        let sysctl = super::pods::sysctl_container(cluster, group);
        sysctl.into_iter().chain(self.first.iter().cloned()).chain(group.pods.init_containers.iter().cloned()).collect()
    }

    /// The volumes.
    pub(super) fn volumes(&self, group: &Group) -> Vec<Value> {
        self.volumes.iter().chain(&group.pods.volumes).cloned().collect()
    }
}

/// What the pods of a component consist of, with this `ConfigMap`.
pub(super) fn parts(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    match group.component {
        Component::Pd => of_pd(cluster, group, config_map),
        Component::Tikv => stores::of_tikv(cluster, group, config_map),
        Component::Tidb => tidb::of_tidb(cluster, group, config_map),
        Component::Tiflash => stores::of_tiflash(cluster, group, config_map),
        Component::Ticdc => of_ticdc(cluster, group, config_map),
        Component::Tiproxy => of_tiproxy(cluster, group, config_map),
        Component::Pump => of_pump(cluster, group, config_map),
    }
}

/// A container of a component while it is put together.
struct Draft<'a> {
    cluster: &'a Validated,
    group: &'a Group,
    command: Value,
    ports: Vec<Port>,
    env: Vec<Value>,
    mounts: Vec<Value>,
    volumes: Vec<Value>,
}

impl<'a> Draft<'a> {
    fn new(cluster: &'a Validated, group: &'a Group, command: Value) -> Self {
        Self { cluster, group, command, ports: Vec::new(), env: Vec::new(), mounts: Vec::new(), volumes: Vec::new() }
    }

    /// Starts with the script in the `ConfigMap`, which is a file in the pod.
    fn with_script(cluster: &'a Validated, group: &'a Group, config_map: &str, file: &str) -> Self {
        let mut draft = Self::new(cluster, group, json!(["/bin/sh", format!("/usr/local/bin/{file}")]));
        draft.add_pod_info();
        draft.volumes.push(of_config_map("startup-script", config_map, &[(SCRIPT, file)]));
        draft.mounts.push(read_only("startup-script", "/usr/local/bin"));
        draft
    }

    /// Annotations of the pod as a file.
    fn add_pod_info(&mut self) {
        self.volumes.push(json!({ "name": "annotations", "downwardAPI": { "items": [
            { "path": "annotations", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.annotations" } },
        ] } }));
        self.mounts.push(read_only("annotations", "/etc/podinfo"));
    }

    fn add_config(&mut self, config_map: &str, key: &str, directory: &str, file: &str) {
        self.volumes.push(of_config_map("config", config_map, &[(key, file)]));
        self.mounts.push(read_only("config", directory));
    }

    fn add_secret(&mut self, secret: &Mounted) {
        self.volumes.push(secret.volume());
        self.mounts.push(secret.mount());
    }

    /// The certificate that the component shows to others of the cluster.
    fn add_cluster_tls(&mut self) {
        let component = self.group.component.as_str();
        if self.cluster.tls {
            let secret = self.cluster.names().cluster_secret(component);
            self.add_secret(&Mounted::new(&format!("{component}-tls"), secret, &tls::cluster_path(component)));
        }
    }

    fn add_cluster_client_tls(&mut self) {
        if self.cluster.tls {
            let secret = self.cluster.names().cluster_client_secret();
            self.add_secret(&Mounted::new("cluster-client-tls", secret, tls::CLUSTER_CLIENT));
        }
    }

    /// The certificate that is shown to TiDB, which the user may call otherwise.
    fn add_client_tls(&mut self, called: Option<&String>) {
        let called = called.filter(|name| !name.is_empty());
        let secret = called.cloned().unwrap_or_else(|| self.cluster.names().tidb_client_secret());
        self.add_secret(&Mounted::new("tidb-client-tls", secret, tls::CLIENT));
    }

    fn add_env(&mut self, pairs: &[(&str, &str)]) {
        self.env.extend(pairs.iter().map(|(name, value)| json!({ "name": name, "value": value })));
    }

    fn finish(mut self, beside: Vec<Value>, first: Vec<Value>) -> Parts {
        let (group, pods) = (self.group, &self.group.pods);
        let component = group.component;
        let claims = group.claims.iter().filter_map(|claim| Some(mount(&claim.name, claim.mount.as_ref()?)));
        self.mounts.extend(claims);
        self.mounts.extend(pods.mounts.iter().cloned());
        let mut env = vec![field("POD_NAME", "metadata.name"), field("NAMESPACE", "metadata.namespace")];
        env.extend(self.env);
        let resources = without_nothing(fields_of(&json!({ "requests": pods.requests, "limits": pods.limits })));
        let main = json!({
            "name": component.as_str(),
            "image": group.image,
            "imagePullPolicy": pods.pull_policy,
            "command": self.command,
            "ports": self.ports.iter().map(container_port).collect::<Vec<_>>(),
            "env": merge::env(env, &pods.env),
            "envFrom": pods.env_from,
            "resources": resources,
            "volumeMounts": self.mounts,
            "securityContext": merge::fields(privileges(self.cluster, component), pods.container_security.as_ref()),
            "readinessProbe": probes::readiness(self.cluster, group),
        });
        Parts { main: fields_of(&main), beside, first, volumes: self.volumes }
    }
}

/// All rights of the node, where the user gives them.
fn privileges(cluster: &Validated, component: Component) -> Fields {
    let privileged = match component {
        Component::Tikv => cluster.spec.tikv.as_ref().and_then(|tikv| tikv.privileged),
        Component::Tiflash => cluster.spec.tiflash.as_ref().and_then(|tiflash| tiflash.privileged),
        _ => None,
    };
    privileged.map(|privileged| ("privileged".to_owned(), privileged.into())).into_iter().collect()
}

fn container_port(port: &Port) -> Value {
    json!({ "name": port.name, "containerPort": port.number, "protocol": TCP })
}

fn mount(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path })
}

fn read_only(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path, "readOnly": true })
}

fn of_config_map(volume: &str, config_map: &str, files: &[(&str, &str)]) -> Value {
    let items: Vec<Value> = files.iter().map(|(key, path)| json!({ "key": key, "path": path })).collect();
    json!({ "name": volume, "configMap": { "name": config_map, "items": items } })
}

/// The server would fill the version in, and every later comparison would find it different.
fn field(name: &str, path: &str) -> Value {
    json!({ "name": name, "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": path } } })
}

fn of_pd(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let names = cluster.names();
    let mut draft = Draft::with_script(cluster, group, config_map, "pd_start_script.sh");
    draft.add_config(config_map, CONFIG, "/etc/pd", "pd.toml");
    draft.ports = vec![Port { name: "server", number: 2380 }, Port { name: "client", number: main_port(Component::Pd) }];
    draft.add_cluster_tls();
    let pd = cluster.spec.pd.as_ref();
    if pd.and_then(|pd| pd.mount_cluster_client_secret).unwrap_or_default() {
        draft.add_cluster_client_tls();
    }
    if configs::shows_certificate_to_tidb(cluster) {
        draft.add_client_tls(pd.and_then(|pd| pd.tls_client_secret_name.as_ref()));
    }
    let set = names.set(Component::Pd);
    draft.add_env(&[
        ("PEER_SERVICE_NAME", &names.headless_service(Component::Pd)),
        ("SERVICE_NAME", &names.client_service(Component::Pd)),
        ("SET_NAME", &set),
        ("TZ", &cluster.timezone),
    ]);
    draft.env.extend(address(cluster));
    draft.finish(Vec::new(), Vec::new())
}

/// The pod's own address, for scripts that wait until its name leads to it.
fn address(cluster: &Validated) -> Option<Value> {
    scripts::waits_for_address(cluster).then(|| field("POD_IP", "status.podIP"))
}

fn of_ticdc(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let mut draft = Draft::new(cluster, group, json!(["/bin/sh", "-c", scripts::ticdc(cluster, group)]));
    draft.add_config(config_map, CONFIG, "/etc/ticdc", "ticdc.toml");
    draft.ports = vec![Port { name: "ticdc", number: main_port(Component::Ticdc) }];
    draft.add_cluster_tls();
    draft.add_cluster_client_tls();
    let secrets = cluster.spec.ticdc.as_ref().and_then(|ticdc| ticdc.tls_client_secret_names.as_ref());
    for secret in secrets.into_iter().flatten() {
        draft.add_secret(&Mounted::new(secret, secret.clone(), &format!("/var/lib/sink-tls/{secret}")));
    }
    draft.add_env(&[
        ("HEADLESS_SERVICE_NAME", &cluster.names().headless_service(Component::Ticdc)),
        ("TZ", &scripts::ticdc_timezone(cluster, group)),
    ]);
    draft.finish(Vec::new(), Vec::new())
}

fn of_tiproxy(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let names = cluster.names();
    let mut draft = Draft::new(cluster, group, json!(["/bin/sh", "/etc/proxy/start.sh"]));
    draft.add_pod_info();
    draft.volumes.push(of_config_map("config", config_map, &[(CONFIG, "proxy.toml"), (SCRIPT, "start.sh")]));
    draft.mounts.push(read_only("config", "/etc/proxy"));
    draft.ports = vec![
        Port { name: "tiproxy", number: main_port(Component::Tiproxy) },
        Port { name: "tiproxy-api", number: status_port(Component::Tiproxy) },
        Port { name: "tiproxy-peer", number: 3081 },
    ];
    draft.add_cluster_client_tls();
    if configs::shows_own(cluster) {
        draft.add_cluster_tls();
    }
    if cluster.client_tls() {
        draft.add_secret(&Mounted::new("tidb-server-tls", names.tidb_server_secret(), tls::SERVER));
    }
    if configs::encrypts_to_tidb(cluster) && !configs::is_newer_layout(cluster) {
        draft.add_client_tls(cluster.spec.tiproxy.as_ref().and_then(|tiproxy| tiproxy.tls_client_secret_name.as_ref()));
    }
    draft.add_env(&[("HEADLESS_SERVICE_NAME", &names.headless_service(Component::Tiproxy)), ("TZ", &cluster.timezone)]);
    draft.finish(Vec::new(), Vec::new())
}

fn of_pump(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let mut draft = Draft::new(cluster, group, json!(["/bin/sh", "-c", scripts::pump(cluster, group)]));
    draft.add_config(config_map, PUMP_CONFIG, "/etc/pump", "pump.toml");
    draft.ports = vec![Port { name: "pump", number: main_port(Component::Pump) }];
    draft.add_cluster_tls();
    if cluster.spec.pump.as_ref().and_then(|pump| pump.set_time_zone).unwrap_or_default() {
        draft.add_env(&[("TZ", &cluster.timezone)]);
    }
    draft.finish(Vec::new(), Vec::new())
}
