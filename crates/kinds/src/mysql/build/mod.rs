//! The objects of a `MySQLCluster`, as they should be. One file per object; nothing here asks what is there already, except whether
//! there are passwords, and which size the `StatefulSet` is to have: both are decided elsewhere.
//!
//! Pure, and without passwords: a Secret is a recipe. Old objects (ConfigMaps of an earlier text, a budget that is of no use any more)
//! are spoken of in `removals`.

mod certificate;
mod config_maps;
mod containers;
mod disruption_budget;
mod names;
mod secrets;
mod services;
mod sidecars;
mod stateful_set;
mod volumes;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use windlass_api::mysql::keys;
use windlass_core::kept;
use windlass_core::kind::KIND_LABEL;
use windlass_core::labels;
use windlass_core::likeness::seal;
use windlass_core::step::{Manifest, ObjectKind, ObjectRef, Step};
use windlass_core::views::{Children, ObjectView};

use super::deeds::Deed;
use super::validate::Validated;
pub(super) use crate::claim_templates::Claims;
use crate::claim_templates::{self, Asked};
use crate::fields::{Fields, fields_of, put_default, take_fields, take_list, without_nothing};

pub use certificate::Renewal;
pub use config_maps::my_cnf;
pub(super) use config_maps::{FLUENT_BIT, MY_CNF};
#[cfg(test)]
pub(super) use containers::with_agent;
pub(super) use containers::{RESERVED_CONTAINERS, RESERVED_INIT_CONTAINERS, has_agent};
pub use names::{DATA, Names};
use stateful_set::{LEFT_OUT, template_inputs};
pub(super) use volumes::RESERVED_VOLUMES;

/// The value of the label that tells of which kind of cluster an object is a part.
const KIND: &str = "mysql";
/// The protocol of all ports, and of those of the user's that name none.
const TCP: &str = "TCP";
/// The server's socket.
const SOCKET: &str = "/run/mysqld.sock";

/// A port with a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    pub(super) name: &'static str,
    pub(super) number: u16,
}

const MYSQL: Port = Port { name: "mysql", number: 3306 };
const MYSQLX: Port = Port { name: "mysqlx", number: 33060 };
const ADMIN: Port = Port { name: "mysql-admin", number: 33062 };
/// Where the agent answers probes. It is a port of the server's container, since its probes name it.
const HEALTH: Port = Port { name: "health", number: 9081 };
/// The ports of the server's container.
pub(super) const SERVER_PORTS: [Port; 4] = [MYSQL, MYSQLX, ADMIN, HEALTH];

/// What the objects depend on beside the custom resource.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The operator's own image, which has the one program of all components.
    pub agent_image: &'a str,
    /// `server_id` of instance 0; the others follow.
    pub server_id_base: u32,
    /// The size of the `StatefulSet`.
    pub size: u16,
    /// What the user's ConfigMap holds; empty without one.
    pub options: &'a BTreeMap<String, String>,
    /// The Secret with the passwords, if it exists.
    pub credentials: Option<&'a ObjectView>,
    /// Whether passwords were made before: then a missing Secret is never made anew.
    pub remembered_credentials: bool,
    /// What the agents' certificate depends on; none where nobody signs certificates.
    pub certificate: Option<Renewal<'a>>,
}

/// Every object of the cluster, in the order in which they are applied.
///
/// With a setting that cannot be written (see [`my_cnf`]) there is no my.cnf, and so neither its ConfigMap nor the `StatefulSet`: what
/// is there stays as it is.
pub fn objects(cluster: &Validated, inputs: &Inputs<'_>, children: &Children) -> Objects {
    let my_cnf = my_cnf(cluster, inputs.options).ok();
    let mut plain = Vec::new();
    plain.extend(secrets::credentials(cluster, inputs));
    plain.extend(secrets::my_cnf_credentials(cluster, inputs));
    plain.extend(inputs.certificate.map(|renewal| certificate::certificate(cluster, &renewal)));
    plain.extend(my_cnf.as_ref().map(|my_cnf| config_maps::of_my_cnf(cluster, my_cnf)));
    plain.extend(config_maps::of_slow_log(cluster));
    plain.push(service_account(cluster));
    plain.extend([services::headless(cluster), services::primary(cluster), services::replica(cluster)]);
    plain.extend(disruption_budget::disruption_budget(cluster, inputs.size));
    let mut applied: Vec<Manifest> = plain.into_iter().map(|manifest| seal(manifest, &[])).collect();
    let Some(my_cnf) = my_cnf else { return Objects { applied, removals: Vec::new(), claims: Claims::AsAsked } };
    let mut set = stateful_set::stateful_set(cluster, inputs, &my_cnf);
    let live = children.stateful_sets.get(&set.object.name);
    let templates = cluster.spec.volume_claim_templates.iter().map(|it| Value::Object(fields_of(it))).collect();
    let asked = Asked { templates, field: "spec.volumeClaimTemplates", members: "instances" };
    let claims = claim_templates::resolve(&mut set, &asked, live);
    let kept = kept::resolve(set, &template_inputs(cluster, inputs), LEFT_OUT, children);
    let removals = kept.removals();
    applied.extend(kept.keep);
    applied.push(kept.set);
    Objects { applied, removals, claims }
}

/// The objects of a cluster.
pub struct Objects {
    /// As they should be.
    pub applied: Vec<Manifest>,
    /// Steps that remove what is of no use any more.
    pub removals: Vec<Step<Deed>>,
    /// How the claim templates of the `StatefulSet` that is there stand to what is asked for.
    pub claims: Claims,
}

/// Nothing is said of it: it only gives the pods a name that rights can be granted to.
fn service_account(cluster: &Validated) -> Manifest {
    manifest(cluster, ObjectKind::ServiceAccount, &cluster.names().service_account(), json!({}))
}

/// The labels that selectors have. Those of existing objects cannot be changed, so there are never more nor fewer.
fn base_labels(cluster: &Validated) -> BTreeMap<String, String> {
    let base =
        [(keys::NAME, keys::NAME_MYSQL), (keys::INSTANCE, cluster.name.as_str()), (keys::CREATED_BY, keys::CREATED_BY_MOCO)];
    base.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The labels by which the operator finds what belongs to a cluster.
pub(super) fn found_by(cluster: &Validated) -> BTreeMap<String, String> {
    let mut all = all_labels(cluster);
    all.retain(|key, _| [labels::MANAGED_BY, labels::INSTANCE, KIND_LABEL].contains(&key.as_str()));
    all
}

/// The labels of every object: those of selectors, and those by which the operator finds its own.
fn all_labels(cluster: &Validated) -> BTreeMap<String, String> {
    let mut all = base_labels(cluster);
    all.insert(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_WINDLASS.to_owned());
    all.insert(labels::INSTANCE.to_owned(), cluster.name.clone());
    all.insert(KIND_LABEL.to_owned(), KIND.to_owned());
    all
}

fn manifest(cluster: &Validated, kind: ObjectKind, name: &str, spec: Value) -> Manifest {
    Manifest {
        object: ObjectRef { kind, namespace: cluster.namespace.clone(), name: name.to_owned() },
        labels: all_labels(cluster),
        annotations: BTreeMap::new(),
        owner: cluster.owner.clone(),
        spec,
        over: None,
        never_held: false,
    }
}

#[cfg(test)]
mod tests;
