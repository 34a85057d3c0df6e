//! The tests on the lab, and which of them run side by side.
//!
//! They wait more than they work. So those that only need a database run beside those that stop, restart and double the operator: it
//! must do its duty all the same. Those that take the API server away, or judge all calls that were made, run when nobody else does.

use std::ffi::OsStr;

use anyhow::Result;
use tokio::process::Command;
use windlass_lab::Lab;

use super::LAB_VARIABLE;
use crate::cargo;
use crate::report::Report;

/// The tests of `crates/e2e/tests` that deal with the operator, in the order in which they run.
const WITH_THE_OPERATOR: [&str; 10] =
    ["conformance", "chart", "pause", "plugin", "status", "admission", "helm", "claims", "memory", "leader"];
/// Those that deal with a database, beside them.
const WITH_A_DATABASE: [&str; 3] = ["galera", "recovery", "restore"];
/// Those that run alone. The last judges the permissions by the calls that all the others made.
const ALONE: [&str; 2] = ["outage", "rbac"];
/// Those that only a campaign runs.
#[cfg(test)]
const ON_DEMAND: [&str; 4] = ["fuzz", "schedules", "slow", "upgrade"];

const TESTS: [&str; 6] = ["test", "--package", "windlass-e2e", "--features", "lab", "--locked"];
const OF_THE_LAB: [&str; 6] = ["test", "--package", "windlass-lab", "--features", "lab", "--locked"];
/// A test may count what happens; two at once in one file would count each other.
const ONE_BY_ONE: [&str; 3] = ["--", "--test-threads=1", "--nocapture"];

/// Builds all of them.
pub(super) async fn build() -> Result<()> {
    for tests in [TESTS, OF_THE_LAB] {
        cargo::show(cargo::command(&[&tests[..], &["--no-run"]].concat())).await?;
    }
    Ok(())
}

/// Runs all of them.
pub(super) async fn run(lab: &Lab, path: &OsStr, report: &mut Report) -> Result<()> {
    let command = |name: &str| {
        let mut command = cargo::command(&[&TESTS[..], &["--test", name], &ONE_BY_ONE].concat());
        // An error of a test on the lab tells what was waited for; where it came from is clear from that.
        command.env(LAB_VARIABLE, lab.name()).env("PATH", path).env("RUST_LIB_BACKTRACE", "0");
        command
    };
    let mut beside = Report::default();
    let operator = async {
        for name in WITH_THE_OPERATOR {
            report.stage(&format!("lab: {name}"), cargo::show(command(name))).await?;
        }
        Ok(())
    };
    let database = async {
        for name in WITH_A_DATABASE {
            beside.stage(&format!("lab: {name}, beside"), show_at_the_end(command(name), name)).await?;
        }
        let own = cargo::command(&[&OF_THE_LAB[..], &ONE_BY_ONE].concat());
        beside.stage("lab: the lab itself, beside", show_at_the_end(own, "lab")).await
    };
    // A failure of one does not end the other: what a killed test leaves behind helps nobody.
    let (operator, database): (Result<()>, Result<()>) = tokio::join!(operator, database);
    report.absorb(beside);
    operator.and(database)?;
    for name in ALONE {
        report.stage(&format!("lab: {name}"), cargo::show(command(name))).await?;
    }
    Ok(())
}

/// Runs a command whose output comes in one piece, because another one prints meanwhile.
async fn show_at_the_end(mut command: Command, name: &str) -> Result<()> {
    let (log, file) = cargo::log_file(name)?;
    command.stdout(file.try_clone()?).stderr(file);
    let result = cargo::show(command).await;
    println!("\n==> what {name} printed\n{}", std::fs::read_to_string(&log).unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_on_the_lab_has_its_place() {
        let mut found: Vec<String> = std::fs::read_dir(cargo::root().join("crates/e2e/tests"))
            .unwrap()
            .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
            .collect();
        found.sort();
        let mut listed = [&WITH_THE_OPERATOR[..], &WITH_A_DATABASE, &ALONE, &ON_DEMAND].concat();
        listed.sort_unstable();
        assert_eq!(found, listed);
        assert_eq!(ALONE.last(), Some(&"rbac"));
    }
}
