//! What PD and the servers can say, and by which calls it is asked.
//!
//! Every part that can fail by itself can be unknown by itself.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

/// A part of an answer, or why it is not known.
pub type Read<T> = Result<T, String>;

/// What PD says in one round. See [`Probe::Pd`](super::deeds::Probe) for the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdSeen {
    /// The id of the cluster.
    pub cluster: u64,
    /// The health of the members, by their ids.
    pub health: Read<BTreeMap<u64, bool>>,
    /// The members.
    pub members: Read<Vec<PdMember>>,
    /// The id of the member that leads; none while nobody does.
    pub leader: Read<Option<u64>>,
    /// How copies are placed.
    pub config: Read<PdConfig>,
    /// How many copies TiFlash has to hold of anything: so many stores must stay.
    pub tiflash_copies: Read<u16>,
    /// The stores, those that have left included.
    pub stores: Read<Stores>,
    /// The stores whose leaders are evicted.
    pub evicting: Read<BTreeSet<u64>>,
}

/// A member of PD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdMember {
    /// Its id.
    pub id: u64,
    /// Its name: that of its pod, or that pod's host name. Empty before it has started.
    pub name: String,
    /// Where clients reach it: the first of `client_urls`, or an empty text.
    pub client_url: String,
}

/// How copies are placed: `replication` of PD's configuration. PD writes truth values as text, and the list with commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdConfig {
    /// `max-replicas`: so many copies of everything, each on another store.
    pub max_replicas: u16,
    /// `location-labels`
    pub location_labels: Vec<String>,
    /// `enable-placement-rules`
    pub placement_rules: bool,
}

/// The stores of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stores {
    /// No store has ever joined.
    NotBootstrapped,
    /// All of them, by id.
    Listed(BTreeMap<u64, Store>),
}

/// A store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its id. It is never given to another one.
    pub id: u64,
    /// Its address, `HOST:PORT`.
    pub address: String,
    /// How it is.
    pub state: StoreState,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// How many regions it leads.
    pub leaders: u64,
    /// How many regions it holds.
    pub regions: u64,
    /// When its server started (`start_ts`), as far as PD knows it.
    pub started: Option<Timestamp>,
    /// When it was heard last (`last_heartbeat_ts`), as far as PD knows it.
    pub heard: Option<Timestamp>,
}

/// How a store is: `state_name`.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumString, strum::IntoStaticStr, strum::EnumIter,
)]
pub enum StoreState {
    /// It serves.
    Up,
    /// It was not heard for some seconds.
    Disconnected,
    /// It was not heard for so long that PD makes other copies of what it has.
    Down,
    /// It gives away what it has.
    Offline,
    /// It has left for good. Nothing is on it any more.
    Tombstone,
}

/// What a server says of itself. `GET`, at its own port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// `/pd/api/v2/ready`: 200, or 404 of an older one, is ready.
    Pd {
        /// Whether it has all that it needs to lead.
        ready: bool,
    },
    /// `/metrics`, `tikv_raftstore_region_count{type="leader"}`.
    Tikv {
        /// How many regions it leads.
        leaders: u64,
    },
    /// `/tiflash/store-status`, a word.
    Tiflash {
        /// Whether the word is `Running`.
        running: bool,
    },
    /// `/status`: 200 is healthy; anything else is no answer.
    Tidb,
    /// `/status` and `/api/v1/captures`.
    Ticdc {
        /// The id of its capture.
        capture: String,
        /// Its version.
        version: String,
        /// Whether it owns the changefeeds.
        is_owner: bool,
        /// Whether it is among the captures.
        listed: Read<bool>,
    },
    /// `/api/debug/health`: 200 is healthy; anything else is no answer.
    Tiproxy {
        /// What it says, as it is.
        info: String,
    },
    /// `/status`, the one among all pumps whose `host` begins with the name of the pod.
    Pump {
        /// Its id.
        node: String,
        /// Its host and port.
        host: String,
        /// How it is: `online`, `pausing`, `paused`, `closing` or `offline`.
        state: String,
    },
}

impl Said {
    /// What it is about, for metrics.
    pub(super) fn about(&self) -> &'static str {
        match self {
            Self::Pd { .. } => "LookPd",
            Self::Tikv { .. } => "LookTikv",
            Self::Tiflash { .. } => "LookTiflash",
            Self::Tidb => "LookTidb",
            Self::Ticdc { .. } => "LookTicdc",
            Self::Tiproxy { .. } => "LookTiproxy",
            Self::Pump { .. } => "LookPump",
        }
    }
}
