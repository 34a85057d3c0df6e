//! The agent as a process of its own, whose log is read line by line. It ends with its test.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::Server;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
const VARIABLES: [&str; 8] = ["ADMIN", "AGENT", "REPLICATION", "CLONE_DONOR", "EXPORTER", "BACKUP", "READONLY", "WRITABLE"];

pub(crate) struct Agent {
    child: Child,
    lines: Receiver<String>,
    pub(crate) address: SocketAddr,
    pub(crate) probes: SocketAddr,
    pub(crate) metrics: SocketAddr,
}

impl Agent {
    /// Beside a server; its passwords are `PREFIX-VARIABLE`.
    pub(crate) fn start(server: &Server, passwords: &str, options: &[&str]) -> Self {
        let address = |base: u16| SocketAddr::from(([127, 0, 0, 1], base + server.number()));
        let (controller, probes, metrics) = (address(29080), address(29180), address(28080));
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(["mysql-agent", "--log", "debug", "--address", &controller.to_string()]);
        command.args(["--probe-address", &probes.to_string(), "--metrics-address", &metrics.to_string()]);
        command.arg("--socket-path").arg(server.socket()).arg("--cert-dir").arg(server.path().join("certificates"));
        command.arg("--slow-log").arg(server.path().join("mysql.slow")).args(options);
        command.env("POD_NAME", "moco-a-1").env("CLUSTER_NAME", "a");
        for variable in VARIABLES.map(|name| format!("{name}_PASSWORD")) {
            let password = format!("{passwords}-{variable}");
            command.env(variable, password);
        }
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let log = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                assert!(!line.contains("-ADMIN_PASSWORD") && !line.contains("-CLONE_DONOR_PASSWORD"), "{line}");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, address: controller, probes, metrics }
    }

    /// Waits for so many lines with this in them. False when the agent is done before.
    pub(crate) fn wait_for_lines(&mut self, with: &str, mut count: usize) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let mut last = String::new();
        while count > 0 {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    assert!(!line.contains("panicked"), "{line}");
                    let done = line.contains("mysqld is initialised");
                    count -= usize::from(line.contains(with));
                    if done && count > 0 {
                        return false;
                    }
                    last = line;
                }
                Err(RecvTimeoutError::Timeout) => panic!("no line with {with:?}; last: {last}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the agent ended; last: {last}"),
            }
        }
        true
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < deadline, "{what}: not within {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The status and the text of a page; status 0 when nobody listens.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let Ok(stream) = TcpStream::connect(address).await else { return (0, String::new()) };
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")).await.unwrap_or_default()
}

/// Sends a request and reads the whole answer.
pub(crate) async fn exchange<S>(mut stream: S, request: &str) -> std::io::Result<(u16, String)>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    if answer.is_empty() {
        read?;
    }
    let text = String::from_utf8_lossy(&answer);
    let status =
        text.split_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    Ok((status, body))
}
