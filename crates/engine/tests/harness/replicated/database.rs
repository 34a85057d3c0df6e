//! The truth of a synchronously replicated database: who runs, who belongs to the primary component, what is on each volume, and
//! which rows clients were told are safe.
//!
//! It judges: a second component, or a seed that lacks an acknowledged row, is written down and never forgotten.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What is on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) history: u32,
    pub(super) rows: u64,
}

/// A running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Secondary,
    /// It runs, but lost too many peers at once.
    WithoutQuorum,
}

/// A server and the pod that it runs in.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) pod_uid: String,
    pub(super) role: Role,
}

/// All volumes and servers.
#[derive(Clone, Debug, Default)]
pub(super) struct Database {
    volumes: BTreeMap<u16, Data>,
    servers: BTreeMap<u16, Server>,
    /// How many members the component had when it last agreed on that.
    configured: usize,
    /// The newest rows that clients were told are safe.
    acknowledged: Option<Data>,
    histories: u32,
    pub(super) wrongs: Vec<String>,
}

impl Database {
    pub(super) fn server(&self, ordinal: u16) -> Option<&Server> {
        self.servers.get(&ordinal)
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = (u16, &Server)> {
        self.servers.iter().map(|(ordinal, server)| (*ordinal, server))
    }

    pub(super) fn data(&self, ordinal: u16) -> Option<Data> {
        self.volumes.get(&ordinal).copied()
    }

    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged.map_or(0, |data| data.rows)
    }

    fn component(&self) -> Vec<u16> {
        let inside = self.servers.iter().filter(|(_, server)| server.role != Role::WithoutQuorum);
        inside.map(|(ordinal, _)| *ordinal).collect()
    }

    pub(super) fn has_primary(&self) -> bool {
        self.servers.values().any(|server| server.role == Role::Primary)
    }

    fn wrong(&mut self, what: String) {
        self.wrongs.push(format!("{what}; volumes {:?}, servers {:?}", self.volumes, self.servers));
    }

    /// Clients write a row: every member of the component has it before anybody is told.
    pub(super) fn commit(&mut self) {
        if !self.has_primary() {
            return;
        }
        for ordinal in self.component() {
            if let Some(data) = self.volumes.get_mut(&ordinal) {
                data.rows += 1;
                self.acknowledged = Some(*data);
            }
        }
    }

    /// The first member of a component starts.
    pub(super) fn seed(&mut self, ordinal: u16, pod_uid: &str) {
        if !self.component().is_empty() {
            self.wrong(format!("member {ordinal} is seeded beside a running cluster"));
        }
        let known = self.data(ordinal);
        let data = known.unwrap_or_else(|| {
            self.histories += 1;
            Data { history: self.histories, rows: 0 }
        });
        if self.acknowledged.is_some_and(|acknowledged| acknowledged != data) {
            self.wrong(format!("the seed {ordinal} lacks acknowledged rows: it has {data:?} of {:?}", self.acknowledged));
        }
        self.volumes.insert(ordinal, data);
        self.servers.insert(ordinal, Server { pod_uid: pod_uid.to_owned(), role: Role::Primary });
        self.acknowledged = Some(data);
        self.configured = 1;
    }

    /// A member joins the component, with all its data. False when there is none to join.
    pub(super) fn join(&mut self, ordinal: u16, pod_uid: &str, role: Role) -> bool {
        let Some(donor) = self.component().first().and_then(|donor| self.data(*donor)) else { return false };
        if self.data(ordinal).is_some_and(|data| data.history != donor.history || data.rows > donor.rows) {
            self.wrong(format!("member {ordinal} throws away rows that its donor does not have"));
        }
        self.volumes.insert(ordinal, donor);
        self.servers.insert(ordinal, Server { pod_uid: pod_uid.to_owned(), role });
        self.configured = self.component().len();
        true
    }

    /// A member that lost its peers goes on alone. False when it cannot.
    pub(super) fn promote(&mut self, ordinal: u16) -> bool {
        if !self.component().is_empty() {
            let inside = self.component().contains(&ordinal);
            if !inside {
                self.wrong(format!("member {ordinal} is promoted beside a running cluster"));
            }
            return inside;
        }
        let data = self.data(ordinal);
        if self.acknowledged.is_some() && self.acknowledged != data {
            self.wrong(format!("the promoted {ordinal} lacks acknowledged rows: it has {data:?} of {:?}", self.acknowledged));
        }
        let Some(server) = self.servers.get_mut(&ordinal) else { return false };
        server.role = Role::Primary;
        self.configured = 1;
        true
    }

    /// The volume of a member is gone.
    pub(super) fn lose(&mut self, ordinal: u16) {
        self.volumes.remove(&ordinal);
    }

    /// A person said that what is lost is lost: the newest that is left is all there is.
    pub(super) fn accept_losses(&mut self) {
        self.acknowledged = self.volumes.values().max_by_key(|data| data.rows).copied();
    }

    /// A member leaves in order.
    pub(super) fn stop(&mut self, ordinal: u16) {
        self.servers.remove(&ordinal);
        self.configured = self.component().len();
    }

    /// Members vanish at once; the rest goes on if it is the larger part.
    pub(super) fn crash(&mut self, ordinals: &[u16]) {
        self.servers.retain(|ordinal, _| !ordinals.contains(ordinal));
        let left = self.component();
        if left.len() * 2 > self.configured {
            self.configured = left.len();
            return;
        }
        for server in self.servers.values_mut() {
            server.role = Role::WithoutQuorum;
        }
    }

    /// Roles, and whether the data is all that there is.
    pub(super) fn digest(&self) -> Value {
        let acknowledged = self.acknowledged;
        let members: BTreeMap<String, Value> = self
            .volumes
            .iter()
            .map(|(ordinal, data)| {
                let server = self.servers.get(ordinal);
                // How far a stopped member got depends on when it was stopped.
                let complete = server.map(|_| Some(*data) == acknowledged);
                let role = server.map(|server| format!("{:?}", server.role));
                (format!("member {ordinal}"), json!({ "history": data.history, "role": role, "complete": complete }))
            })
            .collect();
        json!({ "members": members, "histories": self.histories, "rows": self.acknowledged() })
    }
}
