//! What can be said on the command line of `kubectl moco`. Names, options and defaults are those that users' scripts know.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

use crate::arguments::{Complete, Completion, Global};

/// Opens a MySQL client, shows credentials, changes the primary, and stops and starts clusters of MySQL.
#[derive(Debug, Parser)]
#[command(name = "kubectl-moco", bin_name = "kubectl moco", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Runs mysql in the pod of an instance, logged in.
    Mysql(Mysql),
    /// Shows the password of an account.
    Credential(Credential),
    /// Asks the primary to hand over to a replica.
    Switchover {
        /// The cluster.
        #[arg(value_name = "CLUSTER_NAME")]
        cluster: String,
    },
    /// Stops clustering or reconciliation of a cluster.
    #[command(subcommand)]
    Stop(What),
    /// Starts clustering or reconciliation of a cluster again.
    #[command(subcommand)]
    Start(What),
    /// Prints a completion script.
    ///
    /// For `kubectl moco <TAB>`, put what `completion kubectl` prints into an executable file `kubectl_complete-moco` on PATH.
    Completion(Completion),
    /// What kubectl asks for on <TAB>.
    #[command(name = "__complete", hide = true)]
    Complete(Complete),
}

#[derive(Debug, Args)]
pub(crate) struct Mysql {
    /// The cluster.
    #[arg(value_name = "CLUSTER_NAME")]
    pub(crate) cluster: String,
    /// The account: moco-readonly, moco-writable or moco-admin.
    #[arg(short = 'u', long = "mysql-user", value_name = "MYSQL_USER", default_value = "moco-readonly")]
    pub(crate) account: String,
    /// The number of the instance; -1 is the primary.
    #[arg(long, default_value_t = -1, allow_negative_numbers = true)]
    pub(crate) index: i32,
    /// Passes the standard input on.
    #[arg(short = 'i', long)]
    pub(crate) stdin: bool,
    /// The standard input is a terminal.
    #[arg(short = 't', long)]
    pub(crate) tty: bool,
    /// What mysql gets as its own arguments.
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Credential {
    /// The cluster.
    #[arg(value_name = "CLUSTER_NAME")]
    pub(crate) cluster: String,
    /// The account: moco-readonly, moco-writable or moco-admin.
    #[arg(short = 'u', long = "mysql-user", value_name = "MYSQL_USER", default_value = "moco-readonly")]
    pub(crate) account: String,
    /// The form: `plain` is the password alone, `mycnf` a file for the option --defaults-extra-file of mysql.
    #[arg(long, default_value = "plain")]
    pub(crate) format: String,
}

/// What is stopped and started.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// What is done to the servers: roles, replication, failover.
    Clustering {
        /// The cluster.
        #[arg(value_name = "CLUSTER_NAME")]
        cluster: String,
    },
    /// What is done to objects of Kubernetes.
    Reconciliation {
        /// The cluster.
        #[arg(value_name = "CLUSTER_NAME")]
        cluster: String,
    },
}
