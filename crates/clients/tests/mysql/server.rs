//! A real mysqld on a copy of a prepared data directory. It ends with its test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder};
use tempfile::TempDir;

use crate::world::{ADMIN_PASSWORD, CLONE_DONOR_PASSWORD, REPLICATION_PASSWORD};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The password of an application's account.
const APP_PASSWORD: &str = "app";

fn mysqld() -> PathBuf {
    std::env::var_os("WINDLASS_MYSQLD").expect("WINDLASS_MYSQLD names no mysqld").into()
}

pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A data directory with the accounts and the plugins that an agent would make. It is made anew by each run.
async fn template() -> PathBuf {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    static MAKING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _making = MAKING.lock().await;
    if let Some(path) = TEMPLATE.get() {
        return path.clone();
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mysql-client-template");
    let _former = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    let initialised = base_command(&path).arg("--initialize-insecure").status().unwrap();
    assert!(initialised.success(), "{}", path.join("mysqld.log").display());
    let mut child = base_command(&path).args(["--skip-networking", "--mysqlx=OFF"]).spawn().unwrap();
    let options = OptsBuilder::default().socket(Some(path.join("mysqld.sock").to_string_lossy())).user(Some("root"));
    let mut root = connect(options.into()).await;
    root.query_drop("SET SESSION sql_log_bin = 0, sql_mode = ''").await.unwrap();
    let accounts = [
        ("moco-admin", ADMIN_PASSWORD, "ALL"),
        ("moco-repl", REPLICATION_PASSWORD, "REPLICATION CLIENT, REPLICATION SLAVE"),
        ("moco-clone-donor", CLONE_DONOR_PASSWORD, "BACKUP_ADMIN, SERVICE_CONNECTION_ADMIN"),
        ("app", APP_PASSWORD, "CREATE, DROP, INSERT, SELECT, UPDATE, DELETE, LOCK TABLES"),
    ];
    for (name, password, privileges) in accounts {
        let identified = format!("IDENTIFIED WITH caching_sha2_password BY {}", quote(password));
        root.query_drop(format!("CREATE USER '{name}'@'%' {identified}")).await.unwrap();
        root.query_drop(format!("GRANT {privileges} ON *.* TO '{name}'@'%' WITH GRANT OPTION")).await.unwrap();
    }
    let plugins =
        [("rpl_semi_sync_source", "semisync_source"), ("rpl_semi_sync_replica", "semisync_replica"), ("clone", "mysql_clone")];
    for (name, library) in plugins {
        root.query_drop(format!("INSTALL PLUGIN {name} SONAME '{library}.so'")).await.unwrap();
    }
    root.query_drop("SHUTDOWN").await.unwrap();
    child.wait().unwrap();
    TEMPLATE.get_or_init(|| path).clone()
}

/// A mysqld.
pub(crate) struct Server {
    scratch: TempDir,
    number: u16,
    child: Child,
}

impl Server {
    /// On a copy of the template. The number tells the servers of all tests apart.
    pub(crate) async fn start(number: u16) -> Self {
        let template = template().await;
        let scratch = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-a").arg(template.join("data")).arg(scratch.path().join("data")).status();
        assert!(copied.unwrap().success());
        // Each server makes up an identity of its own.
        std::fs::remove_file(scratch.path().join("data/auto.cnf")).unwrap();
        let child = spawn(scratch.path(), number);
        let server = Self { scratch, number, child };
        drop(server.root().await);
        server
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// The address of the administrative port, by which the client finds the port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.{}", 10 + self.number)
    }

    /// The administrative port of an address.
    pub(crate) fn admin_port(address: &str) -> u16 {
        24400 + address.rsplit('.').next().and_then(|number| number.parse::<u16>().ok()).unwrap()
    }

    pub(crate) fn port(&self) -> u16 {
        24300 + self.number
    }

    /// A client, as applications are.
    pub(crate) async fn app(&self) -> Conn {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port())
            .prefer_socket(false)
            .user(Some("app"))
            .pass(Some(APP_PASSWORD));
        connect(options.into()).await
    }

    /// Somebody in the pod. Waits for the server.
    pub(crate) async fn root(&self) -> Conn {
        let socket = self.scratch.path().join("mysqld.sock");
        connect(OptsBuilder::default().socket(Some(socket.to_string_lossy())).user(Some("root")).into()).await
    }

    pub(crate) async fn ask(&self, query: &str) -> String {
        let answer: Option<String> = self.root().await.query_first(query).await.unwrap();
        answer.unwrap_or_default()
    }

    pub(crate) async fn tell(&self, statement: &str) {
        self.root().await.query_drop(statement).await.unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn wait_until_gone(&mut self) {
        self.child.wait().unwrap();
    }

    pub(crate) async fn start_again(&mut self) {
        self.child = spawn(self.scratch.path(), self.number);
        drop(self.root().await);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

async fn connect(options: Opts) -> Conn {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Conn::new(options.clone()).await {
            Ok(connection) => return connection,
            Err(error) => assert!(Instant::now() < deadline, "no connection: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn base_command(directory: &Path) -> Command {
    let mysqld = mysqld();
    let place = |name: &str| directory.join(name).display().to_string();
    let base = mysqld.parent().and_then(Path::parent).unwrap();
    let log = std::fs::File::options().create(true).append(true).open(directory.join("mysqld.log")).unwrap();
    let mut command = Command::new(&mysqld);
    command.arg("--no-defaults").arg(format!("--basedir={}", base.display()));
    command.arg(format!("--datadir={}", place("data"))).arg(format!("--socket={}", place("mysqld.sock")));
    command.arg(format!("--pid-file={}", place("mysqld.pid"))).arg("--secure-file-priv=NULL");
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command
}

/// The settings that an instance of a cluster has, in a small server.
fn spawn(directory: &Path, number: u16) -> Child {
    let mut command = base_command(directory);
    let address = format!("127.0.0.{}", 10 + number);
    command.arg(format!("--port={}", 24300 + number)).arg(format!("--server-id={}", 100 + number));
    command.arg(format!("--admin-port={}", Server::admin_port(&address))).arg(format!("--admin-address={address}"));
    command.args(["--bind-address=127.0.0.1", "--mysqlx=OFF", "--relay-log-recovery=OFF"]);
    command.args(["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--read-only=ON", "--super-read-only=ON"]);
    command.args(["--skip-replica-start=ON", "--innodb-buffer-pool-size=64M", "--skip-name-resolve=ON"]);
    // What a user may have set, and what must not bother us.
    command.args(["--lock-wait-timeout=60", "--max-execution-time=1000", "--sql-mode=NO_BACKSLASH_ESCAPES"]);
    command.spawn().unwrap()
}
