//! A way to the API server that can hold requests back: plain HTTP on this machine in front of TLS with a user's certificate.
//!
//! It understands just enough of HTTP/1.1 to know where a request begins and ends. A request that it was told to catch is read
//! whole, its sender is stopped, and it waits here until it is let go. It can also be slow, and keep watches away from the server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::Config;
use kube::client::ConfigExt as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

/// The head of a request is at most this long; only commands in the path make it longer than a few hundred bytes.
const LONGEST_HEAD: usize = 256 * 1024;

/// The way of one user.
pub struct Front {
    /// Where it listens.
    pub address: SocketAddr,
    way: Arc<Way>,
    server: JoinHandle<()>,
}

/// What all its connections share.
#[derive(Default)]
struct Way {
    trap: Mutex<Option<Armed>>,
    /// How long each request waits here, in milliseconds.
    delay: AtomicU64,
    /// Whether watches are kept away.
    cut: watch::Sender<bool>,
}

struct Armed {
    wanted: Box<dyn Fn(&str) -> bool + Send>,
    sender: Pid,
    caught: oneshot::Sender<Caught>,
}

/// A request that is held back, and whose sender is stopped.
pub struct Caught {
    /// Its first line.
    pub request: String,
    go: oneshot::Sender<()>,
}

impl Caught {
    /// Lets the request go on to the server.
    pub fn release(self) -> Result<()> {
        self.go.send(()).ok().context("the held request is gone")
    }
}

struct Upstream {
    host: String,
    port: u16,
    connector: TlsConnector,
}

impl Upstream {
    async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(self.connector.connect(ServerName::try_from(self.host.clone())?, stream).await?)
    }
}

