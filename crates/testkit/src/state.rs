//! All of the fake server that sits behind its one lock.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    calls::Call,
    clock::Clock,
    faults::Script,
    registry::{Registry, Resource, from_definition},
    store::{History, ObjectKey},
};

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) history: History,
    pub(crate) clock: Clock,
    pub(crate) calls: Vec<Call>,
    pub(crate) script: Script,
    /// Whether garbage is collected after every write.
    pub(crate) collect_always: bool,
    /// Bumped when a test asks for bookmarks.
    pub(crate) bookmarks: u64,
    identities: u64,
}

/// What ends up in a response: a code and a JSON body.
pub(crate) type Answer = (u16, Value);

impl State {
    pub(crate) fn new() -> Self {
        let mut state = Self {
            registry: Registry::built_in(),
            history: History::new(),
            clock: Clock::Counter,
            calls: Vec::new(),
            script: Script::default(),
            collect_always: false,
            bookmarks: 0,
            identities: 0,
        };
        for name in ["default", "kube-system"] {
            state.plant_namespace(name);
        }
        state
    }

    /// The same objects, revisions and identities, without the calls and the script.
    pub(crate) fn fork(&self) -> Self {
        Self {
            registry: self.registry.clone(),
            history: self.history.clone(),
            clock: self.clock.clone(),
            calls: Vec::new(),
            script: Script::default(),
            collect_always: self.collect_always,
            bookmarks: 0,
            identities: self.identities,
        }
    }

    pub(crate) fn plant_namespace(&mut self, name: &str) {
        let Some(resource) = self.registry.find("", "v1", "namespaces") else {
            return;
        };
        let key = ObjectKey::new(&resource, "", name);
        if self.history.get(&key).is_some() {
            return;
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": self.new_uid(),
                "creationTimestamp": self.now(),
                "labels": { "kubernetes.io/metadata.name": name },
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        });
        self.history.commit(key, Some(object));
    }

    /// The time of the next write.
    pub(crate) fn now(&self) -> String {
        self.clock.at(self.history.revision() + 1)
    }

    pub(crate) fn new_uid(&mut self) -> String {
        self.identities += 1;
        // Looks like a random UUID of version 4 and is the same in every run.
        let mixed = self.identities.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            mixed >> 32,
            (mixed >> 16) & 0xffff,
            mixed & 0xfff,
            (mixed >> 12) & 0xfff,
            self.identities
        )
    }

    /// Five characters for generateName.
    pub(crate) fn new_suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.identities += 1;
        let mut mixed = self.identities.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let base = LETTERS.len() as u64;
        (0..5)
            .map(|_| {
                let index = usize::try_from(mixed % base).unwrap_or_default();
                mixed /= base;
                char::from(LETTERS[index])
            })
            .collect()
    }

    /// Writes an object, and lets a definition take effect at once.
    pub(crate) fn commit(&mut self, key: ObjectKey, after: Option<Value>) -> Arc<Value> {
        let definition = key.plural == "customresourcedefinitions";
        let written = self.history.commit(key, after);
        if definition {
            for resource in from_definition(&written) {
                self.registry.add(resource);
            }
        }
        written
    }

    pub(crate) fn namespace_exists(&self, name: &str) -> bool {
        let Some(resource) = self.registry.find("", "v1", "namespaces") else {
            return false;
        };
        self.history.get(&ObjectKey::new(&resource, "", name)).is_some()
    }

    /// The resource an object's apiVersion and kind name.
    pub(crate) fn resource_of(&self, object: &Value) -> Option<Arc<Resource>> {
        let api_version = object["apiVersion"].as_str()?;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.registry.by_kind(group, object["kind"].as_str()?)
    }
}
