//! The `StatefulSet` with the instances' pods.
//!
//! Puts the parts together and fills in what the user left out. Which containers there are and what they do is decided in
//! `containers` and `sidecars`; how many pods run is the caller's to say.

use serde_json::{Value, json};
use windlass_api::mysql::keys;
use windlass_core::likeness::short_hash;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::mycnf::MyCnf;
use super::super::validate::{MYSQLD, Validated};
use super::{
    Fields, Inputs, all_labels, base_labels, containers, fields_of, manifest, put_default, sidecars, take_fields, volumes,
    without_nothing,
};

/// The size changes on another path, and so do the claim templates, which cannot be changed in place.
pub const LEFT_OUT: &[&str] = &["replicas", "volumeClaimTemplates"];

/// Who runs the containers, and whose the volumes are, where the user says nothing else. Existing volumes belong to it.
const NOBODY: i64 = 10_000;
const DEFAULT_GRACE_SECONDS: i64 = 300;

pub(super) fn stateful_set(cluster: &Validated, inputs: &Inputs<'_>, my_cnf: &MyCnf) -> Manifest {
    let spec = json!({
        "replicas": inputs.size,
        "serviceName": cluster.names().headless_service(),
        "podManagementPolicy": "Parallel",
        // Pods are replaced by the operator, one at a time and under health; never by the controller on its own, not even as far as
        // a partition lets it.
        "updateStrategy": { "type": "OnDelete" },
        "selector": { "matchLabels": base_labels(cluster) },
        "template": { "metadata": template_metadata(cluster), "spec": pod_spec(cluster, inputs, my_cnf) },
        "volumeClaimTemplates": volumes::claims(cluster),
    });
    let mut set = manifest(cluster, ObjectKind::StatefulSet, &cluster.names().set(), spec);
    if cluster.force_rolling_update {
        set.annotations.insert(keys::FORCE_ROLLING_UPDATE.to_owned(), "true".to_owned());
    }
    set
}

/// The hash of what of the user's wishes reaches the pod template. The operator's own image is none of them: a newer one alone is no
/// reason to restart a server (see `windlass_core::kept`).
pub fn template_inputs(cluster: &Validated, inputs: &Inputs<'_>) -> String {
    let spec = &cluster.spec;
    let wishes = json!([
        cluster.name,
        spec.pod_template,
        inputs.options,
        inputs.server_id_base,
        spec.collectors,
        spec.max_delay_seconds,
        spec.startup_wait_seconds,
        spec.log_rotation_schedule,
        spec.log_rotation_size,
        spec.disable_slow_query_log_container,
        spec.slow_query_log_config_tmpl,
        spec.agent_use_localhost,
        spec.initialize_timezone_data,
    ]);
    short_hash(&wishes.to_string())
}

fn template_metadata(cluster: &Validated) -> Value {
    let given = cluster.spec.pod_template.metadata.clone().unwrap_or_default();
    let mut labels = given.labels.unwrap_or_default();
    // In a template it would make every instance a primary, or none.
    labels.remove(keys::ROLE);
    labels.extend(all_labels(cluster));
    let mut annotations = given.annotations.unwrap_or_default();
    if cfg!(feature = "rehearsal") {
        annotations.insert("windlass.dev/rehearsal".to_owned(), "true".to_owned());
    }
    without_nothing(fields_of(&json!({ "labels": labels, "annotations": annotations }))).into()
}

fn pod_spec(cluster: &Validated, inputs: &Inputs<'_>, my_cnf: &MyCnf) -> Value {
    let mut pod = fields_of(&cluster.spec.pod_template.spec);
    let security = security_context(take_fields(&mut pod, "securityContext"));
    put_default(&mut pod, "terminationGracePeriodSeconds", grace_seconds(cluster));
    // Nothing of the operator's in a pod speaks to Kubernetes.
    put_default(&mut pod, "automountServiceAccountToken", false);
    put_default(&mut pod, "affinity", apart(cluster));
    pod.extend([
        ("serviceAccountName".to_owned(), cluster.names().service_account().into()),
        ("securityContext".to_owned(), security.into()),
        ("initContainers".to_owned(), init_containers(cluster, inputs).into()),
        ("containers".to_owned(), all_containers(cluster, inputs).into()),
        ("volumes".to_owned(), volumes::volumes(cluster, my_cnf).into()),
    ]);
    without_nothing(pod).into()
}

/// How long a pod has to end.
pub(super) fn grace_seconds(cluster: &Validated) -> i64 {
    let given = cluster.spec.pod_template.spec.rest.get("terminationGracePeriodSeconds");
    given.and_then(Value::as_i64).unwrap_or(DEFAULT_GRACE_SECONDS)
}

fn init_containers(cluster: &Validated, inputs: &Inputs<'_>) -> Vec<Value> {
    let given = cluster.spec.pod_template.spec.init_containers.iter().flatten();
    containers::init_containers(cluster, inputs).into_iter().chain(given.map(containers::users)).collect()
}

/// The server comes first, wherever the user has it: its process is known by that.
fn all_containers(cluster: &Validated, inputs: &Inputs<'_>) -> Vec<Value> {
    let ours = [sidecars::given_slow_log(cluster), sidecars::given_exporter(cluster)];
    let is_ours = |name: &str| name == MYSQLD || ours.iter().flatten().any(|given| given.name == name);
    let others = cluster.spec.pod_template.spec.containers.iter().filter(|given| !is_ours(&given.name));
    let mut all = vec![containers::mysqld(cluster), containers::agent(cluster, inputs)];
    all.extend(sidecars::sidecars(cluster));
    all.extend(others.map(containers::users));
    all
}

/// What counts for all containers that say nothing else.
fn security_context(mut given: Fields) -> Fields {
    put_default(&mut given, "runAsUser", NOBODY);
    put_default(&mut given, "runAsGroup", NOBODY);
    put_default(&mut given, "fsGroup", NOBODY);
    // Else every start walks through the whole volume.
    put_default(&mut given, "fsGroupChangePolicy", "OnRootMismatch");
    given
}

/// The user and the group that the server runs as. What prepares its files and what renames its logs must be the same.
pub(super) fn runs_as(cluster: &Validated) -> (i64, i64) {
    let of_container = cluster.mysqld.rest.get("securityContext");
    let of_pod = cluster.spec.pod_template.spec.rest.get("securityContext");
    let given = |field: &str| [of_container, of_pod].into_iter().flatten().find_map(|context| context.get(field)?.as_i64());
    (given("runAsUser").unwrap_or(NOBODY), given("runAsGroup").unwrap_or(NOBODY))
}

/// Rather not two instances on one node, where the user says nothing else.
fn apart(cluster: &Validated) -> Value {
    json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": { "matchLabels": base_labels(cluster) },
            "topologyKey": "kubernetes.io/hostname",
        },
    }] } })
}
