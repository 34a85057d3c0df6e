//! Start scripts, as text and run by a real shell: with programs in the place of the servers that print how they were called.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A directory that is gone with it.
struct Stage {
    root: PathBuf,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Stage {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("windlass-scripts-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("bin")).unwrap();
        let stage = Self { root };
        stage.program("bin/dig", "echo 10.0.0.7");
        stage.program("bin/sleep", "exit 0");
        stage
    }

    fn program(&self, name: &str, body: &str) {
        let path = self.root.join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a script in which absolute paths of the pod lie in the stage. Returns what it printed last, and whether it succeeded.
    fn run(&self, script: &str, server: &str, env: &[(&str, &str)]) -> (Vec<String>, bool) {
        let name = server.trim_start_matches('/').replace('/', "-");
        self.program(&name, "for argument in \"$@\"; do echo \"$argument\"; done");
        let here = self.root.display();
        let script = script.replace(server, &format!("{here}/{name}"));
        let script = script.replace("/var/lib/pd", &format!("{here}/data")).replace("/etc/podinfo", &format!("{here}/podinfo"));
        let path = format!("{here}/bin:{}", std::env::var("PATH").unwrap());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).env_clear().env("PATH", path).env("HOSTNAME", "harbour-x-0").envs(env.iter().copied());
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines =
            printed.lines().filter(|line| line.starts_with('-')).map(|line| line.replace(&here.to_string(), "")).collect();
        (lines, output.status.success())
    }
}

fn script(changes: &[(&str, Value)], component: Component) -> String {
    text(&valid(changes), component, "startup-script")
}

#[rstest]
#[case(Component::Pd)]
#[case(Component::Tikv)]
#[case(Component::Tidb)]
#[case(Component::Tiproxy)]
fn as_text(#[case] component: Component) {
    insta::assert_snapshot!(format!("script_{component}"), script(&[], component));
}

/// `sh -n` reads a script without running it.
#[rstest]
#[case(&[])]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true, "enableDiscoveryMTLS": true })), ("/spec/clusterDomain", json!("cluster.local")), ("/spec/startScriptVersion", json!("v2")), ("/spec/startScriptV2FeatureFlags", json!(["WaitForDnsNameIpMatch"]))])]
fn a_shell_can_read_them(#[case] changes: &[(&str, Value)]) {
    let cluster = valid(changes);
    let files =
        [Component::Pd, Component::Tikv, Component::Tidb, Component::Tiproxy].map(|it| text(&cluster, it, "startup-script"));
    let commands = [Component::Tiflash, Component::Ticdc, Component::Pump]
        .map(|it| container(&cluster, it)["command"][2].as_str().unwrap().to_owned());
    for script in files.iter().chain(&commands) {
        let read = Command::new("/bin/sh").arg("-n").arg("-c").arg(script).output().unwrap();
        assert!(read.status.success(), "{script}\n{}", String::from_utf8_lossy(&read.stderr));
    }
}

const PD: [&str; 7] = [
    "--data-dir=/data",
    "--name=harbour-pd-1",
    "--peer-urls=http://0.0.0.0:2380",
    "--advertise-peer-urls=http://harbour-pd-1.harbour-pd-peer.shop.svc:2380",
    "--client-urls=http://0.0.0.0:2379",
    "--advertise-client-urls=http://harbour-pd-1.harbour-pd-peer.shop.svc:2379",
    "--config=/etc/pd/pd.toml",
];
const AS_PD_1: [(&str, &str); 1] = [("POD_NAME", "harbour-pd-1")];

fn with(last: Option<&str>) -> Vec<String> {
    PD.iter().copied().chain(last).map(str::to_owned).collect()
}

#[test]
fn a_member_of_pd_without_data_does_what_discovery_says() {
    let stage = Stage::new("new");
    // It is asked with the member's own address, and does not answer at once.
    stage.program(
        "bin/wget",
        "for url; do :; done\n\
         test -f \"$0.asked\" || { touch \"$0.asked\"; exit 1; }\n\
         test \"$url\" = \"http://harbour-discovery.shop.svc:10261/new/$(printf %s harbour-pd-1.harbour-pd-peer.shop.svc:2380 | base64 | tr -d '\\n')\" || exit 1\n\
         echo --initial-cluster=harbour-pd-1=http://harbour-pd-1.harbour-pd-peer.shop.svc:2380",
    );
    let (lines, succeeded) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert!(succeeded);
    assert_eq!(lines, with(Some("--initial-cluster=harbour-pd-1=http://harbour-pd-1.harbour-pd-peer.shop.svc:2380")));
}

#[test]
fn a_member_of_pd_that_is_told_nothing_waits() {
    let stage = Stage::new("nothing");
    // An answer without words, then one that is no answer, then one.
    stage.program(
        "bin/wget",
        "n=$(cat \"$0.n\" 2>/dev/null || echo 0)\necho $((n + 1)) > \"$0.n\"\n\
         case $n in 0) ;; 1) echo '<html>' ;; 2) echo --join= ;; *) echo --join=http://a:2379 ;; esac",
    );
    let (lines, _) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert_eq!(lines, with(Some("--join=http://a:2379")));
    assert_eq!(fs::read_to_string(stage.root.join("bin/wget.n")).unwrap().trim(), "4");
}

#[test]
fn an_empty_note_of_whom_to_join_is_none() {
    let stage = Stage::new("empty");
    stage.program("bin/wget", "echo --join=http://a:2379");
    stage.file("data/join", "");
    let (lines, _) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert_eq!(lines, with(Some("--join=http://a:2379")));
}

#[test]
fn what_dig_complains_about_is_no_address() {
    let stage = Stage::new("dig");
    stage.program("bin/dig", "echo ';; connection timed out'");
    let (_, succeeded) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert!(!succeeded);
}

#[test]
fn a_member_of_pd_that_joined_joins_those_again() {
    let stage = Stage::new("joined");
    stage.program("bin/wget", "echo must not be asked; exit 1");
    stage.file("data/join", "harbour-pd-0=http://a:2380,harbour-pd-2=http://b:2380");
    let (lines, _) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert_eq!(lines, with(Some("--join=http://a:2380,http://b:2380")));
}

#[test]
fn a_member_of_pd_with_data_needs_nobody() {
    let stage = Stage::new("data");
    stage.program("bin/wget", "echo must not be asked; exit 1");
    stage.file("data/member/wal/0", "");
    let (lines, _) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert_eq!(lines, with(None));
}

#[test]
fn a_member_of_pd_whose_name_is_not_known_ends() {
    let stage = Stage::new("unknown");
    stage.program("bin/dig", "exit 0");
    let (lines, succeeded) = stage.run(&script(&[], Component::Pd), "/pd-server", &AS_PD_1);
    assert_eq!((lines, succeeded), (vec![], false));
}

#[test]
fn a_name_must_lead_to_the_pod_where_that_is_asked_for() {
    let changes =
        [("/spec/startScriptVersion", json!("v2")), ("/spec/startScriptV2FeatureFlags", json!(["WaitForDnsNameIpMatch"]))];
    let stage = Stage::new("address");
    stage.file("data/member/wal/0", "");
    let script = script(&changes, Component::Pd);
    let run = |address: &str| stage.run(&script, "/pd-server", &[("POD_NAME", "harbour-pd-1"), ("POD_IP", address)]);
    assert_eq!(run("10.0.0.7"), (with(None), true));
    assert_eq!(run("10.0.0.70"), (vec![], false));
}

#[rstest]
#[case(&[("/spec/clusterDomain", json!("cluster.local"))], "--name=harbour-pd-1.harbour-pd-peer.shop.svc.cluster.local")]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true }))], "--peer-urls=https://0.0.0.0:2380")]
#[case(&[("/spec/preferIPv6", json!(true))], "--client-urls=http://[::]:2379")]
#[case(&[("/spec/pd/dataSubDir", json!("sub/dir"))], "--data-dir=/data/sub/dir")]
fn arguments_of_pd(#[case] changes: &[(&str, Value)], #[case] expected: &str) {
    let stage = Stage::new(&format!("pd{}", expected.len()));
    stage.program("bin/wget", "echo --join=x");
    let (lines, _) = stage.run(&script(changes, Component::Pd), "/pd-server", &AS_PD_1);
    assert!(lines.iter().any(|line| line == expected), "{lines:?}");
}

#[rstest]
#[case(&[], &[], &[
    "--pd=http://harbour-pd:2379",
    "--advertise-addr=harbour-tikv-0.harbour-tikv-peer.shop.svc:20160",
    "--addr=0.0.0.0:20160",
    "--status-addr=0.0.0.0:20180",
    "--data-dir=/var/lib/tikv",
    "--capacity=7GB",
    "--config=/etc/tikv/tikv.toml",
])]
#[case(&[("/spec/tlsCluster", json!({ "enabled": true })), ("/spec/enableDynamicConfiguration", json!(true)), ("/spec/tikv/dataSubDir", json!("data"))], &[("STORE_LABELS", "zone=a,host=b c")], &[
    "--pd=https://harbour-pd:2379",
    "--advertise-addr=harbour-tikv-0.harbour-tikv-peer.shop.svc:20160",
    "--addr=0.0.0.0:20160",
    "--status-addr=0.0.0.0:20180",
    "--advertise-status-addr=harbour-tikv-0.harbour-tikv-peer.shop.svc:20180",
    "--data-dir=/var/lib/tikv/data",
    "--capacity=7GB",
    "--config=/etc/tikv/tikv.toml",
    "--labels=zone=a,host=b c",
])]
fn arguments_of_tikv(#[case] changes: &[(&str, Value)], #[case] more: &[(&str, &str)], #[case] expected: &[&str]) {
    let stage = Stage::new(&format!("tikv{}", expected.len()));
    let env: Vec<_> = [("POD_NAME", "harbour-tikv-0"), ("CAPACITY", "7GB")].into_iter().chain(more.iter().copied()).collect();
    let (lines, _) = stage.run(&script(changes, Component::Tikv), "/tikv-server", &env);
    assert_eq!(lines, expected);
}

