//! The parts of the charts that the code knows: versions, definitions, permissions, and the table of values.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

use super::{COMMAND, Generated, permissions};
use crate::cargo;
use crate::rbac::{CLUSTERS, RELEASE};

/// One version counts for the program, the image and the charts.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The oldest Kubernetes whose API the code is written for.
const KUBERNETES: &str = ">=1.33.0-0";
/// With a definition, all its objects go, and with them the databases.
const KEEP: (&str, &str) = ("helm.sh/resource-policy", "keep");
/// Values that the table leaves out, and that need no default: nobody sets them.
const UNUSED: [&str; 1] = ["global"];

const README: &str = include_str!("chart.md");

/// Everything of both charts.
pub(super) fn files() -> Result<Vec<Generated>> {
    let mut files = definitions()?;
    files.extend([
        Generated::new(
            "charts/windlass-crds/Chart.yaml",
            chart("windlass-crds", "The custom resource definitions of Windlass, kept when the release is removed"),
        ),
        Generated::new(
            "charts/windlass/Chart.yaml",
            chart("windlass", "Windlass, the operator for replicated database clusters; windlass-crds comes first"),
        ),
        Generated::new("charts/windlass/files/rules.yaml", rules()),
        Generated::new("charts/windlass/README.md", readme()?),
    ]);
    Ok(files)
}

fn chart(name: &str, description: &str) -> String {
    format!(
        "# Written by `{COMMAND}` from the workspace's version. Do not edit.\n\
         apiVersion: v2\n\
         name: {name}\n\
         description: {description}\n\
         type: application\n\
         version: {VERSION}\n\
         appVersion: {VERSION:?}\n\
         kubeVersion: {KUBERNETES:?}\n"
    )
}

/// One file per custom resource definition.
fn definitions() -> Result<Vec<Generated>> {
    let mut files = Vec::new();
    for mut definition in windlass_api::custom_resource_definitions() {
        let path = format!("charts/windlass-crds/templates/{}.yaml", definition.spec.names.plural);
        definition.metadata.annotations.get_or_insert_default().insert(KEEP.0.to_owned(), KEEP.1.to_owned());
        let text = serde_saphyr::to_string(&definition)?;
        // Helm reads it as a template.
        let text = text.replace("{{", "{{ \"{{\" }}");
        files.push(Generated::new(
            path,
            format!("# Written by `{COMMAND}` from crates/api. Do not edit.\n{}\n", text.trim_end()),
        ));
    }
    Ok(files)
}

/// The permissions, which the chart's roles take from here.
fn rules() -> String {
    let mut text = format!("# Written by `{COMMAND}` from xtask/src/rbac.rs. Do not edit.\n");
    for (name, about, rules) in [
        ("clusters", "Where its clusters are: everywhere, or in one namespace.", CLUSTERS),
        ("release", "In the namespace of the release.", RELEASE),
    ] {
        let _ = write!(text, "\n# {about}\n{name}:\n{}", permissions::rules(rules));
    }
    text
}

/// `charts/windlass/README.md`.
fn readme() -> Result<String> {
    let folder = cargo::root().join("charts/windlass");
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let schema: Value = serde_json::from_str(&read("values.schema.json")?).context("values.schema.json is no JSON")?;
    let values: Value = serde_saphyr::from_str(&read("values.yaml")?).context("values.yaml is no YAML")?;
    Ok(README.replace("{{command}}", COMMAND).replace("{{values}}", &table(&schema, &values)?))
}

/// Every value with its default and its meaning. Fails when one has no default or no meaning.
fn table(schema: &Value, values: &Value) -> Result<String> {
    let mut table = "| value | default | meaning |\n|---|---|---|\n".to_owned();
    let mut wrong = Vec::new();
    rows(&mut table, &mut wrong, "", schema, values);
    if !wrong.is_empty() {
        bail!("values.yaml and values.schema.json of charts/windlass do not agree: {}", wrong.join("; "));
    }
    Ok(table)
}

