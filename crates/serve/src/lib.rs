//! Accepts connections, and serves HTTP on each: so many at once and no more, and nobody may take his time to introduce himself.
//!
//! How a connection is spoken with is asked for each one: certificates change while a server runs.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::{ServerConfig, ServerConnection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// How long the other side may take to introduce itself, and to send a request.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// How long nothing is accepted after accepting failed.
const REST: Duration = Duration::from_millis(100);

/// How a connection is spoken with.
#[derive(Clone, Debug)]
pub enum Manner {
    /// As it comes.
    Plain,
    /// With TLS.
    Tls(Arc<ServerConfig>),
}

/// Whoever stands at the door.
pub trait Porter: Send + Sync + 'static {
    /// How a connection that came just now is spoken with; or why nobody can be let in.
    fn manner(&self) -> impl Future<Output = Result<Manner, String>> + Send;

    /// Whether somebody who has introduced himself with TLS may come in. Who may not is served what is returned.
    fn admit(&self, _stranger: &ServerConnection) -> Result<(), Router> {
        Ok(())
    }
}

/// Serves until told to stop, so many connections at once.
pub async fn serve(listener: TcpListener, connections: usize, porter: impl Porter, router: Router, stop: CancellationToken) {
    let (places, porter) = (Arc::new(Semaphore::new(connections)), Arc::new(porter));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: give others time to close theirs.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(REST).await;
                continue;
            }
        };
        let (porter, router) = (Arc::clone(&porter), router.clone());
        tokio::spawn(async move {
            let _place = place;
            match tokio::time::timeout(INTRODUCTION, porter.manner()).await {
                Ok(Ok(manner)) => {
                    if let Err(why) = talk(stream, manner, porter.as_ref(), router).await {
                        tracing::debug!(%why, "a connection ended early");
                    }
                }
                Ok(Err(why)) => tracing::warn!(%why, "nobody can be let in"),
                Err(_) => tracing::warn!("nobody can be let in: it takes too long to find out how"),
            }
        });
    }
}

async fn talk(stream: TcpStream, manner: Manner, porter: &impl Porter, router: Router) -> Result<(), String> {
    let configuration = match manner {
        Manner::Plain => return answer(stream, router).await,
        Manner::Tls(configuration) => configuration,
    };
    let stream = tokio::time::timeout(INTRODUCTION, TlsAcceptor::from(configuration).accept(stream))
        .await
        .map_err(|_| format!("no introduction within {} s", INTRODUCTION.as_secs()))?
        .map_err(|error| format!("the introduction failed: {error}"))?;
    let router = porter.admit(stream.get_ref().1).err().unwrap_or(router);
    answer(stream, router).await
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, router: Router) -> Result<(), String> {
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(INTRODUCTION)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    served.await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
