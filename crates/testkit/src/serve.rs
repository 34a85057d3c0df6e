//! The fake server on a port of the loopback, for programs that cannot be given a client.

use std::{io, net::SocketAddr};

use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};
use tower::Service;

use crate::server::FakeApiServer;

/// A server that listens. Its connections end with this.
pub struct Served {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Served {
    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A kubeconfig that leads here, into a namespace. JSON, which is YAML too.
    pub fn kubeconfig(&self, namespace: &str) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "fake", "cluster": { "server": self.url() } }],
            "users": [{ "name": "fake", "user": {} }],
            "contexts": [{ "name": "fake", "context": { "cluster": "fake", "user": "fake", "namespace": namespace } }],
            "current-context": "fake",
        })
        .to_string()
    }
}

impl FakeApiServer {
    /// Listens on a free port of the loopback. A call that a fault loses ends its connection, as a real loss does.
    pub async fn serve(&self) -> io::Result<Served> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let server = self.clone();
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and then every connection with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(server.clone(), stream));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Served { address, accepting })
    }
}

async fn converse(server: FakeApiServer, stream: TcpStream) {
    let answer = service_fn(move |request: http::Request<Incoming>| {
        let mut server = server.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            server.call(http::Request::from_parts(parts, Body::from(body))).await.map_err(io::Error::other)
        }
    });
    // How a conversation ended is the client's business.
    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}
