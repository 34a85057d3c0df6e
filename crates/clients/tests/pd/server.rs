//! A real pd-server on this machine. It ends with its test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

fn pd_server() -> PathBuf {
    std::env::var_os("WINDLASS_PD_SERVER").expect("WINDLASS_PD_SERVER names no pd-server").into()
}

/// Waits until something is so.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look().await {
            Ok(it) => return it,
            Err(why) => assert!(Instant::now() < deadline, "{what}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// How a member begins.
pub(crate) enum Start<'a> {
    Alone,
    Joining(&'a Server),
}

/// A member of PD.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) port: u16,
    scratch: TempDir,
    arguments: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts a member, with these arguments as well.
    pub(crate) fn start(name: &str, start: &Start<'_>, scheme: &str, more: &[String]) -> Self {
        // Whoever takes these ports in between makes the test fail, and not something else.
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, peer) = (free(), free());
        let scratch = tempfile::tempdir().unwrap();
        let mut arguments = vec![
            format!("--name={name}"),
            format!("--data-dir={}", scratch.path().join("data").display()),
            format!("--log-file={}", scratch.path().join("log").display()),
            format!("--client-urls={scheme}://127.0.0.1:{port}"),
            format!("--peer-urls={scheme}://127.0.0.1:{peer}"),
        ];
        arguments.push(match start {
            Start::Alone => format!("--initial-cluster={name}={scheme}://127.0.0.1:{peer}"),
            Start::Joining(other) => format!("--join={scheme}://127.0.0.1:{}", other.port),
        });
        arguments.extend_from_slice(more);
        let child = spawn(&arguments);
        Self { name: name.to_owned(), port, scratch, arguments, child }
    }

    pub(crate) async fn alone(name: &str) -> Self {
        let mut server = Self::start(name, &Start::Alone, "http", &[]);
        server.answers().await;
        server
    }

    /// Waits until it answers for all of PD. One that ends because others were not ready for it starts again, as it would in a pod.
    pub(crate) async fn answers(&mut self) {
        until(&format!("{} (see {})", self.name, self.scratch.path().join("log").display()), async || {
            if self.child.try_wait().unwrap().is_some() {
                self.child = spawn(&self.arguments);
            }
            let (status, body) = call(self.port, "GET", "/pd/api/v1/members", "").await?;
            let led = serde_json::from_str::<Value>(&body).is_ok_and(|it| it["leader"]["member_id"].is_number());
            if status == 200 && led { Ok(()) } else { Err(body) }
        })
        .await;
    }

    pub(crate) fn kill(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }

    pub(crate) async fn start_again(&mut self) {
        self.kill();
        self.child = spawn(&self.arguments);
        self.answers().await;
    }

    /// Writes into PD's own storage what it would write when the first store bootstraps the cluster, and when others join.
    pub(crate) async fn bootstrap(&mut self, stores: &[(u64, &str)]) {
        let (_, body) = call(self.port, "GET", "/pd/api/v1/cluster", "").await.unwrap();
        let cluster: Value = serde_json::from_str(&body).unwrap();
        let cluster = cluster["id"].as_u64().unwrap();
        self.put(&format!("/pd/{cluster}/raft"), &[field(1, cluster), field(2, 3)].concat()).await;
        for (id, address) in stores {
            let text = |number: u8, text: &str| {
                let mut bytes = vec![number << 3 | 2];
                bytes.extend(varint(text.len().try_into().unwrap()));
                bytes.extend(text.bytes());
                bytes
            };
            // Its number, its address, its version, and that it serves.
            let store = [field(1, *id), text(2, address), text(5, "7.5.0"), field(13, 1)].concat();
            self.put(&format!("/pd/{cluster}/raft/s/{id:020}"), &store).await;
        }
        self.start_again().await;
    }

    async fn put(&self, key: &str, value: &[u8]) {
        let encode = |bytes: &[u8]| serde_json::to_value(ByteString(bytes.to_vec())).unwrap();
        let body = json!({"key": encode(key.as_bytes()), "value": encode(value)}).to_string();
        let (status, body) = call(self.port, "POST", "/v3/kv/put", &body).await.unwrap();
        assert_eq!(status, 200, "{body}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(arguments: &[String]) -> Child {
    let mut command = Command::new(pd_server());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It was written for an older Go, whose patterns of paths were others.
    command.env("GODEBUG", "httpmuxgo121=1");
    command.spawn().unwrap()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 127 {
        bytes.push(u8::try_from(number & 127).unwrap() | 128);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

/// A number in a message.
fn field(number: u8, value: u64) -> Vec<u8> {
    let mut bytes = vec![number << 3];
    bytes.extend(varint(value));
    bytes
}

/// One request, without anything of the client under test.
async fn call(port: u16, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
    let told = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(told)?;
    let head = format!("{method} {path} HTTP/1.0\r\nhost: pd\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.map_err(told)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(told)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or("no status")?;
    Ok((status, body.to_owned()))
}
