//! Asks PD and the servers of TiDB clusters, and does to them what was decided.
//!
//! Nothing here decides whether a task is right. It refuses only what would touch another cluster, another store, another member or
//! another process than the one that was meant; and then nothing was sent.

mod looks;
mod tasks;
mod vault;

use std::sync::Arc;

use kube::Client;
use tokio::sync::Semaphore;
use windlass_core::gate::Permit;
use windlass_core::lane::Clustering;
use windlass_core::step::Action as _;
use windlass_kinds::tidb::Tidb;
use windlass_kinds::tidb::answers::{PdSeen, Read, Said};
use windlass_kinds::tidb::component::status_port;
use windlass_kinds::tidb::deeds::{self, At, Deed, Probe, Server};
use windlass_kinds::tidb::facts::{End, Fact};

use crate::guard::Guard;
use crate::http::{Failure, Http, Peer};
use crate::members::{Acted, Members};
use crate::pd::Pd;
use crate::pods::{node_labels, same_process};
use looks::read;
use vault::Vault;
pub use vault::read_papers;

/// How many questions and tasks are under way at once, over all clusters.
const AT_ONCE: usize = 256;

/// Reaches PD and servers.
#[derive(Clone)]
pub struct Servers {
    client: Client,
    http: Http,
    vault: Arc<Vault>,
    turns: Arc<Semaphore>,
    port: Arc<dyn Fn(&Server) -> u16 + Send + Sync>,
}

impl Servers {
    /// With this client, which reads the Secrets with the certificates.
    pub fn new(client: Client) -> Self {
        Self {
            http: Http::default(),
            vault: Arc::new(Vault::new(client.clone())),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            port: Arc::new(|server| status_port(server.component)),
            client,
        }
    }

    /// Changes something only while this says that it may: it is asked right before each call that does.
    pub fn guarded(self, guard: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { http: self.http.guarded(Guard::new(guard)), ..self }
    }

    /// For tests: servers on one machine have a port each.
    #[doc(hidden)]
    pub fn with_ports(self, port: impl Fn(&Server) -> u16 + Send + Sync + 'static) -> Self {
        Self { port: Arc::new(port), ..self }
    }

    /// Asks.
    pub async fn ask(&self, probe: Probe) -> Fact {
        let turn = self.turns.acquire().await;
        let stopping = || "the operator is stopping".to_owned();
        match probe {
            Probe::Pd { pd, asked } => {
                let answer = if turn.is_ok() { self.round(&pd).await } else { Err(stopping()) };
                Fact::Pd { asked, answer: answer.map(Box::new) }
            }
            Probe::Look { server, asked } => {
                let answer = if turn.is_ok() { read(self.look(&server).await) } else { Err(stopping()) };
                Fact::Server { server: Box::new(server), asked, answer }
            }
            Probe::Node { server, asked } => {
                let answer = if turn.is_ok() {
                    node_labels(&self.client, &server.namespace, &server.pod, &server.pod_uid).await
                } else {
                    Err(stopping())
                };
                Fact::Node { server: Box::new(server), asked, answer }
            }
        }
    }

    /// Does something.
    pub async fn carry_out(&self, deed: Deed) -> Fact {
        let end = match self.turns.acquire().await {
            Err(_) => End::Failed { why: "the operator is stopping".to_owned() },
            Ok(_turn) => match &deed.at {
                At::Pd(pd) => self.tell_pd(pd, &deed).await,
                At::Server(server) => self.tell_server(server, &deed).await,
            },
        };
        Fact::Ended { deed: Box::new(deed), end }
    }

    /// How a server is reached.
    async fn peer(&self, server: &Server) -> Result<Peer, Failure> {
        let mut peer = Peer {
            host: server.host.clone(),
            address: server.address.clone(),
            port: (self.port)(server),
            process: format!("{} {}", server.pod_uid, server.process),
            tls: None,
        };
        if let Some(secret) = &server.certificate {
            let untried = |why| Failure::Untried { act: "proving who we are", host: server.host.clone(), why };
            peer.tls = Some(self.vault.of(&server.namespace, secret).await.map_err(untried)?);
        }
        Ok(peer)
    }

    /// A silent server may not believe us any more.
    fn doubt(&self, server: &Server, failure: &Failure) {
        if let Some(secret) = server.certificate.as_ref().filter(|_| failure.is_silence()) {
            self.vault.doubt(&server.namespace, secret);
        }
    }

