//! The servers of one cluster: the simulated servers of `windlass-kinds`, told what to do by statements and looked at by statements.
//!
//! What they decide is only what a server decides by itself. Whatever is done to them that must never be done, they complain of.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::mysql::deeds::Task;
use windlass_kinds::mysql::facts::End;
use windlass_kinds::mysql::gtid::GtidSet;
use windlass_kinds::mysql::simulation::{Server, Servers};

use super::answers::{self, code};
use super::statement::{Statement, Threads};
use super::wire::Answer;

/// `server_id` of the first server; the resource asks for it.
pub(crate) const FIRST_SERVER_ID: u32 = 1000;

/// What a server does when it was asked something.
pub(super) enum Reaction {
    /// It answers.
    Now(Answer),
    /// It answers later.
    Later(Duration, Answer),
}

/// Somebody who is logged in.
struct Seat {
    mark: Option<String>,
    task: AbortHandle,
}

/// What a server has beside what the simulated one has.
pub(super) struct Member {
    /// For how many acknowledgements commits wait, once they do.
    count: u16,
    pub(super) source: Option<Source>,
    sessions: HashMap<u32, Seat>,
    /// Since when it says nothing.
    pub(super) mute_since: Option<Instant>,
    mute: watch::Sender<bool>,
}

/// Whom a server was told to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) by_position: bool,
}

impl Member {
    fn new() -> Self {
        Self { count: 1, source: None, sessions: HashMap::new(), mute_since: None, mute: watch::Sender::new(false) }
    }

    fn end_sessions(&mut self) {
        for (_, seat) in self.sessions.drain() {
            seat.task.abort();
        }
    }
}

/// How a primary was lost, and what came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Which one it was.
    pub(crate) who: usize,
    at: Instant,
    stopped: Option<Instant>,
    opened: Option<Instant>,
}

impl Loss {
    /// How long it took until the first of the others was told to receive nothing any more.
    pub(crate) fn until_stopped(&self) -> Option<Duration> {
        self.stopped.map(|stopped| stopped - self.at)
    }

    /// How long it took until another one took writes.
    pub(crate) fn until_opened(&self) -> Option<Duration> {
        self.opened.map(|opened| opened - self.at)
    }
}

/// The servers of a cluster.
pub(super) struct Cluster {
    /// The name of its StatefulSet.
    set: String,
    namespace: String,
    pub(super) servers: Servers,
    pub(super) members: Vec<Member>,
    loss: Option<Loss>,
}

impl Cluster {
    /// Servers that do not run yet.
    pub(super) fn new(namespace: &str, set: &str, size: u16) -> Self {
        let mut servers = Servers::new(size.into());
        servers.all.iter_mut().for_each(|it| it.up = false);
        let members = (0..size).map(|_| Member::new()).collect();
        Self { set: set.to_owned(), namespace: namespace.to_owned(), servers, members, loss: None }
    }

    /// The host name by which the others know a server.
    pub(super) fn host(&self, at: usize) -> String {
        format!("{set}-{at}.{set}.{}.svc", self.namespace, set = self.set)
    }

    fn number_of(&self, host: &str) -> Option<usize> {
        (0..self.members.len()).find(|number| self.host(*number) == host)
    }

    /// A server starts: with its data, and nothing that was set since it started last.
    pub(super) fn start(&mut self, at: usize) {
        self.servers.all[at].start();
        self.members[at].end_sessions();
        self.members[at].count = 1;
        self.members[at].mute_since = None;
        self.members[at].mute.send_replace(false);
    }

    /// A server ends without a word.
    pub(super) fn stop(&mut self, at: usize) {
        self.servers.all[at].crash();
        self.members[at].end_sessions();
    }

    /// The one that takes writes.
    pub(super) fn writer(&self) -> Option<usize> {
        self.servers.all.iter().position(|it| it.up && !it.read_only)
    }

    /// The primary ends as a killed process does: its connections are closed. Tells who it was.
    pub(super) fn lose_primary(&mut self) -> Option<usize> {
        let who = self.writer()?;
        self.loss = Some(Loss { who, at: Instant::now(), stopped: None, opened: None });
        self.stop(who);
        Some(who)
    }

