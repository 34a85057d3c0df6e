//! What can be said on the command line.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use windlass_agent::schedule::parse_duration;
use windlass_api::tidb;
use windlass_core::selector::Selector;

use crate::discovery::DiscoveryOptions;
use crate::mysql::{MysqlAgentOptions, MysqlInitOptions, MysqlRunOptions, MysqlSaveOptions};
use crate::webhook::WebhookOptions;

/// One operator for replicated database clusters.
#[derive(Debug, Parser)]
#[command(name = "windlass", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) component: Component,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Component {
    /// Runs the controller of all kinds.
    Controller(ControllerOptions),
    /// Judges MySQLClusters, BackupPolicies and TidbClusters before they are stored.
    Webhook(WebhookOptions),
    /// Tells members of PD of one TidbCluster how to begin.
    Discovery(DiscoveryOptions),
    /// Prints the CustomResourceDefinitions.
    Crds,
    /// Prepares the data directory of a MySQL instance, in its pod, before mysqld starts.
    MysqlInit(MysqlInitOptions),
    /// Runs mysqld, as the first process of its container, and lets it stop only when no client is left whom it could tell of a commit.
    MysqlRun(MysqlRunOptions),
    /// Runs beside mysqld in its pod: prepares it, answers its probes, clones it.
    MysqlAgent(MysqlAgentOptions),
    /// Puts binary logs of a MySQL instance beside its data directory, in its pod, before that is replaced.
    MysqlSave(MysqlSaveOptions),
    /// Copies this program into a directory, for a container of another image.
    CopySelf {
        /// The directory.
        #[arg(long)]
        to: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ControllerOptions {
    /// Manage only custom resources with these labels, in kubectl's grammar: `release=canary,tier in (a,b),!old`.
    #[arg(long, env = "WINDLASS_SELECTOR", default_value = "", hide_default_value = true)]
    pub(crate) selector: Selector,

    /// Manage only this namespace; all of them when absent.
    #[arg(long, env = "WINDLASS_NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// The name of this release: of its Lease, and of its claims on clusters. Releases side by side have different ones.
    #[arg(long, env = "WINDLASS_RELEASE", default_value = "windlass")]
    pub(crate) release: String,

    /// The namespace of this release, in which its Lease is.
    #[arg(long, env = "WINDLASS_RELEASE_NAMESPACE", default_value = "default")]
    pub(crate) release_namespace: String,

    /// The name of this process in the Lease, usually that of its pod. The same name takes the Lease up again at once after a
    /// restart, so no two processes may have it at a time. Made up when absent.
    #[arg(long, env = "WINDLASS_IDENTITY")]
    pub(crate) identity: Option<String>,

    /// The image of this very program, which runs in the pods of MySQL beside mysqld, and is the discovery of TiDB clusters.
    #[arg(long, env = "WINDLASS_AGENT_IMAGE", default_value = "", hide_default_value = true)]
    pub(crate) agent_image: String,

    #[command(flatten)]
    pub(crate) failover: FailoverOptions,

    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, env = "WINDLASS_LISTEN", default_value = "0.0.0.0:8080")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// When failed members of TiDB clusters get others in their place.
#[derive(Debug, Args)]
pub(crate) struct FailoverOptions {
    /// Whether failed members of TiDB clusters get others in their place; the spec says how many.
    #[arg(long, env = "WINDLASS_AUTO_FAILOVER", default_value_t = true, action = ArgAction::Set)]
    pub(crate) auto_failover: bool,

    /// For how long a member of a TiDB cluster must have failed before that. PD takes half an hour, unless its settings say otherwise, to
    /// call a store failed; this comes on top.
    #[arg(long, env = "WINDLASS_FAILOVER_PERIOD", default_value = "5m", value_parser = parse_duration)]
    pub(crate) failover_period: Duration,

    /// The same of members of PD alone; as --failover-period when absent.
    #[arg(long, env = "WINDLASS_PD_FAILOVER_PERIOD", value_parser = parse_duration)]
    pub(crate) pd_failover_period: Option<Duration>,

    /// The same of stores of TiKV alone; as --failover-period when absent.
    #[arg(long, env = "WINDLASS_TIKV_FAILOVER_PERIOD", value_parser = parse_duration)]
    pub(crate) tikv_failover_period: Option<Duration>,

    /// The same of stores of TiFlash alone; as --failover-period when absent.
    #[arg(long, env = "WINDLASS_TIFLASH_FAILOVER_PERIOD", value_parser = parse_duration)]
    pub(crate) tiflash_failover_period: Option<Duration>,

    /// The same of servers of TiDB alone; as --failover-period when absent.
    #[arg(long, env = "WINDLASS_TIDB_FAILOVER_PERIOD", value_parser = parse_duration)]
    pub(crate) tidb_failover_period: Option<Duration>,
}

impl FailoverOptions {
    /// The periods that components have of their own.
    pub(crate) fn of_components(&self) -> BTreeMap<tidb::Component, Duration> {
        let all = [
            (tidb::Component::Pd, self.pd_failover_period),
            (tidb::Component::Tikv, self.tikv_failover_period),
            (tidb::Component::Tiflash, self.tiflash_failover_period),
            (tidb::Component::Tidb, self.tidb_failover_period),
        ];
        all.into_iter().filter_map(|(component, period)| Some((component, period?))).collect()
    }
}

/// The log of any component.
#[derive(Debug, Args)]
pub(crate) struct LogOptions {
    /// The form of the log.
    #[arg(long, env = "WINDLASS_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// What is logged: a level, or directives such as `windlass_engine=debug,info`.
    #[arg(long, env = "WINDLASS_LOG", default_value = "info")]
    pub(crate) log: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_selector_stops_the_start_with_a_caret_under_the_mistake() {
        let error = Arguments::try_parse_from(["windlass", "controller", "--selector", "a in (b"]).unwrap_err().to_string();
        assert!(error.contains('^'), "{error}");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
    }
}
