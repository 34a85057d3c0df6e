//! The pages of the custom resources: every field of ours, from the schema of the types.
//!
//! Types of Kubernetes are named, not explained again. The definitions that the API server gets have no names of types any more, so
//! the schema is asked for anew, with names.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use windlass_api::logbook::LogbookSpec;
use windlass_api::mysql::{MySQLClusterSpec, MySQLClusterStatus};
use windlass_api::replicated::{ReplicatedStatefulSetSpec, ReplicatedStatefulSetStatus};
use windlass_api::tidb::{TidbClusterSpec, TidbClusterStatus};

use super::COMMAND;

/// How the names of types of Kubernetes begin.
const KUBERNETES: &str = "io.k8s.";

/// `docs/reference/replicatedstatefulset.md`.
pub(super) fn replicated_stateful_set() -> Result<String> {
    let mut page = head("ReplicatedStatefulSet")?;
    section::<ReplicatedStatefulSetSpec>(&mut page, "spec")?;
    section::<ReplicatedStatefulSetStatus>(&mut page, "status")?;
    Ok(page)
}

/// `docs/reference/mysqlcluster.md`.
pub(super) fn mysql_cluster() -> Result<String> {
    let mut page = head("MySQLCluster")?;
    section::<MySQLClusterSpec>(&mut page, "spec")?;
    section::<MySQLClusterStatus>(&mut page, "status")?;
    Ok(page)
}

/// `docs/reference/tidbcluster.md`.
pub(super) fn tidb_cluster() -> Result<String> {
    let mut page = head("TidbCluster")?;
    section::<TidbClusterSpec>(&mut page, "spec")?;
    section::<TidbClusterStatus>(&mut page, "status")?;
    Ok(page)
}

/// `docs/reference/logbook.md`.
pub(super) fn logbook() -> Result<String> {
    let mut page = head("Logbook")?;
    section::<LogbookSpec>(&mut page, "spec")?;
    Ok(page)
}

/// What the definition says of the resource as a whole.
fn head(kind: &str) -> Result<String> {
    let definition = windlass_api::custom_resource_definitions()
        .into_iter()
        .find(|definition| definition.spec.names.kind == kind)
        .with_context(|| format!("there is no definition of {kind}"))?;
    let names = definition.spec.names;
    let version = definition.spec.versions.first().with_context(|| format!("{kind} has no version"))?;
    let about = version
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref())
        .and_then(|schema| schema.description.clone())
        .unwrap_or_default();
    let short = names.short_names.filter(|short| !short.is_empty());
    let short = short.map(|short| format!(", short `{}`", short.join("`, `"))).unwrap_or_default();
    Ok(format!(
        "<!-- Written by `{COMMAND}` from crates/api. Do not edit. -->\n\
         # {kind}\n\n{about}\n\n\
         `apiVersion: {}/{}`, resource `{}`{short}.\n\n\
         Types that are not explained here are those of Kubernetes: `kubectl explain` and its API reference tell their fields.\n",
        definition.spec.group, version.name, names.plural
    ))
}

pub(super) fn section<T: JsonSchema>(page: &mut String, name: &str) -> Result<()> {
    let root = serde_json::to_value(SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>())?;
    let mut fields = Vec::new();
    let definitions = root["$defs"].as_object().cloned().unwrap_or_default();
    Walk { definitions: &definitions, fields: &mut fields }.object(name, &root);
    let _ = write!(page, "\n## {name}\n\n");
    if let Some(about) = root["description"].as_str() {
        let _ = writeln!(page, "{}\n", one_line(about));
    }
    page.push_str("| field | type | default | description |\n|---|---|---|---|\n");
    for field in fields {
        let _ = writeln!(page, "| `{}` | {} | {} | {} |", field.path, field.kind, field.default, field.description);
    }
    Ok(())
}

struct Field {
    path: String,
    kind: String,
    default: String,
    description: String,
}

struct Walk<'a> {
    definitions: &'a Map<String, Value>,
    fields: &'a mut Vec<Field>,
}

