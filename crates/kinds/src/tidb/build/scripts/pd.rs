//! The script of PD: whether a member founds the cluster, joins it, or goes on with what it has.
//!
//! A member that has data needs nobody. One that has none asks discovery, which lets exactly one found the cluster: so discovery must be
//! there, and while it is not, the member waits.

use windlass_api::tidb::Component;

use super::super::super::validate::Validated;
use super::super::services::main_port;
use super::super::tls;
use super::{RESOLVE, START_TIMEOUT, exec, inside, listen_host, own_host, wait, waits_for_address};

const PEER_PORT: u16 = 2380;

pub(super) fn script(cluster: &Validated) -> String {
    let pd = cluster.spec.pd.clone().unwrap_or_default();
    let scheme = cluster.scheme();
    let (listen, client_port) = (listen_host(cluster), main_port(Component::Pd));
    let data = inside("/var/lib/pd", pd.data_sub_dir.as_ref());
    let name = if cluster.names().names_hosts() { "$host" } else { "$POD_NAME" };
    let arguments = [
        format!("--data-dir={data}"),
        format!("--name=\"{name}\""),
        format!("--peer-urls={scheme}://{listen}:{PEER_PORT}"),
        format!("--advertise-peer-urls=\"{scheme}://$host:{PEER_PORT}\""),
        format!("--client-urls={scheme}://{listen}:{client_port}"),
        format!("--advertise-client-urls=\"{scheme}://$host:{client_port}\""),
        "--config=/etc/pd/pd.toml".to_owned(),
        // Not quoted: it is one argument or none.
        "$join".to_owned(),
    ];
    let delay =
        pd.init_wait_time.filter(|seconds| *seconds > 0).map(|seconds| format!("sleep {seconds}\n")).unwrap_or_default();
    let is_known =
        if waits_for_address(cluster) { r#"resolve "$host" | grep -qwF "$POD_IP""# } else { r#"resolve "$host" | grep -q ."# };
    let waits = wait(&own_host(cluster, Component::Pd), is_known, pd.start_timeout.unwrap_or(START_TIMEOUT));
    format!("{RESOLVE}{delay}{waits}{}{}", join(cluster, &data), exec("/pd-server", &arguments))
}

/// A member that joined before has noted whom: `NAME=URL,NAME=URL`. One that is told nothing must not start: it would found a cluster
/// of its own.
fn join(cluster: &Validated, data: &str) -> String {
    let scheme = if cluster.discovery_tls { "https" } else { "http" };
    let discovery = format!("{scheme}://{}:10261", cluster.names().discovery_host());
    let (wget, curl) = certificates(cluster);
    format!(
        r#"
ask() {{
    if command -v wget >/dev/null 2>&1; then
        wget -q -O - -T 3{wget} "$1"
    else
        curl -s -f -m 3{curl} "$1"
    fi
}}
is_answer() {{
    case $1 in
    --initial-cluster=?* | --join=?*) return 0 ;;
    *) return 1 ;;
    esac
}}
join=
if [ -s {data}/join ]; then
    join=--join=$(tr ',' '\n' < {data}/join | sed 's/^[^=]*=//' | tr '\n' ',' | sed 's/,$//')
elif [ ! -d {data}/member/wal ]; then
    me=$(printf %s "$host:{PEER_PORT}" | base64 | tr -d '\n')
    until join=$(ask "{discovery}/new/$me") && is_answer "$join"; do
        echo "waiting for discovery to say whether to found the cluster or to join it"
        sleep 2
    done
fi
"#
    )
}

/// How each of the two programs is told to show a certificate.
fn certificates(cluster: &Validated) -> (String, String) {
    if !cluster.discovery_tls {
        return Default::default();
    }
    let path = tls::cluster_path("pd");
    let (authority, certificate, key) = (tls::authority(&path), tls::certificate(&path), tls::key(&path));
    (
        format!(" --ca-certificate={authority} --certificate={certificate} --private-key={key}"),
        format!(" --cacert {authority} --cert {certificate} --key {key}"),
    )
}