impl Front {
    /// A way for the user of this kubeconfig.
    pub async fn open(kubeconfig: &Path) -> Result<Self> {
        let read = Kubeconfig::read_from(kubeconfig).with_context(|| format!("cannot read {}", kubeconfig.display()))?;
        let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let host = config.cluster_url.host().context("the server has no address")?.to_owned();
        let port = config.cluster_url.port_u16().unwrap_or(443);
        let connector = TlsConnector::from(Arc::new(config.rustls_client_config()?));
        let upstream = Arc::new(Upstream { host, port, connector });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr()?;
        let way = Arc::new(Way::default());
        let shared = Arc::clone(&way);
        let server = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (upstream, way) = (Arc::clone(&upstream), Arc::clone(&shared));
                // A connection that breaks is the client's to notice.
                tokio::spawn(async move { carry(client, &upstream, &way).await.ok() });
            }
        });
        Ok(Self { address, way, server })
    }

    /// From now on every request takes so much longer.
    pub fn delay(&self, by: Duration) {
        self.way.delay.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Ends all watches, and keeps new ones here; everything else goes on.
    pub fn hold_watches(&self) {
        self.way.cut.send_replace(true);
    }

    /// Lets watches through again.
    pub fn release_watches(&self) {
        self.way.cut.send_replace(false);
    }

    /// Catches the next request whose first line is wanted, and stops its sender in the same moment.
    pub fn arm(&self, sender: Pid, wanted: impl Fn(&str) -> bool + Send + 'static) -> oneshot::Receiver<Caught> {
        let (caught, receiver) = oneshot::channel();
        *self.way.trap() = Some(Armed { wanted: Box::new(wanted), sender, caught });
        receiver
    }

    /// Catches nothing any more.
    pub fn disarm(&self) {
        *self.way.trap() = None;
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Way {
    fn trap(&self) -> std::sync::MutexGuard<'_, Option<Armed>> {
        self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a request for as long as it has to wait here.
    async fn keep(&self, line: &str) -> Result<()> {
        if let Some(go) = self.spring(line) {
            // Gone when the test has ended.
            go.await.context("the held request is of no use any more")?;
        }
        let delay = Duration::from_millis(self.delay.load(Ordering::SeqCst));
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if is_watch(line) {
            self.cut.subscribe().wait_for(|cut| !*cut).await?;
        }
        Ok(())
    }

    /// Stops the sender when this is the request that is waited for.
    fn spring(&self, line: &str) -> Option<oneshot::Receiver<()>> {
        let mut armed = self.trap();
        if !armed.as_ref().is_some_and(|armed| (armed.wanted)(line)) {
            return None;
        }
        let Armed { sender, caught, .. } = armed.take()?;
        let stopped = rustix::process::kill_process(sender, Signal::STOP);
        let (go, gone) = oneshot::channel();
        // Nobody waits for it when the sender is not there to be stopped.
        stopped.ok().and_then(|()| caught.send(Caught { request: line.to_owned(), go }).ok())?;
        Some(gone)
    }
}

fn is_watch(line: &str) -> bool {
    line.starts_with("GET ") && line.split(['?', '&']).any(|part| matches!(part, "watch=true" | "watch=1"))
}

/// Carries the requests of one connection, one after another, and all answers.
async fn carry(mut client: TcpStream, upstream: &Upstream, way: &Way) -> Result<()> {
    client.set_nodelay(true)?;
    let mut cut = way.cut.subscribe();
    let (mut server, mut watches, mut pending) = (None, false, Vec::new());
    loop {
        let (mut from_client, mut to_client) = client.split();
        let next = read_request(&mut from_client, &mut pending);
        let request = match &mut server {
            None => next.await?,
            Some(server) => tokio::select! {
                request = next => request?,
                // All of an answer is with the client before it asks for anything else.
                ended = tokio::io::copy(server, &mut to_client) => return Ok(ended.map(drop)?),
                Ok(_) = cut.wait_for(|cut| *cut), if watches => return Ok(()),
            },
        };
        let Some(request) = request else { return Ok(()) };
        way.keep(&request.line).await?;
        watches = is_watch(&request.line);
        // One that was held may have waited for longer than the server keeps a silent connection.
        let connection = match server.take().filter(|_| !watches) {
            Some(connection) => connection,
            None => upstream.connect().await?,
        };
        let connection = server.insert(connection);
        connection.write_all(&request.bytes).await?;
        connection.flush().await?;
        if request.upgrades {
            connection.write_all(&pending).await?;
            tokio::io::copy_bidirectional(&mut client, connection).await?;
            return Ok(());
        }
    }
}

struct Request {
    /// Its first line, without the version.
    line: String,
    /// All of it.
    bytes: Vec<u8>,
    /// Whether what follows is no request.
    upgrades: bool,
}

/// Reads one request whole; none when the client has ended. What follows it stays in `pending`.
async fn read_request(from: &mut (impl AsyncRead + Unpin), pending: &mut Vec<u8>) -> Result<Option<Request>> {
    let end = loop {
        if let Some(end) = pending.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if pending.len() > LONGEST_HEAD || from.read_buf(pending).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&pending[..end]).into_owned();
    let (line, fields) = head.split_once("\r\n").context("a request without a head")?;
    let field = |name: &str| {
        fields
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|it| it.1.trim())
    };
    if field("transfer-encoding").is_some() {
        bail!("a request of unknown length");
    }
    let length: usize = field("content-length").map_or(Ok(0), str::parse)?;
    let upgrades = field("upgrade").is_some();
    let line = line.rsplit_once(' ').map_or(line, |(line, _)| line).to_owned();
    while pending.len() < end + length {
        if from.read_buf(pending).await? == 0 {
            return Ok(None);
        }
    }
    let rest = pending.split_off(end + length);
    Ok(Some(Request { line, bytes: std::mem::replace(pending, rest), upgrades }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_told_from_lists() {
        assert!(is_watch("GET /api/v1/pods?&watch=true&timeoutSeconds=290"));
        assert!(!is_watch("GET /api/v1/pods?&limit=500"));
        assert!(!is_watch("GET /api/v1/namespaces/watch=true/pods"));
    }

    #[tokio::test]
    async fn requests_are_told_apart_and_kept_whole() {
        let first = "PUT /a?b=c HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz";
        let second = "GET /e/exec HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
        let text = format!("{first}{second}raw");
        let (mut from, mut pending) = (text.as_bytes(), Vec::new());
        let one = read_request(&mut from, &mut pending).await.unwrap().unwrap();
        assert_eq!((one.line.as_str(), one.bytes.as_slice(), one.upgrades), ("PUT /a?b=c", first.as_bytes(), false));
        let two = read_request(&mut from, &mut pending).await.unwrap().unwrap();
        assert_eq!((two.line.as_str(), two.bytes.as_slice(), two.upgrades), ("GET /e/exec", second.as_bytes(), true));
        assert_eq!(pending, b"raw");
        assert!(read_request(&mut from, &mut pending).await.unwrap().is_none());
    }
}