impl Walk<'_> {
    fn object(&mut self, path: &str, schema: &Value) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        let required = schema["required"].as_array();
        for (name, property) in properties {
            let path = format!("{path}.{name}");
            let is_required = required.is_some_and(|required| required.iter().any(|it| it == name));
            self.property(&path, property, is_required);
        }
    }

    fn property(&mut self, path: &str, property: &Value, is_required: bool) {
        let kind = self.kind(property);
        let default = match &property["default"] {
            // An object's own fields tell their defaults; that it is made of them is no news.
            Value::Null | Value::Object(_) => String::new(),
            value => format!("`{value}`"),
        };
        let description = property["description"].as_str().or(kind.schema["description"].as_str()).unwrap_or_default();
        let mut description = one_line(description);
        if is_required {
            description = format!("**Required.** {description}");
        }
        if let Some(limits) = limits(property).or(limits(kind.schema)) {
            description = format!("{description} ({limits})");
        }
        let (name, schema, suffix) = (kind.name, kind.schema.clone(), kind.suffix);
        self.fields.push(Field { path: path.to_owned(), kind: name, default, description });
        self.object(&format!("{path}{suffix}"), &schema);
    }

    /// The type of a property, and the schema below it when its fields are ours.
    fn kind<'b>(&'b self, schema: &'b Value) -> Kind<'b> {
        if let Some(choices) = schema["anyOf"].as_array().or(schema["allOf"].as_array()) {
            // What may be absent is one thing or null.
            if let Some(choice) = choices.iter().find(|choice| choice["type"] != "null") {
                return self.kind(choice);
            }
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
            if name.starts_with(KUBERNETES) {
                return Kind { name: kubernetes_name(name), schema: &Value::Null, suffix: "" };
            }
            return self.definitions.get(name).map_or_else(Kind::anything, |schema| self.kind(schema));
        }
        let values: Vec<&str> = values(schema);
        if !values.is_empty() {
            return Kind {
                name: values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
                schema,
                suffix: "",
            };
        }
        match primary_type(schema) {
            Some("array") => {
                let item = self.kind(&schema["items"]);
                Kind { name: format!("list of {}", item.name), schema: item.schema, suffix: "[]" }
            }
            Some("object") if schema["properties"].is_object() => Kind { name: "object".to_owned(), schema, suffix: "" },
            Some("object") => {
                let value = self.kind(&schema["additionalProperties"]);
                Kind { name: format!("map of {}", value.name), schema: value.schema, suffix: ".KEY" }
            }
            Some(name) => Kind { name: name.to_owned(), schema, suffix: "" },
            None => Kind::anything(),
        }
    }
}

struct Kind<'a> {
    name: String,
    schema: &'a Value,
    /// What stands between the field and the fields below it.
    suffix: &'static str,
}

impl Kind<'_> {
    fn anything() -> Self {
        Self { name: "any".to_owned(), schema: &Value::Null, suffix: "" }
    }
}

/// `io.k8s.api.core.v1.Container` as `Container` (core/v1).
fn kubernetes_name(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    match parts.as_slice() {
        [.., group, version, kind] => format!("{kind} ({group}/{version})"),
        _ => name.to_owned(),
    }
}

/// The type, `null` left aside.
fn primary_type(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(name) => Some(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ => None,
    }
}

/// The values of an enum, whether the schema lists them at once or describes each.
fn values(schema: &Value) -> Vec<&str> {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let described = schema["oneOf"].as_array().into_iter().flatten().map(|choice| &choice["const"]);
    listed.chain(described).filter_map(Value::as_str).collect()
}

fn limits(schema: &Value) -> Option<String> {
    let number = |key: &str| schema[key].as_f64();
    let text = match (number("minimum"), number("maximum"), number("minLength").or(number("minItems"))) {
        (Some(minimum), Some(maximum), _) => format!("{minimum} to {maximum}"),
        (_, _, Some(least)) if least > 0.0 => format!("at least {least}"),
        _ => return None,
    };
    Some(text)
}

/// A description as one cell of a table.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema that the API server gets.
    fn served(kind: &str) -> Value {
        let definitions = windlass_api::custom_resource_definitions();
        let definition = definitions.iter().find(|definition| definition.spec.names.kind == kind).unwrap();
        serde_json::to_value(&definition.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone()
    }

    fn paths(page: &str) -> Vec<String> {
        page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
    }

    fn has(schema: &Value, path: &str) -> bool {
        let mut here = schema;
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            here = if name == "KEY" { &here["additionalProperties"] } else { &here["properties"][name] };
            if part.ends_with("[]") {
                here = &here["items"];
            }
        }
        !here.is_null()
    }

    #[test]
    fn every_field_of_a_page_is_one_that_the_server_knows() {
        for (kind, page) in [("ReplicatedStatefulSet", replicated_stateful_set()), ("Logbook", logbook())] {
            let (schema, page) = (served(kind), page.unwrap());
            assert!(paths(&page).len() > 10, "{page}");
            for path in paths(&page) {
                assert!(has(&schema, &path), "{kind} {path}");
            }
        }
    }

    #[test]
    fn every_field_at_the_top_of_the_served_schema_has_its_line() {
        let (schema, page) = (served("ReplicatedStatefulSet"), replicated_stateful_set().unwrap());
        let told = paths(&page);
        for part in ["spec", "status"] {
            for name in schema["properties"][part]["properties"].as_object().unwrap().keys() {
                assert!(told.contains(&format!("{part}.{name}")), "{part}.{name}");
            }
        }
    }

    #[test]
    fn types_of_kubernetes_are_named_and_not_taken_apart() {
        let page = replicated_stateful_set().unwrap();
        assert!(page.contains("| `spec.pod.containers` | list of Container (core/v1) |"), "{page}");
        assert!(!page.contains("spec.pod.containers[]"));
    }
}
