//! Getting the slow parts of the lab into the cache while cargo compiles.
//!
//! A process of its own, so that its output can go to a file: two things that print at once help nobody.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::cargo;
use crate::report::seconds;

/// `cargo xtask lab build`, running.
pub(super) struct Background {
    child: Child,
    log: PathBuf,
    began: Instant,
}

impl Background {
    pub(super) fn start() -> Result<Self> {
        let (log, file) = cargo::log_file("lab-build")?;
        let child = Command::new(std::env::current_exe().context("this program does not know where it is")?)
            .args(["lab", "build"])
            .current_dir(cargo::root())
            .stdin(std::process::Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            // With a group of its own, all that it started can be ended together.
            .process_group(0)
            .spawn()
            .context("cannot start the build of the lab's parts")?;
        println!("the parts of the lab are got ready beside all this; what that prints goes to {}", log.display());
        Ok(Self { child, log, began: Instant::now() })
    }

    /// Waits for its end.
    pub(super) async fn finish(mut self) -> Result<()> {
        let status = self.child.wait().await.context("the build of the lab's parts cannot be waited for")?;
        if status.success() {
            println!("the parts of the lab are ready ({} since the start)", seconds(self.began.elapsed()));
            return Ok(());
        }
        println!("{}", std::fs::read_to_string(&self.log).unwrap_or_default());
        match status.signal() {
            Some(signal) => bail!("the build of the lab's parts was ended by signal {signal}; its output is above"),
            None => bail!("the build of the lab's parts failed ({status}); its output is above"),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // The id is gone once its end was waited for.
        let group = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ended = kill_process_group(group, Signal::TERM);
        }
    }
}
