//! The controller manager and the scheduler.

use crate::artifacts::Artifacts;
use crate::components::path_flag;
use crate::layout::Layout;
use crate::process::Program;

/// The user of the controller manager itself; its controllers act as service accounts of their own.
pub(crate) const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
/// The user of the scheduler.
pub(crate) const SCHEDULER: &str = "system:kube-scheduler";

/// Well above the defaults, so that a test of many clusters measures the operator and not these.
const RATE: [&str; 2] = ["--kube-api-qps=500", "--kube-api-burst=1000"];

pub(crate) fn controller_manager(layout: &Layout, artifacts: &Artifacts) -> Program {
    let mut arguments = vec![
        path_flag("kubeconfig", &layout.kubeconfig("controller-manager")),
        path_flag("service-account-private-key-file", &layout.key_file("tokens.key")),
        path_flag("root-ca-file", &layout.key_file("ca.crt")),
        path_flag("cluster-signing-cert-file", &layout.key_file("ca.crt")),
        path_flag("cluster-signing-key-file", &layout.key_file("ca.key")),
        // Each controller shows under its own name in the audit log.
        "--use-service-account-credentials=true".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ];
    arguments.extend(RATE.map(str::to_owned));
    Program { name: "kube-controller-manager", executable: artifacts.kubernetes.join("kube-controller-manager"), arguments }
}

pub(crate) fn scheduler(layout: &Layout, artifacts: &Artifacts) -> Program {
    let mut arguments = vec![
        path_flag("kubeconfig", &layout.kubeconfig("scheduler")),
        "--bind-address=127.0.0.1".to_owned(),
        "--leader-elect=false".to_owned(),
    ];
    arguments.extend(RATE.map(str::to_owned));
    Program { name: "kube-scheduler", executable: artifacts.kubernetes.join("kube-scheduler"), arguments }
}
