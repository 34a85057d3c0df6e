//! Plays the garbage collector and the namespace controller, when the test asks (or after every write).
//!
//! Owners are known by uid alone: an owner of the same name with another uid is gone.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    delete::{DeleteOptions, FOREGROUND, ORPHAN},
    object::{finalizers, is_deleting, meta, meta_mut},
    state::State,
    store::ObjectKey,
};

impl State {
    /// Collects until nothing more changes; returns how many objects were written or removed.
    pub(crate) fn collect_garbage(&mut self) -> usize {
        let mut total = 0;
        loop {
            let done = self.empty_namespaces() + self.settle_owners() + self.remove_unowned();
            if done == 0 {
                return total;
            }
            total += done;
        }
    }

    fn snapshot(&self) -> Vec<(ObjectKey, Arc<Value>)> {
        self.history.living().map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }

    fn discard(&mut self, key: &ObjectKey) -> usize {
        let before = self.history.revision();
        if let Some(resource) =
            self.registry.guess(&format!("{}.{}", key.plural, key.group)).or_else(|| self.registry.guess(&key.plural))
        {
            // The object was seen alive under the same lock, so the delete cannot miss it.
            let _ = self.delete(&resource, key, &DeleteOptions::default());
        }
        usize::from(self.history.revision() != before)
    }

    /// Deletes what is inside a terminating namespace, then the namespace.
    fn empty_namespaces(&mut self) -> usize {
        let mut done = 0;
        let all = self.snapshot();
        let terminating =
            all.iter().filter(|(key, object)| key.group.is_empty() && key.plural == "namespaces" && is_deleting(object));
        for (namespace, object) in terminating {
            let inside: Vec<_> = all.iter().filter(|(key, _)| key.namespace == namespace.name).collect();
            for (key, _) in &inside {
                done += self.discard(key);
            }
            if inside.is_empty() && finalizers(object).is_empty() {
                self.commit(namespace.clone(), None);
                done += 1;
            }
        }
        done
    }

    /// Lets go of objects that wait for their dependents to be orphaned or deleted.
    fn settle_owners(&mut self) -> usize {
        let mut done = 0;
        let all = self.snapshot();
        for (owner_key, owner) in all.iter().filter(|(_, object)| is_deleting(object)) {
            let waits = finalizers(owner);
            let uid = meta(owner, "uid");
            let dependents: Vec<_> = all.iter().filter(|(_, object)| owned_by(object, uid)).collect();
            if waits.contains(&ORPHAN) {
                for (key, object) in &dependents {
                    self.commit(key.clone(), Some(without_owner(object, uid)));
                    done += 1;
                }
                done += self.drop_finalizer(owner_key, ORPHAN);
            } else if waits.contains(&FOREGROUND) {
                for (key, _) in &dependents {
                    done += self.discard(key);
                }
                if dependents.is_empty() {
                    done += self.drop_finalizer(owner_key, FOREGROUND);
                }
            }
        }
        done
    }

    fn drop_finalizer(&mut self, key: &ObjectKey, finalizer: &str) -> usize {
        let Some(object) = self.history.get(key) else { return 0 };
        let mut object = (*object).clone();
        let kept: Vec<String> = finalizers(&object).into_iter().filter(|name| *name != finalizer).map(str::to_owned).collect();
        let last = kept.is_empty();
        let metadata = meta_mut(&mut object);
        if last {
            metadata.remove("finalizers");
        } else {
            metadata.insert("finalizers".to_owned(), json!(kept));
        }
        self.commit(key.clone(), (!last).then_some(object));
        1
    }

    /// Deletes objects whose owners are all gone, and forgets dead owners of the others.
    fn remove_unowned(&mut self) -> usize {
        let mut done = 0;
        let all = self.snapshot();
        let living: BTreeSet<(&str, &str)> =
            all.iter().map(|(key, object)| (meta(object, "uid"), key.namespace.as_str())).collect();
        for (key, object) in all.iter().filter(|(_, object)| !is_deleting(object)) {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let (present, absent): (Vec<&Value>, Vec<&Value>) = owners.into_iter().flatten().partition(|owner| {
                let uid = owner["uid"].as_str().unwrap_or_default();
                living.contains(&(uid, key.namespace.as_str())) || living.contains(&(uid, ""))
            });
            if absent.is_empty() {
                continue;
            }
            if present.is_empty() {
                done += self.discard(key);
                continue;
            }
            let mut kept = (**object).clone();
            for owner in absent {
                kept = without_owner(&kept, owner["uid"].as_str().unwrap_or_default());
            }
            self.commit(key.clone(), Some(kept));
            done += 1;
        }
        done
    }
}

fn owned_by(object: &Value, uid: &str) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|owner| owner["uid"] == uid)
}

fn without_owner(object: &Value, uid: &str) -> Value {
    let mut object = object.clone();
    let owners = object["metadata"]["ownerReferences"].as_array();
    let kept: Vec<Value> = owners.into_iter().flatten().filter(|owner| owner["uid"] != uid).cloned().collect();
    let metadata = meta_mut(&mut object);
    if kept.is_empty() {
        metadata.remove("ownerReferences");
    } else {
        metadata.insert("ownerReferences".to_owned(), Value::Array(kept));
    }
    object
}
