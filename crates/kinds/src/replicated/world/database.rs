//! The truth of a synchronously replicated database: who runs, who belongs to the primary component, and what is on each volume.
//!
//! It judges the operator: a second component, or a seed that lacks an acknowledged commit, ends the test.

use super::super::fixtures::{NO_DATA, PRIMARY, STOPPED, STRANDED};

/// What is on a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) history: u32,
    pub(super) sequence: u64,
}

/// A database server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    Down,
    /// In the primary component.
    Primary,
    /// It runs, but lost too many peers at once.
    WithoutQuorum,
}

/// A volume, and the server that runs on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) data: Option<Data>,
    pub(super) server: Server,
}

/// All volumes there ever were.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) nodes: Vec<Node>,
    /// How many members the component had when it last agreed on that.
    configured: usize,
    /// The newest commit that a client was told of.
    acknowledged: Option<Data>,
    histories: u32,
    /// Whether the hook `sequence` tells the history beside the number.
    structured: bool,
}

impl Database {
    pub(super) fn new(size: u16, structured: bool) -> Self {
        let node = Node { data: None, server: Server::Down };
        Self { nodes: vec![node; usize::from(size)], configured: 0, acknowledged: None, histories: 0, structured }
    }

    pub(super) fn server(&self, ordinal: u16) -> Server {
        self.nodes[usize::from(ordinal)].server
    }

    pub(super) fn primaries(&self) -> usize {
        self.nodes.iter().filter(|node| node.server == Server::Primary).count()
    }

    /// Clients write: every member of the component has it before anybody is told.
    pub(super) fn commit(&mut self, count: u64) {
        for node in self.nodes.iter_mut().filter(|node| node.server == Server::Primary) {
            if let Some(data) = &mut node.data {
                data.sequence += count;
                self.acknowledged = Some(*data);
            }
        }
    }

    /// The first member of a component starts.
    pub(super) fn seed(&mut self, ordinal: u16) {
        assert_eq!(self.primaries(), 0, "member {ordinal} is seeded while a primary component runs: {self:?}");
        let node = &mut self.nodes[usize::from(ordinal)];
        let data = node.data.unwrap_or_else(|| {
            self.histories += 1;
            Data { history: self.histories, sequence: 1 }
        });
        node.data = Some(data);
        node.server = Server::Primary;
        if let Some(acknowledged) = self.acknowledged {
            assert_eq!(data, acknowledged, "the seed {ordinal} lacks acknowledged commits: {self:?}");
        }
        self.acknowledged = Some(data);
        self.configured = 1;
    }

    /// A member joins the component, with all its data. False when there is none to join.
    pub(super) fn join(&mut self, ordinal: u16) -> bool {
        let Some(donor) = self.nodes.iter().find(|node| node.server == Server::Primary).copied() else { return false };
        self.nodes[usize::from(ordinal)] = donor;
        self.configured = self.primaries();
        true
    }

    /// A member leaves in order.
    pub(super) fn stop(&mut self, ordinal: u16) {
        self.nodes[usize::from(ordinal)].server = Server::Down;
        self.configured = self.primaries();
    }

    /// Members vanish at once; the rest goes on if it is the larger part.
    pub(super) fn crash(&mut self, ordinals: &[u16]) {
        for ordinal in ordinals {
            self.nodes[usize::from(*ordinal)].server = Server::Down;
        }
        let left = self.primaries();
        if left * 2 > self.configured {
            self.configured = left;
            return;
        }
        for node in self.nodes.iter_mut().filter(|node| node.server == Server::Primary) {
            node.server = Server::WithoutQuorum;
        }
    }

    /// The network cuts a member off; the others go on if they are the larger part, and leave it behind.
    pub(super) fn cut_off(&mut self, ordinal: u16) {
        let left = self.primaries().saturating_sub(1);
        if self.server(ordinal) == Server::Primary && left * 2 > self.configured {
            self.nodes[usize::from(ordinal)].server = Server::WithoutQuorum;
            self.configured = left;
        }
    }

    /// A member that lost its peers goes on alone. False when it cannot.
    pub(super) fn promote(&mut self, ordinal: u16) -> bool {
        if self.server(ordinal) != Server::WithoutQuorum {
            return self.server(ordinal) == Server::Primary;
        }
        assert_eq!(self.primaries(), 0, "member {ordinal} is promoted while a primary component runs: {self:?}");
        let node = &mut self.nodes[usize::from(ordinal)];
        node.server = Server::Primary;
        let data = node.data;
        assert!(self.acknowledged.is_none() || data == self.acknowledged, "the promoted {ordinal} lacks commits: {self:?}");
        self.configured = 1;
        true
    }

    /// A person said that what is lost is lost: the newest that is left is all there is.
    pub(super) fn accept_losses(&mut self) {
        let left = self.nodes.iter().filter_map(|node| node.data);
        self.acknowledged = left.max_by_key(|data| data.sequence);
    }

    /// Whether there was data, and nothing of it is left.
    pub(super) fn is_void(&self) -> bool {
        self.histories > 0 && self.nodes.iter().all(|node| node.data.is_none())
    }

    /// A copy of the data was broken off, or a volume is gone.
    pub(super) fn wipe(&mut self, ordinal: u16) {
        self.nodes[usize::from(ordinal)].data = None;
    }

    /// The exit code of the hook `status`.
    pub(super) fn status(&self, ordinal: u16) -> i32 {
        match self.server(ordinal) {
            Server::Down => STOPPED,
            Server::Primary => PRIMARY,
            Server::WithoutQuorum => STRANDED,
        }
    }

    /// What the hook `sequence` prints.
    pub(super) fn sequence(&self, ordinal: u16) -> String {
        match self.nodes[usize::from(ordinal)].data {
            None if self.structured => NO_DATA.to_owned(),
            Some(Data { history, sequence }) if self.structured => {
                super::super::fixtures::position(&format!("h{history}"), sequence)
            }
            data => data.map_or(0, |data| data.sequence).to_string(),
        }
    }

    /// A volume whose server runs alone and well, for worlds that begin in the middle.
    pub(super) fn all_serve(&mut self, size: u16) {
        self.seed(0);
        for ordinal in 1..size {
            self.join(ordinal);
        }
    }
}
