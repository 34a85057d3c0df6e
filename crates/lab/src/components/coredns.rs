//! The cluster's name server, on the node's own address. It knows the cluster and nothing else.

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::artifacts::Artifacts;
use crate::components::write;
use crate::layout::Layout;
use crate::network::Link;
use crate::process::Program;

/// The user of the name server.
pub(crate) const USER: &str = "windlass-lab:coredns";

const READY_PORT: u16 = 8181;

pub(crate) fn program(layout: &Layout, artifacts: &Artifacts, link: Link) -> Result<Program> {
    let path = layout.configuration_file("Corefile");
    // Answers are kept for two seconds only: tests wait for names to appear and to go.
    let text = format!(
        ".:53 {{
    bind {node}
    ready {node}:{READY_PORT}
    errors
    cache 2
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 2
    }}
}}
",
        node = link.node,
        kubeconfig = layout.kubeconfig("coredns").display(),
    );
    write(&path, &text)?;
    Ok(Program {
        name: "coredns",
        executable: artifacts.coredns.clone(),
        arguments: vec!["-conf".to_owned(), path.display().to_string()],
    })
}

/// Whether the name server has read the cluster's Services.
pub(crate) async fn ready(link: Link) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((link.node, READY_PORT)).await?;
        stream.write_all(b"GET /ready HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer.split_whitespace().nth(1) == Some("200"))
    };
    ask.await.unwrap_or(false)
}