#[rstest]
#[case(&[("/spec/pump", Value::Null)], "", &[])]
#[case(&[], "", &["--enable-binlog=true"])]
#[case(&[("/spec/tidb/binlogEnabled", json!(false))], "/slow", &["--log-slow-query=/slow"])]
#[case(&[("/spec/pump", Value::Null), ("/spec/tidb/plugins", json!(["a-1", "b-2"])), ("/spec/tidb/arguments", json!(["--x=it's $HOME", "--y"]))], "", &[
    "--plugin-dir=/plugins", "--plugin-load=a-1,b-2", "--x=it's $HOME", "--y",
])]
fn arguments_of_tidb(#[case] changes: &[(&str, Value)], #[case] slow_log: &str, #[case] more: &[&str]) {
    let stage = Stage::new(&format!("tidb{}{}", more.len(), slow_log.len()));
    let env = [("POD_NAME", "harbour-tidb-0"), ("SLOW_LOG_FILE", slow_log)];
    let (lines, _) = stage.run(&script(changes, Component::Tidb), "/tidb-server", &env);
    let basic = [
        "--store=tikv",
        "--advertise-address=harbour-tidb-0.harbour-tidb-peer.shop.svc",
        "--host=0.0.0.0",
        "--path=harbour-pd:2379",
        "--config=/etc/tidb/tidb.toml",
    ];
    assert_eq!(lines, basic.iter().chain(more).copied().collect::<Vec<_>>());
}

