//! What goes on with a Galera while something is done to it: a client that writes, and an observer that looks for two clusters where
//! there should be one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;

use super::Galera;
use crate::wait::{LONG, wait_for};

/// A client that writes rows and remembers those that it was told are safe.
pub struct Writer {
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Told>>,
    task: tokio::task::JoinHandle<()>,
}

/// What a client was told.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Rows that are safe.
    pub safe: Vec<u32>,
    /// Rows that no member took; they may be there or not.
    pub failed: u32,
    /// How often one member did not take a row and the next one was tried.
    pub retries: u32,
}

impl Writer {
    /// Starts to write rows from this number on, each to another member; to the next one when it does not take it.
    pub fn start(galera: &Galera, members: u16, first: u32) -> Self {
        let (stop, told) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Told::default())));
        let (stopped, notes, galera) = (Arc::clone(&stop), Arc::clone(&told), galera.clone());
        let task = tokio::spawn(async move {
            let mut row = first;
            while !stopped.load(Ordering::SeqCst) {
                let (retries, safe) = write(&galera, members, row).await;
                let mut notes = lock(&notes);
                notes.retries += retries;
                if safe {
                    notes.safe.push(row);
                } else {
                    notes.failed += 1;
                }
                drop(notes);
                row += 1;
            }
        });
        Self { stop, told, task }
    }

    /// Waits until so many rows are safe.
    pub async fn has_written(&self, rows: usize) -> Result<()> {
        wait_for("rows are written", LONG, async || {
            let told = lock(&self.told).safe.len();
            ensure!(told >= rows, "{told} of {rows}");
            Ok(())
        })
        .await
    }

    /// Ends it, and returns what it was told.
    pub async fn stop(self) -> Result<Told> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.context("the writer broke")?;
        Ok(lock(&self.told).clone())
    }
}

/// Writes a row, and tells how many members did not take it, and whether one did.
async fn write(galera: &Galera, members: u16, row: u32) -> (u32, bool) {
    let first = u16::try_from(row % u32::from(members)).unwrap_or(0);
    for tried in 0..members {
        let member = (first + tried) % members;
        match galera.sql(member, &galera.host(member), &format!("INSERT INTO rope VALUES ({row})")).await {
            Ok(_) => return (tried.into(), true),
            // The one before took it, and did not live to say so.
            Err(error) if format!("{error:#}").contains("Duplicate entry") => return (tried.into(), true),
            Err(_) => {}
        }
    }
    (members.into(), false)
}

/// Looks at all members at once, again and again.
pub struct Observer {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Seen>,
}

/// What an observer saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How often it looked.
    pub looks: u32,
    /// Members that said to be in a primary component, with the size of it, when there were more of them than any of their components
    /// holds: then there were two.
    pub torn: Vec<Vec<(u16, u16)>>,
    /// The most members that did not serve in one look.
    pub most_down: u16,
}

impl Observer {
    /// Starts to look.
    pub fn start(galera: &Galera, members: u16) -> Self {
        let (stop, galera) = (Arc::new(AtomicBool::new(false)), galera.clone());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut seen = Seen::default();
            while !stopped.load(Ordering::SeqCst) {
                seen.take(members, &join_all((0..members).map(|member| component(&galera, member))).await);
            }
            seen
        });
        Self { stop, task }
    }

    /// Ends it, and returns what it saw.
    pub async fn stop(self) -> Result<Seen> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.context("the observer broke")
    }
}

impl Seen {
    fn take(&mut self, members: u16, sizes: &[Option<u16>]) {
        let primary: Vec<(u16, u16)> =
            (0..members).zip(sizes).filter_map(|(member, size)| size.map(|size| (member, size))).collect();
        let count = u16::try_from(primary.len()).unwrap_or(u16::MAX);
        self.looks += 1;
        self.most_down = self.most_down.max(members - count);
        if primary.iter().map(|(_, size)| *size).max().is_some_and(|largest| count > largest) {
            self.torn.push(primary);
        }
    }
}

/// The size of the primary component that a member says to be in.
async fn component(galera: &Galera, member: u16) -> Option<u16> {
    let status = galera
        .ask_server(member, "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_status', 'wsrep_cluster_size', 'wsrep_ready')")
        .await
        .ok()?;
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    if (value("wsrep_cluster_status")?, value("wsrep_ready")?) != ("Primary", "ON") {
        return None;
    }
    value("wsrep_cluster_size")?.parse().ok()
}

fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_components_are_told_from_one_that_grows() {
        let torn = |sizes: &[Option<u16>]| {
            let mut seen = Seen::default();
            seen.take(3, sizes);
            (!seen.torn.is_empty(), seen.most_down)
        };
        assert_eq!(torn(&[Some(3), Some(3), Some(3)]), (false, 0));
        assert_eq!(torn(&[Some(1), Some(2), None]), (false, 1), "one looked before the other joined");
        assert_eq!(torn(&[Some(1), None, Some(1)]), (true, 1));
        assert_eq!(torn(&[None, None, None]), (false, 3));
    }
}
