//! Servers as far as decisions depend on them: what they have, what they forget when they restart, and who is told of a commit.

use std::collections::BTreeSet;

use windlass_core::ordinals::Ordinal;

use super::super::deeds::Task;
use super::super::facts::End;
use super::super::gtid::{GtidSet, Uuid};
use super::super::instance::{Known, Replication};

/// The highest number of transactions of one server in a play.
pub(super) type Number = u64;

/// The number of the server elsewhere.
pub(super) const OUTSIDE: usize = usize::MAX;

/// A server elsewhere that the cluster follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Elsewhere {
    pub(super) executed: GtidSet,
    written: Number,
    /// Whether servers can reach it.
    pub(super) linked: bool,
    /// Whether the cluster follows it: then none of its servers may be opened to writes.
    pub(super) followed: bool,
}

/// A commit that waits for acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) set: GtidSet,
    acknowledged: BTreeSet<usize>,
}

/// One server.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a server has that many settings, and each can be one way or the other")]
pub(super) struct Server {
    pub(super) up: bool,
    /// Whether the operator can reach it.
    pub(super) reachable: bool,
    /// Whether other servers can.
    pub(super) linked: bool,
    pub(super) uuid: u128,
    /// How often it was started.
    pub(super) process: u32,
    pub(super) executed: GtidSet,
    pub(super) received: GtidSet,
    pub(super) read_only: bool,
    pub(super) source: Option<usize>,
    pub(super) connects: bool,
    pub(super) acknowledges: bool,
    pub(super) awaits: Option<u16>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) written: Number,
    /// What was put beside the data directory.
    pub(super) saved: GtidSet,
}

impl Server {
    pub(super) fn new(uuid: u128) -> Self {
        Self {
            up: true,
            reachable: true,
            linked: true,
            uuid,
            process: 1,
            executed: GtidSet::default(),
            received: GtidSet::default(),
            read_only: true,
            source: None,
            connects: false,
            acknowledges: false,
            awaits: None,
            waiting: Vec::new(),
            written: 0,
            saved: GtidSet::default(),
        }
    }

    /// Ends without a word. Clients that waited are told nothing; what was in the binary log is executed after the restart.
    pub(super) fn crash(&mut self) {
        self.up = false;
        self.waiting.clear();
    }

    /// Starts with the settings of my.cnf: nothing that was set since is remembered.
    pub(super) fn start(&mut self) {
        self.up = true;
        self.process += 1;
        self.read_only = true;
        (self.connects, self.acknowledges, self.awaits) = (false, false, None);
    }

    /// Comes back with an empty volume.
    pub(super) fn wipe(&mut self, uuid: u128) {
        let process = self.process;
        *self = Self { process, up: false, ..Self::new(uuid) };
    }

    /// In one line.
    pub(super) fn told(&self) -> String {
        let Self { up, uuid, process, executed, received, read_only, source, connects, acknowledges, awaits, .. } = self;
        format!(
            "up {up} uuid {uuid} process {process} executed {executed} received {received} read-only {read_only} source {source:?} \
             connects {connects} acknowledges {acknowledges} awaits {awaits:?} waiting {}",
            self.waiting.len()
        )
    }

    pub(super) fn has(&self) -> GtidSet {
        self.executed.joined_with(&self.received)
    }
}

/// All servers, and what clients were told of.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    pub(super) all: Vec<Server>,
    /// Every transaction that a client was told of.
    pub(super) told: GtidSet,
    /// Who was opened to writes last, and what it had then.
    pub(super) holder: Option<(usize, GtidSet)>,
    pub(super) complaints: Vec<String>,
    pub(super) outside: Elsewhere,
}

impl Servers {
    pub(super) fn new(size: usize) -> Self {
        let all = (0..size).map(|number| Server::new(number as u128 + 1)).collect();
        Self { all, told: GtidSet::default(), holder: None, complaints: Vec::new(), outside: Elsewhere::default() }
    }

    /// Whether the volumes of the others have everything that clients were told of.
    pub(super) fn is_told_elsewhere(&self, number: usize) -> bool {
        let others = self.all.iter().enumerate().filter(|(other, _)| *other != number);
        let has = others.fold(GtidSet::default(), |all, (_, it)| all.joined_with(&it.has()));
        self.told.is_within(&has)
    }

    /// A client writes to the server elsewhere.
    pub(super) fn write_elsewhere(&mut self) {
        let outside = &mut self.outside;
        outside.written += 1;
        let set = GtidSet::of_range(Uuid::new(77_777).into(), outside.written..=outside.written);
        outside.executed = outside.executed.joined_with(&set);
    }

