//! The components that run in a pod of MySQL: their command lines, and how they start.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio_util::sync::CancellationToken;
use windlass_agent::accounts::Passwords;
use windlass_agent::guard::{self, Guard};
use windlass_agent::schedule::{Schedule, parse_duration};
use windlass_agent::setup::{self, Setup};
use windlass_agent::{Settings, durable, instance, surplus};

use crate::arguments::LogOptions;
use crate::controller::{start_runtime, stop_on_signals};
use crate::telemetry;

#[derive(Debug, Args)]
pub(crate) struct MysqlInitOptions {
    /// The volume: the data directory is made in it, as `data`.
    #[arg(long, default_value = "/var/lib/mysql")]
    data_dir: PathBuf,

    /// Where the file with the settings of this instance alone goes.
    #[arg(long, default_value = "/etc/mysql-conf.d")]
    conf_dir: PathBuf,

    /// The name of this pod; its number is that of the instance.
    #[arg(long, env = "POD_NAME")]
    pod_name: String,

    /// server_id of instance 0; the others follow.
    #[arg(long)]
    server_id_base: u32,

    /// Let the administrative port listen on localhost instead of the pod's name.
    #[arg(long)]
    mysqld_localhost: bool,

    /// How names of tables are stored and compared; cannot be changed later.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=2))]
    lower_case_table_names: Option<u8>,

    /// Fill the tables of time zones, where the image has what that needs.
    #[arg(long)]
    init_timezones: bool,

    /// Where the image has its data of time zones.
    #[arg(long, default_value = "/usr/share/zoneinfo")]
    zone_info: PathBuf,

    /// The server: a path, or a name in PATH.
    #[arg(long, default_value = "mysqld")]
    mysqld: String,

    /// Where the server's own files are; found around the server when absent.
    #[arg(long)]
    base_dir: Option<PathBuf>,

    #[command(flatten)]
    log: LogOptions,
}

#[derive(Debug, Args)]
pub(crate) struct MysqlAgentOptions {
    /// The name of this pod; its number is that of the instance.
    #[arg(long, env = "POD_NAME")]
    pod_name: String,

    /// The name of the cluster.
    #[arg(long, env = "CLUSTER_NAME")]
    cluster_name: String,

    /// The unix socket of mysqld.
    #[arg(long, default_value = "/run/mysqld.sock")]
    socket_path: PathBuf,

    /// A directory that the container of mysqld sees as well.
    #[arg(long, default_value = "/run")]
    meeting_dir: PathBuf,

    /// Where the controller is answered.
    #[arg(long, default_value = "0.0.0.0:9080")]
    address: SocketAddr,

    /// Where /healthz and /readyz are served.
    #[arg(long, default_value = "0.0.0.0:9081")]
    probe_address: SocketAddr,

    /// Where /metrics is served.
    #[arg(long, default_value = "0.0.0.0:8080")]
    metrics_address: SocketAddr,

    /// The directory with tls.crt, tls.key and ca.crt. Changed files are read again.
    #[arg(long, default_value = "/grpc-cert")]
    cert_dir: PathBuf,

    /// A replica that is further behind is not ready; 0s is no limit.
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    max_delay: Duration,

    /// How long after its start a replica is given to hear of a transaction.
    #[arg(long, default_value = "1m", value_parser = parse_duration)]
    transaction_queueing_wait: Duration,

    /// The slow log of mysqld.
    #[arg(long, default_value = "/var/log/mysql/mysql.slow")]
    slow_log: PathBuf,

    /// When the slow log is rotated, in UTC: five fields of cron, @hourly, @daily, @every 10m.
    #[arg(long, default_value = "*/5 * * * *")]
    log_rotation_schedule: Schedule,

    /// From how many bytes on the slow log is rotated; 0 is no limit.
    #[arg(long, default_value_t = 0)]
    log_rotation_size: u64,

    #[command(flatten)]
    log: LogOptions,
}

#[derive(Debug, Args)]
pub(crate) struct MysqlRunOptions {
    /// A directory that the agent's container sees as well.
    #[arg(long, default_value = "/run")]
    meeting_dir: PathBuf,

    #[command(flatten)]
    log: LogOptions,

    /// The server, and what it is told.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct MysqlSaveOptions {
    /// The volume with the data directory.
    #[arg(long, default_value = "/var/lib/mysql")]
    data_dir: PathBuf,

    /// What they are saved as.
    #[arg(long)]
    name: String,

    /// Which transactions they are saved for.
    #[arg(long)]
    note: String,

    /// The binary logs, by their names. Without any, only the server's identity goes.
    logs: Vec<String>,
}

pub(crate) fn save(options: &MysqlSaveOptions) -> anyhow::Result<()> {
    let place = surplus::save(&options.data_dir, &options.name, &options.note, &options.logs)?;
    println!("saved in {}", place.display());
    Ok(())
}

pub(crate) fn initialise(options: MysqlInitOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log)?;
    setup::run(&Setup {
        volume: options.data_dir,
        configuration: options.conf_dir,
        pod_name: options.pod_name,
        server_id_base: options.server_id_base,
        admin_on_localhost: options.mysqld_localhost,
        lower_case_table_names: options.lower_case_table_names,
        time_zones: options.init_timezones.then_some(options.zone_info),
        server: options.mysqld,
        base: options.base_dir,
    })?;
    Ok(())
}

/// Ends as the server ended.
pub(crate) fn run_server(options: MysqlRunOptions) -> anyhow::Result<ExitCode> {
    telemetry::start(&options.log)?;
    let mut command = options.command.into_iter();
    let program = command.next().context("no server is named")?;
    let named = program.clone();
    let guard = Guard { program, arguments: command.collect(), directory: options.meeting_dir };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let end = runtime.block_on(guard.run()).with_context(|| format!("{} cannot be run", named.display()))?;
    Ok(guard::exit_code(end).into())
}

pub(crate) fn serve(options: MysqlAgentOptions) -> anyhow::Result<()> {
    telemetry::start(&options.log)?;
    let settings = Settings {
        cluster: options.cluster_name,
        ordinal: instance::parse_ordinal(&options.pod_name)?,
        passwords: Passwords::gather(|variable| std::env::var(variable).ok())?,
        socket: options.socket_path,
        meeting: options.meeting_dir,
        address: options.address,
        probe_address: options.probe_address,
        metrics_address: options.metrics_address,
        certificates: options.cert_dir,
        max_delay: options.max_delay,
        queueing_wait: options.transaction_queueing_wait,
        slow_log: options.slow_log,
        rotation_schedule: options.log_rotation_schedule,
        rotation_size: options.log_rotation_size,
    };
    let runtime = start_runtime()?;
    let result = runtime.block_on(async {
        let (told, stop) = (CancellationToken::new(), CancellationToken::new());
        stop_on_signals(&told)?;
        tracing::info!(cluster = settings.cluster, instance = settings.ordinal, "windlass mysql-agent starts");
        // It is needed at the end of mysqld, which may come a while after all containers were told to stop.
        let (meeting, last) = (settings.meeting.clone(), stop.clone());
        tokio::spawn(async move {
            told.cancelled().await;
            guard::until_no_server_runs(&meeting).await;
            last.cancel();
        });
        windlass_agent::run(settings, stop).await.context("the agent cannot start")
    });
    runtime.shutdown_background();
    result
}

pub(crate) fn copy_self(to: &Path) -> anyhow::Result<()> {
    let copy = durable::copy_self(to)?;
    println!("copied to {}", copy.display());
    Ok(())
}
