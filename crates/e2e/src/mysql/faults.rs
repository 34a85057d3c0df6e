//! What can befall an instance: its server is killed or stopped, or its packets are lost.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use rustix::process::{Pid, Signal, kill_process};

use super::load::Writer;
use super::{Mysql, Stoppable};
use crate::wait::{LONG, wait_for};

impl Mysql {
    /// The process of an instance's server, as the machine knows it.
    pub async fn process(&self, ordinal: u16) -> Result<Pid> {
        let pod = self.place.api::<Pod>().get(&self.pod(ordinal)).await?;
        let statuses = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        let container = statuses.iter().find(|it| it.name == "mysqld").context("there is no container mysqld")?;
        let id = container.container_id.as_deref().and_then(|id| id.rsplit('/').next()).context("it does not run")?;
        let runs = |pid: &i32| {
            let group = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            group.contains(id) && name.trim() == "mysqld"
        };
        let all = std::fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let pid = all.filter(runs).min().with_context(|| format!("no process of container {id}"))?;
        Pid::from_raw(pid).context("no such process")
    }

    /// Sends a signal to an instance's server.
    pub async fn signal(&self, ordinal: u16, signal: Signal) -> Result<Pid> {
        let pid = self.process(ordinal).await?;
        kill_process(pid, signal)?;
        Ok(pid)
    }

    /// Removes an instance's pod at once. Its server lives on for a moment.
    pub async fn remove_pod(&self, ordinal: u16) -> Result<()> {
        self.place.api::<Pod>().delete(&self.pod(ordinal), &DeleteParams::default().grace_period(0)).await?;
        Ok(())
    }

    /// Removes an instance's pod at once, and waits until the server of another one runs in its place.
    pub async fn replace_pod(&self, ordinal: u16) -> Result<()> {
        let pods = self.place.api::<Pod>();
        let (before, removed) = (pods.get(&self.pod(ordinal)).await?.metadata.uid, Instant::now());
        self.remove_pod(ordinal).await?;
        wait_for("the server runs again", LONG, async || {
            ensure!(pods.get(&self.pod(ordinal)).await?.metadata.uid != before, "the old pod is still there");
            // For a moment a command in the new pod still gets into the container of the old one.
            let uptime = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime'";
            let uptime: u64 = self.read_from(ordinal, uptime).await?.parse()?;
            ensure!(uptime <= removed.elapsed().as_secs(), "it is the old server, which runs for {uptime} s");
            Ok(())
        })
        .await
    }

    /// Lets a replica miss transactions that the primary has purged from its binary logs by then.
    pub async fn leave_behind(&self, replica: u16, writer: &Writer) -> Result<()> {
        self.stop(Stoppable::Clustering).await?;
        self.administer(replica, "STOP REPLICA").await?;
        writer.goes_on().await?;
        let primary = self.primary().await?;
        self.administer(primary, "FLUSH BINARY LOGS").await?;
        let logs = self.administer(primary, "SHOW BINARY LOGS").await?;
        let last = logs.lines().last().and_then(|line| line.split_whitespace().next()).context("no binary log")?;
        self.administer(primary, &format!("PURGE BINARY LOGS TO '{last}'")).await?;
        writer.goes_on().await?;
        self.start(Stoppable::Clustering).await
    }

    /// The address of an instance's pod.
    pub async fn address(&self, ordinal: u16) -> Result<String> {
        let pod = self.place.api::<Pod>().get(&self.pod(ordinal)).await?;
        pod.status.and_then(|status| status.pod_ip).context("the pod has no address")
    }

    /// Loses packets from and to an address: all of them, or some of them by chance. It ends with the guard.
    pub fn lose_packets(&self, address: &str, probability: Option<f64>) -> Result<Loss> {
        let mut loss =
            Loss { network: format!("--net={}", self.place.stage().lab().network_namespace().display()), rules: Vec::new() };
        for way in ["--source", "--destination"] {
            let mut rule = vec![way.to_owned(), address.to_owned()];
            if let Some(probability) = probability {
                let some = ["--match", "statistic", "--mode", "random", "--probability"].map(str::to_owned);
                rule.extend(some.into_iter().chain([format!("{probability:.3}")]));
            }
            rule.extend(["--jump", "DROP"].map(str::to_owned));
            loss.change("--insert", &rule)?;
            loss.rules.push(rule);
        }
        Ok(loss)
    }
}

/// Packets that are lost for as long as this lives.
pub struct Loss {
    network: String,
    rules: Vec<Vec<String>>,
}

impl Loss {
    fn change(&self, how: &str, rule: &[String]) -> Result<()> {
        let mut command = Command::new("nsenter");
        command.args([self.network.as_str(), "iptables", "--wait", how, "FORWARD"]).args(rule);
        let ran = command.output().context("iptables cannot be run")?;
        ensure!(ran.status.success(), "iptables {how} {rule:?}: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(())
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        for rule in &self.rules {
            if let Err(error) = self.change("--delete", rule) {
                println!("packets are still lost: {error:#}");
            }
        }
    }
}
