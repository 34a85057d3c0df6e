//! The proxy that makes Services reachable.

use crate::artifacts::Artifacts;
use crate::components::path_flag;
use crate::layout::Layout;
use crate::network::POD_RANGE;
use crate::process::Program;

/// The user of the proxy.
pub(crate) const USER: &str = "system:kube-proxy";

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts) -> Program {
    let mut arguments = vec![
        path_flag("kubeconfig", &layout.kubeconfig("proxy")),
        format!("--hostname-override={}", layout.node()),
        format!("--cluster-cidr={POD_RANGE}"),
        "--proxy-mode=iptables".to_owned(),
    ];
    // The kernel's table of connections is the machine's; a namespace may not size it.
    arguments.extend(
        ["max-per-core", "min", "tcp-timeout-established", "tcp-timeout-close-wait"]
            .map(|name| format!("--conntrack-{name}=0")),
    );
    Program { name: "kube-proxy", executable: artifacts.kubernetes.join("kube-proxy"), arguments }
}
