//! The handle with which a test looks at, and plants, objects past every rule of the API.

use std::sync::Arc;

use serde_json::Value;

use crate::{server::Shared, store::ObjectKey};

/// Direct sight of, and access to, the stored objects, past every rule.
#[derive(Clone)]
pub struct Store {
    pub(crate) shared: Arc<Shared>,
}

impl Store {
    fn key(&self, kind: &str, namespace: &str, name: &str) -> Option<ObjectKey> {
        let resource = self.shared.lock().registry.guess(kind)?;
        Some(ObjectKey::new(&resource, namespace, name))
    }

    /// The object, by plural, `plural.group` or kind.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = self.key(kind, namespace, name)?;
        let object = self.shared.lock().history.get(&key)?;
        Some((*object).clone())
    }

    /// The object as it was at a revision.
    pub fn get_at(&self, kind: &str, namespace: &str, name: &str, revision: u64) -> Option<Value> {
        let key = self.key(kind, namespace, name)?;
        let object = self.shared.lock().history.get_at(&key, revision)?;
        Some((*object).clone())
    }

    /// All objects of a kind, in all namespaces, by namespace and name.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let state = self.shared.lock();
        let Some(resource) = state.registry.guess(kind) else {
            return Vec::new();
        };
        let all = state.history.list_at(&resource, None, state.history.revision());
        all.into_iter().map(|(_, object)| (*object).clone()).collect()
    }

    /// Every object with its key.
    pub fn everything(&self) -> Vec<(ObjectKey, Value)> {
        let state = self.shared.lock();
        state.history.living().map(|(key, object)| (key.clone(), (**object).clone())).collect()
    }

    /// Writes an object as it is, without a single check; a new revision, and watchers see it. Returns what was
    /// stored, or `None` when the object names no known kind or has no name.
    pub fn put_raw(&self, mut object: Value) -> Option<Value> {
        let mut state = self.shared.lock();
        let resource = state.resource_of(&object)?;
        let metadata = object["metadata"].as_object()?;
        let word = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = ObjectKey::new(&resource, &word("namespace"), &word("name"));
        if key.name.is_empty() {
            return None;
        }
        if word("uid").is_empty() {
            object["metadata"]["uid"] = Value::String(state.new_uid());
        }
        let written = state.commit(key, Some(object));
        drop(state);
        self.shared.wake();
        Some((*written).clone())
    }

    /// Changes an object in place without a single check. Returns what was stored.
    pub fn edit(&self, kind: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> Option<Value> {
        let mut object = self.get(kind, namespace, name)?;
        change(&mut object);
        self.put_raw(object)
    }

    /// Removes an object at once, finalizers or not. Returns what was there.
    pub fn remove(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = self.key(kind, namespace, name)?;
        let mut state = self.shared.lock();
        let object = state.history.get(&key)?;
        state.commit(key, None);
        drop(state);
        self.shared.wake();
        Some((*object).clone())
    }
}