    /// The primary says nothing any more, and its connections stay. Tells who it was.
    pub(super) fn silence_primary(&mut self) -> Option<usize> {
        let who = self.writer()?;
        let at = Instant::now();
        self.loss = Some(Loss { who, at, stopped: None, opened: None });
        self.members[who].mute_since = Some(at);
        self.members[who].mute.send_replace(true);
        Some(who)
    }

    /// The last loss of a primary.
    pub(super) fn loss(&self) -> Option<Loss> {
        self.loss
    }

    /// Whether all run, one takes writes, and all others receive from it.
    pub(super) fn is_whole(&self) -> bool {
        let Some(primary) = self.writer() else { return false };
        let follows = |(number, it): (usize, &Server)| {
            number == primary || (it.up && it.source == Some(primary) && it.connects && it.applies && it.read_only)
        };
        self.servers.all.iter().enumerate().all(follows)
    }

    /// A client writes to whoever takes writes, and the others get it at once: no commit is ever under way when something else happens.
    pub(super) fn write(&mut self) {
        let Some(at) = self.writer().filter(|at| self.members[*at].mute_since.is_none()) else { return };
        self.servers.write(at);
        self.replicate();
    }

    fn replicate(&mut self) {
        for number in 0..self.members.len() {
            self.servers.deliver(number, true);
        }
    }

    /// Somebody connects. Comes back: whether the server is mute, now and later; nothing when it has just ended.
    pub(super) fn sit(&mut self, at: usize, id: u32, task: AbortHandle) -> Option<watch::Receiver<bool>> {
        if !self.servers.all[at].up {
            return None;
        }
        self.members[at].sessions.insert(id, Seat { mark: None, task });
        Some(self.members[at].mute.subscribe())
    }

    pub(super) fn rise(&mut self, at: usize, id: u32) {
        self.members[at].sessions.remove(&id);
    }

    /// Does what a statement asks for.
    pub(super) fn execute(&mut self, at: usize, session: u32, statement: &Statement) -> Reaction {
        let answer = match statement {
            Statement::SetSession { mark } => self.mark(at, session, mark.as_ref()),
            Statement::SetGlobal { name, value } => self.set_global(at, name, value),
            Statement::Variables(wanted) => answers::variables(self, at, wanted),
            Statement::SemiSync(wanted) => answers::semi_sync(self, at, wanted),
            Statement::Replicas => answers::replicas(self, at),
            Statement::Replication => answers::replication(self, at),
            Statement::Quiet => answers::quiet(self, at),
            Statement::CloneStatus => answers::clone_status(),
            Statement::RelayLogSync => answers::relay_log_sync(),
            Statement::Connections => answers::connections(self.members[at].sessions.keys()),
            Statement::SessionsOfOthers { mark } => {
                let differs = |seat: &Seat| seat.mark.as_ref().is_some_and(|it| it != mark);
                answers::ids(self.members[at].sessions.iter().filter(|(_, seat)| differs(seat)).map(|(id, _)| id))
            }
            Statement::Sleep(time) => return Reaction::Later(*time, Answer::Done),
            Statement::Kill(id) => self.end_session(at, *id),
            Statement::Stop(threads) => self.turn(at, *threads, false),
            Statement::Start(threads) => self.turn(at, *threads, true),
            Statement::ForgetSource => self.forget_source(at),
            Statement::NameSource { host, port, user, by_position } => {
                let by_position = *by_position || self.members[at].source.as_ref().is_some_and(|it| it.by_position);
                self.name_source(at, Source { host: host.clone(), port: *port, user: user.clone(), by_position })
            }
            Statement::WaitFor { set, within } => return self.wait_for(at, set, *within),
            Statement::Missing { set } => match set.parse::<GtidSet>() {
                Ok(set) => answers::one("missing", set.without(&self.servers.all[at].executed).to_string()),
                Err(error) => unreadable(&error.to_string()),
            },
        };
        Reaction::Now(answer)
    }

    fn mark(&mut self, at: usize, session: u32, mark: Option<&String>) -> Answer {
        if let (Some(mark), Some(seat)) = (mark, self.members[at].sessions.get_mut(&session)) {
            seat.mark = Some(mark.clone());
        }
        Answer::Done
    }

    fn end_session(&mut self, at: usize, id: u32) -> Answer {
        match self.members[at].sessions.remove(&id) {
            Some(seat) => {
                seat.task.abort();
                Answer::Done
            }
            None => Answer::Refused { code: code::NO_SUCH_THREAD, why: format!("Unknown thread id: {id}") },
        }
    }

