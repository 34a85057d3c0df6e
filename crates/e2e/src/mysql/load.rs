//! A client that writes one row after another through the Service of the primary, and remembers each one that it was told of.
//!
//! It runs in the lab's network, as an application in a pod would. A row is never tried again: what became of one that was not
//! answered nobody knows, and it counts for nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use k8s_openapi::api::core::v1::{Secret, Service};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, OptsBuilder};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Mysql, NAME};
use crate::wait::{LONG, wait_for};

/// Where the rows go.
pub const TABLE: &str = "harbour.berths";
/// How long a connection may take, and a row.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);

/// A row that the client was told of.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its number.
    pub id: u64,
    /// When it was sent.
    pub began: Instant,
    /// When the client was told that it is written.
    pub told: Instant,
    /// The UUID of the server that said so.
    pub server: String,
    /// How many connections the client had before that one.
    pub connection: u64,
}

/// The client.
pub struct Writer {
    stop: Arc<AtomicBool>,
    rows: Arc<Mutex<Vec<Row>>>,
    thread: Option<std::thread::JoinHandle<Result<()>>>,
}

impl Writer {
    /// Makes the table, and starts to write.
    pub async fn start(mysql: &Mysql) -> Result<Self> {
        let primary = mysql.primary().await?;
        let make = format!("CREATE DATABASE IF NOT EXISTS harbour; CREATE TABLE IF NOT EXISTS {TABLE} (id BIGINT PRIMARY KEY)");
        // It takes a node a moment to hear of who is behind a Service.
        wait_for("the table is made", LONG, async || {
            mysql.sql(primary, "moco-writable", &mysql.primary_service(), &make).await.map(drop)
        })
        .await?;
        let service = mysql.place.api::<Service>().get(&mysql.primary_service()).await?;
        let address = service.spec.and_then(|spec| spec.cluster_ip).context("the Service has no address")?;
        let secret = mysql.place.api::<Secret>().get(&format!("moco-{NAME}")).await?;
        let password = secret.data.and_then(|mut data| data.remove("WRITABLE_PASSWORD")).context("no password")?;
        let options = OptsBuilder::default()
            .ip_or_hostname(address)
            .tcp_port(3306)
            .prefer_socket(false)
            .user(Some("moco-writable"))
            .pass(Some(String::from_utf8(password.0)?));
        let network = File::open(mysql.place.stage().lab().network_namespace())?;
        let (stop, rows) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, notes) = (Arc::clone(&stop), Arc::clone(&rows));
        let thread = std::thread::spawn(move || {
            // Only this thread goes there.
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&network), Some(LinkNameSpaceType::Network))?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(write(&options, &stopped, &notes));
            Ok(())
        });
        let writer = Self { stop, rows, thread: Some(thread) };
        writer.goes_on().await?;
        Ok(writer)
    }

    /// Waits until rows are written again.
    pub async fn goes_on(&self) -> Result<()> {
        let before = lock(&self.rows).len();
        wait_for("rows are written", LONG, async || {
            let rows = lock(&self.rows).len();
            ensure!(rows >= before + 5, "{} since it was asked", rows - before);
            Ok(())
        })
        .await
    }

    /// What it was told of so far.
    pub fn rows(&self) -> Vec<Row> {
        lock(&self.rows).clone()
    }

    /// Ends it, and returns what it was told of.
    pub fn stop(mut self) -> Result<Vec<Row>> {
        self.stop.store(true, Ordering::SeqCst);
        let thread = self.thread.take().context("it was stopped before")?;
        thread.join().map_err(|_| anyhow!("the writer broke"))??;
        Ok(self.rows())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

async fn write(options: &OptsBuilder, stop: &AtomicBool, rows: &Mutex<Vec<Row>>) {
    let (mut id, mut number) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let Ok(Some((mut connection, server))) = tokio::time::timeout(PATIENCE, connect(options)).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        number += 1;
        while !stop.load(Ordering::SeqCst) {
            id += 1;
            let began = Instant::now();
            let insert = connection.query_drop(format!("INSERT INTO {TABLE} VALUES ({id})"));
            let Ok(Ok(())) = tokio::time::timeout(PATIENCE, insert).await else { break };
            lock(rows).push(Row { id, began, told: Instant::now(), server: server.clone(), connection: number });
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn connect(options: &OptsBuilder) -> Option<(Conn, String)> {
    let mut connection = Conn::new(options.clone()).await.ok()?;
    let server = connection.query_first("SELECT @@server_uuid").await.ok()??;
    Some((connection, server))
}

fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest time between two rows that the client was told of since a moment, in seconds.
pub fn longest_gap(rows: &[Row], since: Instant) -> f64 {
    let told = std::iter::once(since).chain(rows.iter().map(|row| row.told).filter(|told| *told > since));
    let told: Vec<Instant> = told.collect();
    told.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_secs_f64()).fold(0.0, f64::max)
}

/// Fails when a row that the client was told of is not there.
pub async fn check_kept(mysql: &Mysql, rows: &[Row]) -> Result<()> {
    let kept = mysql.read_from(mysql.primary().await?, &format!("SELECT id FROM {TABLE}")).await?;
    let kept: BTreeSet<u64> = kept.lines().filter_map(|line| line.parse().ok()).collect();
    let lost: Vec<&Row> = rows.iter().filter(|row| !kept.contains(&row.id)).collect();
    // Who told of it, and whether the one that told of the next row is another one, tells where to look.
    let next = |lost: &&Row| rows.iter().find(|row| row.id > lost.id).map(|row| row.server.clone());
    let lost: Vec<_> = lost.iter().map(|row| (row.id, row.told - row.began, &row.server, next(row))).collect();
    ensure!(lost.is_empty(), "{} of {} rows that the client was told of are lost: {lost:?}", lost.len(), rows.len());
    Ok(())
}

/// How often the server changed. The client sends one row after the other, so a change that no change of the primary explains is a row
/// that a former primary told of after the new one had.
pub fn changes(rows: &[Row]) -> usize {
    rows.windows(2).filter(|pair| pair[0].server != pair[1].server).count()
}
