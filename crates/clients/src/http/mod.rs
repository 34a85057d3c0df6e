//! Talks HTTP to servers of clusters: a connection is kept from one call to the next, for as long as it leads to the same process; each
//! call has one deadline, from the connection to the last byte of the answer; and a failure says whether anything can have been done.

mod answer;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::guard::Guard;
use crate::kept::{FORGOTTEN, Kept, Spot};
pub(crate) use answer::Answer;
pub use answer::Failure;

/// How long one call may take.
const CALL: Duration = Duration::from_secs(3);
/// A connection without TLS is kept for as long: it serves the questions of a round, and of rounds that come every few seconds. A quiet
/// cluster is asked less often. To connect again costs next to nothing, and to keep three buffers a cluster, of a thousand, does not.
const PLAIN: Duration = Duration::from_secs(5);
/// No answer that we ask for is as long: the metrics of a store are some megabytes.
const LONGEST: usize = 32 << 20;

type Sender = http1::SendRequest<Full<Bytes>>;

/// Whom a call is made to.
#[derive(Clone)]
pub struct Peer {
    /// Its host name: in the `Host` header, and in its certificate.
    pub host: String,
    /// What the connection is made to: an address, or a name that can be resolved here.
    pub address: String,
    /// The port.
    pub port: u16,
    /// Which process it is, where that is known: a connection that was made to another one is not used.
    pub process: String,
    /// How connections are made where it speaks TLS.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Peer {
    /// For people, and for the connections that are kept.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }

    /// For how long a connection is kept that nobody uses.
    fn patience(&self) -> Duration {
        if self.tls.is_some() { FORGOTTEN } else { PLAIN }
    }

    fn spot(&self) -> Spot {
        Spot { server: self.origin(), process: format!("{} {}", self.process, self.address) }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.origin())
    }
}

/// One call: what it is for, to whom, and what is said.
struct Call<'a> {
    act: &'static str,
    peer: &'a Peer,
    method: Method,
    path: &'a str,
    body: Option<&'a Value>,
    deadline: Instant,
}

/// The way to servers.
#[derive(Clone)]
pub struct Http {
    kept: Arc<Kept<Sender>>,
    guard: Guard,
}

impl Default for Http {
    fn default() -> Self {
        Self { kept: Arc::new(Kept::new()), guard: Guard::open() }
    }
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Changes something only while this says that it may: it is asked right before each such call.
    pub fn guarded(self, guard: Guard) -> Self {
        Self { guard, ..self }
    }

    /// Asks something that changes nothing.
    pub(crate) async fn ask(&self, act: &'static str, peer: &Peer, path: &str) -> Result<Answer, Failure> {
        let call = Call { act, peer, method: Method::GET, path, body: None, deadline: Instant::now() + CALL };
        if let Some(sender) = self.kept.take(&peer.spot()) {
            match self.exchange(sender, &call).await {
                Ok(answer) => return Ok(answer),
                Err(failure) if Instant::now() >= call.deadline => return Err(failure),
                // One that was closed while nobody used it says nothing about the server.
                Err(_) => {}
            }
        }
        let sender = open(&call).await?;
        self.exchange(sender, &call).await
    }

    /// Changes something. It is sent at most once.
    pub(crate) async fn change(
        &self,
        act: &'static str,
        peer: &Peer,
        (method, path): (Method, &str),
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let call = Call { act, peer, method, path, body, deadline: Instant::now() + CALL };
        let kept = match self.kept.take(&peer.spot()) {
            Some(mut sender) => matches!(timeout_at(call.deadline, sender.ready()).await, Ok(Ok(()))).then_some(sender),
            None => None,
        };
        let sender = match kept {
            Some(sender) => sender,
            None => open(&call).await?,
        };
        self.guard.check().map_err(|why| call.untried(why))?;
        self.exchange(sender, &call).await
    }

