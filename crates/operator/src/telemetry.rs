//! The log: lines for people, or JSON for machines.

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

use crate::arguments::{LogFormat, LogOptions};

/// Starts the log.
pub(crate) fn start(options: &LogOptions) -> anyhow::Result<()> {
    let LogOptions { log: directives, log_format } = options;
    let filter = EnvFilter::try_new(directives).with_context(|| format!("--log {directives:?} cannot be read"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match log_format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
