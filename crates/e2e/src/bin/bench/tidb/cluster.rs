//! One TiDB cluster of the bench: a simulated PD with its stores, and the pods that they run in.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_api::tidb::Component;
use windlass_core::ordinals::Ordinal;
use windlass_kinds::tidb::build::Names;
use windlass_kinds::tidb::facts::End;
use windlass_kinds::tidb::simulation::SimulatedPd;

use super::answers::{self, Jitter, Reply, Request};

/// Where TiKV serves, as its address in PD says.
const STORE_PORT: u16 = 20160;
/// How many regions a store gives away in a second.
const SPEED: u64 = 100;

/// A server: what it is, and which one of its kind.
pub(super) type Who = (Component, Ordinal);

/// What runs in a pod.
#[derive(Default)]
struct Process {
    alive: bool,
    /// What it is in PD: that is on its volume, and stays when it ends.
    is: Option<u64>,
}

/// One cluster.
pub(super) struct Cluster {
    namespace: String,
    name: String,
    pd: SimulatedPd,
    processes: BTreeMap<Who, Process>,
}

impl Cluster {
    pub(super) fn new(namespace: &str, name: &str, now: Timestamp) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self { namespace, name, pd: SimulatedPd::new(now), processes: BTreeMap::new() }
    }

    /// A server starts, with what it was.
    pub(super) fn start(&mut self, who: Who, now: Timestamp) {
        self.pd.pass(now);
        self.processes.entry(who).or_default().alive = true;
        self.join();
    }

    /// A server ends.
    pub(super) fn stop(&mut self, who: Who, now: Timestamp) {
        self.pd.pass(now);
        let Some(process) = self.processes.get_mut(&who) else { return };
        process.alive = false;
        match (who.0, process.is) {
            (Component::Pd, Some(id)) => self.pd.stop_member(id),
            (Component::Tikv, Some(id)) => self.pd.stop_store(id),
            _ => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processes.values().all(|process| !process.alive)
    }

    pub(super) fn complaints(&self) -> &[String] {
        &self.pd.complaints
    }

    /// Whoever runs and is not known to PD asks to be let in: members of PD first, as stores need a PD that serves.
    fn join(&mut self) {
        let names = Names::new(&self.name, &self.namespace, None);
        for component in [Component::Pd, Component::Tikv] {
            for ((_, ordinal), process) in self.processes.iter_mut().filter(|((is, _), it)| *is == component && it.alive) {
                let joined = if component == Component::Pd {
                    let known = process.is.and_then(|id| self.pd.members.get(&id));
                    if known.is_some_and(|member| member.alive) {
                        continue;
                    }
                    self.pd.start_member(&names.pd_member(*ordinal), process.is)
                } else {
                    let known = process.is.and_then(|id| self.pd.stores.get(&id));
                    if known.is_some_and(|store| store.alive) {
                        continue;
                    }
                    let address = format!("{}:{STORE_PORT}", names.host(component, *ordinal));
                    self.pd.start_store(&address, false, SPEED, process.is)
                };
                process.is = joined.or(process.is);
            }
        }
    }

    /// What a server answers; nothing when it does not know what it is asked.
    pub(super) fn answer(&mut self, who: Who, request: Request<'_>, jitter: Jitter, now: Timestamp) -> Option<Reply> {
        self.pd.pass(now);
        self.join();
        match (who.0, request.method, request.path) {
            (Component::Tidb, "GET", "/status") => {
                Some(Reply::text(r#"{"connections":0,"version":"8.0.11-TiDB-v8.5.0","git_hash":""}"#))
            }
            (Component::Tikv, "GET", "/metrics") => {
                let store = self.processes.get(&who).and_then(|it| self.pd.stores.get(&it.is?));
                let (leaders, regions) = store.map_or((0, 0), |it| (it.leaders, it.regions));
                Some(Reply::text(answers::metrics(leaders + jitter.leaders, regions + jitter.regions)))
            }
            (Component::Pd, "GET", "/pd/api/v2/ready") => Some(Reply::text("{}")),
            (Component::Pd, method, path) => self.of_pd(method, path.strip_prefix("/pd/api/v1/")?, request, jitter),
            _ => None,
        }
    }

    fn of_pd(&mut self, method: &str, path: &str, request: Request<'_>, jitter: Jitter) -> Option<Reply> {
        let Some(seen) = self.pd.look() else { return Some(Reply::no(503, "no leader")) };
        if method == "GET" {
            return answers::asked(path, &seen, jitter);
        }
        let task = answers::task(request, path, &seen)?;
        Some(match self.pd.act(self.pd.cluster, &task) {
            End::Failed { why } | End::Unknown { why } => Reply::no(500, &why),
            End::Done | End::Drains { .. } => Reply::text("\"ok\""),
        })
    }
}