    async fn look(&self, server: &Server) -> Result<Said, Failure> {
        let peer = self.peer(server).await?;
        let said = looks::look(&self.http, &peer, server.component, &server.pod).await;
        said.inspect_err(|failure| self.doubt(server, failure))
    }

    /// The first member that answers for PD, with the id of its cluster; or why there is none.
    async fn speaker<'a>(&self, pd: &'a deeds::Pd) -> Result<(&'a Server, Peer, u64), String> {
        let mut silent = Vec::new();
        for server in &pd.servers {
            let asked = async {
                let peer = self.peer(server).await?;
                let cluster = Pd::new(&self.http, &peer).cluster().await?;
                Ok::<_, Failure>((peer, cluster))
            };
            match asked.await {
                Ok((peer, cluster)) => return Ok((server, peer, cluster)),
                Err(failure) => {
                    self.doubt(server, &failure);
                    silent.push(failure.to_string());
                }
            }
        }
        if silent.is_empty() {
            return Err("no member of PD runs".to_owned());
        }
        Err(silent.join("; "))
    }

    /// One round at PD.
    async fn round(&self, pd: &deeds::Pd) -> Result<(Server, PdSeen), String> {
        let (server, peer, cluster) = self.speaker(pd).await?;
        let pd = Pd::new(&self.http, &peer);
        let mut round = Round::default();
        let health = round.ask(pd.health()).await;
        let membership = round.ask(pd.members()).await;
        let seen = PdSeen {
            cluster,
            health,
            leader: membership.as_ref().map(|it| it.leader).map_err(String::clone),
            members: membership.map(|it| it.members),
            config: round.ask(pd.config()).await,
            tiflash_copies: round.ask(pd.tiflash_copies()).await,
            stores: round.ask(pd.stores()).await,
            evicting: round.ask(pd.evicting()).await,
        };
        Ok((server.clone(), seen))
    }

    /// A task at PD, sent to a member that was just heard to be of the right cluster.
    async fn tell_pd(&self, pd: &deeds::Pd, deed: &Deed) -> End {
        let (server, peer, cluster) = match self.speaker(pd).await {
            Ok(speaker) => speaker,
            Err(why) => return End::Failed { why },
        };
        match pd.cluster {
            Some(known) if known != cluster => {
                let why = format!(
                    "{} is of cluster {cluster}, and this is about cluster {known}: nothing was sent to it",
                    server.pod
                );
                return End::Failed { why };
            }
            None if deed.irreversible() => {
                let why = "the id of the cluster is not on record, so nothing was sent that cannot be undone".to_owned();
                return End::Failed { why };
            }
            _ => {}
        }
        tasks::at_pd(Pd::new(&self.http, &peer), &deed.task).await.unwrap_or_else(|| misplaced(deed))
    }

    /// A task at another server, which must still be the one that was meant.
    async fn tell_server(&self, server: &Server, deed: &Deed) -> End {
        let Server { namespace, pod, pod_uid, process, .. } = server;
        if let Err(why) = same_process(&self.client, namespace, pod, pod_uid, process).await {
            return End::Failed { why };
        }
        match self.peer(server).await {
            Ok(peer) => tasks::at_server(&self.http, &peer, &deed.task).await.unwrap_or_else(|| misplaced(deed)),
            Err(failure) => tasks::failed(&failure),
        }
    }
}

impl Members<Tidb> for Servers {
    async fn probe(&self, probe: Probe) -> Fact {
        self.ask(probe).await
    }

    async fn act(&self, _permit: &Permit<Clustering>, action: Deed) -> Acted<Tidb> {
        Acted::all(self.carry_out(action).await)
    }
}

/// Question after question to one member. When it falls silent, it is not waited for again and again.
#[derive(Default)]
struct Round {
    silence: Option<String>,
}

impl Round {
    async fn ask<T>(&mut self, question: impl Future<Output = Result<T, Failure>>) -> Read<T> {
        if let Some(why) = &self.silence {
            return Err(why.clone());
        }
        let answer = question.await;
        if let Err(failure) = &answer
            && failure.is_silence()
        {
            self.silence = Some(failure.to_string());
        }
        read(answer)
    }
}

fn misplaced(deed: &Deed) -> End {
    End::Failed { why: format!("{deed}: this cannot be asked of whom it is sent to; this is a bug in Windlass") }
}
