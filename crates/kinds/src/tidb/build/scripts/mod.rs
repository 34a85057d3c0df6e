//! The scripts that start the components. Plain `sh`: the images have no more.
//!
//! A script decides what only the pod can know (its name, whether it has data); everything else is written into it. Words of the user's
//! are quoted.

mod pd;

use windlass_api::tidb::Component;

use super::super::validate::{Group, Validated};
use super::configs::{self, Settings};
use super::services::{main_port, status_port};
use super::tls;

/// What waits until its name is known does so for at most this many seconds, where the user says nothing else.
const START_TIMEOUT: u32 = 30;

/// The script of a component that has it in a file.
pub(super) fn of_file(cluster: &Validated, group: &Group) -> String {
    let body = match group.component {
        Component::Pd => pd::script(cluster),
        Component::Tikv => tikv(cluster),
        Component::Tidb => tidb(cluster),
        Component::Tiproxy => tiproxy(cluster),
        // These have theirs in the command.
        Component::Tiflash | Component::Ticdc | Component::Pump => String::new(),
    };
    format!("#!/bin/sh\n# Starts {}.\n{HEAD}{body}", group.component.title())
}

/// Annotations of a pod are files in it: its volumes can be looked at while nothing runs.
const HEAD: &str = r#"set -u

if grep -q '^runmode="debug"' /etc/podinfo/annotations 2>/dev/null; then
    echo "the pod's annotation runmode is debug: nothing is started"
    exec tail -f /dev/null
fi

POD_NAME=${POD_NAME:-$HOSTNAME}
"#;

/// Where all components find PD.
fn pd_address(cluster: &Validated) -> String {
    format!("{}:{}", cluster.names().client_service(Component::Pd), main_port(Component::Pd))
}

/// The pod's own host name, in a script.
fn own_host(cluster: &Validated, component: Component) -> String {
    cluster.names().host_of(component, "${POD_NAME}")
}

fn listen_host(cluster: &Validated) -> &'static str {
    if cluster.spec.prefer_ipv6 { "[::]" } else { "0.0.0.0" }
}

/// A program and its arguments, one on each line.
fn exec(program: &str, arguments: &[String]) -> String {
    let lines: Vec<String> = arguments.iter().map(|argument| format!(" \\\n    {argument}")).collect();
    format!("set --{}\n", lines.concat()) + &format!("echo \"{program} $*\"\nexec {program} \"$@\"\n")
}

/// A word that the shell takes as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A directory inside a volume.
fn inside(volume: &str, directory: Option<&String>) -> String {
    match directory.map(|directory| directory.trim_matches('/')).filter(|directory| !directory.is_empty()) {
        Some(directory) => format!("{volume}/{directory}"),
        None => volume.to_owned(),
    }
}

