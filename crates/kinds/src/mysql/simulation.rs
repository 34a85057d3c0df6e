//! Servers as far as decisions depend on them: what they have, what they forget when they restart, what a loss of power takes from
//! them, and who is told of a commit. For tests and measurements: the worlds of this crate, the crash harness and the bench act on them.
//!
//! They judge what is done to them by what is true in them, and complain: of a commit that a client was told of and that is lost, of
//! two servers that tell clients of commits, and of data that is thrown away and was not saved. They know nothing of the operator.

use std::collections::BTreeSet;

use windlass_core::ordinals::Ordinal;

use super::deeds::Task;
use super::facts::End;
use super::gtid::{GtidSet, Uuid};
use super::instance::{Known, Replication};

/// Between the identities of one server: a server without its data is another one.
const IDENTITIES: u128 = 1_000_000;

/// The number of the server elsewhere.
pub const OUTSIDE: usize = usize::MAX;

/// A server elsewhere that the cluster follows.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// What it has executed.
    pub executed: GtidSet,
    written: u64,
    /// Whether servers can reach it.
    pub linked: bool,
    /// Whether the cluster follows it: then none of its servers may be opened to writes.
    pub followed: bool,
}

/// A commit that waits for acknowledgements.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its transaction.
    pub set: GtidSet,
    acknowledged: BTreeSet<usize>,
}

/// One server.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "a server has that many settings, and each can be one way or the other")]
pub struct Server {
    /// Whether it runs.
    pub up: bool,
    /// Whether the operator can reach it.
    pub reachable: bool,
    /// Whether other servers can.
    pub linked: bool,
    /// Who it is.
    pub uuid: u128,
    /// How often it was started.
    pub process: u32,
    /// What it has executed.
    pub executed: GtidSet,
    /// What it has received.
    pub received: GtidSet,
    /// What of that a loss of power would take: it is in the relay log, and not on the disk.
    pub unsynced: GtidSet,
    /// Whether it takes no writes.
    pub read_only: bool,
    /// Whom it follows.
    pub source: Option<usize>,
    /// Whether the thread that receives runs.
    pub connects: bool,
    /// Whether the thread that applies runs.
    pub applies: bool,
    /// Whether it acknowledges what it receives.
    pub acknowledges: bool,
    /// For how many acknowledgements its commits wait.
    pub awaits: Option<u16>,
    /// Those that wait.
    pub waiting: Vec<Waiting>,
    /// The number of its last transaction.
    pub written: u64,
    /// What was put beside the data directory.
    pub saved: GtidSet,
}

impl Server {
    /// A server that runs, has nothing and does nothing.
    pub fn new(uuid: u128) -> Self {
        Self {
            up: true,
            reachable: true,
            linked: true,
            uuid,
            process: 1,
            executed: GtidSet::default(),
            received: GtidSet::default(),
            unsynced: GtidSet::default(),
            read_only: true,
            source: None,
            connects: false,
            applies: false,
            acknowledges: false,
            awaits: None,
            waiting: Vec::new(),
            written: 0,
            saved: GtidSet::default(),
        }
    }

    /// Ends without a word. Clients that waited are told nothing; what was in the binary log is executed after the restart.
    pub fn crash(&mut self) {
        self.up = false;
        self.waiting.clear();
    }

    /// Ends with its node: what was not on the disk is gone. The binary log always is, and so is what was acknowledged.
    pub fn lose_power(&mut self) {
        self.crash();
        self.received = self.received.without(&self.unsynced);
        self.unsynced = GtidSet::default();
    }

    /// Starts with the settings of my.cnf: nothing that was set since is remembered.
    pub fn start(&mut self) {
        self.up = true;
        self.process += 1;
        self.read_only = true;
        (self.connects, self.applies, self.acknowledges, self.awaits) = (false, false, false, None);
    }

    /// Comes back with an empty volume.
    pub fn wipe(&mut self, uuid: u128) {
        let process = self.process;
        *self = Self { process, up: false, ..Self::new(uuid) };
    }

    /// Who it would be without its data.
    pub fn next_identity(&self) -> u128 {
        self.uuid + IDENTITIES
    }

    /// Everybody that it was, in order, and is.
    pub fn identities(&self) -> impl Iterator<Item = Uuid> {
        let first = (self.uuid - 1) % IDENTITIES + 1;
        (0..=(self.uuid - 1) / IDENTITIES).map(move |times| Uuid::new(first + times * IDENTITIES))
    }

    /// In one line.
    pub fn told(&self) -> String {
        let Self { up, uuid, process, executed, received, read_only, source, connects, acknowledges, awaits, .. } = self;
        format!(
            "up {up} uuid {uuid} process {process} executed {executed} received {received} read-only {read_only} source {source:?} \
             connects {connects} acknowledges {acknowledges} awaits {awaits:?} waiting {}",
            self.waiting.len()
        )
    }

