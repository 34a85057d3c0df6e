//! Breaks a law on purpose, between the controller and the server, to see that it is found. The engine itself is as it is.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service};
use windlass_testkit::Line;

/// How a law is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Deletes lose their preconditions.
    Deletes,
    /// Patches lose UID and version.
    Patches,
    /// Intents never reach the stored logbook, and the controller is told that they did.
    Intents,
    /// The same with who is the primary of a MySQLCluster.
    Primaries,
}

impl Sabotage {
    /// What of a logbook never reaches the server, and what does instead.
    fn withheld(self) -> Option<(&'static str, Value)> {
        match self {
            Self::Intents => Some(("/spec/intents", json!([]))),
            Self::Primaries => Some(("/spec/mysql/primary", json!(0))),
            Self::Deletes | Self::Patches => None,
        }
    }
}

/// A client at the end of a line, with somebody on it who changes what is sent.
pub fn client(line: &Line, sabotage: Option<Sabotage>) -> Client {
    sabotage.map_or_else(|| line.client(), |how| Client::new(Saboteur { line: line.clone(), how }, "default"))
}

#[derive(Clone)]
struct Saboteur {
    line: Line,
    how: Sabotage,
}

type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;

impl Service<Request<Body>> for Saboteur {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.line.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut line, how) = (self.line.clone(), self.how);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await?.to_bytes();
            let mut sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let logbook = parts.uri.path().contains("/logbooks");
            let withheld = how.withheld().filter(|_| logbook);
            let withheld = withheld.and_then(|(pointer, instead)| {
                let place = sent.pointer_mut(pointer)?;
                Some((pointer, std::mem::replace(place, instead)))
            });
            match how {
                Sabotage::Deletes if parts.method == Method::DELETE => {
                    drop(sent.as_object_mut().map(|it| it.remove("preconditions")));
                }
                Sabotage::Patches if parts.method == Method::PATCH => {
                    if let Some(metadata) = sent.pointer_mut("/metadata").and_then(Value::as_object_mut) {
                        metadata.remove("uid");
                        metadata.remove("resourceVersion");
                    }
                }
                _ => {}
            }
            let bytes = if sent.is_null() { bytes } else { Bytes::from(sent.to_string()) };
            let response = line.call(Request::from_parts(parts, Body::from(bytes))).await?;
            let Some((pointer, kept)) = withheld else { return Ok(response) };
            let (parts, body) = response.into_parts();
            let mut answer: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
            if let Some(place) = answer.pointer_mut(pointer) {
                *place = kept;
            }
            let body = Full::new(Bytes::from(answer.to_string())).map_err(|never| match never {}).boxed_unsync();
            Ok(Response::from_parts(parts, body))
        })
    }
}
