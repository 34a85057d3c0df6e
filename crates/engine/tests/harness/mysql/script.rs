//! What a script does to servers and clients, and what it can see of them.

use std::time::Duration;

use serde_json::Value;
use windlass_kinds::mysql::gtid::{GtidSet, Uuid};

use super::docks::Docks;

impl Docks {
    /// Clients want to write this many rows more.
    pub(super) fn write_rows(&self, count: u128) {
        self.lock().rows_wanted += count;
    }

    /// Whether clients were told of all rows that they wanted to write.
    pub(super) fn is_written(&self) -> bool {
        let inner = self.lock();
        inner.servers.told.count() >= inner.rows_wanted
    }

    /// Whether clients were told of all rows, and every server that runs has them.
    pub(super) fn is_quiet(&self) -> bool {
        let inner = self.lock();
        let told = &inner.servers.told;
        let complete =
            inner.servers.all.iter().filter(|it| it.up).all(|it| told.is_within(&it.executed) && it.waiting.is_empty());
        told.count() >= inner.rows_wanted && complete
    }

    /// A server ends at once, and stays so until somebody lets it start.
    pub(super) fn kill(&self, number: usize) {
        let mut inner = self.lock();
        inner.servers.all[number].crash();
        inner.held_down.insert(number);
    }

    /// A server ends at once, and is started again.
    pub(super) fn restart(&self, number: usize) {
        self.lock().servers.all[number].crash();
    }

    /// A node loses its power; its server is started again, unless somebody holds it down.
    pub(super) fn lose_power(&self, number: usize) {
        let mut inner = self.lock();
        let careless = inner.careless;
        let server = &mut inner.servers.all[number];
        if careless {
            server.unsynced = server.received.without(&server.executed);
        }
        server.lose_power();
    }

    /// From now on servers acknowledge what is not on their disks.
    pub fn acknowledge_too_soon(&self) {
        self.lock().careless = true;
    }

    pub(super) fn hold_down(&self, number: usize) {
        self.lock().held_down.insert(number);
    }

    pub(super) fn let_start(&self, number: usize) {
        self.lock().held_down.remove(&number);
    }

    /// Neither the operator nor other servers reach this one for some time; its clients do.
    pub(super) fn cut_off(&self, number: usize, time: Duration) {
        let mut inner = self.lock();
        let until = inner.now + time;
        inner.cut_off.insert(number, until);
    }

    /// A client commits a row that nobody else gets to see by itself.
    pub(super) fn commit(&self, at: usize) {
        self.lock().servers.write(at);
    }

    /// A replica receives what its source has, and does not apply it.
    pub(super) fn receive(&self, at: usize) {
        self.lock().servers.receive(at);
    }

    /// A replica acknowledges what it has received.
    pub(super) fn acknowledge(&self, at: usize) {
        self.lock().servers.acknowledge(at);
    }

    /// Somebody stops the thread that applies, by hand.
    pub(super) fn stop_applying(&self, at: usize) {
        self.lock().servers.all[at].applies = false;
    }

    pub(super) fn is_applying(&self, at: usize) -> bool {
        self.lock().servers.all[at].applies
    }

    /// Somebody writes to a replica by hand.
    pub(super) fn write_by_hand(&self, at: usize) {
        let mut inner = self.lock();
        let server = &mut inner.servers.all[at];
        let stray = GtidSet::of_range(Uuid::new(server.uuid).into(), 1..=1);
        server.executed = server.executed.joined_with(&stray);
    }

    /// Whether a server takes writes.
    pub(super) fn is_open(&self, at: usize) -> bool {
        let inner = self.lock();
        inner.servers.all[at].up && !inner.servers.all[at].read_only
    }

    /// For how long at the most no server took writes, once one did.
    pub fn longest_closed(&self) -> Duration {
        self.lock().longest_closed
    }

    /// Whether something was put beside the data directory of a server.
    pub(super) fn has_saved(&self, at: usize) -> bool {
        !self.lock().servers.all[at].saved.is_empty()
    }

    pub(super) fn keep(&self, copy: Option<Value>) {
        self.lock().copy = copy;
    }

    pub(super) fn kept(&self) -> Option<Value> {
        self.lock().copy.clone()
    }
}