    /// What a server gives to those that follow it; nothing when it cannot be reached.
    fn sends(&self, from: usize) -> Option<&GtidSet> {
        match self.all.get(from) {
            Some(server) => (server.up && server.linked).then_some(&server.executed),
            None => self.outside.linked.then_some(&self.outside.executed),
        }
    }

    /// Everything that more than half of the first so many volumes have.
    pub(super) fn of_most(&self, size: usize) -> GtidSet {
        let needed = size / 2 + 1;
        let sets: Vec<GtidSet> = self.all.iter().take(size).map(Server::has).collect();
        let chosen = |choice: u32| (0..size).filter(move |number| choice & (1 << number) != 0);
        let most = (0..1_u32 << size).filter(|choice| chosen(*choice).count() == needed);
        most.fold(GtidSet::default(), |all, choice| {
            let shared = chosen(choice).map(|number| sets[number].clone()).reduce(|one, other| one.shared_with(&other));
            all.joined_with(&shared.unwrap_or_default())
        })
    }

    /// A client writes to a server that takes writes.
    pub(super) fn write(&mut self, at: usize) {
        let server = &mut self.all[at];
        if !server.up || server.read_only {
            return;
        }
        server.written += 1;
        let set = GtidSet::of_range(Uuid::new(server.uuid).into(), server.written..=server.written);
        server.executed = server.executed.joined_with(&set);
        server.waiting.push(Waiting { set, acknowledged: BTreeSet::new() });
        self.tell(at);
    }

    /// A replica receives what its source has, and applies it if it gets round to it.
    pub(super) fn deliver(&mut self, to: usize, applies: bool) {
        let replica = &self.all[to];
        let Some(from) = replica.source.filter(|_| replica.up && replica.connects && replica.linked) else { return };
        let Some(sent) = self.sends(from).cloned() else { return };
        let replica = &mut self.all[to];
        replica.received = replica.received.joined_with(&sent.without(&replica.executed));
        if applies {
            replica.executed = replica.executed.joined_with(&replica.received);
        }
        if replica.acknowledges && from != OUTSIDE {
            let has = replica.has();
            for waiting in &mut self.all[from].waiting {
                if waiting.set.is_within(&has) {
                    waiting.acknowledged.insert(to);
                }
            }
            self.tell(from);
        }
    }

    /// Tells clients of the commits that have enough acknowledgements.
    fn tell(&mut self, at: usize) {
        let needed = self.all[at].awaits.unwrap_or(0).into();
        let (done, still) = self.all[at].waiting.drain(..).partition(|it: &Waiting| it.acknowledged.len() >= needed);
        self.all[at].waiting = still;
        for Waiting { set, .. } in done {
            self.told = self.told.joined_with(&set);
            // What began before another one got the office may be told late, if that one had it then: whatever became of it since.
            if let Some((holder, had)) = &self.holder
                && *holder != at
                && !set.is_within(had)
            {
                self.complaints
                    .push(format!("server {at} told a client of {set}, which {holder} did not have when it got the office"));
            }
        }
    }

    /// What a look at a server tells.
    pub(super) fn look(&self, at: usize, host: impl Fn(usize) -> String, first_id: u32) -> Option<Known> {
        let server = self.all.get(at).filter(|it| it.up && it.reachable)?;
        let receives = |of: &Server| of.source.is_some_and(|from| of.connects && of.linked && self.sends(from).is_some());
        let followers = self.all.iter().enumerate().filter(|(_, it)| it.up && it.source == Some(at) && receives(it));
        Some(Known {
            server: Uuid::new(server.uuid),
            executed: server.executed.clone(),
            purged: GtidSet::default(),
            read_only: server.read_only,
            super_read_only: server.read_only,
            replication: server.source.map(|from| Replication {
                source_host: host(from),
                received: server.received.clone(),
                connects: server.connects,
                receives: receives(server),
                quiet: None,
                applies: server.connects,
                behind: Some(0),
                error: None,
            }),
            followers: followers.map(|(number, _)| first_id + u32::try_from(number).unwrap()).collect(),
            clone: None,
            awaits: server.awaits,
            acknowledges: server.acknowledges,
            waiting_commits: u32::try_from(server.waiting.len()).unwrap(),
        })
    }

