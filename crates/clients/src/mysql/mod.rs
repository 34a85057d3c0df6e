//! Asks MySQL servers what they have, and does to them what was decided.
//!
//! Each look and each task goes to the administrative port of one server. Three ends of a task are told apart: the server said how it
//! ended, nobody knows, and it still runs. A task that we stop waiting for goes on in the server, and its connection is kept, so that
//! its end is heard of. Nothing here decides whether a task is right. It refuses only what would throw data away or let two histories
//! begin on a server, and then the server has not been touched.

mod agent;
mod connections;
mod dialect;
mod outside;
mod passwords;
mod rows;
mod session;
mod surplus;
mod tasks;
mod term;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::Semaphore;
use windlass_core::gate::Permit;
use windlass_core::lane::Clustering;
use windlass_kinds::mysql::MySql;
use windlass_kinds::mysql::deeds::{Deed, Place, Probe, Task};
use windlass_kinds::mysql::facts::{End, Fact, News, Silence, SourceRead};
use windlass_kinds::mysql::instance::Known;

use crate::guard::Guard;
use crate::kept::{FORGOTTEN, Kept, Spot};
use crate::members::{Acted, Members};
use crate::papers::{NoRegistry, Registry};
use crate::pods::same_process;
use passwords::{Passwords, Vault};
use session::{Failure, Session, Shut};
use term::Term;

/// The administrative port of each server.
const ADMIN_PORT: u16 = 33062;
/// How long a look may take.
const LOOK: Duration = Duration::from_secs(3);
/// How long a task is waited for, besides what it says itself.
const TASK: Duration = Duration::from_secs(10);
/// How many looks and tasks are under way at once, over all clusters.
const AT_ONCE: usize = 256;

/// Reaches servers.
#[derive(Clone)]
pub struct Servers {
    client: Client,
    vault: Arc<Vault>,
    kept: Arc<Kept<Session>>,
    turns: Arc<Semaphore>,
    port: Arc<dyn Fn(&str) -> u16 + Send + Sync>,
    agent_port: Arc<dyn Fn(&str) -> u16 + Send + Sync>,
    registry: Arc<dyn Registry>,
    term: Term,
}

impl Members<MySql> for Servers {
    async fn probe(&self, probe: Probe) -> Fact {
        match probe {
            Probe::Look(place) => self.look(&place).await,
            Probe::Watch(place) => self.watch(&place).await,
            Probe::Source { place, secret } => self.read_source(place, secret).await,
        }
    }

    async fn act(&self, _permit: &Permit<Clustering>, action: Deed) -> Acted<MySql> {
        let (fact, rest) = self.carry_out(action).await;
        Acted { fact, rest }
    }
}

impl Servers {
    /// With this client, which reads the Secrets with the passwords.
    pub fn new(client: Client) -> Self {
        Self::with_ports(client, |_| ADMIN_PORT)
    }

    /// For tests: servers on one machine have a port each, by their address.
    #[doc(hidden)]
    pub fn with_ports(client: Client, port: impl Fn(&str) -> u16 + Send + Sync + 'static) -> Self {
        Self {
            vault: Arc::new(Vault::new(client.clone())),
            kept: Arc::new(Kept::new()),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            port: Arc::new(port),
            agent_port: Arc::new(|_| agent::PORT),
            registry: Arc::new(NoRegistry),
            term: Term::new(),
            client,
        }
    }

    /// Changes servers only while this says that it may: it is asked right before each statement.
    pub fn guarded(self, guard: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { term: self.term.guarded(Guard::new(guard)), ..self }
    }

    /// With papers to show to agents.
    pub fn with_registry(self, registry: Arc<dyn Registry>) -> Self {
        Self { registry, ..self }
    }

    /// For tests: agents on one machine have a port each, by their address.
    #[doc(hidden)]
    pub fn with_agent_ports(self, port: impl Fn(&str) -> u16 + Send + Sync + 'static) -> Self {
        Self { agent_port: Arc::new(port), ..self }
    }

    /// Reads where the server elsewhere is that a cluster follows.
    async fn read_source(&self, place: Place, secret: String) -> Fact {
        let read = outside::read(&self.client, &place.namespace, &secret).await.map(|elsewhere| elsewhere.at());
        let cluster = place.pod.rsplit_once('-').map_or("", |(set, _)| set).trim_start_matches("moco-").to_owned();
        let papers = self.registry.papers(&place.namespace, &cluster).await;
        let authority = papers.ok().map(|papers| papers.authority.clone());
        Fact { place, news: News::Source(SourceRead { secret, read, authority }) }
    }