#[test]
fn arguments_of_ticdc() {
    let command =
        |changes: &[(&str, Value)]| container(&valid(changes), Component::Ticdc)["command"][2].as_str().unwrap().to_owned();
    let stage = Stage::new("ticdc");
    let env = [("POD_NAME", "harbour-ticdc-0")];
    let (lines, _) = stage.run(&command(&[]), "/cdc", &env);
    let basic = [
        "--addr=0.0.0.0:8301",
        "--advertise-addr=harbour-ticdc-0.harbour-ticdc-peer.shop.svc:8301",
        "--gc-ttl=86400",
        "--log-file=",
        "--log-level=info",
        "--pd=http://harbour-pd:2379",
    ];
    assert_eq!(lines, basic);
    let config = json!({ "gcTTL": 7, "logLevel": "warn", "sorter": { "dir": "/sort" } });
    let (lines, _) =
        stage.run(&command(&[("/spec/ticdc/config", config), ("/spec/tlsCluster", json!({ "enabled": true }))]), "/cdc", &env);
    assert_eq!(lines[2..5], ["--gc-ttl=7", "--log-file=", "--log-level=warn"]);
    assert_eq!(
        lines[5..],
        [
            "--pd=https://harbour-pd:2379",
            "--ca=/var/lib/ticdc-tls/ca.crt",
            "--cert=/var/lib/ticdc-tls/tls.crt",
            "--key=/var/lib/ticdc-tls/tls.key",
            "--config=/etc/ticdc/ticdc.toml",
        ]
    );
}