/// Waits until the name of the pod leads to it, where the user asks for that: others may still have an older address of it.
fn wait_for_address(cluster: &Validated, component: Component) -> String {
    if !waits_for_address(cluster) {
        return String::new();
    }
    let host = own_host(cluster, component);
    format!("{RESOLVE}{}", wait(&host, r#"resolve "$host" | grep -qwF "$POD_IP""#, START_TIMEOUT))
}

/// Whether members of PD and TiKV wait until their names lead to them.
pub(super) fn waits_for_address(cluster: &Validated) -> bool {
    let flags = cluster.spec.start_script_v2_feature_flags.iter().flatten();
    let is_newer = cluster.spec.start_script_version.as_deref() == Some("v2");
    is_newer && flags.clone().any(|flag| flag == "WaitForDnsNameIpMatch")
}

/// Images have one of these programs, not always the same. The first prints its troubles where it prints addresses.
const RESOLVE: &str = r#"resolve() {
    if command -v dig >/dev/null 2>&1; then
        dig +search +short "$1" A "$1" AAAA | grep -v '^;'
    elif command -v getent >/dev/null 2>&1; then
        getent ahosts "$1" | sed 's/ .*//'
    else
        nslookup "$1" 2>/dev/null | sed -n '/^Name/,$s/^Address[^:]*: *//p'
    fi
}
"#;

fn wait(host: &str, condition: &str, seconds: u32) -> String {
    format!(
        r#"host={host}
waited=0
until {condition}; do
    if [ "$waited" -ge {seconds} ]; then
        echo "the name $host is still not known after {seconds} s; the pod starts anew" >&2
        exit 1
    fi
    sleep 1
    waited=$((waited + 1))
done
"#
    )
}

fn tikv(cluster: &Validated) -> String {
    let (listen, host) = (listen_host(cluster), own_host(cluster, Component::Tikv));
    let directory = cluster.spec.tikv.as_ref().and_then(|tikv| tikv.data_sub_dir.as_ref());
    let (main, status) = (main_port(Component::Tikv), status_port(Component::Tikv));
    let mut arguments = vec![
        format!("--pd={}://{}", cluster.scheme(), pd_address(cluster)),
        format!("--advertise-addr={host}:{main}"),
        format!("--addr={listen}:{main}"),
        format!("--status-addr={listen}:{status}"),
    ];
    if cluster.spec.enable_dynamic_configuration.unwrap_or_default() {
        arguments.push(format!("--advertise-status-addr={host}:{status}"));
    }
    arguments.extend([
        format!("--data-dir={}", inside("/var/lib/tikv", directory)),
        "--capacity=${CAPACITY}".to_owned(),
        "--config=/etc/tikv/tikv.toml".to_owned(),
        r#"${STORE_LABELS:+"--labels=$STORE_LABELS"}"#.to_owned(),
    ]);
    wait_for_address(cluster, Component::Tikv) + &exec("/tikv-server", &arguments)
}

fn tidb(cluster: &Validated) -> String {
    let host = if cluster.spec.prefer_ipv6 { "::" } else { "0.0.0.0" };
    let mut arguments = vec![
        "--store=tikv".to_owned(),
        format!("--advertise-address={}", own_host(cluster, Component::Tidb)),
        format!("--host={host}"),
        format!("--path={}", pd_address(cluster)),
        "--config=/etc/tidb/tidb.toml".to_owned(),
    ];
    if let Some(tidb) = &cluster.spec.tidb {
        if tidb.binlog_enabled.unwrap_or(cluster.spec.pump.is_some()) {
            arguments.push("--enable-binlog=true".to_owned());
        }
        if let Some(plugins) = tidb.plugins.as_ref().filter(|plugins| !plugins.is_empty()) {
            arguments.push("--plugin-dir=/plugins".to_owned());
            arguments.push(quoted(&format!("--plugin-load={}", plugins.join(","))));
        }
        arguments.push(r#"${SLOW_LOG_FILE:+"--log-slow-query=$SLOW_LOG_FILE"}"#.to_owned());
        arguments.extend(tidb.arguments.iter().flatten().map(|argument| quoted(argument)));
    }
    exec("/tidb-server", &arguments)
}

fn tiproxy(cluster: &Validated) -> String {
    // Older versions do not know the argument.
    let host = own_host(cluster, Component::Tiproxy);
    let advertised = format!(
        "advertise=\ncase \"$(/bin/tiproxy --help 2>&1)\" in\n*advertise-addr*) advertise=--advertise-addr={host} ;;\nesac\n"
    );
    let arguments = ["--config=/etc/proxy/proxy.toml".to_owned(), r#"${advertise:+"$advertise"}"#.to_owned()];
    advertised + &exec("/bin/tiproxy", &arguments)
}

/// The command of TiCDC.
pub(super) fn ticdc(cluster: &Validated, group: &Group) -> String {
    let config = Settings(configs::config(cluster, group));
    let text = |name: &str, default: &str| {
        let text = config.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        quoted(&format!("--{name}={}", text.unwrap_or_else(|| default.to_owned())))
    };
    let port = main_port(Component::Ticdc);
    let mut arguments = vec![
        format!("--addr={}:{port}", listen_host(cluster)),
        format!("--advertise-addr={}:{port}", own_host(cluster, Component::Ticdc)),
        text("gc-ttl", "86400"),
        text("log-file", ""),
        text("log-level", "info"),
        format!("--pd={}://{}", cluster.scheme(), pd_address(cluster)),
    ];
    if cluster.tls {
        let path = tls::cluster_path("ticdc");
        arguments.push(format!("--ca={}", tls::authority(&path)));
        arguments.push(format!("--cert={}", tls::certificate(&path)));
        arguments.push(format!("--key={}", tls::key(&path)));
    }
    if has_file(&config) {
        arguments.push("--config=/etc/ticdc/ticdc.toml".to_owned());
    }
    exec("/cdc server", &arguments)
}

/// Whether TiCDC has settings that are no arguments.
fn has_file(config: &Settings) -> bool {
    config.0.keys().any(|key| !configs::ARGUMENTS_OF_TICDC.contains(&key.as_str()))
}

/// The time zone that TiCDC is told, if it is another than the cluster's.
pub(super) fn ticdc_timezone(cluster: &Validated, group: &Group) -> String {
    let config = Settings(configs::config(cluster, group));
    config.get("tz").and_then(toml::Value::as_str).unwrap_or(&cluster.timezone).to_owned()
}

/// The command of Pump. A pump that went offline by itself is not started again: its pod waits to be removed.
pub(super) fn pump(cluster: &Validated, group: &Group) -> String {
    let level = group.config.get("log-level").and_then(toml::Value::as_str).unwrap_or("info");
    let host = match &cluster.domain {
        Some(_) => own_host(cluster, Component::Pump),
        // Pumps that are there already are known by this name.
        None => format!("${{POD_NAME}}.{}", cluster.names().headless_service(Component::Pump)),
    };
    format!(
        r#"set -u
/pump \
    -pd-urls={}://{} \
    -L={} \
    -advertise-addr={host}:{} \
    -config=/etc/pump/pump.toml \
    -data-dir=/data \
    -log-file= || exit
echo "the pump is offline; its pod can be deleted"
exec tail -f /dev/null
"#,
        cluster.scheme(),
        pd_address(cluster),
        quoted(level),
        main_port(Component::Pump)
    )
}

/// The command of TiFlash.
pub(super) const TIFLASH: &str = "exec /tiflash/tiflash server --config-file /data0/config.toml";

/// What happens before TiFlash starts: the pod's ordinal is put into its files.
pub(super) const TIFLASH_FIRST: &str = r#"set -eu
ordinal=${POD_NAME##*-}
sed "s/POD_NUM/$ordinal/g" /etc/tiflash/config_templ.toml > /data0/config.toml
sed "s/POD_NUM/$ordinal/g" /etc/tiflash/proxy_templ.toml > /data0/proxy.toml
"#;
