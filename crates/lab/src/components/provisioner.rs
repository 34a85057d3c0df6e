//! The lab's own volume provisioner, a program of this crate.

use crate::artifacts::Artifacts;
use crate::components::path_flag;
use crate::layout::Layout;
use crate::process::Program;

/// The user of the provisioner.
pub(crate) const USER: &str = "windlass-lab:provisioner";

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts) -> Program {
    Program {
        name: "provisioner",
        executable: artifacts.provisioner.clone(),
        arguments: vec![
            path_flag("kubeconfig", &layout.kubeconfig("provisioner")),
            path_flag("directory", &layout.volumes()),
            format!("--node={}", layout.node()),
        ],
    }
}
