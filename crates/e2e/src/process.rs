//! Operators that run as processes of this machine, each with a user of its own, so that they can be stopped, killed and told apart.
//!
//! They look after clusters with a label that the installed release is told to leave alone.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::galera::read_repository;
use crate::stage::Stage;
use crate::wait::{LONG, wait_for};

/// The program to run; the one that `cargo xtask test` built when absent.
const PROGRAM_VARIABLE: &str = "WINDLASS_PROGRAM";
/// On clusters that the processes of a test look after: which test.
pub const OWN: &str = "e2e.windlass.dev/operator";
const RULES: &str = "charts/windlass/files/rules.yaml";

/// What a process is told.
#[derive(Clone, Debug, Default)]
pub struct Order<'a> {
    /// Its user, and its name in the Lease.
    pub user: &'a str,
    /// The groups of its user; without effect when it goes another way to the API server.
    pub groups: &'a [&'a str],
    /// Its release.
    pub release: &'a str,
    /// The namespace of its release.
    pub namespace: &'a str,
    /// The value of [`OWN`] on its clusters.
    pub own: &'a str,
    /// Its selector, when it is another one than that.
    pub selector: Option<String>,
    /// Another way to the API server, without a certificate.
    pub server: Option<SocketAddr>,
}

/// A running operator; it is killed when this is dropped.
pub struct Operator {
    child: Child,
    address: SocketAddr,
    /// Its user in the audit log.
    pub user: String,
    /// Its log.
    pub log: PathBuf,
}

/// What the kernel says of a process.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Its open files.
    pub files: usize,
    /// Its memory, in KiB.
    pub resident: u64,
}

/// Connections come and go; a leak shows in more than this.
const MORE_FILES: usize = 16;
/// In KiB, besides a tenth.
const MORE_MEMORY: u64 = 8 * 1024;

impl Usage {
    /// The larger of both in each.
    pub fn larger(self, other: Self) -> Self {
        Self { files: self.files.max(other.files), resident: self.resident.max(other.resident) }
    }

    /// Fails when this is so much more than before that something leaks.
    pub fn has_not_grown(self, before: Self) -> Result<()> {
        ensure!(self.files <= before.files + MORE_FILES, "{} open files, {} before", self.files, before.files);
        let limit = before.resident + before.resident / 10 + MORE_MEMORY;
        ensure!(self.resident <= limit, "{} KiB of memory, {} before", self.resident, before.resident);
        Ok(())
    }
}

impl Stage {
    /// Plays while the installed release leaves all clusters with the label [`OWN`] alone.
    pub async fn beside_the_release(&self, play: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        if !self.operator_is_installed() {
            return play().await;
        }
        self.main_release().select(&format!("!{OWN}")).await?;
        let played = play().await;
        played.and(self.main_release().select("").await)
    }

    /// Gives a user what the chart gives a release, everywhere. Without effect when it has that already.
    pub async fn grant_release(&self, user: &str) -> Result<()> {
        let rules: Value =
            serde_saphyr::from_str(&read_repository(RULES)?).with_context(|| format!("{RULES} cannot be read"))?;
        let all: Vec<Value> = ["clusters", "release"].iter().filter_map(|it| rules[it].as_array().cloned()).flatten().collect();
        ensure!(!all.is_empty(), "{RULES} has no rules");
        let name = role(user);
        let group = "rbac.authorization.k8s.io";
        let role =
            json!({ "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": { "name": name }, "rules": all });
        let binding = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
        });
        let parameters = PatchParams::apply("windlass-e2e").force();
        Api::<ClusterRole>::all(self.client()).patch(&name, &parameters, &Patch::Apply(&role)).await?;
        Api::<ClusterRoleBinding>::all(self.client()).patch(&name, &parameters, &Patch::Apply(&binding)).await?;
        Ok(())
    }

    /// Takes back what [`Stage::grant_release`] gave.
    pub async fn revoke_release(&self, user: &str) -> Result<()> {
        let name = role(user);
        Api::<ClusterRoleBinding>::all(self.client()).delete(&name, &DeleteParams::default()).await?;
        Api::<ClusterRole>::all(self.client()).delete(&name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Where something about a user is written. The same test may run on another lab at the same time.
    fn file_of(&self, user: &str, what: &str) -> PathBuf {
        std::env::temp_dir().join(format!("windlass-e2e-{}-{user}.{what}", self.lab().name()))
    }

    /// Starts an operator, and waits until it leads or stands by.
    pub async fn start_operator(&self, order: &Order<'_>) -> Result<Operator> {
        let program = program()?;
        let kubeconfig = match order.server {
            None => self.lab().user_kubeconfig(order.user, order.groups)?,
            Some(server) => write_kubeconfig(&self.file_of(order.user, "kubeconfig"), order.user, server)?,
        };
        let address = free_address()?;
        let log = self.file_of(order.user, "log");
        let output = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("cannot write {}", log.display()))?;
        let selector = order.selector.clone().unwrap_or_else(|| format!("{OWN}={}", order.own));
        let mut command = Command::new(&program);
        command.args(["controller", "--listen", &address.to_string(), "--selector", &selector]);
        command.args(["--release", order.release, "--release-namespace", order.namespace, "--identity", order.user]);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("WINDLASS_")) {
            command.env_remove(name);
        }
        command.env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut operator = Operator { child, address, user: order.user.to_owned(), log };
        wait_for(&format!("the operator {} is ready", order.user), LONG, async || {
            operator.check()?;
            operator.ask("/readyz").await.map(drop)
        })
        .await?;
        Ok(operator)
    }
}

