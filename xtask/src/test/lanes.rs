//! The tests on the lab, and which of them run side by side.
//!
//! They wait more than they work. So those that only need a database run beside those that stop, restart and double the operator: it
//! must do its duty all the same; and the crash harness, which only works, takes what processor time they leave. Those that take the
//! API server away, or judge all calls that were made, run when nobody else does.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::Result;
use tokio::process::Command;
use windlass_lab::{Lab, Progress, image, tidb};

use super::{LAB_VARIABLE, output};
use crate::cargo;
use crate::example::Example;
use crate::report::Report;

/// The tests of `crates/e2e/tests` that deal with the operator, in the order in which they run.
const WITH_THE_OPERATOR: [&str; 12] = [
    "conformance",
    "chart",
    "pause",
    "mysql_pause",
    "tidb_pause",
    "plugin",
    "status",
    "admission",
    "helm",
    "claims",
    "memory",
    "leader",
];
/// Those that deal with a database, beside them.
const WITH_A_DATABASE: [&str; 9] =
    ["galera", "restore", "mysql", "mysql_mending", "mysql_outside", "mysql_adoption", "tidb", "tidb_upgrade", "tidb_adoption"];
/// Those that break a database, beside both.
const WITH_A_BROKEN_DATABASE: [&str; 2] = ["recovery", "failover"];
/// Those that run alone. The last judges the permissions by the calls that all the others made.
const ALONE: [&str; 2] = ["outage", "rbac"];
/// Those that only a campaign runs.
#[cfg(test)]
const ON_DEMAND: [&str; 5] = ["fuzz", "schedules", "slow", "tidb_scaling", "upgrade"];

const TESTS: [&str; 6] = ["test", "--package", "windlass-e2e", "--features", "lab", "--locked"];
const OF_THE_LAB: [&str; 6] = ["test", "--package", "windlass-lab", "--features", "lab", "--locked"];
/// The crash harness needs no lab. It yields to whoever has something to do. With other packages than before, cargo would build most of it
/// again, for their features differ, and keep the others waiting.
const CRASH_HARNESS: [&str; 7] =
    ["test", "--workspace", "--test", "crash", "--locked", "--config", "target.'cfg(all())'.runner = 'nice -n 19'"];
/// The one test that keeps all processors busy for minutes.
pub(super) const HARNESS: &str = "every_perturbation_ends_as_if_nothing_had_happened";
/// A test may count what happens; two at once in one file would count each other.
const ONE_BY_ONE: [&str; 3] = ["--", "--test-threads=1", "--nocapture"];

/// Tests of clients and of what runs in pods, beside servers that are started on this machine. They have been built with all others.
const BESIDE_SERVERS: [&str; 9] = ["test", "--workspace", "--locked", "--test", "mysql", "--test", "pd", "--", "--ignored"];

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
    let operator = async {
        for name in WITH_THE_OPERATOR {
            report.stage(&format!("lab: {name}"), output::show(command(name))).await?;
        }
        Ok(())
    };
    let database = beside(WITH_A_DATABASE.map(|name| (name, command(name))));
    let mut servers = cargo::command(&BESIDE_SERVERS);
    // Each of them has the machine's ports to itself.
    servers.arg("--test-threads=1").envs(servers_of_the_lab().await?);
    let of_the_lab = cargo::command(&[&OF_THE_LAB[..], &ONE_BY_ONE].concat());
    let without_windlass = [("real servers", servers), ("the lab itself", of_the_lab)];
    let broken = beside(WITH_A_BROKEN_DATABASE.map(|name| (name, command(name))).into_iter().chain(without_windlass));
    let harness = beside([("crash harness", cargo::command(&[&CRASH_HARNESS[..], &["--", HARNESS, "--nocapture"]].concat()))]);
    // A failure of one does not end the others: what a killed test leaves behind helps nobody.
    let (operator, database, broken, harness): (Result<()>, _, _, _) = tokio::join!(operator, database, broken, harness);
    let mut result = operator;
    for (stages, ended) in [database, broken, harness] {
        report.absorb(stages);
        result = result.and(ended);
    }
    result?;
    for name in ALONE {
        report.stage(&format!("lab: {name}"), output::show(command(name))).await?;
    }
    Ok(())
}

/// Where the servers are that tests start without a container: those that the lab's containers run.
async fn servers_of_the_lab() -> Result<[(&'static str, PathBuf); 2]> {
    let progress = Progress::new();
    let archive = Example::Mysql.build_image(&progress).await?;
    // Who tests is root, which mysqld has to be told.
    let mysqld = image::program(&archive, "/usr/sbin/mysqld", "--user=root", &progress).await?;
    let [pd_server, _] = tidb::programs(&progress).await?.pd_servers;
    Ok([("WINDLASS_MYSQLD", mysqld), ("WINDLASS_PD_SERVER", pd_server)])
}

/// One after another, while others print.
async fn beside(stages: impl IntoIterator<Item = (&str, Command)>) -> (Report, Result<()>) {
    let mut report = Report::default();
    for (name, command) in stages {
        let result = report.stage(&format!("beside: {name}"), output::show_at_the_end(command, name)).await;
        if result.is_err() {
            return (report, result);
        }
    }
    (report, Ok(()))
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
        let mut listed = [&WITH_THE_OPERATOR[..], &WITH_A_DATABASE, &WITH_A_BROKEN_DATABASE, &ALONE, &ON_DEMAND].concat();
        listed.sort_unstable();
        assert_eq!(found, listed);
        assert_eq!(ALONE.last(), Some(&"rbac"));
    }

    /// Under another name it would run nowhere: one stage leaves it out, and the other would find nothing to run.
    #[test]
    fn the_crash_harness_is_called_by_its_name() {
        let file = cargo::root().join("crates/engine/tests/crash.rs");
        assert!(std::fs::read_to_string(file).unwrap().contains(&format!("fn {HARNESS}()")));
    }
}
