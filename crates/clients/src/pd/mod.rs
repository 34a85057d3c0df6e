//! PD's HTTP API, as far as it is needed: what it knows of members and stores, and what can be changed there.
//!
//! Any member answers for all of PD: it asks the leader. An answer that cannot be read is no answer, never an empty one.

mod changes;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};

use windlass_kinds::tidb::answers::{PdConfig, PdMember, Store, Stores};

use crate::http::{Answer, Failure, Http, Peer};
use shapes::{Cluster, Configuration, Health, OneStore, Ranges, Roster, Rule, StoreList};

/// Where clients reach PD.
pub const CLIENT_PORT: u16 = 2379;

/// How every refusal ends before the first store has joined.
const NOT_BOOTSTRAPPED: &str = "TiKV cluster not bootstrapped, please start TiKV first";
/// The scheduler that moves leaders away. Older PDs have one for each store, with its number at the end of the name.
const EVICT: &str = "evict-leader-scheduler";

/// A member of PD, and through it all of PD.
#[derive(Clone, Copy, Debug)]
pub struct Pd<'a> {
    http: &'a Http,
    peer: &'a Peer,
}

/// Who is a member, and of which cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The id of the cluster; an older PD does not tell it here.
    pub cluster: Option<u64>,
    /// The members, those included that have not started yet.
    pub members: Vec<PdMember>,
    /// The id of the one that leads; none while nobody does.
    pub leader: Option<u64>,
}

impl<'a> Pd<'a> {
    /// Reached through this member.
    pub fn new(http: &'a Http, peer: &'a Peer) -> Self {
        Self { http, peer }
    }

    async fn read(&self, act: &'static str, path: &str) -> Result<Answer, Failure> {
        self.http.ask(act, self.peer, &format!("/pd/api/v1/{path}")).await
    }

    /// The id of the cluster.
    pub async fn cluster(&self) -> Result<u64, Failure> {
        let answer = self.read("asking PD for its cluster", "cluster").await?.yes()?;
        match answer.json::<Cluster>()?.id {
            0 => Err(answer.strange("the id of the cluster is 0")),
            id => Ok(id),
        }
    }

    /// Whether each member is healthy, by id.
    pub async fn health(&self) -> Result<BTreeMap<u64, bool>, Failure> {
        let answer = self.read("asking PD for its health", "health").await?.yes()?;
        Ok(answer.json::<Vec<Health>>()?.into_iter().map(|it| (it.member_id, it.health)).collect())
    }

    /// The members.
    pub async fn members(&self) -> Result<Membership, Failure> {
        let answer = self.read("asking PD for its members", "members").await?.yes()?;
        answer.json::<Roster>()?.told().map_err(|why| answer.strange(why))
    }

    /// How copies are placed.
    pub async fn config(&self) -> Result<PdConfig, Failure> {
        let answer = self.read("asking PD for its configuration", "config").await?.yes()?;
        answer.json::<Configuration>()?.told().map_err(|why| answer.strange(why))
    }

    /// How many copies TiFlash has to hold of anything.
    pub async fn tiflash_copies(&self) -> Result<u16, Failure> {
        let answer = self.read("asking PD for the copies in TiFlash", "config/rules/group/tiflash").await?;
        // Rules are off, or not known, or there is nothing yet that they could be about.
        if matches!(answer.status.as_u16(), 404 | 412) || is_not_bootstrapped(&answer) {
            return Ok(0);
        }
        let answer = answer.yes()?;
        let rules = answer.json::<Option<Vec<Rule>>>()?.unwrap_or_default();
        Ok(rules.iter().map(|rule| rule.count).max().unwrap_or(0))
    }

    /// The stores, those that have left included.
    pub async fn stores(&self) -> Result<Stores, Failure> {
        // In one call, so that each store is in one state.
        let answer = self.read("asking PD for the stores", "stores?state=0&state=1&state=2").await?;
        if is_not_bootstrapped(&answer) {
            return Ok(Stores::NotBootstrapped);
        }
        let answer = answer.yes()?;
        answer.json::<StoreList>()?.told().map(Stores::Listed).map_err(|why| answer.strange(why))
    }

    /// One store; none when PD has never had it, or has forgotten it.
    pub async fn store(&self, id: u64) -> Result<Option<Store>, Failure> {
        let answer = self.read("asking PD for a store", &format!("store/{id}")).await?;
        if answer.status.as_u16() == 404 {
            return Ok(None);
        }
        let answer = answer.yes()?;
        answer.json::<OneStore>()?.told().map(Some).map_err(|why| answer.strange(why))
    }

    /// The stores whose leaders are moved away.
    pub async fn evicting(&self) -> Result<BTreeSet<u64>, Failure> {
        // The scheduler may go between the two questions, and then nothing is evicted, or be back.
        for _ in 0..3 {
            let answer = self.read("asking PD for its schedulers", "schedulers").await?;
            if is_not_bootstrapped(&answer) {
                return Ok(BTreeSet::new());
            }
            let answer = answer.yes()?;
            let names = answer.json::<Option<Vec<String>>>()?.unwrap_or_default();
            if !names.iter().any(|name| name == EVICT) {
                return shapes::numbered(&names).map_err(|why| answer.strange(why));
            }
            let listed = self.read("asking PD whose leaders it evicts", &format!("scheduler-config/{EVICT}/list")).await?;
            if listed.status.as_u16() == 404 {
                continue;
            }
            let listed = listed.yes()?;
            return listed.json::<Ranges>()?.told().map_err(|why| listed.strange(why));
        }
        let host = self.peer.origin();
        let why = format!("it lists {EVICT:?}, and says that it has none");
        Err(Failure::Strange { act: "asking PD whose leaders it evicts", host, why })
    }

    /// Whether this very member has all that it needs to lead. Older ones cannot say, and count as ready.
    pub async fn ready(&self) -> Result<bool, Failure> {
        let answer = self.http.ask("asking a member of PD whether it is ready", self.peer, "/pd/api/v2/ready").await?;
        match answer.status.as_u16() {
            200..300 | 404 => Ok(true),
            500 | 503 => Ok(false),
            _ => Err(answer.no()),
        }
    }
}

fn is_not_bootstrapped(answer: &Answer) -> bool {
    !answer.status.is_success() && answer.said().ends_with(NOT_BOOTSTRAPPED)
}

#[cfg(test)]
mod tests;
