//! Label and field selectors as the API server reads them from a query.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{failure::Failure, path::Query};

/// Which objects a list or watch wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Selection {
    pub(crate) fn from_query(query: &Query, pod: bool) -> Result<Self, Failure> {
        Ok(Self {
            labels: parse_labels(query.get("labelSelector").unwrap_or_default())?,
            fields: parse_fields(query.get("fieldSelector").unwrap_or_default(), pod)?,
        })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !values.contains(value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        }) && self.fields.iter().all(|field| {
            let mut value = object;
            for part in field.path.split('.') {
                value = &value[part];
            }
            (value.as_str().unwrap_or_default() == field.value) == field.equal
        })
    }
}

fn parse_fields(text: &str, pod: bool) -> Result<Vec<FieldRequirement>, Failure> {
    let mut requirements = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (path, value, true)
        } else {
            return Err(Failure::bad_request(format!("invalid selector: {text:?}; can't understand {part:?}")));
        };
        let known = matches!(path, "metadata.name" | "metadata.namespace")
            || (pod && matches!(path, "spec.nodeName" | "status.phase" | "spec.schedulerName" | "status.podIP"));
        if !known {
            return Err(Failure::bad_request(format!("field label not supported: {path}")));
        }
        requirements.push(FieldRequirement { path: path.to_owned(), value: value.to_owned(), equal });
    }
    Ok(requirements)
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, Failure> {
    let refuse = |part: &str| Failure::bad_request(format!("unable to parse requirement: {part:?} in {text:?}"));
    let mut requirements = Vec::new();
    for part in split_outside_parentheses(text) {
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        requirements.push(parse_requirement(part).ok_or_else(|| refuse(part))?);
    }
    Ok(requirements)
}

fn parse_requirement(part: &str) -> Option<Requirement> {
    if let Some(open) = part.find('(') {
        let inner = part.get(open + 1..)?.strip_suffix(')')?;
        let values = inner.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = part[..open].split_whitespace();
        let key = label_key(words.next()?)?;
        let requirement = match words.next()? {
            "in" => Requirement::In(key, values),
            "notin" => Requirement::NotIn(key, values),
            _ => return None,
        };
        return words.next().is_none().then_some(requirement);
    }
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(label_key(key)?, one(value)));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(Requirement::In(label_key(key)?, one(value)));
    }
    match part.strip_prefix('!') {
        Some(key) => Some(Requirement::Absent(label_key(key)?)),
        None => Some(Requirement::Exists(label_key(part)?)),
    }
}

fn label_key(text: &str) -> Option<String> {
    let key = text.trim();
    let legal = |character: char| character.is_ascii_alphanumeric() || "-_./".contains(character);
    (!key.is_empty() && key.chars().all(legal)).then(|| key.to_owned())
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chosen(selector: &str, labels: &Value) -> bool {
        let selection = Selection { labels: parse_labels(selector).unwrap(), fields: Vec::new() };
        selection.matches(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn every_operator_chooses_what_it_should() {
        let labels = json!({"app": "db", "tier": "gold"});
        for yes in ["", "app=db", "app==db", "app!=web", "app in (web, db)", "app notin (web),tier", "!gone", "gone!=x"] {
            assert!(chosen(yes, &labels), "{yes}");
        }
        for no in ["app=web", "app!=db", "app in (web)", "app notin (db)", "!app", "gone", "gone=x"] {
            assert!(!chosen(no, &labels), "{no}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for nonsense in ["app in db", "app with (x)", "=x", "a b"] {
            assert_eq!(parse_labels(nonsense).unwrap_err().code, 400, "{nonsense}");
        }
        assert_eq!(parse_fields("spec.replicas=3", false).unwrap_err().code, 400);
    }
}
