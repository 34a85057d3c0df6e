//! The Galera example, and a client of its database.

pub mod load;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::place::Place;

/// The cluster's name in the example.
const NAME: &str = "galera";
const MANIFEST: &str = "examples/galera/cluster.yaml";

/// A running Galera example.
#[derive(Clone)]
pub struct Galera {
    /// The cluster.
    pub cluster: Cluster,
    database: String,
    username: String,
    password: String,
}

/// A file of the repository.
pub fn read_repository(path: &str) -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
}

impl Place {
    /// Applies the Galera example and waits until it is Ready.
    pub async fn galera(&self) -> Result<Galera> {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(&read_repository(MANIFEST)?).context("the example cannot be read")?;
        self.apply(&objects).await?;
        let secret = objects.iter().find(|object| object["kind"] == "Secret").context("the example has no Secret")?;
        let word = |key: &str| {
            secret["stringData"][key].as_str().map(str::to_owned).with_context(|| format!("no {key} in the Secret"))
        };
        let galera = Galera {
            cluster: self.cluster(NAME)?,
            database: word("database")?,
            username: word("username")?,
            password: word("password")?,
        };
        galera.cluster.wait_until_ready(3).await?;
        Ok(galera)
    }
}

impl Galera {
    /// The client Service's name.
    pub fn service(&self) -> String {
        self.cluster.names.client_service()
    }

    /// The host name of one member.
    pub fn host(&self, ordinal: u16) -> String {
        self.cluster.names.host(windlass_core::ordinals::Ordinal::new(ordinal))
    }

    /// Runs SQL as the application's user over the network, from a member's container.
    pub async fn sql(&self, from: u16, host: &str, statements: &str) -> Result<String> {
        let host = format!("--host={host}");
        let (user, password) = (format!("--user={}", self.username), format!("--password={}", self.password));
        let execute = format!("--execute={statements}");
        let command = [
            "mariadb",
            "--no-defaults",
            "--protocol=tcp",
            "--connect-timeout=10",
            "--batch",
            "--skip-column-names",
            &host,
            &user,
        ]
        .into_iter()
        .chain([password.as_str(), &execute, &self.database])
        .collect::<Vec<_>>();
        let ran = self.cluster.place.run(&self.cluster.pod(from), &command).await?;
        ensure!(ran.code == 0, "{statements:?} through {host} ended with code {}: {}", ran.code, ran.errors.trim());
        Ok(ran.output.trim().to_owned())
    }

    /// What a member answers, after it has applied all that the others had committed.
    pub async fn read_from(&self, ordinal: u16, statement: &str) -> Result<String> {
        self.sql(0, &self.host(ordinal), &format!("SET SESSION wsrep_sync_wait = 1; {statement}")).await
    }

    /// Runs SQL as the administrator, in the member itself.
    pub async fn ask_server(&self, ordinal: u16, statement: &str) -> Result<String> {
        let client =
            "timeout 3 mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --user=mysql --batch --skip-column-names";
        self.cluster.place.shell(&self.cluster.pod(ordinal), &format!("{client} --execute=\"{statement}\"")).await
    }

    /// Every member has every one of these rows.
    pub async fn check_rows(&self, members: u16, rows: &[u32]) -> Result<()> {
        for member in 0..members {
            let read = self.read_from(member, "SELECT length FROM rope").await?;
            let has: Vec<u32> = read.lines().filter_map(|line| line.trim().parse().ok()).collect();
            let lost: Vec<&u32> = rows.iter().filter(|row| !has.contains(row)).collect();
            ensure!(lost.is_empty(), "member {member} lost {lost:?}, which a client was told are safe");
        }
        Ok(())
    }

    /// Sends a signal to the server of a member, and tells its process.
    pub async fn signal_server(&self, ordinal: u16, signal: &str) -> Result<String> {
        let process = self.server_process(ordinal).await?;
        self.cluster.place.shell(&self.cluster.pod(ordinal), &format!("kill -{signal} {process}")).await?;
        Ok(process)
    }

    /// The number of the server's process in a member.
    pub async fn server_process(&self, ordinal: u16) -> Result<String> {
        let found = self.cluster.place.shell(&self.cluster.pod(ordinal), "pgrep -o -x mariadbd").await?;
        Ok(found.trim().to_owned())
    }

    /// Kills the server of a member.
    pub async fn kill_server(&self, ordinal: u16) -> Result<String> {
        self.signal_server(ordinal, "KILL").await
    }
}