    /// Asks a server everything that decisions rest on.
    pub async fn look(&self, place: &Place) -> Fact {
        let Ok(_turn) = self.turns.acquire().await else {
            let news = News::Silent { how: Silence::Refused, why: "the operator is stopping".to_owned() };
            return Fact { place: place.clone(), news };
        };
        let asked = match tokio::time::timeout(LOOK, self.ask(place)).await {
            Ok(Ok(known)) => Ok(known),
            Ok(Err(failure)) => Err((failure.silence(), failure.to_string())),
            // The connection is gone with it: an answer that comes late would be taken for that to the next question.
            Err(_) => Err((
                None,
                format!(
                    "the server of pod {:?} did not tell its state within {} s: it hangs, or its node or the network does",
                    place.pod,
                    LOOK.as_secs()
                ),
            )),
        };
        let news = match asked {
            Ok(known) => News::Seen(Box::new(known)),
            Err((Some(how), why)) => News::Silent { how, why },
            Err((None, why)) => News::Silent { how: watch::knock(&place.address, (self.port)(&place.address)).await, why },
        };
        Fact { place: place.clone(), news }
    }

    async fn ask(&self, place: &Place) -> Result<Known, Failure> {
        let kept = match self.kept.take(&spot(place)) {
            // One that was closed while nobody used it says nothing about the server.
            Some(mut session) => session.look().await.ok().map(|answers| (answers, session)),
            None => None,
        };
        let (answers, session) = if let Some(kept) = kept {
            kept
        } else {
            let (mut session, _) = self.log_in(place).await?;
            (session.look().await?, session)
        };
        self.kept.keep(spot(place), session, FORGOTTEN);
        let strange =
            |why| Failure::Untried(format!("what the server of pod {:?} said cannot be understood: {why}", place.pod));
        answers.known().map_err(strange)
    }

    /// Does something to a server. Besides what came of it, there comes back the wait for the end of a task that still runs.
    pub async fn carry_out(&self, deed: Deed) -> (Fact, Option<BoxFuture<'static, Fact>>) {
        let Deed { place, task } = deed;
        let ended = |place, task, end| Fact { place, news: News::Ended { task, end } };
        let Ok(_turn) = self.turns.acquire().await else {
            let why = "the operator is stopping".to_owned();
            return (ended(place, task, End::Failed { why }), None);
        };
        let Place { namespace, pod, pod_uid, process, .. } = &place;
        if let Err(why) = same_process(&self.client, namespace, pod, pod_uid, process).await {
            return (ended(place, task, End::Failed { why }), None);
        }
        let limit = limit(&task);
        let (servers, there, what) = (self.clone(), place.clone(), task.clone());
        let mut end = async move {
            match tasks::run(&servers, &there, &what).await {
                Ok(()) => End::Done,
                Err(failure) => failure.into_end(),
            }
        }
        .boxed();
        if let Ok(end) = tokio::time::timeout(limit, &mut end).await {
            return (ended(place, task, end), None);
        }
        let fact = ended(place.clone(), task.clone(), End::StillRunning);
        (fact, Some(end.map(move |end| ended(place, task, end)).boxed()))
    }

    /// Opens a connection, and reads the passwords again when the server does not take the one that we remember.
    async fn log_in(&self, place: &Place) -> Result<(Session, Arc<Passwords>), Failure> {
        let port = (self.port)(&place.address);
        let remembered = self.vault.of(place).await.map_err(Failure::Untried)?;
        match Session::open(place, port, &remembered.admin, &self.term).await {
            Ok(session) => Ok((session, remembered)),
            Err(Shut::Refused(why)) => {
                let fresh = self.vault.read(place).await.map_err(Failure::Untried)?;
                if fresh == remembered {
                    return Err(Failure::Untried(why));
                }
                Ok((Session::open(place, port, &fresh.admin, &self.term).await?, fresh))
            }
            Err(shut) => Err(shut.into()),
        }
    }
}

/// The process that a place is.
fn spot(place: &Place) -> Spot {
    let Place { namespace, pod, pod_uid, process, address, .. } = place;
    Spot { server: format!("{namespace}/{pod}"), process: format!("{pod_uid} {process} {address}") }
}

/// How long we wait for a task. It goes on after that.
fn limit(task: &Task) -> Duration {
    match task {
        Task::CloseToWrites { patience } => TASK + *patience,
        Task::CatchUp { within, .. } => TASK + *within,
        Task::OpenToWrites
        | Task::AwaitAcknowledgements { .. }
        | Task::Follow { .. }
        | Task::StopReceiving
        | Task::StopAcknowledging
        | Task::Depose
        | Task::Save { .. }
        | Task::Replace { .. }
        | Task::CloneFromOutside { .. }
        | Task::FollowOutside { .. }
        | Task::Clone { .. } => TASK,
    }
}