#[rstest]
#[case("usage: --advertise-addr string", Some("--advertise-addr=harbour-tiproxy-0.harbour-tiproxy-peer.shop.svc"))]
#[case("usage: --config string", None)]
fn tiproxy_is_told_its_name_if_it_can_be(#[case] help: &str, #[case] more: Option<&str>) {
    let stage = Stage::new(&format!("tiproxy{}", help.len()));
    let script = script(&[], Component::Tiproxy);
    // The server's own help is asked for by the script.
    let asked = script.replace("/bin/tiproxy --help", &format!("echo '{help}'"));
    let (lines, _) = stage.run(&asked, "/bin/tiproxy", &[("POD_NAME", "harbour-tiproxy-0")]);
    assert_eq!(lines, ["--config=/etc/proxy/proxy.toml"].into_iter().chain(more).collect::<Vec<_>>());
}

#[rstest]
#[case(&[], "harbour-pump-0.harbour-pump:8250")]
#[case(&[("/spec/clusterDomain", json!("cluster.local"))], "harbour-pump-0.harbour-pump.shop.svc.cluster.local:8250")]
fn arguments_of_pump(#[case] changes: &[(&str, Value)], #[case] address: &str) {
    let stage = Stage::new(&format!("pump{}", address.len()));
    stage.program("bin/tail", "exit 0");
    let command = container(&valid(changes), Component::Pump)["command"][2].as_str().unwrap().to_owned();
    let command = command.replace("/etc/pump", "/etc/PUMP").replace("pump.toml", "PUMP.toml");
    let (lines, succeeded) =
        stage.run(&command.replace("\n/pump ", "\n/the-pump "), "/the-pump", &[("POD_NAME", "harbour-pump-0")]);
    assert!(succeeded);
    assert_eq!(
        lines,
        [
            "-pd-urls=http://harbour-pd:2379",
            "-L=info",
            &format!("-advertise-addr={address}"),
            "-config=/etc/PUMP/PUMP.toml",
            "-data-dir=/data",
            "-log-file=",
        ]
    );
}

#[test]
fn tiflash_knows_its_ordinal() {
    let stage = Stage::new("tiflash");
    let pod = set(&valid(&[]), Component::Tiflash).spec["template"]["spec"]["initContainers"][0].clone();
    let here: &Path = &stage.root;
    stage.file("etc/config_templ.toml", "addr = \"harbour-tiflash-POD_NUM.peer\"");
    stage.file("etc/proxy_templ.toml", "a = 1");
    stage.file("disk/.keep", "");
    let command = pod["command"][2].as_str().unwrap();
    let command = command
        .replace("/etc/tiflash", &format!("{}/etc", here.display()))
        .replace("/data0", &format!("{}/disk", here.display()));
    let run = Command::new("/bin/sh").arg("-c").arg(command).env("POD_NAME", "harbour-tiflash-12").output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(fs::read_to_string(here.join("disk/config.toml")).unwrap().trim(), "addr = \"harbour-tiflash-12.peer\"");
    assert_eq!(fs::read_to_string(here.join("disk/proxy.toml")).unwrap().trim(), "a = 1");
}

#[test]
fn a_pod_can_be_held_to_be_looked_at() {
    let stage = Stage::new("debug");
    stage.program("bin/tail", "echo -held");
    stage.file("podinfo/annotations", "a=\"b\"\nrunmode=\"debug\"\n");
    let (lines, _) =
        stage.run(&script(&[], Component::Tikv), "/tikv-server", &[("POD_NAME", "harbour-tikv-0"), ("CAPACITY", "0")]);
    assert_eq!(lines, ["-held"]);
}
