//! Telling a person what is being done and how long it took.
//!
//! On a terminal each step is one line that turns while it runs; in a pipe it is a plain line when
//! it ends, and one when it begins to take long.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠴", "⠦", "⠧", "⠇"];
const TICK: Duration = Duration::from_millis(120);
/// In a pipe, a step that takes longer than this also says that it has begun.
const LONG: Duration = Duration::from_secs(3);

/// Prints steps and their durations to standard error.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    Terminal,
    Plain,
    Silent,
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress {
    /// Chooses by whether standard error is a terminal.
    pub fn new() -> Self {
        let output = if std::io::stderr().is_terminal() { Output::Terminal } else { Output::Plain };
        Self { output }
    }

    /// Prints nothing.
    pub fn silent() -> Self {
        Self { output: Output::Silent }
    }

    /// Prints a line that is not a step.
    pub fn note(&self, text: &str) {
        if self.output != Output::Silent {
            write(&format!("{text}\n"));
        }
    }

    /// Runs `work` and prints `what` with the time it took, whether it succeeded or not.
    pub async fn step<T>(&self, what: impl Into<String> + Send, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let what = what.into();
        let began = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        let mut frame = 0;
        let mut announced = false;
        tokio::pin!(work);
        let outcome = loop {
            tokio::select! {
                outcome = &mut work => break outcome,
                _ = ticks.tick() => match self.output {
                    Output::Terminal => {
                        write(&format!("\r\x1b[2K\x1b[36m{}\x1b[0m {what} \x1b[2m{}\x1b[0m", FRAMES[frame % FRAMES.len()], seconds(began.elapsed())));
                        frame += 1;
                    }
                    Output::Plain if !announced && began.elapsed() > LONG => {
                        announced = true;
                        write(&format!("  ... {what}\n"));
                    }
                    Output::Plain | Output::Silent => {}
                }
            }
        };
        self.finish(&what, began.elapsed(), outcome.is_ok());
        outcome
    }

    fn finish(self, what: &str, took: Duration, succeeded: bool) {
        let mut line = String::new();
        let _ = match (self.output, succeeded) {
            (Output::Terminal, true) => writeln!(line, "\r\x1b[2K\x1b[32m✓\x1b[0m {what} \x1b[2m{}\x1b[0m", seconds(took)),
            (Output::Terminal, false) => writeln!(line, "\r\x1b[2K\x1b[31m✗\x1b[0m {what} \x1b[2m{}\x1b[0m", seconds(took)),
            (Output::Plain, true) => writeln!(line, "  ok  {what} ({})", seconds(took)),
            (Output::Plain, false) => writeln!(line, "  FAILED  {what} ({})", seconds(took)),
            (Output::Silent, _) => return,
        };
        write(&line);
    }
}

fn write(text: &str) {
    // That nobody can read the progress is no reason to stop the work.
    let mut stream = std::io::stderr().lock();
    let _ = stream.write_all(text.as_bytes());
    let _ = stream.flush();
}

/// A duration as a person says it.
pub(crate) fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    if whole >= 60 { format!("{} min {:02} s", whole / 60, whole % 60) } else { format!("{:.1} s", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_speech() {
        assert_eq!(seconds(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(125)), "2 min 05 s");
    }

    #[tokio::test]
    async fn a_step_hands_on_what_its_work_returns() {
        let progress = Progress::silent();
        assert_eq!(progress.step("adding", async { Ok(2) }).await.unwrap(), 2);
        let failed: Result<()> = progress.step("failing", async { anyhow::bail!("no") }).await;
        assert!(failed.is_err());
    }
}
