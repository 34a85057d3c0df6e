//! How a place in an object merges: as one value, by named fields, by free keys, or as a list with keys.
//!
//! Built-in kinds are described by the names of their fields, which are unambiguous for the objects we care about;
//! custom resources by the `x-kubernetes-*` marks of their schema; what has no schema merges maps by key and takes
//! lists whole.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::registry::Resource;

/// A place in an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a>(Node<'a>);

#[derive(Clone, Copy, Debug)]
enum Node<'a> {
    /// A field of a built-in type: its name and the name of the field around it.
    Field {
        name: &'a str,
        parent: &'a str,
    },
    /// An item of the list in the built-in field `list`.
    Item {
        list: &'a str,
    },
    /// A value under a free key of the built-in map `map`.
    Entry,
    /// The root of a custom resource; its metadata is a built-in type.
    CustomRoot(&'a Value),
    Schema(&'a Value),
    Untyped,
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListShape {
    Atomic,
    Set,
    /// Key fields with the values they default to.
    Keyed(Vec<(String, Option<Value>)>),
}

static NULL: Value = Value::Null;

/// Fields whose value is taken whole although it is a map.
const ATOMIC_MAPS: [&str; 17] = [
    "selector",
    "labelSelector",
    "namespaceSelector",
    "nodeSelector",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "roleRef",
    "scaleTargetRef",
    "involvedObject",
    "regarding",
    "related",
    "targetRef",
    "dataSource",
    "dataSourceRef",
    "requiredDuringSchedulingIgnoredDuringExecution",
];

/// Fields that are maps with free keys.
const FREE_MAPS: [&str; 12] = [
    "labels",
    "annotations",
    "data",
    "stringData",
    "binaryData",
    "limits",
    "requests",
    "capacity",
    "allocatable",
    "hard",
    "used",
    "disruptedPods",
];

impl<'a> Place<'a> {
    pub(crate) fn root(resource: &'a Resource) -> Self {
        match (&resource.schema, resource.custom) {
            (Some(schema), _) => Self(Node::CustomRoot(schema)),
            (None, true) => Self(Node::CustomRoot(&NULL)),
            (None, false) => Self(Node::Field { name: "", parent: "" }),
        }
    }

    /// The place of a field of this map.
    pub(crate) fn field(self, name: &'a str) -> Self {
        Self(match self.0 {
            Node::Field { name: around, .. } if FREE_MAPS.contains(&around) => Node::Entry,
            Node::Field { name: around, .. } | Node::Item { list: around } => Node::Field { name, parent: around },
            Node::CustomRoot(_) if name == "metadata" => Node::Field { name, parent: "" },
            Node::CustomRoot(schema) | Node::Schema(schema) => schema_field(schema, name),
            Node::Entry | Node::Untyped => Node::Untyped,
        })
    }

    /// The place of the items of this list.
    pub(crate) fn item(self) -> Self {
        Self(match self.0 {
            Node::Field { name, .. } => Node::Item { list: name },
            Node::Schema(schema) | Node::CustomRoot(schema) => match schema.get("items") {
                Some(items) => Node::Schema(items),
                None => Node::Untyped,
            },
            Node::Item { .. } | Node::Entry | Node::Untyped => Node::Untyped,
        })
    }

    /// Whether a map here is taken whole.
    pub(crate) fn is_atomic_map(self) -> bool {
        match self.0 {
            Node::Field { name, .. } => ATOMIC_MAPS.contains(&name),
            Node::Schema(schema) => schema["x-kubernetes-map-type"] == "atomic",
            _ => false,
        }
    }

    /// Whether `name` is a declared field here, rather than a free key.
    pub(crate) fn declares(self, name: &str) -> bool {
        match self.0 {
            Node::Field { name: own, .. } => !FREE_MAPS.contains(&own),
            Node::Item { .. } => true,
            Node::CustomRoot(_) if matches!(name, "metadata" | "apiVersion" | "kind") => true,
            Node::CustomRoot(schema) | Node::Schema(schema) => schema["properties"].get(name).is_some(),
            Node::Entry | Node::Untyped => false,
        }
    }

    /// How a list here is merged.
    pub(crate) fn list_shape(self) -> ListShape {
        match self.0 {
            Node::Field { name, parent } => built_in_list(name, parent),
            Node::Schema(schema) => schema_list(schema),
            _ => ListShape::Atomic,
        }
    }
}

fn schema_field<'a>(schema: &'a Value, name: &str) -> Node<'a> {
    if let Some(declared) = schema["properties"].get(name) {
        return Node::Schema(declared);
    }
    match schema.get("additionalProperties") {
        Some(additional) if additional.is_object() => Node::Schema(additional),
        _ => Node::Untyped,
    }
}

fn keyed(names: &[&str]) -> ListShape {
    ListShape::Keyed(
        names
            .iter()
            .map(|name| {
                let default = (*name == "protocol").then(|| json!("TCP"));
                ((*name).to_owned(), default)
            })
            .collect(),
    )
}

fn built_in_list(name: &str, parent: &str) -> ListShape {
    let in_container = matches!(parent, "containers" | "initContainers" | "ephemeralContainers");
    match name {
        "containers" | "initContainers" | "ephemeralContainers" | "imagePullSecrets" | "claims" | "resourceClaims" => {
            keyed(&["name"])
        }
        "volumes" if parent == "spec" => keyed(&["name"]),
        "env" if in_container => keyed(&["name"]),
        "volumeMounts" if in_container => keyed(&["mountPath"]),
        "volumeDevices" if in_container => keyed(&["devicePath"]),
        "ports" if in_container => keyed(&["containerPort", "protocol"]),
        "ports" if parent == "spec" => keyed(&["port", "protocol"]),
        "conditions" => keyed(&["type"]),
        "ownerReferences" => keyed(&["uid"]),
        "finalizers" => ListShape::Set,
        "hostAliases" | "podIPs" | "hostIPs" => keyed(&["ip"]),
        "topologySpreadConstraints" => keyed(&["topologyKey", "whenUnsatisfiable"]),
        "secrets" if parent.is_empty() => keyed(&["name"]),
        _ => ListShape::Atomic,
    }
}

fn schema_list(schema: &Value) -> ListShape {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListShape::Set,
        Some("map") => {
            let names = schema["x-kubernetes-list-map-keys"].as_array();
            let properties = &schema["items"]["properties"];
            ListShape::Keyed(
                names
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(|name| (name.to_owned(), properties[name].get("default").cloned()))
                    .collect(),
            )
        }
        _ => ListShape::Atomic,
    }
}

/// The path element of a list item: `k:{…}` for keyed lists, `v:…` for sets. `None` when a key is missing.
pub(crate) fn item_element(shape: &ListShape, item: &Value) -> Option<String> {
    match shape {
        ListShape::Atomic => None,
        ListShape::Set => Some(format!("v:{item}")),
        ListShape::Keyed(keys) => {
            let mut found = BTreeMap::new();
            for (name, default) in keys {
                if let Some(value) = item.get(name).filter(|value| !value.is_null()).or(default.as_ref()) {
                    found.insert(name.as_str(), value);
                }
            }
            if found.is_empty() {
                return None;
            }
            Some(format!("k:{}", serde_json::to_string(&found).ok()?))
        }
    }
}