    /// What it has, executed or only received.
    pub fn has(&self) -> GtidSet {
        self.executed.joined_with(&self.received)
    }

    /// Executes what it has received, as far as somebody lets it.
    pub fn apply(&mut self) {
        if self.up && self.applies {
            self.executed = self.executed.joined_with(&self.received);
            self.unsynced = GtidSet::default();
        }
    }
}

/// All servers, and what clients were told of.
#[derive(Clone, Debug)]
pub struct Servers {
    /// The servers, by number.
    pub all: Vec<Server>,
    /// Every transaction that a client was told of.
    pub told: GtidSet,
    /// Who was opened to writes last, and what it had then.
    pub holder: Option<(usize, GtidSet)>,
    /// What was done that must never be done.
    pub complaints: Vec<String>,
    /// The server elsewhere that the cluster follows, if it does.
    pub outside: Elsewhere,
}

impl Servers {
    /// So many servers that have nothing.
    pub fn new(size: usize) -> Self {
        let all = (0..size).map(|number| Server::new(number as u128 + 1)).collect();
        Self { all, told: GtidSet::default(), holder: None, complaints: Vec::new(), outside: Elsewhere::default() }
    }

    /// Whether the volumes of the others have everything that clients were told of.
    pub fn is_told_elsewhere(&self, number: usize) -> bool {
        let others = self.all.iter().enumerate().filter(|(other, _)| *other != number);
        let has = others.fold(GtidSet::default(), |all, (_, it)| all.joined_with(&it.has()));
        self.told.is_within(&has)
    }

    /// A client writes to the server elsewhere.
    pub fn write_elsewhere(&mut self) {
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
    pub fn of_most(&self, size: usize) -> GtidSet {
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
    pub fn write(&mut self, at: usize) {
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
    pub fn deliver(&mut self, to: usize, applies: bool) {
        self.receive(to);
        self.acknowledge(to);
        if applies {
            self.all[to].apply();
        }
    }

    /// From whom a replica receives now.
    fn source_of(&self, of: &Server) -> Option<usize> {
        of.source.filter(|_| of.up && of.connects && of.linked).filter(|from| self.sends(*from).is_some())
    }

    /// A replica receives what its source has, into memory as it were. True when that was something.
    pub fn receive(&mut self, to: usize) -> bool {
        let sent = self.source_of(&self.all[to]).and_then(|from| self.sends(from)).cloned();
        let Some(sent) = sent else { return false };
        let replica = &mut self.all[to];
        let new = sent.without(&replica.has());
        replica.received = replica.received.joined_with(&new);
        replica.unsynced = replica.unsynced.joined_with(&new);
        !new.is_empty()
    }

    /// A replica that acknowledges puts what it received on the disk, and then says so.
    pub fn acknowledge(&mut self, to: usize) {
        let Some(from) = self.source_of(&self.all[to]).filter(|_| self.all[to].acknowledges) else { return };
        let replica = &mut self.all[to];
        replica.unsynced = GtidSet::default();
        let has = replica.has();
        // The server elsewhere waits for nobody here.
        let Some(source) = self.all.get_mut(from) else { return };
        for waiting in &mut source.waiting {
            if waiting.set.is_within(&has) {
                waiting.acknowledged.insert(to);
            }
        }
        self.tell(from);
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
    pub fn look(&self, at: usize, host: impl Fn(usize) -> String, first_id: u32) -> Option<Known> {
        let server = self.all.get(at).filter(|it| it.up && it.reachable)?;
        let followers = self.all.iter().enumerate().filter(|(_, it)| it.source == Some(at) && self.source_of(it).is_some());
        let id = |number: usize| first_id.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
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
                receives: self.source_of(server).is_some(),
                quiet: None,
                applies: server.applies,
                behind: Some(0),
                error: None,
            }),
            followers: followers.map(|(number, _)| id(number)).collect(),
            clone: None,
            awaits: server.awaits,
            acknowledges: server.acknowledges,
            waiting_commits: u32::try_from(server.waiting.len()).unwrap_or(u32::MAX),
        })
    }

