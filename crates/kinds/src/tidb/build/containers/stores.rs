//! The containers of TiKV and TiFlash.

use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_core::quantity;

use super::super::super::validate::{Group, Validated};
use super::super::config_map::{CONFIG, TIFLASH_CONFIG, TIFLASH_PROXY};
use super::super::configs::{CLUSTER_LOG, ERROR_LOG, SERVER_LOG, log_path};
use super::super::scripts::{TIFLASH, TIFLASH_FIRST};
use super::super::services::{Port, main_port, status_port};
use super::logs::{mount_of, tailer};
use super::{Draft, Parts, address, field, mount, of_config_map, read_only};
use crate::fields::{fields_of, without_nothing};

pub(super) fn of_tikv(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let tikv = cluster.spec.tikv.clone().unwrap_or_default();
    let mut draft = Draft::with_script(cluster, group, config_map, "tikv_start_script.sh");
    draft.add_config(config_map, CONFIG, "/etc/tikv", "tikv.toml");
    draft.ports = vec![Port { name: "server", number: main_port(Component::Tikv) }];
    if tikv.enable_named_status_port {
        draft.ports.push(Port { name: "status", number: status_port(Component::Tikv) });
    }
    draft.add_cluster_tls();
    if tikv.mount_cluster_client_secret.unwrap_or_default() {
        draft.add_cluster_client_tls();
    }
    add_store_env(&mut draft, group);
    draft.env.extend(address(cluster));
    let logs = [
        ("rocksdblog", tikv.separate_rocks_db_log, tikv.rocks_db_log_volume_name, "rocksdb.info"),
        ("raftlog", tikv.separate_raft_log, tikv.raft_log_volume_name, "raftdb.info"),
    ];
    let beside = logs.into_iter().filter(|it| it.1.unwrap_or_default()).map(|(name, _, volume, file)| {
        let other = volume.filter(|volume| !volume.is_empty()).and_then(|volume| mount_of(group, &volume));
        let (mount, directory) = other.unwrap_or_else(|| (mount("tikv", "/var/lib/tikv"), "/var/lib/tikv".to_owned()));
        tailer(cluster, name, &format!("{directory}/{file}"), Some(mount), tikv.log_tailer.as_ref())
    });
    draft.finish(beside.collect(), Vec::new())
}

pub(super) fn of_tiflash(cluster: &Validated, group: &Group, config_map: &str) -> Parts {
    let tiflash = cluster.spec.tiflash.clone().unwrap_or_default();
    let mut draft = Draft::new(cluster, group, json!(["/bin/sh", "-c", TIFLASH]));
    draft.add_pod_info();
    draft.volumes.push(of_config_map(
        "config",
        config_map,
        &[(TIFLASH_CONFIG, TIFLASH_CONFIG), (TIFLASH_PROXY, TIFLASH_PROXY)],
    ));
    draft.ports = vec![
        Port { name: "tiflash", number: main_port(Component::Tiflash) },
        Port { name: "proxy", number: 20170 },
        Port { name: "metrics", number: status_port(Component::Tiflash) },
        Port { name: "proxy-metrics", number: 20292 },
    ];
    draft.add_cluster_tls();
    add_store_env(&mut draft, group);
    let logs = [("serverlog", SERVER_LOG), ("errorlog", ERROR_LOG), ("clusterlog", CLUSTER_LOG)];
    let beside = logs.map(|(name, log)| {
        let path = log_path(group, log);
        tailer(cluster, name, &path, disk_of(group, &path), tiflash.log_tailer.as_ref())
    });
    let first = json!({
        "name": "init",
        "image": cluster.helper_image,
        "imagePullPolicy": cluster.helper_pull_policy,
        "command": ["sh", "-c", TIFLASH_FIRST],
        "env": [field("POD_NAME", "metadata.name")],
        "resources": tiflash.initializer,
        "volumeMounts": [mount("data0", "/data0"), read_only("config", "/etc/tiflash")],
    });
    draft.finish(beside.into(), vec![without_nothing(fields_of(&first)).into()])
}

/// The disk, or another volume, that a log of TiFlash lies on.
fn disk_of(group: &Group, path: &str) -> Option<Value> {
    let lies_in = |directory: &str| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
    let claims = group.claims.iter().filter_map(|claim| Some((claim.name.as_str(), claim.mount.as_deref()?)));
    let users = group.pods.mounts.iter().filter_map(|it| Some((it["name"].as_str()?, it["mountPath"].as_str()?)));
    claims.chain(users).find(|(_, directory)| lies_in(directory)).map(|(name, directory)| mount(name, directory))
}

fn add_store_env(draft: &mut Draft<'_>, group: &Group) {
    let (cluster, component) = (draft.cluster, group.component);
    draft.add_env(&[
        ("CLUSTER_NAME", &cluster.name),
        ("HEADLESS_SERVICE_NAME", &cluster.names().headless_service(component)),
        ("CAPACITY", &capacity(group.pods.storage_limit.as_deref())),
        ("TZ", &cluster.timezone),
    ]);
}

const MEBIBYTE: u128 = 1 << 20;
const GIBIBYTE: u128 = 1 << 30;

/// How much a store takes itself to hold, as it reads it. With 0 it looks at its volume.
fn capacity(limit: Option<&str>) -> String {
    match limit.and_then(quantity::bytes) {
        None | Some(0) => "0".to_owned(),
        Some(bytes) if bytes.is_multiple_of(GIBIBYTE) => format!("{}GB", bytes / GIBIBYTE),
        Some(bytes) => format!("{}MB", bytes / MEBIBYTE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(None, "0")]
    #[case(Some("0"), "0")]
    #[case(Some("rubbish"), "0")]
    #[case(Some("100Gi"), "100GB")]
    #[case(Some("1536Mi"), "1536MB")]
    #[case(Some("1G"), "953MB")]
    fn a_capacity_is_written_as_stores_read_it(#[case] limit: Option<&str>, #[case] expected: &str) {
        assert_eq!(capacity(limit), expected);
    }
}
