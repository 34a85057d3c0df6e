//! The volumes of the pods, where they are mounted, and the claims that each instance gets of its own.

use serde_json::{Value, json};
use windlass_api::mysql::ClaimTemplate;
use windlass_core::step::Owner;

use super::super::mycnf::MyCnf;
use super::super::validate::Validated;
use super::names::DATA;
use super::{Fields, all_labels, config_maps, fields_of, put_default, sidecars, take_fields, without_nothing};

const TMP: &str = "tmp";
const RUN: &str = "run";
const LOGS: &str = "var-log";
const MY_CNF: &str = "mysql-conf";
const INSTANCE_CNF: &str = "mysql-conf-d";
const CREDENTIALS: &str = "my-cnf-secret";
const SLOW_LOG: &str = "slow-fluent-bit-config";
const CERTIFICATE: &str = "grpc-cert";
const PROGRAM: &str = "shared";

/// Names of volumes that the user cannot have: those that users know as reserved, and the last two, which were always used as well.
pub(in super::super) const RESERVED_VOLUMES: [&str; 9] =
    [TMP, RUN, LOGS, MY_CNF, INSTANCE_CNF, CREDENTIALS, SLOW_LOG, CERTIFICATE, PROGRAM];

pub(super) const MY_CNF_PATH: &str = "/etc/mysql";
pub(super) const INSTANCE_CNF_PATH: &str = "/etc/mysql-conf.d";
pub(super) const DATA_PATH: &str = "/var/lib/mysql";
pub(super) const PROGRAM_PATH: &str = "/shared";
pub(super) const CREDENTIALS_PATH: &str = "/mysql-credentials";
pub(super) const CERTIFICATE_PATH: &str = "/grpc-cert";
pub(super) const LOGS_PATH: &str = "/var/log/mysql";
const FLUENT_BIT_PATH: &str = "/fluent-bit/etc";

/// The volumes: the user's, and the operator's.
pub(super) fn volumes(cluster: &Validated, my_cnf: &MyCnf) -> Vec<Value> {
    let given = cluster.spec.pod_template.spec.volumes.iter().flatten().map(|volume| Value::Object(fields_of(volume)));
    let names = cluster.names();
    let mut volumes: Vec<Value> = given.collect();
    volumes.extend([TMP, RUN, LOGS, INSTANCE_CNF, PROGRAM].map(|name| json!({ "name": name, "emptyDir": {} })));
    volumes.extend([
        json!({ "name": MY_CNF, "configMap": { "name": names.my_cnf(&my_cnf.fingerprint()) } }),
        json!({ "name": CREDENTIALS, "secret": { "secretName": names.my_cnf_credentials() } }),
        // A server needs no certificate to start: the agent reads it when it comes.
        json!({ "name": CERTIFICATE, "secret": { "secretName": names.certificate(), "optional": true } }),
    ]);
    if sidecars::given_slow_log(cluster).is_some() {
        volumes.push(json!({ "name": SLOW_LOG, "configMap": { "name": config_maps::slow_log_name(cluster) } }));
    }
    volumes
}

fn mount(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path })
}

fn read_only(volume: &str, path: &str) -> Value {
    json!({ "name": volume, "mountPath": path, "readOnly": true })
}

/// What the server needs.
pub(super) fn of_mysqld() -> [Value; 8] {
    [
        read_only(PROGRAM, PROGRAM_PATH),
        mount(DATA, DATA_PATH),
        read_only(MY_CNF, MY_CNF_PATH),
        read_only(INSTANCE_CNF, INSTANCE_CNF_PATH),
        mount(RUN, "/run"),
        mount(LOGS, LOGS_PATH),
        mount(TMP, "/tmp"),
        read_only(CREDENTIALS, CREDENTIALS_PATH),
    ]
}

/// The agent reaches the server through its socket, renames its slow log, and saves binary logs beside the data.
pub(super) fn of_agent() -> [Value; 4] {
    [mount(RUN, "/run"), mount(LOGS, LOGS_PATH), mount(DATA, DATA_PATH), read_only(CERTIFICATE, CERTIFICATE_PATH)]
}

/// Where the program is copied to.
pub(super) fn of_copy() -> [Value; 1] {
    [mount(PROGRAM, PROGRAM_PATH)]
}

/// What a server that initialises its data writes to; its root is read-only.
pub(super) fn of_init() -> [Value; 5] {
    [
        read_only(PROGRAM, PROGRAM_PATH),
        mount(DATA, DATA_PATH),
        mount(INSTANCE_CNF, INSTANCE_CNF_PATH),
        mount(RUN, "/run"),
        mount(TMP, "/tmp"),
    ]
}

/// The slow log and how to print it.
pub(super) fn of_slow_log() -> [Value; 2] {
    let file = config_maps::FLUENT_BIT;
    // One file only: the image has others beside it.
    let configuration =
        json!({ "name": SLOW_LOG, "mountPath": format!("{FLUENT_BIT_PATH}/{file}"), "subPath": file, "readOnly": true });
    [read_only(LOGS, LOGS_PATH), configuration]
}

/// The way to the server, and the password for it.
pub(super) fn of_exporter() -> [Value; 2] {
    [mount(RUN, "/run"), read_only(CREDENTIALS, CREDENTIALS_PATH)]
}

/// The claims that each instance gets. They belong to the cluster, not to the set, and go with it.
pub(super) fn claims(cluster: &Validated) -> Vec<Value> {
    cluster.spec.volume_claim_templates.iter().map(|claim| claim_template(cluster, claim)).collect()
}

fn claim_template(cluster: &Validated, claim: &ClaimTemplate) -> Value {
    let mut metadata = fields_of(&claim.metadata);
    let mut labels = take_fields(&mut metadata, "labels");
    // The controller of sets adds those of the selector only; the operator would not find its claims by these.
    labels.extend(all_labels(cluster).into_iter().map(|(key, value)| (key, value.into())));
    metadata.insert("labels".to_owned(), labels.into());
    metadata.insert("ownerReferences".to_owned(), json!([owner_reference(&cluster.owner)]));
    let mut spec: Fields = fields_of(&claim.spec);
    put_default(&mut spec, "accessModes", json!(["ReadWriteOnce"]));
    put_default(&mut spec, "volumeMode", "Filesystem");
    json!({ "metadata": without_nothing(metadata), "spec": spec })
}

fn owner_reference(owner: &Owner) -> Value {
    let Owner { api_version, kind, name, uid } = owner;
    json!({
        "apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true,
    })
}
