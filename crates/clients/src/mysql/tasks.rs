//! What is done to servers, statement by statement.
//!
//! Each task can be done again: what is so already is left as it is, and a task that broke off in the middle is finished by the next
//! one. None of them waits with a limit of its own; whoever runs them does.

use std::time::Duration;

use windlass_kinds::mysql::deeds::{Place, Source, Task};
use windlass_kinds::mysql::gtid::GtidSet;

use super::connections::end_clients;
use super::dialect::{self, SemiSync};
use super::outside::{self, Elsewhere};
use super::rows::{Fields, Variables, of_default_channel};
use super::session::{Failure, Session, code};
use super::{Passwords, Servers, agent, surplus};

/// The account that replicas log in to their source with.
const REPLICATION: &str = "moco-repl";
/// The account that copies of a server are made with.
const CLONE_DONOR: &str = "moco-clone-donor";
/// How long a commit waits for its acknowledgements: a day, for the server knows no longer word for ever.
const ACKNOWLEDGED_WITHIN_MS: u32 = 86_400_000;
/// How often those who still hold up the closing of a server are disconnected.
const BETWEEN_DISCONNECTS: Duration = Duration::from_secs(1);
/// How long a server tries to close, besides the patience. Orders that wait for ever would pile up in it, one for each that was decided.
const CLOSING: Duration = Duration::from_secs(30);

/// How long a server that is about to take writes may take to forget its source first.
const FORGETTING: Duration = Duration::from_millis(300);

/// Does it.
pub(super) async fn run(servers: &Servers, place: &Place, task: &Task) -> Result<(), Failure> {
    // The agent does it, on a server that may let us not in.
    if let Task::CloneFromOutside { outside, boot } = task {
        servers.term.check()?;
        return agent::copy(servers, place, outside, *boot).await;
    }
    let (mut session, passwords) = servers.log_in(place).await?;
    servers.term.end_others(&mut session).await?;
    let mut work = Work { session, passwords: &passwords, pod: &place.pod };
    match task {
        Task::CloseToWrites { patience } => work.close(servers, place, *patience).await,
        Task::OpenToWrites => work.open(servers, place).await,
        Task::AwaitAcknowledgements { count } => work.await_acknowledgements(*count).await,
        Task::Follow { source, acknowledges } => work.follow(source, *acknowledges).await,
        Task::StopReceiving => work.session.run("stopping to receive", "STOP REPLICA IO_THREAD").await,
        Task::StopAcknowledging => work.stop_acknowledging().await,
        Task::CatchUp { set, within } => work.catch_up(set, *within).await,
        Task::Depose => work.depose(servers, place).await,
        Task::Clone { donor } => work.clone_from(donor, None).await,
        Task::Save { set } => surplus::save(servers, place, set).await,
        Task::Replace { donor, over } => work.clone_from(donor, Some(over)).await,
        Task::FollowOutside { outside } => {
            let elsewhere = outside::as_decided(&servers.client, place, outside).await?;
            work.follow_outside(&elsewhere).await.map_err(|failure| failure.without(&elsewhere.password))
        }
        // Done above.
        Task::CloneFromOutside { .. } => Ok(()),
    }
}

/// A task under way.
struct Work<'a> {
    session: Session,
    passwords: &'a Passwords,
    pod: &'a str,
}

