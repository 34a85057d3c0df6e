//! Answers for all servers of TiDB clusters at once: one listener for each component's port, which tells servers apart by the address that
//! a client connected to.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use http_body_util::{BodyExt as _, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use windlass_api::tidb::Component;

use super::answers::Request;
use super::fleet::{Berth, Fleet};
use crate::way::{self, Serving};

/// Serves in a thread of its own.
pub(super) fn start(fleet: Fleet, sockets: Vec<TcpSocket>) -> Result<Serving> {
    way::serve(sockets, async move |listeners| {
        join_all(listeners.into_iter().map(|listener| serve(listener, fleet.clone()))).await;
    })
}

async fn serve(listener: TcpListener, fleet: Fleet) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => receive(&fleet, stream),
            // Out of descriptors, most likely: who gives one back is one of the other tasks.
            Err(error) => {
                crate::say(format!("the bench's servers cannot take a connection: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Hands a connection to its server. Where none runs it is reset: a client of a real one would have been refused.
fn receive(fleet: &Fleet, stream: TcpStream) {
    let Ok(IpAddr::V4(address)) = stream.local_addr().map(|it| it.ip()) else { return };
    let Some(berth) = fleet.at(address) else {
        let _reset = stream.set_zero_linger();
        return;
    };
    // An answer is written at once, as a server does.
    let _unset = stream.set_nodelay(true);
    let fleet = fleet.clone();
    tokio::spawn(async move {
        let _counted = fleet.count();
        let service = service_fn(|request| answer(&fleet, &berth, request));
        // A client that is gone is none's loss.
        let _end = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    });
}

async fn answer(fleet: &Fleet, berth: &Berth, request: hyper::Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    if berth.who.0 == Component::Pd {
        let mut silence = berth.silence();
        // A black hole keeps what it is asked, and says nothing.
        drop(silence.wait_for(|silent| !silent).await);
    }
    let path = head.uri.path_and_query().map_or("", |path| path.as_str());
    let reply = fleet.answer(berth, Request { method: head.method.as_str(), path, body: &body });
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Ok(response)
}