    /// Does a task, as the operator's client would.
    pub(super) fn carry_out(&mut self, at: Ordinal, task: &Task, number_of: impl Fn(&str) -> Option<usize>) -> End {
        let at = usize::from(at.get());
        if !self.all[at].up || !self.all[at].reachable {
            return End::Unknown { why: "it does not answer".into() };
        }
        match task {
            Task::CloseToWrites { .. } => {
                if !self.all[at].waiting.is_empty() {
                    return End::Failed { why: "commits wait for acknowledgements".into() };
                }
                self.all[at].read_only = true;
            }
            Task::Depose => {
                let server = &mut self.all[at];
                // Clients hear that the connection ended.
                server.waiting.clear();
                (server.read_only, server.awaits) = (true, None);
            }
            Task::OpenToWrites => return self.open(at),
            Task::AwaitAcknowledgements { count } => self.all[at].awaits = (*count > 0).then_some(*count),
            Task::Follow { source, acknowledges } => {
                let Some(from) = number_of(&source.host) else { return End::Failed { why: "no such host".into() } };
                let server = &mut self.all[at];
                if !server.read_only {
                    return End::Failed { why: "it takes writes".into() };
                }
                if server.source != Some(from) {
                    // What was received and not applied is thrown away with the relay logs.
                    server.received = GtidSet::default();
                }
                (server.source, server.connects, server.acknowledges) = (Some(from), true, *acknowledges);
                // Who does not wait any more tells the clients of all that waited.
                server.awaits = None;
                self.tell(at);
            }
            Task::StopReceiving => self.all[at].connects = false,
            Task::CatchUp { .. } => {
                let server = &mut self.all[at];
                server.executed = server.executed.joined_with(&server.received);
            }
            Task::Clone { donor } => {
                let Some(from) = number_of(&donor.host) else { return End::Failed { why: "no such host".into() } };
                if !self.all[at].executed.is_empty() {
                    return End::Failed { why: "it has data".into() };
                }
                self.all[at].executed = self.all[from].executed.clone();
                self.all[at].start();
            }
            Task::CloneFromOutside { .. } => {
                if !self.all[at].executed.is_empty() {
                    return End::Failed { why: "it has data".into() };
                }
                if !self.outside.linked {
                    return End::Failed { why: "the donor cannot be reached".into() };
                }
                self.all[at].executed = self.outside.executed.clone();
                self.all[at].start();
            }
            Task::FollowOutside { .. } => {
                let server = &mut self.all[at];
                if !server.read_only {
                    return End::Failed { why: "it takes writes".into() };
                }
                if server.source != Some(OUTSIDE) && !server.received.is_within(&server.executed) {
                    self.complaints.push(format!("{} that server {at} received is thrown away", server.received));
                }
                (server.source, server.connects) = (Some(OUTSIDE), true);
                (server.acknowledges, server.awaits) = (false, None);
            }
            Task::Save { set } => self.all[at].saved = set.parse().unwrap(),
            Task::Replace { donor, over } => {
                let Some(from) = number_of(&donor.host) else { return End::Failed { why: "no such host".into() } };
                return self.replace(at, from, &over.parse().unwrap());
            }
        }
        End::Done
    }

    fn replace(&mut self, at: usize, from: usize, over: &GtidSet) -> End {
        let (recipient, data) = (&self.all[at], self.all[from].executed.clone());
        if !recipient.executed.is_within(over) || !recipient.read_only {
            return End::Failed { why: "it has more than was judged, or takes writes".into() };
        }
        let lost = recipient.has().without(&data);
        if !lost.is_within(&recipient.saved) {
            self.complaints.push(format!("{lost} of server {at} is thrown away, and was not saved"));
        }
        let told = self.told.shared_with(&lost);
        if !told.is_empty() {
            self.complaints.push(format!("{told} of server {at} is thrown away, and clients were told of it"));
        }
        // It gets another identity: it would give the numbers of what it lost to other transactions.
        let Server { process, uuid, .. } = *recipient;
        self.all[at] = Server { process, executed: data, ..Server::new(uuid + 1_000_000) };
        self.all[at].start();
        End::Done
    }

    /// It has the office, from now on if it had not before.
    pub(super) fn holds(&mut self, at: usize) {
        if self.holder.as_ref().is_none_or(|(holder, _)| *holder != at) {
            self.holder = Some((at, self.all[at].executed.clone()));
        }
    }

    fn open(&mut self, at: usize) -> End {
        if !self.told.is_within(&self.all[at].executed) {
            let lost = self.told.without(&self.all[at].executed);
            self.complaints.push(format!("server {at} is opened to writes without {lost}, which clients were told of"));
        }
        if self.outside.followed {
            self.complaints.push(format!("server {at} is opened to writes, and the cluster follows another server"));
        }
        // The first one has all that came from elsewhere and is here.
        if self.holder.is_none() {
            let here = self.all.iter().filter(|it| it.up && it.reachable);
            let missing = here.fold(GtidSet::default(), |all, it| all.joined_with(&it.has())).without(&self.all[at].executed);
            if !missing.is_empty() {
                self.complaints.push(format!("server {at} is the first to be opened, and lacks {missing} that others have"));
            }
        }
        self.holds(at);
        let server = &mut self.all[at];
        (server.source, server.connects, server.received) = (None, false, GtidSet::default());
        server.read_only = false;
        End::Done
    }
}
