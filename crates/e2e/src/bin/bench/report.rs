//! What was measured, as data.

use serde::Serialize;

use crate::Arguments;
use crate::audit::Requests;
use crate::kind::Kind;
use crate::latency::Latency;
use crate::machine::Machine;
use crate::mysql::Traffic;
use crate::mysql::connections::Connections;
use crate::mysql::failover::Failover;
use crate::operator::{Program, Usage};
use crate::servers::Servers;
use crate::tidb;

/// A whole run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    pub(crate) lab: String,
    pub(crate) kind: Kind,
    pub(crate) members: u16,
    pub(crate) program: Program,
    /// Whether the fake kubelet's pods name processes.
    pub(crate) processes: bool,
    pub(crate) machine_before: Machine,
    pub(crate) machine_after: Option<Machine>,
    pub(crate) warnings: Vec<String>,
    /// Rows that could not be measured, and why.
    pub(crate) failures: Vec<String>,
    /// The operator with no cluster at all.
    pub(crate) without_clusters: Option<Usage>,
    /// What a connection to a server costs.
    pub(crate) connections: Option<Connections>,
    pub(crate) rows: Vec<Row>,
}

impl Report {
    pub(crate) fn new(arguments: &Arguments, program: &Program, machine: Machine) -> Self {
        let mut warnings = Vec::new();
        if program.outdated {
            warnings.push(format!(
                "{} is older than its sources: the figures are those of an earlier state",
                program.path.display()
            ));
        }
        if cfg!(debug_assertions) {
            warnings.push("the bench itself is a debug build: its bare writer is slower than it should be".to_owned());
        }
        Self {
            lab: arguments.lab.clone(),
            kind: arguments.kind,
            members: arguments.members,
            program: program.clone(),
            processes: !arguments.without_processes,
            machine_before: machine,
            machine_after: None,
            warnings,
            failures: Vec::new(),
            without_clusters: None,
            connections: None,
            rows: Vec::new(),
        }
    }

    /// What the servers have to say of how they were treated.
    pub(crate) fn judge(&mut self, servers: &Servers) {
        self.failures.extend(servers.complaints());
    }

    pub(crate) fn finish(&mut self, machine: Machine) {
        self.machine_after = Some(machine);
    }
}

/// Everything that was measured with one number of clusters.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) clusters: usize,
    /// How often the clusters were created; times are the middle of all rounds.
    pub(crate) rounds: usize,
    pub(crate) objects_per_cluster: usize,
    /// The bare writer before and after.
    pub(crate) floors: Vec<Floor>,
    pub(crate) converged: Converged,
    /// Whether the operator stopped writing.
    pub(crate) settled: bool,
    pub(crate) quiet: Quiet,
    /// The same while the counts of stores change, where there are any.
    pub(crate) jittered: Option<Quiet>,
    /// What became of changed specs; not measured with MySQL, whose servers a change restarts.
    pub(crate) changed: Option<Changed>,
    /// The same while some clusters' PDs do not answer, of all other clusters.
    pub(crate) disturbed: Option<Disturbed>,
    /// What became of lost primaries, where there are any.
    pub(crate) failovers: Vec<Failover>,
    pub(crate) restarted: Restarted,
    pub(crate) machine: Machine,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Floor {
    pub(crate) seconds: f64,
    /// Seconds until all pods were ready, where that is waited for.
    pub(crate) pods_ready: Option<f64>,
    /// The idle share of the machine meanwhile, in percent.
    pub(crate) idle: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Converged {
    pub(crate) seconds: f64,
    /// Seconds until all pods were ready, where that is waited for.
    pub(crate) pods_ready: Option<f64>,
    pub(crate) idle: Option<u64>,
    /// The operator's requests until all clusters had converged; of the last round, when there were several.
    pub(crate) requests: Requests,
    /// Its requests until it came to rest, from the beginning of the last round on.
    pub(crate) until_settled: Requests,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Quiet {
    pub(crate) seconds: u64,
    pub(crate) requests: Requests,
    pub(crate) processor_seconds: f64,
    pub(crate) usage: Usage,
    /// What servers of MySQL were asked, where there are any.
    pub(crate) sql: Option<Sql>,
    /// What servers of TiDB clusters were asked, where there are any.
    pub(crate) http: Option<Http>,
    pub(crate) idle: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sql {
    /// The connections that were open at the end.
    pub(crate) connections: usize,
    pub(crate) traffic: Traffic,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Http {
    /// The connections that were open at the end.
    pub(crate) connections: usize,
    pub(crate) traffic: tidb::Traffic,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Changed {
    pub(crate) latency: Latency,
    /// The operator's requests meanwhile.
    pub(crate) requests: Requests,
    pub(crate) idle: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Disturbed {
    /// How many clusters have a PD that does not answer.
    pub(crate) silent: usize,
    pub(crate) changed: Changed,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restarted {
    pub(crate) ready_seconds: f64,
    pub(crate) watched_seconds: u64,
    /// Since the start of the new process.
    pub(crate) requests: Requests,
    pub(crate) usage: Usage,
}

impl Row {
    /// The mean of the bare writer's times: until all pods were ready, where the clusters have to wait for that as well.
    pub(crate) fn floor_seconds(&self) -> f64 {
        let times: Vec<f64> = self.floors.iter().map(|floor| floor.pods_ready.unwrap_or(floor.seconds)).collect();
        times.iter().sum::<f64>() / crate::table::float(times.len())
    }

    /// How many times as long as the bare writer.
    pub(crate) fn ratio(&self) -> f64 {
        self.converged.seconds / self.floor_seconds()
    }

    /// The same, computed for a writer that also posts the custom resource and writes its status once.
    pub(crate) fn ratio_of_all_writes(&self) -> f64 {
        let objects = crate::table::float(self.objects_per_cluster);
        self.ratio() * objects / (objects + 2.0)
    }

    /// How much of the memory is that of connections to servers, in MiB.
    pub(crate) fn connections_mib(&self, each: &Connections) -> Option<f64> {
        self.quiet.sql.as_ref().map(|sql| crate::table::float(sql.connections) * each.each_kib() / 1024.0)
    }
}