    fn set_global(&mut self, at: usize, name: &str, value: &str) -> Answer {
        let on = value == "1";
        match name {
            "super_read_only" if on => return self.task(at, &Task::CloseToWrites { patience: Duration::ZERO }),
            "read_only" if !on => {
                self.note_opened(at);
                return self.task(at, &Task::OpenToWrites);
            }
            "rpl_semi_sync_source_enabled" => {
                let count = if on { self.members[at].count } else { 0 };
                return self.task(at, &Task::AwaitAcknowledgements { count });
            }
            "rpl_semi_sync_source_wait_for_replica_count" => {
                let Ok(count) = value.parse() else { return unreadable(value) };
                self.members[at].count = count;
                if self.servers.all[at].awaits.is_some() {
                    return self.task(at, &Task::AwaitAcknowledgements { count });
                }
            }
            "rpl_semi_sync_replica_enabled" => self.servers.all[at].acknowledges = on,
            // They change nothing that the bench's servers do.
            "rpl_semi_sync_source_timeout" | "rpl_semi_sync_source_wait_no_replica" | "sync_relay_log" | "offline_mode" => {}
            _ => return Answer::Refused { code: code::UNKNOWN_VARIABLE, why: format!("Unknown system variable '{name}'") },
        }
        self.replicate();
        Answer::Done
    }

    /// What a simulated server does by one word.
    fn task(&mut self, at: usize, task: &Task) -> Answer {
        let ordinal = Ordinal::new(u16::try_from(at).unwrap_or(u16::MAX));
        match self.servers.carry_out(ordinal, task, |_| None) {
            End::Done => Answer::Done,
            End::Failed { why } | End::Unknown { why } => Answer::Refused { code: code::UNREADABLE, why },
            End::StillRunning => Answer::Refused { code: code::UNREADABLE, why: "it still runs".to_owned() },
        }
    }

    fn turn(&mut self, at: usize, threads: Threads, on: bool) -> Answer {
        let server = &mut self.servers.all[at];
        if on && server.source.is_none() {
            let why = "The server is not configured as replica".to_owned();
            return Answer::Refused { code: code::NOT_A_REPLICA, why };
        }
        if threads.receives {
            server.connects = on;
        }
        if threads.applies {
            server.applies = on;
        }
        if threads.receives && !on {
            self.note_stopped(at);
        }
        self.replicate();
        Answer::Done
    }

    fn name_source(&mut self, at: usize, source: Source) -> Answer {
        let Some(from) = self.number_of(&source.host) else {
            return unreadable(&format!("the bench knows no server {:?}", source.host));
        };
        if self.servers.all[at].source != Some(from) {
            self.servers.forget_received(at, from);
        }
        self.servers.all[at].source = Some(from);
        self.members[at].source = Some(source);
        Answer::Done
    }

    fn forget_source(&mut self, at: usize) -> Answer {
        let server = &mut self.servers.all[at];
        let lost = server.received.without(&server.executed);
        if !lost.is_empty() {
            self.servers.complaints.push(format!("server {at} received {lost}, and throws it away"));
        }
        (server.source, server.received, server.unsynced) = (None, GtidSet::new(), GtidSet::new());
        self.members[at].source = None;
        Answer::Done
    }

    fn wait_for(&mut self, at: usize, set: &str, within: Duration) -> Reaction {
        let Ok(set) = set.parse::<GtidSet>() else { return Reaction::Now(unreadable(set)) };
        self.servers.all[at].apply();
        // Everything that there is to be applied was applied just now.
        if set.is_within(&self.servers.all[at].executed) {
            return Reaction::Now(answers::one("late", "0".to_owned()));
        }
        Reaction::Later(within, answers::one("late", "1".to_owned()))
    }

    fn note_stopped(&mut self, at: usize) {
        if let Some(loss) = self.loss.as_mut().filter(|loss| loss.who != at) {
            loss.stopped.get_or_insert_with(Instant::now);
        }
    }

    fn note_opened(&mut self, at: usize) {
        if let Some(loss) = self.loss.as_mut().filter(|loss| loss.who != at) {
            loss.opened.get_or_insert_with(Instant::now);
        }
    }
}

fn unreadable(what: &str) -> Answer {
    Answer::Refused { code: code::UNREADABLE, why: format!("the bench's server cannot read {what:?}") }
}