impl Operator {
    /// Its process.
    pub fn pid(&self) -> Result<Pid> {
        let id = self.child.id().context("the operator has ended")?;
        Pid::from_raw(i32::try_from(id)?).context("no process has this id")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        rustix::process::kill_process(self.pid()?, signal).with_context(|| format!("{} cannot be signalled", self.user))
    }

    /// Waits until it has ended.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        Ok(self.child.wait().await?)
    }

    /// Fails when it has ended.
    pub fn check(&mut self) -> Result<()> {
        let ended = self.child.try_wait()?;
        ensure!(ended.is_none(), "the operator {} ended: {ended:?}, see {}", self.user, self.log.display());
        Ok(())
    }

    /// Whether it says that it leads.
    pub async fn leads(&self) -> Result<bool> {
        let metrics = self.ask("/metrics").await?;
        let line = metrics.lines().find(|line| line.starts_with("windlass_leader ")).context("no metric windlass_leader")?;
        Ok(line.ends_with(" 1"))
    }

    /// A counter, over all its labels. It is not there before it was first counted.
    pub async fn count(&self, counter: &str) -> Result<u64> {
        let metrics = self.ask("/metrics").await?;
        let values = metrics.lines().filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            (name.split('{').next() == Some(counter)).then(|| value.parse::<u64>().ok())?
        });
        Ok(values.sum())
    }

    /// What it costs now.
    pub fn usage(&self) -> Result<Usage> {
        let pid = self.pid()?.as_raw_nonzero();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
        let files = std::fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        Ok(Usage { files, resident: resident.context("the kernel does not tell its memory")? })
    }

    async fn ask(&self, path: &str) -> Result<String> {
        let answer = async {
            let mut stream = TcpStream::connect(self.address).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            ensure!(text.starts_with("HTTP/1.1 200"), "{path} answers {text:?}");
            Ok(text)
        };
        tokio::time::timeout(std::time::Duration::from_secs(2), answer)
            .await
            .with_context(|| format!("no answer for {path}"))?
    }
}

fn role(user: &str) -> String {
    format!("windlass-e2e-{user}")
}

fn program() -> Result<PathBuf> {
    let built = format!("target/static/{}-unknown-linux-gnu/release/windlass", std::env::consts::ARCH);
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(built);
    let path = std::env::var_os(PROGRAM_VARIABLE).map_or(built, PathBuf::from);
    ensure!(path.is_file(), "{} is not there: `cargo xtask up` or `cargo xtask test` builds it", path.display());
    Ok(path)
}

fn free_address() -> Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?)
}

/// A kubeconfig that holds no secret: whoever is on the way has it.
fn write_kubeconfig(path: &Path, user: &str, server: SocketAddr) -> Result<PathBuf> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "lab", "cluster": { "server": format!("http://{server}") } }],
        "users": [{ "name": user, "user": {} }],
        "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": user } }],
        "current-context": "lab",
    });
    std::fs::write(path, config.to_string()).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path.to_owned())
}
