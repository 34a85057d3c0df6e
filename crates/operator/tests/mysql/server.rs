//! A real mysqld on a copy of an initialised data directory. It ends with its test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder, Row, Value};
use tempfile::TempDir;

/// The directories of one server; they go with its test.
pub(crate) fn scratch() -> TempDir {
    let scratch = tempfile::tempdir().unwrap();
    for directory in ["volume", "conf", "certificates"] {
        std::fs::create_dir_all(scratch.path().join(directory)).unwrap();
    }
    scratch
}

/// The server to test with.
pub(crate) fn mysqld() -> PathBuf {
    std::env::var_os("WINDLASS_MYSQLD").expect("WINDLASS_MYSQLD names no mysqld").into()
}

/// `mysql-init` into this directory.
pub(crate) fn init_command(mysqld: &Path, into: &Path) -> InitCommand {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("mysql-init").arg("--mysqld").arg(mysqld).env("POD_NAME", "moco-a-1");
    command.arg("--data-dir").arg(into.join("volume")).arg("--conf-dir").arg(into.join("conf"));
    command.args(["--server-id-base", "100", "--mysqld-localhost"]);
    if let Some(zones) = std::env::var_os("WINDLASS_ZONEINFO") {
        command.arg("--init-timezones").arg("--zone-info").arg(zones);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null());
    InitCommand(command)
}

/// A command whose processes can be ended together.
pub(crate) struct InitCommand(Command);

impl InitCommand {
    pub(crate) fn process_group(mut self, group: i32) -> Self {
        use std::os::unix::process::CommandExt as _;
        self.0.process_group(group);
        self
    }

    pub(crate) fn spawn(mut self) -> std::io::Result<Child> {
        self.0.spawn()
    }

    pub(crate) fn status(mut self) -> std::io::Result<std::process::ExitStatus> {
        self.0.status()
    }
}

/// Ends a process that leads a group, and its group, without a word.
pub(crate) fn kill_group(child: &Child) {
    let group = format!("-{}", child.id());
    let _gone = Command::new("kill").args(["-KILL", "--", &group]).status();
}

/// A data directory that was initialised once, to be copied by each test. It stays with the build, and is made anew by each run.
pub(crate) fn template() -> PathBuf {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    let mysqld = mysqld();
    let template = TEMPLATE.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mysql-template");
        let _former = std::fs::remove_dir_all(&path);
        for directory in ["volume", "conf"] {
            std::fs::create_dir_all(path.join(directory)).unwrap();
        }
        assert!(init_command(&mysqld, &path).status().unwrap().success());
        path
    });
    template.clone()
}

/// A mysqld.
pub(crate) struct Server {
    scratch: TempDir,
    number: u16,
    child: Child,
}

impl Server {
    /// On a copy of the template. The number tells the servers of all tests apart.
    pub(crate) fn start(template: &Path, number: u16) -> Self {
        let scratch = scratch();
        let copied =
            Command::new("cp").arg("-a").arg(template.join("volume/data")).arg(scratch.path().join("volume/data")).status();
        assert!(copied.unwrap().success());
        // Each server makes up an identity of its own.
        std::fs::remove_file(scratch.path().join("volume/data/auto.cnf")).unwrap();
        Self::adopt(scratch, number)
    }

    /// On a directory that is initialised already.
    pub(crate) fn adopt(scratch: TempDir, number: u16) -> Self {
        let child = spawn(scratch.path(), number);
        Self { scratch, number, child }
    }

    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("mysqld.sock")
    }

    pub(crate) fn port(&self) -> u16 {
        23306 + self.number
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn wait_until_gone(&mut self) {
        self.child.wait().unwrap();
    }

    pub(crate) fn start_again(&mut self) {
        self.child = spawn(self.scratch.path(), self.number);
    }

    /// The first column of all rows; waits for the server, not for the account.
    pub(crate) async fn ask(&self, user: &str, password: &str, query: &str) -> Vec<String> {
        let options =
            OptsBuilder::default().socket(Some(self.socket().to_string_lossy())).user(Some(user)).pass(Some(password));
        let mut connection = Conn::new(options).await.unwrap_or_else(|error| panic!("{user}: {error}"));
        let rows: Vec<Row> = connection.query(query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.into_iter()
            .map(|row| match &row[0] {
                Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                other => other.as_sql(true),
            })
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The settings that an instance of a cluster has, in a small server.
fn spawn(directory: &Path, number: u16) -> Child {
    let mysqld = mysqld();
    let place = |name: &str| directory.join(name).display().to_string();
    let base = mysqld.parent().and_then(Path::parent).unwrap();
    let log = std::fs::File::options().create(true).append(true).open(directory.join("mysqld.log")).unwrap();
    let mut command = Command::new(&mysqld);
    command.arg("--no-defaults").arg(format!("--basedir={}", base.display()));
    command.arg(format!("--datadir={}", place("volume/data"))).arg(format!("--socket={}", place("mysqld.sock")));
    command.arg(format!("--pid-file={}", place("mysqld.pid"))).arg(format!("--slow-query-log-file={}", place("mysql.slow")));
    command.arg(format!("--port={}", 23306 + number)).arg(format!("--server-id={}", 100 + number));
    command.args(["--bind-address=127.0.0.1", "--mysqlx=OFF", "--secure-file-priv=NULL", "--slow-query-log=ON"]);
    command.args(["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--read-only=ON", "--super-read-only=ON"]);
    command.args(["--skip-replica-start=ON", "--innodb-buffer-pool-size=64M", "--skip-name-resolve=ON"]);
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap()
}
