//! What belongs to a StatefulSet that another operator made and that was taken over: its pods and claims have names that are known, and
//! not the labels by which they are found.
//!
//! Whether a cluster is taken over is decided by the user, and carried out where its objects are met. This only names what is not seen
//! yet, and touches nothing that pods are made of.

use serde_json::Value;

use crate::labels::ADOPTED;
use crate::step::ObjectKind;
use crate::views::{Children, StatefulSetView};

/// Something that belongs to a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name.
    pub name: String,
    /// The UID of the object that controls it, where it has to have one.
    pub controller: Option<String>,
}

/// Whether a set was taken over.
pub fn is_adopted(set: &StatefulSetView) -> bool {
    set.object.meta.annotations.contains_key(ADOPTED)
}

/// The pods and claims of a set that was taken over, as far as nobody sees them. None of a set that was made here: what is missing then is
/// gone.
pub fn unseen(set: &StatefulSetView, children: &Children) -> Vec<Unseen> {
    if !is_adopted(set) {
        return Vec::new();
    }
    let (name, uid) = (&set.object.meta.name, &set.object.meta.uid);
    let spec = set.object.spec.value();
    let templates = spec.get("volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
    let templates: Vec<&str> = templates.filter_map(|it| it.pointer("/metadata/name")?.as_str()).collect();
    let mut unseen = Vec::new();
    for ordinal in 0..set.replicas {
        let pod = format!("{name}-{ordinal}");
        let claims =
            templates.iter().map(|template| format!("{template}-{pod}")).filter(|it| !children.claims.contains_key(it));
        unseen.extend(claims.map(|name| Unseen { kind: ObjectKind::PersistentVolumeClaim, name, controller: None }));
        if !children.pods.contains_key(&pod) {
            unseen.push(Unseen { kind: ObjectKind::Pod, name: pod, controller: Some(uid.clone()) });
        }
    }
    unseen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::views::{ClaimView, Compact, Meta, ObjectView, PodView};

    fn set(adopted: bool) -> StatefulSetView {
        let mut meta = Meta { name: "a-pd".into(), uid: "u-1".into(), ..Meta::default() };
        if adopted {
            meta.annotations.insert(ADOPTED.into(), "true".into());
        }
        let spec = json!({ "volumeClaimTemplates": [{ "metadata": { "name": "pd" } }, { "metadata": { "name": "log" } }] });
        StatefulSetView { object: ObjectView { meta, spec: Compact::of(&spec) }, replicas: 2, ..StatefulSetView::default() }
    }

    #[test]
    fn of_a_set_that_was_taken_over_whatever_is_not_seen_is_named() {
        let mut children = Children::default();
        children.pods.insert("a-pd-0".into(), PodView::default());
        children.claims.insert("log-a-pd-0".into(), ClaimView::default());
        children.claims.insert("pd-a-pd-1".into(), ClaimView::default());
        let unseen: Vec<_> = unseen(&set(true), &children).into_iter().map(|it| (it.name, it.controller)).collect();
        let expected = [("pd-a-pd-0".into(), None), ("log-a-pd-1".into(), None), ("a-pd-1".into(), Some("u-1".into()))];
        assert_eq!(unseen, expected);
    }

    #[test]
    fn of_a_set_that_was_made_here_nothing_is() {
        assert_eq!(unseen(&set(false), &Children::default()), []);
    }
}
