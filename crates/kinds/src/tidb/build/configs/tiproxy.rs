//! The configuration of TiProxy: it is a client of PD and TiDB, and a server for everybody else.

use super::super::super::validate::Validated;
use super::super::services::main_port;
use super::super::tls;
use super::Settings;
use windlass_api::tidb::Component;

const CLUSTER: [&str; 3] = ["security.cluster-tls.ca", "security.cluster-tls.cert", "security.cluster-tls.key"];
const HTTP: [&str; 3] = ["security.server-http-tls.ca", "security.server-http-tls.cert", "security.server-http-tls.key"];

/// Whether certificates are laid out in the newer way: one of TiProxy's own for the cluster, and none that is shown to TiDB.
pub(in super::super) fn is_newer_layout(cluster: &Validated) -> bool {
    let layout = cluster.spec.tiproxy.as_ref().and_then(|tiproxy| tiproxy.cert_layout.as_deref());
    layout == Some("v1")
}

/// Whether connections to TiDB are encrypted.
pub(in super::super) fn encrypts_to_tidb(cluster: &Validated) -> bool {
    let asked = cluster.spec.tiproxy.as_ref().is_some_and(|tiproxy| tiproxy.ssl_enable_tidb);
    cluster.client_tls() && (asked || super::shows_certificate_to_tidb(cluster))
}

/// Whether TiProxy's own API is encrypted.
pub(in super::super) fn serves_https(cluster: &Validated) -> bool {
    cluster.tls || cluster.client_tls() && !is_newer_layout(cluster)
}

/// Whether TiProxy shows a certificate of its own, and not that of TiDB in its place.
pub(in super::super) fn shows_own(cluster: &Validated) -> bool {
    cluster.tls && (is_newer_layout(cluster) || !cluster.client_tls())
}

pub(super) fn of_tiproxy(cluster: &Validated, config: &mut Settings) {
    config.set("workdir", "/var/lib/tiproxy/work");
    config.set("proxy.pd-addrs", format!("{}:{}", cluster.names().client_service(Component::Pd), main_port(Component::Pd)));
    config.put_default("proxy.require-backend-tls", false);
    let own = tls::cluster_path("tiproxy");
    let newer = is_newer_layout(cluster);
    if cluster.tls {
        config.set_certificate(CLUSTER, if newer { &own } else { tls::CLUSTER_CLIENT });
    }
    if cluster.client_tls() {
        config.set("security.server-tls.cert", tls::certificate(tls::SERVER));
        config.set("security.server-tls.key", tls::key(tls::SERVER));
        config.put_default("security.server-tls.skip-ca", true);
    }
    if encrypts_to_tidb(cluster) {
        check_tidb(cluster, newer, config);
    }
    if serves_https(cluster) {
        let shown = if shows_own(cluster) { &own } else { tls::SERVER };
        config.set_certificate(HTTP, shown);
        // The operator asks without a certificate of its own.
        config.set("security.server-http-tls.skip-ca", true);
    }
}

fn check_tidb(cluster: &Validated, newer: bool, config: &mut Settings) {
    let Some(client) = cluster.spec.tidb.as_ref().and_then(|tidb| tidb.tls_client.as_ref()) else { return };
    if client.skip_internal_client_ca {
        config.put_default("security.sql-tls.skip-ca", true);
    } else {
        config.set("security.sql-tls.ca", tls::authority(if newer { tls::SERVER } else { tls::CLIENT }));
    }
    if !newer && !client.disable_client_authn {
        config.set("security.sql-tls.cert", tls::certificate(tls::CLIENT));
        config.set("security.sql-tls.key", tls::key(tls::CLIENT));
    }
}
