//! Stages with their times, and the table at the end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// What ran so far.
pub(crate) struct Report {
    began: Instant,
    stages: Vec<Stage>,
}

impl Default for Report {
    fn default() -> Self {
        Self { began: Instant::now(), stages: Vec::new() }
    }
}

struct Stage {
    name: String,
    took: Duration,
    /// Why it failed, if it did.
    failure: Option<String>,
}

impl Report {
    /// Runs one stage under a heading.
    pub(crate) async fn stage<T>(&mut self, name: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
        println!("\n==> {name}");
        let began = Instant::now();
        let result = work.await;
        let stage = Stage {
            name: name.to_owned(),
            took: began.elapsed(),
            failure: result.as_ref().err().map(|error| format!("{error:#}")),
        };
        println!("==> {name}: {} ({})", stage.verdict(), seconds(stage.took));
        self.stages.push(stage);
        result.with_context(|| format!("stage `{name}`"))
    }

    /// Takes over what ran beside.
    pub(crate) fn absorb(&mut self, beside: Self) {
        self.stages.extend(beside.stages);
    }

    /// The table: a line per stage, and why those failed that did. Who sees only the end of the output sees that.
    pub(crate) fn table(&self) -> String {
        let width = self.stages.iter().map(|stage| stage.name.len()).max().unwrap_or_default().max("together".len());
        let mut table = String::new();
        for stage in &self.stages {
            let _ = writeln!(table, "  {:width$}  {:>12}  {}", stage.name, seconds(stage.took), stage.verdict());
        }
        let _ = writeln!(table, "  {:width$}  {:>12}", "together", seconds(self.began.elapsed()));
        for stage in &self.stages {
            if let Some(failure) = &stage.failure {
                let _ = writeln!(table, "\n{} FAILED: {failure}", stage.name);
            }
        }
        table
    }
}

impl Stage {
    fn verdict(&self) -> &'static str {
        if self.failure.is_some() { "FAILED" } else { "ok" }
    }
}

/// A duration as a person says it.
pub(crate) fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    if whole >= 60 { format!("{} min {:02} s", whole / 60, whole % 60) } else { format!("{:.1} s", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_table_names_every_stage_and_the_one_that_failed() {
        let (mut report, mut beside) = (Report::default(), Report::default());
        beside.stage("first", async { Ok(()) }).await.unwrap();
        report.absorb(beside);
        let error = report.stage::<()>("second", async { anyhow::bail!("no") }).await.unwrap_err();
        assert!(format!("{error:#}").contains("stage `second`: no"));
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[0].contains("first") && lines[0].ends_with("ok"), "{table}");
        assert!(lines[1].contains("second") && lines[1].ends_with("FAILED"), "{table}");
        assert_eq!(lines[4], "second FAILED: no");
    }
}
