//! Clusters for tests.

use serde_json::{Value, json};
use windlass_api::tidb::TidbCluster;

use super::validate::{Validated, validate};

/// Every component, with as little as each needs.
pub(super) fn document() -> Value {
    let storage = json!({ "storage": "10Gi" });
    json!({
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": { "name": "harbour", "namespace": "shop", "uid": "u-1" },
        "spec": {
            "version": "v8.5.2",
            "pd": { "replicas": 3, "requests": storage },
            "tikv": { "replicas": 4, "requests": storage },
            "tidb": { "replicas": 2, "service": {} },
            "tiflash": { "replicas": 2, "storageClaims": [{ "resources": { "requests": storage } }] },
            "ticdc": { "replicas": 2 },
            "tiproxy": { "replicas": 2, "version": "v1.3.0" },
            "pump": { "replicas": 1, "requests": storage },
        },
    })
}

/// The document with places changed, each given as a JSON pointer. Null removes what is there; what lies above is made.
pub(super) fn changed(changes: &[(&str, Value)]) -> TidbCluster {
    let mut document = document();
    for (place, value) in changes {
        put(&mut document, place, value);
    }
    serde_json::from_value(document).unwrap()
}

fn put(document: &mut Value, place: &str, value: &Value) {
    let (parent, name) = place.rsplit_once('/').unwrap();
    let mut node = document;
    for part in parent.split('/').skip(1) {
        let part = part.replace("~1", "/");
        node = match node {
            Value::Array(items) => &mut items[part.parse::<usize>().unwrap()],
            other => &mut other[part],
        };
    }
    let name = name.replace("~1", "/");
    match node {
        Value::Array(items) => items[name.parse::<usize>().unwrap()] = value.clone(),
        Value::Object(fields) if value.is_null() => drop(fields.remove(&name)),
        other => other[name] = value.clone(),
    }
}

/// The same, found good.
pub(super) fn valid(changes: &[(&str, Value)]) -> Validated {
    validate(&changed(changes)).unwrap()
}
