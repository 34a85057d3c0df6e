//! A small world behind the fake server: it plays the StatefulSet controller, the scheduler, the provisioner and the
//! kubelet, so that ring tests see pods come and go.
//!
//! Nothing here runs by itself or by time: the test says `settle` or `step`. The world's own writes obey the rules of
//! the server but are not recorded as calls, which belong to the code under test.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    FakeApiServer, delete::DeleteOptions, failure::Failure, registry::Resource, state::State, store::ObjectKey,
    write::WriteRequest,
};

mod kubelet;
mod pods;
mod sets;

/// Plays the StatefulSet controller and the kubelet.
#[derive(Clone)]
pub struct StatefulSetController {
    server: FakeApiServer,
    /// Pods the kubelet starts but does not report ready.
    unready: BTreeSet<(String, String)>,
    /// Pods that are not even scheduled.
    unscheduled: BTreeSet<(String, String)>,
    /// Addresses given out so far, by pod uid.
    addresses: BTreeMap<String, String>,
    /// Whether the kubelet lets go of pods that are being deleted.
    lets_go: bool,
    /// Pods that take their time to end.
    held: BTreeSet<(String, String)>,
    /// How often the containers of a pod were restarted, by pod uid.
    restarts: BTreeMap<String, u32>,
    /// Pods whose containers end as soon as they are started, and since when, by pod uid.
    crashed: BTreeMap<String, String>,
}

/// Passes after which a world that still moves is taken to run in a circle.
const PASSES: usize = 10_000;

impl StatefulSetController {
    /// A world behind this server.
    pub fn new(server: &FakeApiServer) -> Self {
        Self {
            server: server.clone(),
            unready: BTreeSet::new(),
            unscheduled: BTreeSet::new(),
            addresses: BTreeMap::new(),
            lets_go: true,
            held: BTreeSet::new(),
            restarts: BTreeMap::new(),
            crashed: BTreeMap::new(),
        }
    }

    /// The same world behind another server, which knows the same objects.
    pub fn fork(&self, server: &FakeApiServer) -> Self {
        Self { server: server.clone(), ..self.clone() }
    }

    /// Lets the world act until it has nothing more to do; returns how many writes it made.
    pub async fn settle(&mut self) -> usize {
        let mut total = 0;
        for _ in 0..PASSES {
            let done = self.step();
            total += done;
            if done == 0 {
                break;
            }
            // Whoever watches may react before the next pass.
            tokio::task::yield_now().await;
        }
        total
    }

    /// One pass of every controller; returns how many writes it made.
    pub fn step(&mut self) -> usize {
        let server = self.server.clone();
        let mut state = server.shared().lock();
        let before = state.history.revision();
        self.run_kubelet(&mut state);
        sets::run(&mut state);
        state.collect_garbage();
        let after = state.history.revision();
        drop(state);
        server.shared().wake();
        usize::try_from(after - before).unwrap_or(usize::MAX)
    }

    /// The kubelet reports this pod not ready, now and whenever it is made again.
    pub fn keep_unready(&mut self, namespace: &str, pod: &str) -> &mut Self {
        self.unready.insert((namespace.to_owned(), pod.to_owned()));
        self
    }

    /// This pod stays without a node.
    pub fn keep_unscheduled(&mut self, namespace: &str, pod: &str) -> &mut Self {
        self.unscheduled.insert((namespace.to_owned(), pod.to_owned()));
        self
    }

    /// Ends `keep_unready` and `keep_unscheduled`.
    pub fn let_run(&mut self, namespace: &str, pod: &str) -> &mut Self {
        let key = (namespace.to_owned(), pod.to_owned());
        self.unready.remove(&key);
        self.unscheduled.remove(&key);
        self
    }

    /// Whether this pod, when it is being deleted, stays terminating: what runs in it takes its time to end.
    pub fn hold(&mut self, namespace: &str, pod: &str, holds: bool) -> &mut Self {
        let key = (namespace.to_owned(), pod.to_owned());
        if holds {
            self.held.insert(key)
        } else {
            self.held.remove(&key)
        };
        self
    }

    /// The containers of the pod with this uid were restarted so often: each time they are other ones.
    pub fn restarted(&mut self, pod_uid: &str, times: u32) -> &mut Self {
        self.restarts.insert(pod_uid.to_owned(), times);
        self
    }

    /// Whether the containers of the pod with this uid end as soon as they are started, and since when they do.
    pub fn crashed(&mut self, pod_uid: &str, since: Option<&str>) -> &mut Self {
        match since {
            Some(since) => self.crashed.insert(pod_uid.to_owned(), since.to_owned()),
            None => self.crashed.remove(pod_uid),
        };
        self
    }

    /// Whether pods that are being deleted go; when not, they stay terminating.
    pub fn let_go(&mut self, lets_go: bool) -> &mut Self {
        self.lets_go = lets_go;
        self
    }
}

/// The world's writes.
impl State {
    fn world_request(&self, plural: &str, namespace: &str, name: &str, subresource: &str) -> Result<WriteRequest, Failure> {
        let resource = self.registry.guess(plural).ok_or_else(Failure::no_such_path)?;
        Ok(WriteRequest {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
            manager: "world".to_owned(),
            dry_run: false,
        })
    }

    fn world_objects(&self, plural: &str) -> Vec<Arc<Value>> {
        let Some(resource) = self.registry.guess(plural) else {
            return Vec::new();
        };
        let all = self.history.list_at(&resource, None, self.history.revision());
        all.into_iter().map(|(_, object)| object).collect()
    }

    fn world_get(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        let resource: Arc<Resource> = self.registry.guess(plural)?;
        self.history.get(&ObjectKey::new(&resource, namespace, name))
    }

    /// Creates an object; one that is there already, or cannot be made, is left to the next pass.
    fn world_create(&mut self, plural: &str, namespace: &str, object: Value) -> bool {
        let request = self.world_request(plural, namespace, "", "");
        request.and_then(|request| self.create(&request, object)).is_ok()
    }

    /// Changes an object or its status; no revision when nothing differs.
    fn world_edit(&mut self, plural: &str, old: &Arc<Value>, subresource: &str, change: impl FnOnce(&mut Value)) -> bool {
        let (namespace, name) = (crate::object::meta(old, "namespace"), crate::object::meta(old, "name"));
        let mut new = (**old).clone();
        change(&mut new);
        if new == **old {
            return false;
        }
        let before = self.history.revision();
        let request = self.world_request(plural, namespace, name, subresource);
        let written = request.and_then(|request| self.finish_update(&request, old, new, true));
        written.is_ok() && self.history.revision() != before
    }

    fn world_delete(&mut self, plural: &str, object: &Value, options: &DeleteOptions) {
        let (namespace, name) = (crate::object::meta(object, "namespace"), crate::object::meta(object, "name"));
        if let Ok(request) = self.world_request(plural, namespace, name, "") {
            // It was seen under the same lock; there is nothing to do about a refusal.
            let _ = self.delete(&request.resource, &request.key(), options);
        }
    }
}
