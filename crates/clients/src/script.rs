//! For tests: a server that answers as it is told, and tells what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::http::Peer;

/// A server that answers `METHOD /path` with what a function says: a status and a body.
pub(crate) struct Script {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) async fn new(answer: impl FnMut(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (answer, told) = (Arc::new(Mutex::new(answer)), Arc::clone(&heard));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, told) = (Arc::clone(&answer), Arc::clone(&told));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (answer, told) = (Arc::clone(&answer), Arc::clone(&told));
                    async move {
                        let line = format!("{} {}", request.method(), request.uri());
                        let body = request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
                        let whole = format!("{line} {}", String::from_utf8_lossy(&body)).trim_end().to_owned();
                        told.lock().unwrap_or_else(PoisonError::into_inner).push(whole);
                        let (status, text) = answer.lock().unwrap_or_else(PoisonError::into_inner)(&line);
                        let response = Response::builder().status(status).body(Full::new(Bytes::from(text)));
                        Ok::<_, Infallible>(response.unwrap())
                    }
                });
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { port, heard }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn peer(&self) -> Peer {
        let local = "127.0.0.1".to_owned();
        Peer { host: "a-pd-0".into(), address: local, port: self.port, process: String::new(), tls: None }
    }

    /// What it was asked since this was asked last.
    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, without what changes nothing.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.heard().into_iter().filter(|it| !it.starts_with("GET ")).collect()
    }
}
