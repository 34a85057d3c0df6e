//! Asks the agent of an instance to copy a server elsewhere, and waits for the end of it: HTTPS with a certificate on both sides.
//!
//! The agent goes on when we hang up, and does one copy at a time: to ask it again while it is at it means to wait for the same one.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use windlass_kinds::mysql::deeds::{Outside, Place};

use super::Servers;
use super::outside::{self, Elsewhere};
use super::session::Failure;

/// Where agents listen.
pub(super) const PORT: u16 = 9080;
/// How long one request to an agent may take, from the connection on.
const REQUEST: Duration = Duration::from_secs(10);
/// Between two questions how it goes.
const BETWEEN_QUESTIONS: Duration = Duration::from_secs(1);
/// How many questions in a row may stay without an answer before we give up to wait. The agent may have gone on.
const UNANSWERED: u32 = 30;
/// No answer of an agent is as long.
const ANSWER: usize = 64 * 1024;
/// How much of what an agent says is told.
const TOLD: usize = 512;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Order<'a> {
    donor_host: &'a str,
    donor_port: u16,
    donor_user: &'a str,
    donor_password: &'a str,
    init_user: &'a str,
    init_password: &'a str,
    boot_timeout_seconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Copying {
    None,
    Running,
    Done,
    Failed,
}

#[derive(Debug, Deserialize)]
struct Progress {
    state: Copying,
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Default, Deserialize)]
struct Complaint {
    #[serde(default)]
    error: String,
}

/// Lets the agent of an instance copy a server elsewhere, and waits until it has.
pub(super) async fn copy(servers: &Servers, place: &Place, from: &Outside, boot: Duration) -> Result<(), Failure> {
    let elsewhere = outside::as_decided(&servers.client, place, from).await?;
    let secrets = [elsewhere.password.clone(), elsewhere.init_password.clone()];
    let hidden = |failure: Failure| secrets.iter().fold(failure, |failure, secret| failure.without(secret));
    let order = serde_json::to_vec(&order(&elsewhere, boot)).map_err(|error| Failure::Untried(error.to_string()))?;
    let agent = Agent { servers, place };
    match agent.ask(Method::POST, order).await.map_err(&hidden)? {
        // It has begun, or has before.
        (StatusCode::ACCEPTED | StatusCode::CONFLICT, _) => {}
        (status, body) => {
            let said = serde_json::from_slice(&body).unwrap_or_else(|_| Complaint::default()).error;
            return Err(hidden(agent.refused(&format!("with status {}: {said}", status.as_u16()))));
        }
    }
    agent.wait().await.map_err(hidden)
}

fn order(elsewhere: &Elsewhere, boot: Duration) -> Order<'_> {
    Order {
        donor_host: &elsewhere.source.host,
        donor_port: elsewhere.source.port,
        donor_user: &elsewhere.user,
        donor_password: &elsewhere.password,
        init_user: &elsewhere.init_user,
        init_password: &elsewhere.init_password,
        boot_timeout_seconds: boot.as_secs(),
    }
}

/// The agent of one instance.
struct Agent<'a> {
    servers: &'a Servers,
    place: &'a Place,
}

impl Agent<'_> {
    /// Asks until the copy has ended. An agent that knows of none any more was started anew: it is given the order again.
    async fn wait(&self) -> Result<(), Failure> {
        let mut unanswered = 0;
        loop {
            tokio::time::sleep(BETWEEN_QUESTIONS).await;
            let progress = match self.ask(Method::GET, Vec::new()).await {
                Ok((_, body)) => serde_json::from_slice::<Progress>(&body).ok(),
                Err(failure) if unanswered >= UNANSWERED => return Err(failure),
                Err(_) => None,
            };
            match progress {
                Some(Progress { state: Copying::Done, .. }) => return Ok(()),
                Some(Progress { state: Copying::Failed, reason }) => return Err(self.refused(&reason)),
                Some(Progress { state: Copying::Running, .. }) => unanswered = 0,
                Some(Progress { state: Copying::None, .. }) => {
                    return Err(self.refused("it knows of no copy any more: it was started anew, and is asked again"));
                }
                None if unanswered >= UNANSWERED => return Err(self.refused("its answers cannot be understood")),
                None => unanswered += 1,
            }
        }
    }

    fn refused(&self, said: &str) -> Failure {
        let said: String = said.chars().take(TOLD).collect();
        Failure::Untried(format!("the agent of pod {:?} says {said}", self.place.pod))
    }

    /// One request, on a connection of its own: the next one may come after certificates were changed.
    async fn ask(&self, method: Method, body: Vec<u8>) -> Result<(StatusCode, Bytes), Failure> {
        let failed = |why: String| Failure::Untried(format!("the agent of pod {:?} cannot be asked: {why}", self.place.pod));
        let (set, host) = self.names().ok_or_else(|| failed("its pod has no number".to_owned()))?;
        let cluster = set.strip_prefix("moco-").unwrap_or(set);
        let papers = self.servers.registry.papers(&self.place.namespace, cluster).await.map_err(failed)?;
        let configuration = papers.client_configuration().map_err(failed)?;
        match tokio::time::timeout(REQUEST, self.exchange(configuration, host, method, body)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(format!("no answer within {} s", REQUEST.as_secs()))),
        }
    }

    /// The set that the pod is of, and the name that the agent's certificate is for.
    fn names(&self) -> Option<(&str, String)> {
        let (set, _) = self.place.pod.rsplit_once('-')?;
        Some((set, format!("{}.{set}.{}.svc", self.place.pod, self.place.namespace)))
    }

    async fn exchange(
        &self,
        configuration: ClientConfig,
        host: String,
        method: Method,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), String> {
        let address = self.place.address.as_str();
        let stream =
            TcpStream::connect((address, (self.servers.agent_port)(address))).await.map_err(|error| error.to_string())?;
        let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(Arc::new(configuration)).connect(name, stream).await;
        let stream = stream.map_err(|error| format!("it is not believed, or does not believe us: {error}"))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let request =
            Request::builder().method(method).uri("/v1/clone").header(HOST, host).header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
        let exchange = async {
            let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), ANSWER).collect().await.map_err(|error| error.to_string())?;
            Ok((status, body.to_bytes()))
        };
        // The connection moves only while somebody drives it.
        tokio::pin!(exchange);
        tokio::select! {
            answer = &mut exchange => answer,
            end = connection => match end {
                Ok(()) => exchange.await,
                Err(error) => Err(error.to_string()),
            },
        }
    }
}
