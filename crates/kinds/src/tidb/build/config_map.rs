//! The `ConfigMap` of a component: its configuration, and the script that starts it.
//!
//! Where another configuration replaces pods, the `ConfigMap` is named after what it holds, so that one that a pod has mounted never
//! changes under it. Where it waits for the next restart, the one that is in use is changed, whatever it is called: pods were made with
//! that name, and another one would replace them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::tidb::Component;
use windlass_core::likeness::short_hash;
use windlass_core::step::{Manifest, ObjectKind};
use windlass_core::views::StatefulSetView;

use super::super::validate::{ConfigUpdate, Group, Validated};
use super::{configs, manifest, scripts};

/// The key of a configuration.
pub(super) const CONFIG: &str = "config-file";
/// The key of a start script.
pub(super) const SCRIPT: &str = "startup-script";
/// The keys of TiFlash's configuration, and of its proxy's.
pub(super) const TIFLASH_CONFIG: &str = "config_templ.toml";
pub(super) const TIFLASH_PROXY: &str = "proxy_templ.toml";
/// The key of Pump's configuration.
pub(super) const PUMP_CONFIG: &str = "pump-config";

/// How much of the hash is in the name.
const DIGEST: usize = 7;

pub(super) fn config_map(cluster: &Validated, group: &Group, live: Option<&StatefulSetView>) -> Manifest {
    let data = data(cluster, group);
    let plain = cluster.names().config_map(group.component);
    let name = match group.config_update {
        ConfigUpdate::RollingUpdate => format!("{plain}-{}", digest(&data)),
        ConfigUpdate::InPlace => live.and_then(|live| in_use(live, &plain)).unwrap_or(plain),
    };
    manifest(cluster, ObjectKind::ConfigMap, group.component.as_str(), &name, json!(data))
}

fn data(cluster: &Validated, group: &Group) -> BTreeMap<&'static str, String> {
    let config = configs::config(cluster, group).to_string();
    match group.component {
        Component::Pd | Component::Tikv | Component::Tidb | Component::Tiproxy => {
            BTreeMap::from([(CONFIG, config), (SCRIPT, scripts::of_file(cluster, group))])
        }
        Component::Tiflash => {
            BTreeMap::from([(TIFLASH_CONFIG, config), (TIFLASH_PROXY, configs::proxy(cluster, group).to_string())])
        }
        Component::Ticdc => BTreeMap::from([(CONFIG, config)]),
        Component::Pump => BTreeMap::from([(PUMP_CONFIG, config)]),
    }
}

fn digest(data: &BTreeMap<&'static str, String>) -> String {
    // Maps with keys that are text can always be written.
    let text = serde_json::to_string(data).unwrap_or_default();
    short_hash(&text).chars().take(DIGEST).collect()
}

/// The one that the pods of a live set have: called as the component, with something behind it or not.
fn in_use(live: &StatefulSetView, plain: &str) -> Option<String> {
    let spec = live.object.spec.value();
    let volumes = spec.pointer("/template/spec/volumes").and_then(Value::as_array)?;
    let mut names = volumes.iter().filter_map(|volume| volume.pointer("/configMap/name")?.as_str());
    let is_so = |name: &str| name.strip_prefix(plain).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    names.find(|name| is_so(name)).map(str::to_owned)
}
