//! The container runtime, with directories and a socket of its own, and the pod network.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use tokio::process::Command;

use crate::artifacts::PAUSE_IMAGE;
use crate::command;
use crate::components::{path_flag, write};
use crate::layout::Layout;
use crate::network::POD_RANGE;
use crate::process::Program;

pub(crate) fn program(layout: &Layout) -> Result<Program> {
    let networks = layout.configuration_file("net.d");
    std::fs::create_dir_all(&networks)?;
    write(&networks.join("10-lab.conflist"), &pod_network(layout))?;
    let path = layout.configuration_file("containerd.toml");
    write(&path, &configuration(layout, &networks))?;
    Ok(Program { name: "containerd", executable: "containerd".into(), arguments: vec![path_flag("config", &path)] })
}

/// `ctr` for the images and containers of the kubelet.
pub(crate) fn ctr(layout: &Layout) -> Command {
    let mut ctr = Command::new("ctr");
    ctr.arg("--address").arg(layout.containerd_socket()).args(["--namespace", "k8s.io"]);
    ctr
}

/// Whether the runtime answers.
pub(crate) async fn answers(layout: &Layout) -> bool {
    let mut version = ctr(layout);
    version.arg("version");
    command::succeeds(version).await
}

/// Imports an image archive.
pub(crate) async fn import(layout: &Layout, archive: &Path) -> Result<()> {
    let mut import = ctr(layout);
    import.args(["images", "import"]).arg(archive);
    command::output(import).await.map(drop)
}

fn configuration(layout: &Layout, networks: &Path) -> String {
    // Without `restrict_oom_score_adj`, every sandbox dies where CAP_SYS_RESOURCE is missing. The
    // namespaces of pods are kept in the state directory, where they are seen to be this lab's.
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{networks}"
"#,
        root = layout.state.join("containerd").display(),
        state = layout.containerd_state().display(),
        socket = layout.containerd_socket().display(),
        networks = networks.display(),
    )
}

/// Each pod has a routed link to the node, not a port of a bridge: so all traffic between pods
/// passes the node's packet filter, and the answers of a Service find their way back through it.
fn pod_network(layout: &Layout) -> String {
    json!({
        "cniVersion": "0.4.0",
        "name": layout.group(),
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.state.join("addresses"),
                    "ranges": [[{"subnet": POD_RANGE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
    .to_string()
}
