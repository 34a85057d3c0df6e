//! The two Secrets with passwords, as recipes: nothing here ever knows a password.
//!
//! The passwords are made once. A Secret with passwords that is missing although there were some is never made anew: servers know the
//! old ones, and new ones would lock everybody out.

use std::collections::BTreeMap;

use windlass_api::mysql::keys::{SECRET_VERSION, SECRET_VERSION_1};
use windlass_core::secrets::Recipe;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::validate::Validated;
use super::{Inputs, SOCKET, manifest};

/// The keys of the passwords.
const PASSWORDS: [&str; 8] = [
    "ADMIN_PASSWORD",
    "AGENT_PASSWORD",
    "REPLICATION_PASSWORD",
    "CLONE_DONOR_PASSWORD",
    "EXPORTER_PASSWORD",
    "BACKUP_PASSWORD",
    "READONLY_PASSWORD",
    "WRITABLE_PASSWORD",
];
/// The account of the exporter, which knows no way to the server but what its file says.
const EXPORTER: &str = "moco-exporter";
/// The accounts with a file for the `mysql` program, and the keys of their passwords.
const WITH_FILE: [(&str, &str); 5] = [
    ("moco-admin", "ADMIN_PASSWORD"),
    (EXPORTER, "EXPORTER_PASSWORD"),
    ("moco-backup", "BACKUP_PASSWORD"),
    ("moco-readonly", "READONLY_PASSWORD"),
    ("moco-writable", "WRITABLE_PASSWORD"),
];

/// The passwords, if there never were any.
pub(super) fn credentials(cluster: &Validated, inputs: &Inputs<'_>) -> Option<Manifest> {
    if inputs.credentials.is_some() || inputs.remembered_credentials {
        return None;
    }
    // Nobody may change them afterwards: the servers would not hear of it.
    let recipe = Recipe { drawn: PASSWORDS.map(str::to_owned).into(), immutable: true, ..Recipe::default() };
    Some(secret(cluster, &cluster.names().credentials(), &recipe))
}

/// The same passwords as files for the `mysql` program, if there are any.
pub(super) fn my_cnf_credentials(cluster: &Validated, inputs: &Inputs<'_>) -> Option<Manifest> {
    let credentials = inputs.credentials?;
    let recipe = Recipe {
        from: Some((cluster.names().credentials(), credentials.meta.as_judged())),
        texts: WITH_FILE.into_iter().map(|(user, key)| (file_name(user), file(user, key))).collect(),
        ..Recipe::default()
    };
    Some(secret(cluster, &cluster.names().my_cnf_credentials(), &recipe))
}

/// The file of the exporter's account.
pub(super) fn exporter_file() -> String {
    file_name(EXPORTER)
}

fn file_name(user: &str) -> String {
    format!("{user}-my.cnf")
}

fn file(user: &str, key: &str) -> String {
    let socket = if user == EXPORTER { format!("socket=\"{SOCKET}\"\n") } else { String::new() };
    format!("[client]\nuser=\"{user}\"\npassword=\"${{{key}}}\"\n{socket}")
}

fn secret(cluster: &Validated, name: &str, recipe: &Recipe) -> Manifest {
    let annotations = BTreeMap::from([(SECRET_VERSION.to_owned(), SECRET_VERSION_1.to_owned())]);
    Manifest { annotations, ..manifest(cluster, ObjectKind::Secret, name, recipe.value()) }
}