    /// Sends a call, and keeps the connection for the next one when the answer is whole.
    async fn exchange(&self, mut sender: Sender, call: &Call<'_>) -> Result<Answer, Failure> {
        let request = call.request()?;
        let answered = async {
            let answer = sender.send_request(request).await?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, LONGEST).collect().await.map_err(Unheard::Broken)?;
            Ok::<_, Unheard>((head.status, body.to_bytes()))
        };
        let (status, body) = match timeout_at(call.deadline, answered).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(Unheard::Unsent(error))) => return Err(call.unreached(told(&error))),
            Ok(Err(Unheard::Lost(error))) => return Err(call.lost(told(&error))),
            Ok(Err(Unheard::Broken(error))) => return Err(call.lost(told(error.as_ref()))),
            Err(_) => return Err(call.lost(format!("nothing came within {} s", CALL.as_secs()))),
        };
        if !sender.is_closed() {
            self.kept.keep(call.peer.spot(), sender, call.peer.patience());
        }
        Ok(call.answer(status, body))
    }
}

/// Why there is no answer.
enum Unheard {
    /// The connection was closed before the call was written to it.
    Unsent(hyper::Error),
    /// Nobody knows whether it arrived.
    Lost(hyper::Error),
    /// The answer began, and did not end.
    Broken(Box<dyn std::error::Error + Send + Sync>),
}

impl From<hyper::Error> for Unheard {
    fn from(error: hyper::Error) -> Self {
        if error.is_canceled() { Self::Unsent(error) } else { Self::Lost(error) }
    }
}

impl Call<'_> {
    fn request(&self) -> Result<Request<Full<Bytes>>, Failure> {
        let body = self.body.map(Value::to_string).unwrap_or_default();
        let mut request = Request::builder().method(&self.method).uri(self.path);
        request = request.header(HOST, format!("{}:{}", self.peer.host, self.peer.port));
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(Bytes::from(body))).map_err(|error| self.untried(error.to_string()))
    }

    fn untried(&self, why: String) -> Failure {
        Failure::Untried { act: self.act, host: self.peer.origin(), why }
    }

    fn unreached(&self, why: String) -> Failure {
        Failure::Unreached { act: self.act, host: self.peer.origin(), why }
    }

    fn lost(&self, why: String) -> Failure {
        Failure::Lost { act: self.act, host: self.peer.origin(), why }
    }

    fn answer(&self, status: StatusCode, body: Bytes) -> Answer {
        Answer { act: self.act, host: self.peer.origin(), status, body }
    }
}

async fn open(call: &Call<'_>) -> Result<Sender, Failure> {
    match timeout_at(call.deadline, connect(call.peer)).await {
        Ok(connected) => connected.map_err(|why| call.unreached(why)),
        Err(_) => Err(call.unreached(format!("no connection within {} s", CALL.as_secs()))),
    }
}

async fn connect(peer: &Peer) -> Result<Sender, String> {
    let stream = TcpStream::connect((peer.address.as_str(), peer.port)).await.map_err(|error| error.to_string())?;
    // It only makes answers come later.
    let _slower = stream.set_nodelay(true);
    let Some(configuration) = &peer.tls else { return introduce(stream).await };
    let name = ServerName::try_from(peer.host.clone()).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::clone(configuration)).connect(name, stream).await;
    introduce(stream.map_err(|error| format!("it is not believed, or does not believe us: {error}"))?).await
}

async fn introduce(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Sender, String> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // It ends with the sender, or when the other side closes it; and whoever waits for an answer hears why.
    tokio::spawn(async move {
        let _ended = connection.await;
    });
    Ok(sender)
}

/// An error with what caused it: the first line of hyper's says nothing.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut all = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        all = format!("{all}: {cause}");
        source = cause.source();
    }
    all
}

/// A part of a path, whatever is in it.
pub(crate) fn segment(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => safe.push(char::from(byte)),
            _ => safe.extend(['%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
    safe
}

fn digit(half: u8) -> char {
    char::from_digit(half.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

#[cfg(test)]
mod tests;
