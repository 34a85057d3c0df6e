//! The containers of TiDB.

use serde_json::{Value, json};
use windlass_api::tidb::{Component, CustomizedProbe, TidbSpec};

use super::super::super::validate::{Group, Validated};
use super::super::config_map::CONFIG;
use super::super::services::{Port, main_port, status_port};
use super::super::tls::{self, Mounted};
use super::logs::{mount_of, tailer};
use super::{Draft, Parts, mount, of_config_map, read_only};
use crate::fields::{fields_of, without_nothing};

/// Where the keys that tokens of clients are checked with are.
pub(in super::super) const AUTH_TOKEN_FILE: &str = "/var/lib/tidb-auth-token/tidb_auth_token_jwks.json";
const AUTH_TOKEN: &str = "/var/lib/tidb-auth-token";
/// Where the statements are that run once, when the cluster begins.
pub(in super::super) const BOOTSTRAP_FILE: &str = "/etc/tidb-bootstrap/bootstrap.sql";
const BOOTSTRAP: &str = "/etc/tidb-bootstrap";
const PROBE: &str = "/var/lib/tidb-probe";

pub(super) fn of_tidb(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let tidb = cluster.spec.tidb.clone().unwrap_or_default();
    let names = cluster.names();
    let mut draft = Draft::with_script(cluster, group, config_map, "tidb_start_script.sh");
    draft.add_config(config_map, CONFIG, "/etc/tidb", "tidb.toml");
    draft.ports = vec![
        Port { name: "server", number: main_port(Component::Tidb) },
        Port { name: "status", number: status_port(Component::Tidb) },
    ];
    if tidb.token_based_auth_enabled.unwrap_or_default() {
        draft.add_secret(&Mounted::new("tidb-auth-token", names.auth_token_secret(), AUTH_TOKEN));
    }
    draft.add_cluster_tls();
    if cluster.client_tls() {
        draft.add_secret(&Mounted::new("tidb-server-tls", names.tidb_server_secret(), tls::SERVER));
    }
    if let Some(statements) = tidb.bootstrap_sql_config_map_name.as_ref().filter(|name| !name.is_empty()) {
        draft.volumes.push(of_config_map("tidb-bootstrap-sql", statements, &[("bootstrap-sql", "bootstrap.sql")]));
        draft.mounts.push(read_only("tidb-bootstrap-sql", BOOTSTRAP));
    }
    let (slow_log, beside) = slow_log(&mut draft, &tidb);
    draft.add_env(&[
        ("CLUSTER_NAME", &cluster.name),
        ("TZ", &cluster.timezone),
        ("SLOW_LOG_FILE", &slow_log),
        ("HEADLESS_SERVICE_NAME", &names.headless_service(Component::Tidb)),
    ]);
    let probe = tidb.customized_startup_probe.as_ref().map(|probe| own_probe(&mut draft, probe));
    let (startup, first) = probe.unzip();
    let mut parts = draft.finish(beside.into_iter().collect(), first.into_iter().collect());
    parts.main.extend(tidb.lifecycle.map(|lifecycle| ("lifecycle".to_owned(), Value::Object(lifecycle.fields))));
    parts.main.extend(startup.map(|startup| ("startupProbe".to_owned(), startup)));
    parts
}

/// Where slow queries are logged, and what prints that log. Without a container for it they are in the log of the server.
fn slow_log(draft: &mut Draft<'_>, tidb: &TidbSpec) -> (String, Option<Value>) {
    if !tidb.separate_slow_log.unwrap_or(true) {
        return (String::new(), None);
    }
    let volume = tidb.slow_log_volume_name.as_ref().filter(|volume| !volume.is_empty());
    let given = volume.and_then(|volume| {
        let (mount, directory) = mount_of(draft.group, volume)?;
        Some((mount, format!("{directory}/{volume}")))
    });
    let (mount, path) = given.unwrap_or_else(|| {
        draft.volumes.push(json!({ "name": "slowlog", "emptyDir": {} }));
        let mount = mount("slowlog", "/var/log/tidb");
        draft.mounts.push(mount.clone());
        (mount, "/var/log/tidb/slowlog".to_owned())
    });
    let resources = tidb.slow_log_tailer.as_ref().map(|tailer| &tailer.resources);
    let container = tailer(draft.cluster, "slowlog", &path, Some(mount), resources);
    (path, Some(container))
}

/// A program of the user's that tells whether a server has started: how it is asked, and how it comes into the pod.
fn own_probe(draft: &mut Draft<'_>, probe: &CustomizedProbe) -> (Value, Value) {
    let name = &probe.binary_name;
    draft.volumes.push(json!({ "name": name, "emptyDir": {} }));
    draft.mounts.push(mount(name, PROBE));
    let command: Vec<String> = std::iter::once(format!("{PROBE}/{name}")).chain(probe.args.iter().flatten().cloned()).collect();
    let startup = json!({
        "exec": { "command": command },
        "initialDelaySeconds": probe.initial_delay_seconds,
        "timeoutSeconds": probe.timeout_seconds,
        "periodSeconds": probe.period_seconds,
        "failureThreshold": probe.failure_threshold,
        // Kubernetes refuses any other.
        "successThreshold": 1,
    });
    let copy = json!({
        "name": name,
        "image": probe.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", format!("cp /{name} {PROBE}/{name}")],
        "volumeMounts": [mount(name, PROBE)],
    });
    (without_nothing(fields_of(&startup)).into(), copy)
}