    /// Does a task, as the operator's client would.
    pub fn carry_out(&mut self, at: Ordinal, task: &Task, number_of: impl Fn(&str) -> Option<usize>) -> End {
        let at = usize::from(at.get());
        if !self.all[at].up || !self.all[at].reachable {
            return End::Unknown { why: "it does not answer".into() };
        }
        let failed = |why: &str| End::Failed { why: why.to_owned() };
        match task {
            Task::CloseToWrites { .. } => {
                if !self.all[at].waiting.is_empty() {
                    return failed("commits wait for acknowledgements");
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
            Task::AwaitAcknowledgements { count } => {
                self.all[at].awaits = (*count > 0).then_some(*count);
                // Who waits for fewer, or for nobody, tells the clients of what waited for more.
                self.tell(at);
            }
            Task::Follow { source, acknowledges } => {
                let Some(from) = number_of(&source.host) else { return failed("no such host") };
                if !self.all[at].read_only {
                    return failed("it takes writes");
                }
                if self.all[at].source != Some(from) {
                    self.forget_received(at, from);
                }
                let server = &mut self.all[at];
                (server.source, server.connects, server.applies) = (Some(from), true, true);
                server.acknowledges = *acknowledges;
                // Who does not wait any more tells the clients of all that waited.
                server.awaits = None;
                self.tell(at);
            }
            Task::StopReceiving => self.all[at].connects = false,
            Task::StopAcknowledging => self.all[at].acknowledges = false,
            Task::CatchUp { set, .. } => {
                let Ok(set) = set.parse::<GtidSet>() else { return failed("no such set") };
                let server = &mut self.all[at];
                server.applies |= server.source.is_some();
                server.apply();
                if !set.is_within(&server.executed) {
                    return failed("it has not caught up");
                }
            }
            Task::Clone { donor } => {
                let Some(from) = number_of(&donor.host) else { return failed("no such host") };
                if !self.all[at].executed.is_empty() {
                    return failed("it has data");
                }
                if !self.all[from].up {
                    return failed("the donor does not answer");
                }
                self.all[at].executed = self.all[from].executed.clone();
                self.all[at].start();
            }
            Task::CloneFromOutside { .. } => {
                if !self.all[at].executed.is_empty() {
                    return failed("it has data");
                }
                if !self.outside.linked {
                    return failed("the donor cannot be reached");
                }
                self.all[at].executed = self.outside.executed.clone();
                self.all[at].start();
            }
            Task::FollowOutside { .. } => {
                let server = &mut self.all[at];
                if !server.read_only {
                    return failed("it takes writes");
                }
                if server.source != Some(OUTSIDE) && !server.received.is_within(&server.executed) {
                    self.complaints.push(format!("{} that server {at} received is thrown away", server.received));
                }
                (server.source, server.connects, server.applies) = (Some(OUTSIDE), true, true);
                (server.acknowledges, server.awaits) = (false, None);
            }
            Task::Save { set } => match set.parse() {
                Ok(set) => self.all[at].saved = set,
                Err(_) => return failed("no such set"),
            },
            Task::Replace { donor, over } => {
                let (Some(from), Ok(over)) = (number_of(&donor.host), over.parse()) else {
                    return failed("no such host or set");
                };
                return self.replace(at, from, &over);
            }
        }
        End::Done
    }

    /// What was received and not applied is thrown away with the relay logs.
    pub fn forget_received(&mut self, at: usize, source: usize) {
        let server = &self.all[at];
        let lost = server.received.without(&server.executed).without(&self.all[source].has());
        if !lost.is_empty() {
            self.complaints.push(format!("server {at} received {lost}, which {source} does not have, and throws it away"));
        }
        (self.all[at].received, self.all[at].unsynced) = (GtidSet::default(), GtidSet::default());
    }

    fn replace(&mut self, at: usize, from: usize, over: &GtidSet) -> End {
        let (recipient, data) = (&self.all[at], self.all[from].executed.clone());
        if !recipient.executed.is_within(over) || !recipient.read_only {
            return End::Failed { why: "it has more than was judged, or takes writes".into() };
        }
        if !self.all[from].up {
            return End::Failed { why: "the donor does not answer".into() };
        }
        let lost = recipient.has().without(&data);
        if !lost.is_within(&recipient.saved) {
            self.complaints.push(format!("{lost} of server {at} is thrown away, and was not saved"));
        }
        let told = self.told.shared_with(&lost);
        if !told.is_empty() {
            self.complaints.push(format!("{told} of server {at} is thrown away, and clients were told of it"));
        }
        // It gets another identity: it would give the numbers of what it lost to other transactions. What was saved is beside the data.
        let next = Server {
            process: recipient.process,
            saved: recipient.saved.clone(),
            executed: data,
            ..Server::new(recipient.next_identity())
        };
        self.all[at] = next;
        self.all[at].start();
        End::Done
    }

    /// It has the office, from now on if it had not before.
    pub fn holds(&mut self, at: usize) {
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
        (server.source, server.connects, server.applies) = (None, false, false);
        (server.received, server.unsynced) = (GtidSet::default(), GtidSet::default());
        server.read_only = false;
        End::Done
    }
}
