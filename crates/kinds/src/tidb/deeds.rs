//! What can be asked of a TiDB cluster, and what can be done to it, as values.
//!
//! Nearly everything is said to PD, by HTTP; the rest to one server of a component. Each task is one change that can be read back
//! afterwards, so that a task whose end nobody heard of is simply decided anew. What a task may touch is said here; whether it may
//! be done now is decided elsewhere.
//!
//! All paths below begin with `/pd/api/v1` unless they name another beginning.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use jiff::Timestamp;
use serde::Serialize;
use strum::IntoStaticStr;
use windlass_core::step::Action;

use super::component::Component;

/// One server of a cluster: where it is reached, and which one it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Server {
    /// What it is. The port is that component's [`status_port`](super::component::status_port).
    pub component: Component,
    /// The namespace.
    pub namespace: String,
    /// The Secret (`ca.crt`, `tls.crt`, `tls.key`) with which the operator proves who it is, where the cluster has TLS. With one it is
    /// `https`, without it `http`.
    pub certificate: Option<String>,
    /// The pod.
    pub pod: String,
    /// Its UID: another pod of the same name is another process on perhaps another volume.
    pub pod_uid: String,
    /// The id of the server's container: after a restart nothing of what it said is known.
    pub process: String,
    /// Its host name, `POD.CLUSTER-COMPONENT-peer.NAMESPACE.svc`. Certificates speak of it, and so does the `Host` header.
    pub host: String,
    /// The address of the pod, to which the connection is made: names need not be resolved where the operator runs.
    pub address: String,
}

/// PD as a whole. Every member answers for all of them: it asks the leader.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pd {
    /// The members that run, those that are ready first. They are tried in this order until one answers.
    pub servers: Vec<Server>,
    /// The id of the cluster, once it is on record. What belongs to another cluster is not touched: before a task is sent, the member
    /// it is sent to was heard (`GET /cluster`) to have this id.
    pub cluster: Option<u64>,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// One round at PD, everything from one member, in this order:
    ///
    /// | part of [`PdSeen`](super::answers::PdSeen) | call |
    /// |---|---|
    /// | `cluster` | `GET /cluster`, `id`: without it nothing is known, and the next member is tried |
    /// | `health` | `GET /health` |
    /// | `members`, `leader` | `GET /members`; `leader` is missing while there is none |
    /// | `config` | `GET /config`, `replication` |
    /// | `tiflash_copies` | `GET /config/rules/group/tiflash`, the largest `count`; 412 (rules are off), 404 and an empty list are 0 |
    /// | `stores` | `GET /stores?state=0&state=1&state=2`, in one call, so that each store is in one state; an answer that ends with `TiKV cluster not bootstrapped, please start TiKV first` is [`Stores::NotBootstrapped`](super::answers::Stores) |
    /// | `evicting` | `GET /schedulers`; where it lists `evict-leader-scheduler` without a number, `GET /scheduler-config/evict-leader-scheduler/list`, the keys of `store-id-ranges` |
    ///
    /// Each part but the first can be unknown by itself. A state or a number that cannot be read makes its part unknown.
    Pd {
        /// Whom.
        pd: Pd,
        /// When it was asked: what was done later does not show in the answer.
        asked: Timestamp,
    },
    /// What a server says of itself; see [`Said`](super::answers::Said) for the calls.
    Look {
        /// Which one.
        server: Server,
        /// When it was asked.
        asked: Timestamp,
    },
    /// The labels of the node that a server's pod is on, of Kubernetes: `spec.nodeName` of the pod, and then the node.
    Node {
        /// Which server.
        server: Server,
        /// When it was asked.
        asked: Timestamp,
    },
}

