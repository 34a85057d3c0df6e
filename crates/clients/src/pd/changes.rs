//! What can be changed in PD.
//!
//! Each change is done as well when it was done before: by us, when the answer was lost, or by somebody else. So after each answer that
//! is no, and after none at all, PD is asked how it is now. What a change is about is looked at right before it is sent: a store by its
//! address, a member by its name.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::{Value, json};
use windlass_kinds::tidb::answers::{Store, StoreState};

use super::{EVICT, Pd};
use crate::http::{Failure, segment};

/// What PD says to whoever asks for a scheduler that was not there a moment ago.
const JUST_MADE: &str = "ErrSchedulerExisted";

impl Pd<'_> {
    async fn write(&self, act: &'static str, method: Method, path: &str, body: Option<&Value>) -> Result<(), Failure> {
        let path = format!("/pd/api/v1/{path}");
        self.http.change(act, self.peer, (method, &path), body).await?.yes().map(drop)
    }

    fn untried(&self, act: &'static str, why: String) -> Failure {
        Failure::Untried { act, host: self.peer.origin(), why }
    }

    /// The store, if it is the one that is meant.
    async fn the_store(&self, act: &'static str, id: u64, address: &str) -> Result<Option<Store>, Failure> {
        let store = self.store(id).await?;
        match &store {
            Some(store) if store.address != address => {
                let why = format!("PD has store {id} at {:?}, and not at {address:?}", store.address);
                Err(self.untried(act, why))
            }
            _ => Ok(store),
        }
    }

    /// Lets a store give its leaders to others. One scheduler does that for all stores: of two who ask for it at once, before it is there,
    /// one is refused. Asked again, PD adds the store to it.
    pub async fn evict_leaders(&self, store: u64) -> Result<(), Failure> {
        let body = json!({ "name": EVICT, "store_id": store });
        let send = async || {
            let sent = self.write("letting PD evict leaders", Method::POST, "schedulers", Some(&body)).await;
            settled(sent, async || Ok(self.evicting().await?.contains(&store))).await
        };
        match send().await {
            Err(refused) if refused.to_string().contains(JUST_MADE) => send().await,
            ended => ended,
        }
    }

    /// Lets a store have leaders again.
    pub async fn stop_evicting(&self, store: u64) -> Result<(), Failure> {
        let path = format!("schedulers/{EVICT}-{store}");
        let sent = self.write("letting PD evict no leaders any more", Method::DELETE, &path, None).await;
        settled(sent, async || Ok(!self.evicting().await?.contains(&store))).await
    }

    /// Lets a store give away all that it has, and leave for good.
    pub async fn delete_store(&self, id: u64, address: &str) -> Result<(), Failure> {
        const ACT: &str = "letting a store leave";
        let leaves =
            |store: Option<Store>| store.is_none_or(|it| matches!(it.state, StoreState::Offline | StoreState::Tombstone));
        if leaves(self.the_store(ACT, id, address).await?) {
            return Ok(());
        }
        let sent = self.write(ACT, Method::DELETE, &format!("store/{id}"), None).await;
        settled(sent, async || Ok(leaves(self.store(id).await?))).await
    }

    /// Lets a store stay that was on its way out.
    pub async fn restore_store(&self, id: u64, address: &str) -> Result<(), Failure> {
        const ACT: &str = "letting a store stay";
        match self.the_store(ACT, id, address).await?.map(|store| store.state) {
            Some(StoreState::Offline) => {}
            Some(StoreState::Up | StoreState::Disconnected | StoreState::Down) => return Ok(()),
            Some(StoreState::Tombstone) | None => {
                return Err(self.untried(ACT, format!("store {id} has left for good: all that it had is elsewhere")));
            }
        }
        let sent = self.write(ACT, Method::POST, &format!("store/{id}/state?state=Up"), None).await;
        let stays = |store: &Store| !matches!(store.state, StoreState::Offline | StoreState::Tombstone);
        settled(sent, async || Ok(self.store(id).await?.as_ref().is_some_and(stays))).await
    }

    /// Says where a store is. Labels that are not named stay as they are.
    pub async fn label_store(&self, id: u64, address: &str, labels: &BTreeMap<String, String>) -> Result<(), Failure> {
        const ACT: &str = "labelling a store";
        let has = |store: &Store| labels.iter().all(|(key, value)| store.labels.get(key) == Some(value));
        match self.the_store(ACT, id, address).await? {
            Some(store) if has(&store) => return Ok(()),
            Some(_) => {}
            None => return Err(self.untried(ACT, format!("PD has no store {id}"))),
        }
        let sent = self.write(ACT, Method::POST, &format!("store/{id}/label"), Some(&json!(labels))).await;
        settled(sent, async || Ok(self.store(id).await?.as_ref().is_some_and(has))).await
    }

    /// Lets another member lead.
    pub async fn transfer_leader(&self, to: &str) -> Result<(), Failure> {
        const ACT: &str = "letting another member lead PD";
        let leads = async || {
            let now = self.members().await?;
            let leader = now.members.iter().find(|member| now.leader == Some(member.id));
            Ok::<bool, Failure>(leader.is_some_and(|leader| leader.name == to))
        };
        if leads().await? {
            return Ok(());
        }
        let sent = self.write(ACT, Method::POST, &format!("leader/transfer/{}", segment(to)), None).await;
        settled(sent, leads).await
    }

    /// Lets a member leave for good.
    pub async fn delete_member(&self, id: u64, name: &str) -> Result<(), Failure> {
        const ACT: &str = "letting a member of PD leave";
        let members = self.members().await?.members;
        match members.iter().find(|member| member.id == id) {
            None => return Ok(()),
            Some(member) if member.name != name => {
                let why = format!("PD has member {id} under the name {:?}, and not {name:?}", member.name);
                return Err(self.untried(ACT, why));
            }
            Some(_) => {}
        }
        let sent = self.write(ACT, Method::DELETE, &format!("members/id/{id}"), None).await;
        settled(sent, async || Ok(self.members().await?.members.iter().all(|member| member.id != id))).await
    }

    /// Lets copies be placed by rules.
    pub async fn enable_placement_rules(&self) -> Result<(), Failure> {
        let body = json!({ "enable-placement-rules": "true" });
        let sent = self.write("letting PD place copies by rules", Method::POST, "config/replicate", Some(&body)).await;
        settled(sent, async || Ok(self.config().await?.placement_rules)).await
    }
}

/// What came of a change, once PD was asked how it is now where that is in doubt.
async fn settled(sent: Result<(), Failure>, is_so: impl AsyncFnOnce() -> Result<bool, Failure>) -> Result<(), Failure> {
    match sent {
        Err(failure) if failure.may_be_done() && matches!(is_so().await, Ok(true)) => Ok(()),
        end => end,
    }
}
