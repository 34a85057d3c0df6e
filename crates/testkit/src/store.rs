//! Every object at every revision.
//!
//! The store only keeps history; what may be written is decided before `commit`. Nothing is ever forgotten, so that a
//! list can be answered as of any revision; `horizon` says which revisions a client may still ask for.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use crate::registry::Resource;

/// Identity of a stored object. The API version is not part of it: all versions share one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// API group.
    pub group: String,
    /// Plural resource name.
    pub plural: String,
    /// Namespace, empty for cluster-wide objects.
    pub namespace: String,
    /// Object name.
    pub name: String,
}

impl ObjectKey {
    pub(crate) fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self {
            group: resource.group.clone(),
            plural: resource.plural.clone(),
            namespace: if resource.namespaced { namespace.to_owned() } else { String::new() },
            name: name.to_owned(),
        }
    }
}

/// One revision: an object before and after.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: ObjectKey,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

#[derive(Clone, Debug)]
struct Version {
    revision: u64,
    object: Option<Arc<Value>>,
}

/// The history of all objects.
#[derive(Clone, Debug)]
pub(crate) struct History {
    revision: u64,
    /// Watches and exact lists from before this revision are refused.
    horizon: u64,
    first: u64,
    objects: BTreeMap<ObjectKey, Vec<Version>>,
    log: Vec<Change>,
}

/// Revisions begin above this, so that a small revision is always one the server no longer knows.
pub(crate) const FIRST_REVISION: u64 = 1000;

impl History {
    pub(crate) fn new() -> Self {
        Self {
            revision: FIRST_REVISION,
            horizon: FIRST_REVISION,
            first: FIRST_REVISION,
            objects: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Forgets, for clients, everything before the current revision.
    pub(crate) fn compact(&mut self) {
        self.horizon = self.revision;
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<Value>> {
        self.objects.get(key)?.last()?.object.clone()
    }

    pub(crate) fn get_at(&self, key: &ObjectKey, revision: u64) -> Option<Arc<Value>> {
        let versions = self.objects.get(key)?;
        let later = versions.partition_point(|version| version.revision <= revision);
        versions.get(later.checked_sub(1)?)?.object.clone()
    }

    /// All objects of a resource as of `revision`, in key order, optionally in one namespace.
    pub(crate) fn list_at(&self, resource: &Resource, namespace: Option<&str>, revision: u64) -> Vec<(ObjectKey, Arc<Value>)> {
        let from = ObjectKey::new(resource, namespace.unwrap_or_default(), "");
        self.objects
            .range(from..)
            .take_while(|(key, _)| key.group == resource.group && key.plural == resource.plural)
            .take_while(|(key, _)| namespace.is_none_or(|wanted| key.namespace == wanted))
            .filter_map(|(key, _)| Some((key.clone(), self.get_at(key, revision)?)))
            .collect()
    }

    /// Every living object.
    pub(crate) fn living(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Value>)> {
        self.objects.iter().filter_map(|(key, versions)| Some((key, versions.last()?.object.as_ref()?)))
    }

    /// Changes with a revision above `after`.
    pub(crate) fn changes_after(&self, after: u64) -> &[Change] {
        let skip = after.saturating_sub(self.first);
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(self.log.len());
        &self.log[skip..]
    }

    /// Writes `after` (or the removal) as the next revision and returns the object as written. A removed object is
    /// returned with the revision of its removal, as watchers see it.
    pub(crate) fn commit(&mut self, key: ObjectKey, after: Option<Value>) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        let before = self.get(&key);
        let after = after.map(|object| Arc::new(with_revision(object, revision)));
        let answer = match (&after, &before) {
            (Some(object), _) => Arc::clone(object),
            (None, Some(object)) => Arc::new(with_revision(object.as_ref().clone(), revision)),
            (None, None) => Arc::new(Value::Null),
        };
        let version = Version { revision, object: after.clone() };
        self.objects.entry(key.clone()).or_default().push(version);
        self.log.push(Change { revision, key, before, after });
        answer
    }
}

/// The object with its resourceVersion set.
pub(crate) fn with_revision(mut object: Value, revision: u64) -> Value {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    object["metadata"]["resourceVersion"] = json!(revision.to_string());
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn a_list_can_be_answered_as_of_any_revision() {
        let resource = Registry::built_in().guess("configmaps").unwrap();
        let mut history = History::new();
        let key = |name: &str| ObjectKey::new(&resource, "default", name);
        history.commit(key("a"), Some(json!({"metadata": {"name": "a"}})));
        let middle = history.revision();
        history.commit(key("b"), Some(json!({"metadata": {"name": "b"}})));
        history.commit(key("a"), None);
        let names = |revision| {
            history.list_at(&resource, Some("default"), revision).into_iter().map(|(key, _)| key.name).collect::<Vec<_>>()
        };
        assert_eq!(names(middle), ["a"]);
        assert_eq!(names(middle + 1), ["a", "b"]);
        assert_eq!(names(history.revision()), ["b"]);
        assert_eq!(history.changes_after(middle).len(), 2);
    }
}
