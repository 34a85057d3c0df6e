//! The store of the API server.

use crate::artifacts::Artifacts;
use crate::components::path_flag;
use crate::layout::Layout;
use crate::process::Program;

/// Reached by the API server alone, inside the lab's namespace.
pub(crate) const ADDRESS: &str = "http://127.0.0.1:2379";

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts) -> Program {
    Program {
        name: "etcd",
        executable: artifacts.etcd.clone(),
        arguments: vec![
            path_flag("data-dir", &layout.state.join("etcd")),
            format!("--listen-client-urls={ADDRESS}"),
            format!("--advertise-client-urls={ADDRESS}"),
            // A lab starts afresh after a crash, so nothing has to survive one.
            "--unsafe-no-fsync".to_owned(),
            "--quota-backend-bytes=8589934592".to_owned(),
            "--log-level=warn".to_owned(),
        ],
    }
}
