//! The node's kubelet.

use anyhow::Result;
use serde_json::json;

use crate::artifacts::Artifacts;
use crate::certificates::Authority;
use crate::components::{path_flag, write};
use crate::layout::Layout;
use crate::network::Link;
use crate::process::Program;

/// The group of all nodes.
pub(crate) const GROUP: &str = "system:nodes";

/// The user of the lab's node.
pub(crate) fn user(layout: &Layout) -> String {
    format!("system:node:{}", layout.node())
}

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts, link: Link, authority: &Authority) -> Result<Program> {
    authority.server(&user(layout), &[layout.node()], &[link.node])?.write(layout, "kubelet")?;
    let resolver = layout.configuration_file("resolv.conf");
    write(&resolver, &format!("nameserver {}\n", link.node))?;
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": layout.key_file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": layout.key_file("kubelet.crt"),
        "tlsPrivateKeyFile": layout.key_file("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{}", layout.containerd_socket().display()),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", layout.group()),
        "failCgroupV1": false,
        "failSwapOn": false,
        "clusterDNS": [link.node],
        "clusterDomain": "cluster.local",
        "resolvConf": resolver,
        "podLogsDir": layout.pod_logs(),
        "volumePluginDir": layout.state.join("volume-plugins"),
        "maxPods": 250,
        // Tests end more servers in an hour than a node sees in a year; it would let each one wait longer and longer.
        "featureGates": {"KubeletCrashLoopBackOffMax": true},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "3s"},
        // The machine's disk is not the lab's to judge.
        "localStorageCapacityIsolation": false,
        "evictionHard": {
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
            "memory.available": "1Mi",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    });
    let path = layout.configuration_file("kubelet.json");
    write(&path, &configuration.to_string())?;
    Ok(Program {
        name: "kubelet",
        executable: artifacts.kubernetes.join("kubelet"),
        arguments: vec![
            path_flag("config", &path),
            path_flag("kubeconfig", &layout.kubeconfig("kubelet")),
            path_flag("root-dir", &layout.state.join("kubelet")),
            format!("--hostname-override={}", layout.node()),
            format!("--node-ip={}", link.node),
        ],
    })
}
