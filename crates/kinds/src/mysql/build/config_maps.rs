//! The ConfigMaps: the servers' my.cnf, and the configuration of the container that prints slow queries.
//!
//! Each is named after what it holds, so one that a pod has mounted never changes under it; another text is another ConfigMap, and a
//! change of the pod template. Decides nothing about old ones: they are needed until no pod has them any more.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use serde_json::json;
use windlass_core::step::{Manifest, ObjectKind};

use super::super::mycnf::{self, Dialect, InvalidOption, MyCnf, memory_of};
use super::super::validate::Validated;
use super::{manifest, sidecars};

/// The key of the my.cnf, and so the name of its file.
pub(in super::super) const MY_CNF: &str = "my.cnf";
/// The key of the configuration of Fluent Bit, and so the name of its file.
pub(in super::super) const FLUENT_BIT: &str = "fluent-bit.conf";

/// What is printed of the slow log when the user says nothing else: its lines, as they are.
const FLUENT_BIT_DEFAULT: &str = "\
[SERVICE]
  Log_Level      error
[INPUT]
  Name           tail
  Path           {{ .Path }}
  Read_from_Head true
[OUTPUT]
  Name           file
  Match          *
  Path           /dev
  File           stdout
  Format         template
  Template       {log}
";

/// The my.cnf of a cluster with these settings of the user's, or the setting that cannot be written.
pub fn my_cnf(cluster: &Validated, options: &BTreeMap<String, String>) -> Result<MyCnf, InvalidOption> {
    mycnf::my_cnf(Dialect::AnyVersion, options, memory(cluster))
}

/// The memory that the user's container of the server has.
fn memory(cluster: &Validated) -> Option<u64> {
    let resources = cluster.mysqld.rest.get("resources")?;
    let resources: ResourceRequirements = windlass_api::mysql::read(resources).ok()?;
    let of = |quantities: &Option<BTreeMap<String, _>>| quantities.as_ref().and_then(|it| it.get("memory").cloned());
    memory_of(of(&resources.requests).as_ref(), of(&resources.limits).as_ref())
}

pub(super) fn of_my_cnf(cluster: &Validated, my_cnf: &MyCnf) -> Manifest {
    let name = cluster.names().my_cnf(&my_cnf.fingerprint());
    manifest(cluster, ObjectKind::ConfigMap, &name, json!({ MY_CNF: my_cnf.text }))
}

/// The configuration of the container that prints slow queries, if there is one.
pub(super) fn of_slow_log(cluster: &Validated) -> Option<Manifest> {
    sidecars::given_slow_log(cluster)?;
    let data = json!({ FLUENT_BIT: slow_log_text(cluster) });
    Some(manifest(cluster, ObjectKind::ConfigMap, &slow_log_name(cluster), data))
}

pub(super) fn slow_log_name(cluster: &Validated) -> String {
    let text = MyCnf { text: slow_log_text(cluster), ignored: Vec::new() };
    cluster.names().slow_log(&text.fingerprint())
}

fn slow_log_text(cluster: &Validated) -> String {
    let template = cluster.spec.slow_query_log_config_tmpl.as_deref().unwrap_or(FLUENT_BIT_DEFAULT);
    fill(template, sidecars::SLOW_LOG_FILE)
}

/// Puts the path of the log where the template names it. What else stands in braces is left as it is.
fn fill(template: &str, path: &str) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        match after.split_once("}}") {
            Some((name, after)) if name.trim_matches('-').trim() == ".Path" => {
                filled.push_str(path);
                rest = after;
            }
            _ => {
                filled.push_str("{{");
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("Path {{ .Path }}\n", "Path /log\n")]
    #[case("{{.Path}} and {{- .Path -}}", "/log and /log")]
    #[case("{{ .Other }} {{ .Path", "{{ .Other }} {{ .Path")]
    #[case("", "")]
    fn the_path_is_put_in(#[case] template: &str, #[case] expected: &str) {
        assert_eq!(fill(template, "/log"), expected);
    }
}
