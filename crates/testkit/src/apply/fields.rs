//! A set of field paths, and its `fieldsV1` form.
//!
//! A path is a list of encoded elements: `f:name`, `k:{"name":"x"}`, `v:"x"`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::topology::Place;

pub(crate) type FieldPath = Vec<String>;

/// Owned paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(BTreeSet<FieldPath>);

impl FieldSet {
    pub(crate) fn insert(&mut self, path: &[String]) {
        self.0.insert(path.to_vec());
    }

    pub(crate) fn contains(&self, path: &[String]) -> bool {
        self.0.contains(path)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &FieldPath> {
        self.0.iter()
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).cloned().collect())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }

    /// Without the paths that are the server's own business: identity and book-keeping in metadata.
    pub(crate) fn without_system_fields(&self) -> Self {
        const SYSTEM: [&str; 10] = [
            "f:name",
            "f:namespace",
            "f:creationTimestamp",
            "f:deletionTimestamp",
            "f:deletionGracePeriodSeconds",
            "f:selfLink",
            "f:uid",
            "f:generation",
            "f:managedFields",
            "f:resourceVersion",
        ];
        let system = |path: &FieldPath| match path.as_slice() {
            [] => true,
            [only] => matches!(only.as_str(), "f:apiVersion" | "f:kind" | "f:metadata"),
            [first, second, ..] => first == "f:metadata" && SYSTEM.contains(&second.as_str()),
        };
        Self(self.0.iter().filter(|path| !system(path)).cloned().collect())
    }

    /// With every declared field that lies above an owned path. A free key is not added: it is owned or it is not.
    pub(crate) fn with_declared_ancestors(&self, root: Place<'_>) -> Self {
        let mut all = self.0.clone();
        for path in &self.0 {
            let mut place = root;
            for (depth, element) in path.iter().enumerate() {
                if let Some(name) = element.strip_prefix("f:") {
                    if place.declares(name) {
                        all.insert(path[..=depth].to_vec());
                    }
                    place = place.field(name);
                } else {
                    place = place.item();
                }
            }
        }
        Self(all)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut root = Branch::default();
        for path in &self.0 {
            let mut branch = &mut root;
            for element in path {
                branch = branch.children.entry(element).or_default();
            }
            branch.member = true;
        }
        root.to_json()
    }

    pub(crate) fn from_json(fields: &Value) -> Self {
        let mut set = Self::default();
        collect(fields, &mut Vec::new(), &mut set);
        set
    }
}

#[derive(Default)]
struct Branch<'a> {
    member: bool,
    children: BTreeMap<&'a str, Branch<'a>>,
}

impl Branch<'_> {
    fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.member && !self.children.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            map.insert((*element).to_owned(), child.to_json());
        }
        Value::Object(map)
    }
}

fn collect(fields: &Value, path: &mut FieldPath, set: &mut FieldSet) {
    for (element, child) in fields.as_object().into_iter().flatten() {
        if element == "." {
            set.insert(path);
            continue;
        }
        path.push(element.clone());
        if child.as_object().is_none_or(Map::is_empty) {
            set.insert(path);
        } else {
            collect(child, path, set);
        }
        path.pop();
    }
}

/// The path as error messages write it: `.spec.containers[name="a"].image`.
pub(crate) fn readable(path: &[String]) -> String {
    let mut text = String::new();
    for element in path {
        if let Some(name) = element.strip_prefix("f:") {
            text.push('.');
            text.push_str(name);
        } else if let Some(keys) = element.strip_prefix("k:") {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let listed: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            text.extend(["[", &listed.join(","), "]"]);
        } else if let Some(value) = element.strip_prefix("v:") {
            text.extend(["[=", value, "]"]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_form_is_read_and_written_without_loss() {
        let form = json!({
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:name": {}}}},
        });
        assert_eq!(FieldSet::from_json(&form).to_json(), form);
    }

    #[test]
    fn paths_read_like_the_real_servers_messages() {
        let path = ["f:spec", "f:containers", "k:{\"name\":\"a\"}", "f:image"].map(str::to_owned);
        assert_eq!(readable(&path), ".spec.containers[name=\"a\"].image");
    }
}