impl Work<'_> {
    async fn close(&mut self, servers: &Servers, place: &Place, patience: Duration) -> Result<(), Failure> {
        let seconds = (CLOSING + patience).as_secs();
        let act = "closing the server to writes";
        self.session.run(act, &format!("SET SESSION lock_wait_timeout = {seconds}")).await?;
        let closing = self.session.run(act, "SET GLOBAL super_read_only = 1");
        // It waits for statements and commits that run. They get the time that they were given, and are ended after that. A commit that
        // waits for acknowledgements goes on to wait without its client.
        let hurrying = async {
            tokio::time::sleep(patience).await;
            loop {
                let ended = async { end_clients(&mut servers.log_in(place).await?.0).await };
                if let Err(why) = ended.await {
                    tracing::warn!(pod = place.pod, %why, "who holds up the closing of a server could not be disconnected");
                }
                tokio::time::sleep(BETWEEN_DISCONNECTS).await;
            }
        };
        let end = tokio::select! {
            end = closing => end,
            () = hurrying => Ok(()),
        };
        match end {
            Err(failure) if failure.code() == Some(code::LOCK_WAIT_TIMEOUT) => {
                let (semi_sync, variables) = self.semi_sync().await?;
                let waiting = semi_sync.source.and_then(|side| variables.get(side.waiting)).unwrap_or("0");
                Err(Failure::Untried(format!(
                    "pod {:?} could not be closed to writes within {seconds} s: somebody holds a lock there, or commits wait for \
                     acknowledgements ({waiting} do); its clients are disconnected",
                    self.pod
                )))
            }
            // Whoever still reads must find out that it is not the primary any more.
            Ok(()) => end_clients(&mut self.session).await,
            end => end,
        }
    }

    /// The order to close is given first and waits: from then on nothing is committed that was not before. Then the clients are cut
    /// off, and only then the commits that wait for acknowledgements are let go: nobody is there who could be told that they succeeded.
    async fn depose(&mut self, servers: &Servers, place: &Place) -> Result<(), Failure> {
        let (mut beside, _) = servers.log_in(place).await?;
        let act = "closing the server to writes";
        self.session.run(act, &format!("SET SESSION lock_wait_timeout = {}", CLOSING.as_secs())).await?;
        let closing = self.session.run(act, "SET GLOBAL super_read_only = 1");
        let (pod, side) = (self.pod, async {
            for _ in 0..20 {
                let row = beside.first("reading the server's state", dialect::SERVER).await?;
                if row.switch("super_read_only").map_err(Failure::Untried)? {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            beside.run("keeping clients out", "SET GLOBAL offline_mode = 1").await?;
            end_clients(&mut beside).await?;
            let rows = beside.all("reading who waits for whom", dialect::SEMI_SYNC).await?;
            let variables = Variables::of(&rows).map_err(Failure::Untried)?;
            if let Some(side) = SemiSync::of(&variables).source {
                beside.run("letting commits go", &format!("SET GLOBAL {} = 0", side.enabled)).await?;
            }
            Ok::<_, Failure>(beside)
        });
        let (closed, beside) = tokio::join!(closing, side);
        let mut beside = beside?;
        beside.run("letting clients in again", "SET GLOBAL offline_mode = 0").await?;
        tracing::info!(pod, "a former primary was deposed");
        closed
    }

    /// Opens the server. Its source is forgotten before that, or after it where that takes long: one that ended in the middle of a
    /// transaction leaves half of it, and to stop applying takes a minute then. Nothing more arrives, and clients wait for nobody.
    async fn open(&mut self, servers: &Servers, place: &Place) -> Result<(), Failure> {
        end_clients(&mut self.session).await?;
        self.let_clients_in().await?;
        self.session.run("stopping to receive", "STOP REPLICA IO_THREAD").await?;
        let (mut beside, _) = servers.log_in(place).await?;
        let mut forgetting = std::pin::pin!(async {
            beside.run("stopping replication", "STOP REPLICA").await?;
            beside.run("forgetting the source", "RESET REPLICA ALL").await
        });
        let forgotten = tokio::time::timeout(FORGETTING, &mut forgetting).await;
        // This switches super_read_only off as well.
        self.session.run("opening the server to writes", "SET GLOBAL read_only = 0").await?;
        let server = self.server().await?;
        if self.switch(&server, "read_only")? || self.switch(&server, "super_read_only")? {
            let why = format!("the server of pod {:?} took the order to open to writes, and is still read-only", self.pod);
            return Err(Failure::Untried(why));
        }
        let forgotten = match forgotten {
            Ok(end) => end,
            Err(_) => forgetting.await,
        };
        if let Err(why) = forgotten {
            tracing::warn!(pod = place.pod, %why, "a new primary still knows whom it followed");
        }
        Ok(())
    }

    /// They were kept out if somebody died in the middle of deposing it.
    async fn let_clients_in(&mut self) -> Result<(), Failure> {
        self.session.run("letting clients in", "SET GLOBAL offline_mode = 0").await
    }

    async fn await_acknowledgements(&mut self, count: u16) -> Result<(), Failure> {
        let (semi_sync, _) = self.semi_sync().await?;
        let Some(side) = semi_sync.source else {
            // What is not there waits for nobody.
            return if count == 0 { Ok(()) } else { Err(self.no_plugin("rpl_semi_sync_source")) };
        };
        if count == 0 {
            return self.set(side.enabled, 0).await;
        }
        self.set(side.timeout, ACKNOWLEDGED_WITHIN_MS).await?;
        // It also waits when there are too few replicas to acknowledge anything.
        self.set(side.alone, 1).await?;
        self.set(side.count, u32::from(count)).await?;
        self.set(side.enabled, 1).await
    }

    async fn stop_acknowledging(&mut self) -> Result<(), Failure> {
        match self.semi_sync().await?.0.replica {
            Some(enabled) => self.set(enabled, 0).await,
            // What is not there acknowledges nothing.
            None => Ok(()),
        }
    }

    async fn follow(&mut self, source: &Source, acknowledges: bool) -> Result<(), Failure> {
        let server = self.server().await?;
        if !self.switch(&server, "read_only")? {
            return Err(Failure::Untried(format!(
                "pod {:?} is open to writes, and a server that takes writes of its own must not follow {:?}: close it first",
                self.pod, source.host
            )));
        }
        self.let_clients_in().await?;
        let (semi_sync, variables) = self.semi_sync().await?;
        let rows = self.session.all("reading from whom it replicates", dialect::REPLICATION).await?;
        let current = of_default_channel(&rows).map_err(|why| self.strange(&why))?;
        let same = current.map_or(Ok(false), |row| is_source(row, source)).map_err(|why| self.strange(&why))?;
        if !same {
            let applies = current.map_or(Ok(false), applies_by_itself).map_err(|why| self.strange(&why))?;
            self.name_source(source, applies).await?;
        }
        if acknowledges {
            self.write_through().await?;
        }
        match semi_sync.replica {
            Some(enabled) if self.is_on(&variables, enabled)? == acknowledges => {}
            Some(enabled) => {
                // The thread asks once, when it starts. It is stopped first, so that it never runs with what was before.
                self.session.run("stopping to receive", "STOP REPLICA IO_THREAD").await?;
                self.set(enabled, u32::from(acknowledges)).await?;
            }
            None if acknowledges => return Err(self.no_plugin("rpl_semi_sync_replica")),
            None => {}
        }
        if let Some(side) = semi_sync.source
            && self.is_on(&variables, side.enabled)?
        {
            self.set(side.enabled, 0).await?;
        }
        self.session.run("starting replication", "START REPLICA").await
    }

    /// Names another source. A source that ended in the middle of a transaction leaves half of it, and to stop applying takes a minute
    /// then: it is waited for the other half. So applying goes on where that is possible, and nothing that was received is thrown away.
    async fn name_source(&mut self, source: &Source, applies: bool) -> Result<(), Failure> {
        let (act, password) = ("naming the source", &self.passwords.replication);
        if applies {
            self.session.run("stopping to receive", "STOP REPLICA IO_THREAD").await?;
            let statement = dialect::change_receiver(source, REPLICATION, password);
            match self.session.run_secretly(act, &statement, password).await {
                // Not by this server, or not now.
                Err(Failure::Said { .. }) => {}
                end => return end,
            }
        }
        self.session.run("stopping replication", "STOP REPLICA").await?;
        self.session.run_secretly(act, &dialect::change_source(source, REPLICATION, password), password).await
    }

    /// Follows a server elsewhere. It is named anew each time, with the password of now; what was received must have been applied
    /// before, since that throws it away.
    async fn follow_outside(&mut self, elsewhere: &Elsewhere) -> Result<(), Failure> {
        let server = self.server().await?;
        if !self.switch(&server, "super_read_only")? {
            let why = format!("pod {:?} takes writes, and must not follow another server: close it first", self.pod);
            return Err(Failure::Untried(why));
        }
        let rows = self.session.all("reading from whom it replicates", dialect::REPLICATION).await?;
        if of_default_channel(&rows).map_err(|why| self.strange(&why))?.is_some() {
            self.session.run("stopping to receive", "STOP REPLICA IO_THREAD").await?;
            // What it has received is read before what it has executed: what it executes in between was received before.
            let rows = self.session.all("reading what it received", dialect::REPLICATION).await?;
            let row = of_default_channel(&rows).map_err(|why| self.strange(&why))?;
            let received =
                row.map_or(Ok(GtidSet::new()), |row| row.set("Retrieved_Gtid_Set")).map_err(|why| self.strange(&why))?;
            let executed = self.server().await?.set("gtid_executed").map_err(|why| self.strange(&why))?;
            if !received.is_within(&executed) {
                self.session.run("starting to apply", "START REPLICA SQL_THREAD").await?;
                let why = format!("pod {:?} has received more than it applied; it is asked again when it has", self.pod);
                return Err(Failure::Untried(why));
            }
            self.session.run("stopping replication", "STOP REPLICA").await?;
        }
        self.let_clients_in().await?;
        let statement = dialect::change_source(&elsewhere.source, &elsewhere.user, &elsewhere.password);
        self.session.run_secretly("naming the source", &statement, &elsewhere.password).await?;
        let (semi_sync, variables) = self.semi_sync().await?;
        for enabled in [semi_sync.replica, semi_sync.source.map(|side| side.enabled)].into_iter().flatten() {
            if self.is_on(&variables, enabled)? {
                self.set(enabled, 0).await?;
            }
        }
        self.session.run("starting replication", "START REPLICA").await
    }

    /// What is acknowledged must be on the disk: a node that loses its power would have told of what it has not. Whoever wrote another
    /// value into my.cnf knows why.
    async fn write_through(&mut self) -> Result<(), Failure> {
        let row = self.session.first("reading who set an option", dialect::RELAY_LOG_SYNC).await?;
        if row.text("source").map_err(|why| self.strange(&why))? != dialect::SET_BY_NOBODY {
            return Ok(());
        }
        self.session.run("letting relay logs be written through", "SET GLOBAL sync_relay_log = 1").await
    }

    async fn catch_up(&mut self, set: &str, within: Duration) -> Result<(), Failure> {
        let rows = self.session.all("reading from whom it replicates", dialect::REPLICATION).await?;
        if of_default_channel(&rows).map_err(|why| self.strange(&why))?.is_some() {
            // A server that was started anew applies nothing by itself.
            self.session.run("applying what was received", "START REPLICA SQL_THREAD").await?;
        }
        // Zero would mean for ever.
        let seconds = within.as_secs_f64().max(0.001);
        let set = dialect::quote(set);
        let query = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET({set}, {seconds:.3}) AS late");
        let row = self.session.first("waiting for transactions", &query).await?;
        if !self.switch(&row, "late")? {
            return Ok(());
        }
        let query = format!("SELECT GTID_SUBTRACT({set}, @@GLOBAL.gtid_executed) AS missing");
        let row = self.session.first("reading what is missing", &query).await?;
        let missing: String =
            row.text("missing").map_err(|why| self.strange(&why))?.replace('\n', "").chars().take(256).collect();
        Err(Failure::Untried(format!("pod {:?} has not caught up within {seconds:.1} s; it lacks {missing}", self.pod)))
    }

    /// Replaces what it has by a copy. It may have nothing, or nothing beyond what was judged.
    async fn clone_from(&mut self, donor: &Source, over: Option<&str>) -> Result<(), Failure> {
        let server = self.server().await?;
        let executed = server.set("gtid_executed").map_err(|why| self.strange(&why))?;
        let judged: GtidSet = over.unwrap_or_default().parse().map_err(|error| self.strange(&format!("{error}")))?;
        if !self.switch(&server, "read_only")? {
            return Err(Failure::Untried(format!("pod {:?} is open to writes, and its data is not replaced", self.pod)));
        }
        if over.is_some() {
            self.session.run("stopping replication", "STOP REPLICA").await?;
        }
        if !executed.is_within(&judged) {
            let executed: String = executed.to_string().replace('\n', "").chars().take(256).collect();
            return Err(Failure::Untried(format!(
                "pod {:?} has executed {executed}: a copy of {:?} would throw these transactions away; delete its volume claim \
                 and the pod if nobody needs them",
                self.pod, donor.host
            )));
        }
        self.session.run("naming the donor", &dialect::name_donor(donor)).await?;
        if over.is_some() {
            // What it has must be dropped, which super_read_only forbids. Nobody else can write: it stays read_only, and lets nobody in.
            self.session.run("keeping clients out", "SET GLOBAL offline_mode = 1").await?;
            self.session.run("letting its data go", "SET GLOBAL super_read_only = 0").await?;
        }
        let password = &self.passwords.clone_donor;
        let statement = dialect::clone(donor, CLONE_DONOR, password);
        match self.session.run_secretly("copying the donor's data", &statement, password).await {
            // The data is there. The server cannot start itself again, so it stops; who supervises it starts it.
            Err(failure) if failure.code() == Some(code::NO_SUPERVISOR) => Ok(()),
            Err(failure) if over.is_some() => {
                self.session.run("closing the server to writes", "SET GLOBAL super_read_only = 1").await?;
                self.let_clients_in().await?;
                Err(failure)
            }
            end => end,
        }
    }

    async fn server(&mut self) -> Result<Fields, Failure> {
        self.session.first("reading the server's state", dialect::SERVER).await
    }

    async fn semi_sync(&mut self) -> Result<(SemiSync, Variables), Failure> {
        let rows = self.session.all("reading who waits for whom", dialect::SEMI_SYNC).await?;
        let variables = Variables::of(&rows).map_err(|why| self.strange(&why))?;
        Ok((SemiSync::of(&variables), variables))
    }

    /// Sets a global variable, whose name is one of ours.
    async fn set(&mut self, name: &'static str, value: u32) -> Result<(), Failure> {
        let act = "setting up who waits for whom";
        self.session.run(act, &format!("SET GLOBAL {name} = {value}")).await
    }

    fn switch(&self, row: &Fields, name: &str) -> Result<bool, Failure> {
        row.switch(name).map_err(|why| self.strange(&why))
    }

    fn is_on(&self, variables: &Variables, name: &str) -> Result<bool, Failure> {
        variables.is_on(name).map_err(|why| self.strange(&why))
    }

    fn strange(&self, why: &str) -> Failure {
        Failure::Untried(format!("what the server of pod {:?} said cannot be understood: {why}", self.pod))
    }

    fn no_plugin(&self, name: &str) -> Failure {
        Failure::Untried(format!("the server of pod {:?} has no plugin {name:?}: its agent did not finish its work", self.pod))
    }
}

/// Whether a server applies what it received, and knows by itself where it is.
fn applies_by_itself(row: &Fields) -> Result<bool, String> {
    Ok(row.text("Replica_SQL_Running")? == "Yes" && row.text("Auto_Position")? == "1")
}

/// Whether a server follows this source as it should. To name it anew throws away what was received and not executed. A source that
/// refuses the password has to be named anew.
fn is_source(row: &Fields, source: &Source) -> Result<bool, String> {
    let port = source.port.to_string();
    Ok(row.optional("Source_Host")? == Some(source.host.as_str())
        && row.text("Source_Port")? == port
        && row.optional("Source_User")? == Some(REPLICATION)
        && row.text("Auto_Position")? == "1"
        && row.text("Last_IO_Errno")? != code::ACCESS_DENIED.to_string())
}
