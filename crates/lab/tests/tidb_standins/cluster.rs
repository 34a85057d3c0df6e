//! A real PD, and stand-ins beside it, on this machine.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use windlass_lab::tidb::Programs;

use crate::http::ask;

/// What the README says of PD on the lab.
const PD_CONFIG: &str = "[schedule]\nstore-balance-rate = 6000.0\n";

/// How many regions the stand-ins make.
pub const REGIONS: u64 = 12;

/// A process that ends with the test.
pub struct Running {
    child: Child,
}

impl Running {
    /// Waits until it ends by itself, and tells whether it was satisfied.
    pub fn ends_well(mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Addresses on this machine that nobody uses.
pub fn addresses<const COUNT: usize>() -> [String; COUNT] {
    // All are taken before the first is given back, so that they differ.
    let taken: [TcpListener; COUNT] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    taken.map(|listener| listener.local_addr().unwrap().to_string())
}

/// A PD, and what is needed to start others beside it.
pub struct Cluster {
    pub directory: PathBuf,
    pub pd: String,
    standin: PathBuf,
    _server: Running,
}

impl Cluster {
    pub fn start(programs: &Programs) -> Self {
        let directory = std::env::temp_dir().join(format!("windlass-standins-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("pd.toml"), PD_CONFIG).unwrap();
        let [pd, peer] = addresses();
        let server = spawn(
            &directory,
            "pd",
            Command::new(&programs.pd_servers[0])
                .args(["--name=pd", "--data-dir=pd", "--config=pd.toml"])
                .args([format!("--client-urls=http://{pd}"), format!("--peer-urls=http://{peer}")]),
        );
        Self { directory, pd, standin: programs.standin.clone(), _server: server }
    }

    /// Starts a stand-in.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Running {
        spawn(&self.directory, name, Command::new(&self.standin).env("STANDIN_REGIONS", REGIONS.to_string()).args(arguments))
    }

    /// Calls PD.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        ask(method, &self.pd, &format!("/pd/api/v1/{path}"), body)
    }

    /// The stores, tombstones among them.
    pub fn stores(&self) -> Vec<Value> {
        ["stores", "stores?state=2"]
            .iter()
            .flat_map(|path| self.call("GET", path, None)["stores"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    fn store(&self, id: u64) -> Value {
        self.stores().into_iter().find(|store| store["store"]["id"] == id).unwrap_or_default()
    }

    pub fn state(&self, id: u64) -> String {
        self.store(id)["store"]["state_name"].as_str().unwrap_or_default().to_owned()
    }

    /// `region_count` or `leader_count`, as PD has it.
    pub fn count(&self, id: u64, what: &str) -> u64 {
        self.store(id)["status"][what].as_u64().unwrap_or_default()
    }

    /// How long PD has heard less from this store than from others, in seconds.
    pub fn silence(&self, id: u64) -> u64 {
        let heard = |store: &Value| store["store"]["last_heartbeat"].as_u64().unwrap_or_default();
        let last = self.stores().iter().map(heard).max().unwrap_or_default();
        last.saturating_sub(heard(&self.store(id))) / 1_000_000_000
    }

    /// How many regions have fewer peers than they should, or more, or some that are not ready.
    pub fn unfinished(&self) -> u64 {
        ["miss-peer", "extra-peer", "pending-peer", "down-peer", "learner-peer"]
            .iter()
            .map(|what| self.call("GET", &format!("regions/check/{what}"), None)["count"].as_u64().unwrap_or(1))
            .sum()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the logs are in {}", self.directory.display());
        } else {
            let _removed = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn spawn(directory: &Path, name: &str, command: &mut Command) -> Running {
    let log = std::fs::File::options().create(true).append(true).open(directory.join(format!("{name}.log"))).unwrap();
    let child =
        command.current_dir(directory).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    Running { child }
}

/// One stand-in for TiKV.
pub struct Store {
    name: String,
    address: String,
    status: String,
    running: Option<Running>,
}

impl Store {
    pub fn start(name: &str, cluster: &Cluster) -> Self {
        let [address, status] = addresses();
        let mut store = Self { name: name.to_owned(), address, status, running: None };
        store.restart(cluster);
        store
    }

    /// Ends it as a crash would, and starts it again with the same data and addresses.
    pub fn restart(&mut self, cluster: &Cluster) {
        self.kill();
        let options = [
            format!("--pd=http://{}", cluster.pd),
            format!("--data-dir={}", self.name),
            format!("--addr={}", self.address),
            format!("--status-addr={}", self.status),
        ];
        let mut arguments = vec!["tikv-server", "--capacity=10GiB", "--log-level=info"];
        arguments.extend(options.iter().map(String::as_str));
        self.running = Some(cluster.run(&self.name, &arguments));
    }

    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Its process, which is then somebody else's to end.
    pub fn release(&mut self) -> Running {
        self.running.take().unwrap()
    }

    pub fn wipe(&self, cluster: &Cluster) {
        std::fs::remove_dir_all(cluster.directory.join(&self.name)).unwrap();
    }

    /// The id under which PD has it as one that is up.
    pub fn id(&self, cluster: &Cluster) -> Option<u64> {
        let stores = cluster.stores();
        let ours = |store: &&Value| store["store"]["address"] == self.address.as_str() && store["store"]["state_name"] == "Up";
        stores.iter().find(ours)?["store"]["id"].as_u64()
    }

    pub fn ask(&self, path: &str) -> Value {
        ask("GET", &self.status, path, None)
    }

    pub fn tell(&self, what: &str, body: &Value) {
        let answer = ask("POST", &self.status, &format!("/standin/{what}"), Some(body));
        assert!(answer.is_object() && answer.get("error").is_none(), "{answer}");
    }

    /// A number that it tells about itself.
    pub fn metric(&self, kind: &str) -> Option<u64> {
        let line = format!("tikv_raftstore_region_count{{type=\"{kind}\"}} ");
        self.ask("/metrics").as_str()?.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok())
    }
}