fn rows(table: &mut String, wrong: &mut Vec<String>, parent: &str, schema: &Value, values: &Value) {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let values = values.as_object().unwrap_or(&none);
    let unknown = values.keys().filter(|key| !properties.contains_key(*key));
    wrong.extend(unknown.map(|key| format!("`{parent}{key}` is not in the schema")));
    for (key, property) in properties.iter().filter(|(key, _)| !UNUSED.contains(&key.as_str())) {
        let name = format!("{parent}{key}");
        let Some(default) = values.get(key) else {
            wrong.push(format!("`{name}` has no default"));
            continue;
        };
        let Some(meaning) = property["description"].as_str() else {
            wrong.push(format!("`{name}` has no description"));
            continue;
        };
        let meaning = meaning.replace('|', "\\|");
        if property["properties"].is_object() {
            if property["additionalProperties"] != json!(false) {
                wrong.push(format!("`{name}` takes values that nobody knows"));
            }
            let _ = writeln!(table, "| `{name}` | | {meaning} |");
            rows(table, wrong, &format!("{name}."), property, default);
        } else {
            let _ = writeln!(table, "| `{name}` | `{default}` | {meaning} |");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install;

    fn read(path: &str) -> String {
        std::fs::read_to_string(cargo::root().join(path)).unwrap()
    }

    #[test]
    fn the_definitions_are_read_back_as_they_were_and_stay_when_the_release_goes() {
        let files = definitions().unwrap();
        let meant = windlass_api::custom_resource_definitions();
        assert_eq!(files.len(), meant.len());
        for (file, meant) in files.iter().zip(&meant) {
            let read: Value = serde_saphyr::from_str(&file.content).unwrap();
            let meant = serde_json::to_value(meant).unwrap();
            assert_eq!(read["spec"], meant["spec"]);
            assert_eq!(read["metadata"]["name"], meant["metadata"]["name"]);
            assert_eq!(read["metadata"]["annotations"], json!({ "helm.sh/resource-policy": "keep" }));
            assert!(file.content.ends_with('\n') && !file.content.ends_with("\n\n"));
        }
    }

    #[test]
    fn no_definition_is_left_over_from_a_kind_that_went() {
        let mut found: Vec<String> = std::fs::read_dir(cargo::root().join("charts/windlass-crds/templates"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "NOTES.txt")
            .map(|name| format!("charts/windlass-crds/templates/{name}"))
            .collect();
        found.sort();
        let mut meant: Vec<String> = definitions().unwrap().into_iter().map(|file| file.path.into_owned()).collect();
        meant.sort();
        assert_eq!(found, meant);
    }

    #[test]
    fn the_rules_are_read_back_as_they_were() {
        let read: Value = serde_saphyr::from_str(&rules()).unwrap();
        for (name, meant) in [("clusters", CLUSTERS), ("release", RELEASE)] {
            let meant: Vec<Value> = meant
                .iter()
                .map(|rule| {
                    let mut meant = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
                    if !rule.names.is_empty() {
                        meant["resourceNames"] = json!(rule.names);
                    }
                    meant
                })
                .collect();
            assert_eq!(read[name], Value::from(meant));
        }
    }

    #[test]
    fn a_value_without_default_or_description_is_found_and_so_is_an_unknown_one() {
        let schema = json!({ "properties": {
            "known": { "description": "what it is for" },
            "silent": {},
            "group": { "description": "a group", "properties": { "missing": { "description": "no default" } } },
            "global": {},
        } });
        let error = table(&schema, &json!({ "known": 1, "silent": 2, "group": {}, "stray": 3 })).unwrap_err().to_string();
        for part in ["`silent` has no description", "`group.missing` has no default", "`group` takes", "`stray` is not"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert!(!error.contains("`known`") && !error.contains("`global`"), "{error}");
    }

    #[test]
    fn the_chart_runs_the_image_that_is_built_here() {
        let values: Value = serde_saphyr::from_str(&read("charts/windlass/values.yaml")).unwrap();
        let repository = values["image"]["repository"].as_str().unwrap();
        assert_eq!(format!("{repository}:{VERSION}"), install::IMAGE);
        assert_eq!(values["image"]["tag"], "");
        let deployment = read("charts/windlass/templates/deployment.yaml");
        assert!(deployment.contains(&format!("runAsUser: {}\n", install::USER)));
    }
}