impl Probe {
    /// Who is asked: the same is not asked twice at once.
    pub(super) fn target(&self) -> String {
        match self {
            Self::Pd { .. } => "PD".to_owned(),
            Self::Look { server, .. } => server.pod.clone(),
            Self::Node { server, .. } => format!("node of {}", server.pod),
        }
    }
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
pub enum Task {
    /// Let a store give its leaders to others: `POST /schedulers {"name":"evict-leader-scheduler","store_id":N}`. Done as well when
    /// the scheduler is there already.
    EvictLeaders {
        /// Which store.
        store: u64,
    },
    /// Let a store have leaders again: `DELETE /schedulers/evict-leader-scheduler-N`. Done as well when there is no such scheduler.
    StopEvicting {
        /// Which store.
        store: u64,
    },
    /// Let a store give away all that it has, and leave for good: `DELETE /store/N`. `GET /store/N` must have shown this very address
    /// right before, else nothing is sent and the task failed. Done as well when the store is on its way out already, has left, or is not
    /// known to PD at all (404).
    DeleteStore {
        /// Which store.
        store: u64,
        /// Its address, `HOST:PORT`.
        address: String,
    },
    /// Let a store stay that was on its way out: `POST /store/N/state?state=Up`, after the same look at its address. One that has left
    /// already (410, or state Tombstone) cannot: that is a failure.
    RestoreStore {
        /// Which store.
        store: u64,
        /// Its address.
        address: String,
    },
    /// Say where a store is: `POST /store/N/label` with these as a map, after the same look at its address.
    SetStoreLabels {
        /// Which store.
        store: u64,
        /// Its address.
        address: String,
        /// The labels that change.
        labels: BTreeMap<String, String>,
    },
    /// Let another member lead PD: `POST /leader/transfer/NAME`.
    TransferPdLeader {
        /// The name of the member.
        to: String,
    },
    /// Let a member leave PD for good: `DELETE /members/id/ID`. `GET /members` must have shown it under this very name right before. Done
    /// as well when nobody has this id any more.
    DeletePdMember {
        /// Its id.
        id: u64,
        /// Its name.
        name: String,
    },
    /// Let PD place copies by rules, as TiFlash needs it: `POST /config/replicate {"enable-placement-rules":"true"}`.
    EnablePlacementRules,
    /// Let another capture own the changefeeds: `POST /api/v1/owner/resign` at the server. Done as well where it is not known (404).
    ResignTiCdcOwner,
    /// Let a capture give its tables to others: `PUT /api/v1/captures/drain {"capture_id":ID}` at the server that owns the changefeeds.
    /// Its answer tells how many tables are left ([`End::Drains`](super::facts::End)). Where it is not known (404) nothing is left.
    DrainCapture {
        /// Which one.
        capture: String,
    },
    /// Let a pump give away what it has, and leave: `PUT /state/NODE/close` at the server itself.
    PumpOffline {
        /// Its id.
        node: String,
    },
}

/// Where a task is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum At {
    /// To PD.
    Pd(Pd),
    /// To one server.
    Server(Server),
}

/// A task, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deed {
    /// Where it is sent.
    pub at: At,
    /// What is done.
    pub task: Task,
    /// The member that it is about: its pod, whether or not that runs, or PD. Two tasks about one member never run at once.
    pub about: String,
    /// What that member is known by for ever: `CLUSTER/STORE` or `CLUSTER/MEMBER` in PD, else the UID of its pod.
    pub identity: String,
}

impl Action for Deed {
    fn target(&self) -> &str {
        &self.about
    }

    fn target_uid(&self) -> &str {
        &self.identity
    }

    fn irreversible(&self) -> bool {
        // A store can be called back until all that it had is elsewhere; when that is, PD decides and tells nobody beforehand. And whoever
        // evicts leaders has to know, also after a restart, that it was he: else nobody would ever end it.
        matches!(self.task, Task::DeleteStore { .. } | Task::DeletePdMember { .. } | Task::EvictLeaders { .. })
    }

    fn name(&self) -> &'static str {
        (&self.task).into()
    }
}

impl Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = &self.about;
        match &self.task {
            Task::EvictLeaders { store } => write!(f, "evict the leaders of store {store} ({about})"),
            Task::StopEvicting { store } => write!(f, "let store {store} ({about}) have leaders again"),
            Task::DeleteStore { store, .. } => write!(f, "delete store {store} ({about}) in PD"),
            Task::RestoreStore { store, .. } => write!(f, "let store {store} ({about}) stay in PD"),
            Task::SetStoreLabels { store, .. } => write!(f, "label store {store} ({about}) in PD"),
            Task::TransferPdLeader { to } => write!(f, "let {to} lead PD instead of {about}"),
            Task::DeletePdMember { id, name } => write!(f, "delete member {name} ({id}) of PD"),
            Task::EnablePlacementRules => write!(f, "enable placement rules in PD"),
            Task::ResignTiCdcOwner => write!(f, "let another capture than {about} own the changefeeds"),
            Task::DrainCapture { .. } => write!(f, "drain the capture of {about}"),
            Task::PumpOffline { .. } => write!(f, "take pump {about} offline"),
        }
    }
}
