//! The configurations of TiKV and TiFlash.

use toml::{Table, Value};
use windlass_api::tidb::Component;

use super::super::super::validate::{Group, Validated};
use super::super::services::main_port;
use super::super::tls;
use super::Settings;

pub(super) fn of_tikv(cluster: &Validated, config: &mut Settings) {
    if cluster.tls {
        config.set_certificate(["security.ca-path", "security.cert-path", "security.key-path"], &tls::cluster_path("tikv"));
    }
}

/// The logs of TiFlash, and where they are when the user says nothing else.
pub(in super::super) const SERVER_LOG: (&str, &str) = ("logger.log", "/data0/logs/server.log");
pub(in super::super) const ERROR_LOG: (&str, &str) = ("logger.errorlog", "/data0/logs/error.log");
pub(in super::super) const CLUSTER_LOG: (&str, &str) = ("flash.flash_cluster.log", "/data0/logs/flash_cluster_manager.log");

/// Where a log of TiFlash is.
pub(in super::super) fn log_path(group: &Group, (setting, default): (&str, &str)) -> String {
    let config = Settings(group.config.clone());
    config.get(setting).and_then(Value::as_str).unwrap_or(default).to_owned()
}

const PROXY_PORT: u16 = 20170;
const PROXY_STATUS_PORT: u16 = 20292;

/// What stands for the ordinal of a pod until it starts.
const ORDINAL: &str = "POD_NUM";

fn listen_host(cluster: &Validated) -> &'static str {
    if cluster.spec.prefer_ipv6 { "[::]" } else { "0.0.0.0" }
}

/// The host name of the pod that reads the file.
fn own_host(cluster: &Validated) -> String {
    let names = cluster.names();
    let pod = format!("{}-{ORDINAL}", names.set(Component::Tiflash));
    names.host_of(Component::Tiflash, &pod)
}

pub(super) fn of_tiflash(cluster: &Validated, group: &Group, config: &mut Settings) {
    let (names, listen, host) = (cluster.names(), listen_host(cluster), own_host(cluster));
    // Disks are named in one of two ways, and an older one still counts.
    if config.get("path").is_none() {
        let disks = group.claims.iter().filter_map(|claim| Some(Value::String(format!("{}/db", claim.mount.as_ref()?))));
        config.put_default("storage.main.dir", disks.collect::<Vec<_>>());
    }
    if config.get("raft.kvstore_path").is_none() {
        config.put_default("storage.raft.dir", vec![Value::String("/data0/kvstore".to_owned())]);
    }
    config.put_default("tmp_path", "/data0/tmp");
    config.put_default("flash.tidb_status_addr", format!("{}:10080", names.service_host(Component::Tidb)));
    config.put_default("flash.service_addr", format!("{listen}:{}", main_port(Component::Tiflash)));
    config.put_default("flash.proxy.addr", format!("{listen}:{PROXY_PORT}"));
    config.put_default("flash.proxy.advertise-addr", format!("{host}:{PROXY_PORT}"));
    config.put_default("flash.proxy.data-dir", "/data0/proxy");
    config.put_default("flash.proxy.config", "/data0/proxy.toml");
    for (setting, path) in [SERVER_LOG, ERROR_LOG, CLUSTER_LOG] {
        config.put_default(setting, path);
    }
    config.put_default("raft.pd_addr", format!("{}:{}", names.service_host(Component::Pd), main_port(Component::Pd)));
    if cluster.spec.prefer_ipv6 {
        config.put_default("listen_host", "::");
        config.put_default("status.metrics_port", 8234);
    }
    if cluster.tls {
        let names = ["security.ca_path", "security.cert_path", "security.key_path"];
        config.set_certificate(names, &tls::cluster_path("tiflash"));
        // These would be open beside the encrypted ones.
        config.0.remove("http_port");
        config.0.remove("tcp_port");
    }
}

/// The configuration of TiFlash's proxy.
pub(in super::super) fn proxy(cluster: &Validated, group: &Group) -> Table {
    let (listen, host) = (listen_host(cluster), own_host(cluster));
    let mut config = Settings(group.proxy_config.clone());
    config.put_default("log-level", "info");
    config.put_default("server.engine-addr", format!("{host}:{}", main_port(Component::Tiflash)));
    config.put_default("server.status-addr", format!("{listen}:{PROXY_STATUS_PORT}"));
    config.put_default("server.advertise-status-addr", format!("{host}:{PROXY_STATUS_PORT}"));
    if cluster.tls {
        config.set_certificate(["security.ca-path", "security.cert-path", "security.key-path"], &tls::cluster_path("tiflash"));
        // Whom TiFlash lets in, its proxy does as well, unless the user says whom.
        if let Some(allowed) = Settings(group.config.clone()).get("security.cert_allowed_cn") {
            config.put_default("security.cert-allowed-cn", allowed.clone());
        }
    }
    config.0
}
