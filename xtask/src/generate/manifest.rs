//! The manifest that installs the operator, and the page that explains its permissions.

use std::fmt::Write as _;

use super::COMMAND;
use crate::install::{DEPLOYMENT, IMAGE, NAMESPACE, USER};
use crate::rbac::{CONTROLLER, Rule};

/// Everything but the permissions, which have a home of their own.
const TEMPLATE: &str = include_str!("windlass.yaml");
/// Where a comment is broken.
const COMMENT_WIDTH: usize = 110;

/// `deploy/windlass.yaml`.
pub(crate) fn manifest() -> String {
    TEMPLATE
        .replace("{{command}}", COMMAND)
        .replace("{{namespace}}", NAMESPACE)
        .replace("{{name}}", DEPLOYMENT)
        .replace("{{image}}", IMAGE)
        .replace("{{user}}", &USER.to_string())
        .replace("{{rules}}", &rules(CONTROLLER))
}

/// `docs/reference/permissions.md`.
pub(super) fn permissions() -> String {
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from xtask/src/rbac.rs. Do not edit. -->\n\
         # Permissions\n\n\
         What the controller's ClusterRole allows, and which call needs it. A test compares this with the calls that all tests\n\
         together make: nothing is missing, and nothing is unused.\n\n\
         | group | resource | verbs | why |\n|---|---|---|---|\n"
    );
    for rule in CONTROLLER {
        let groups: Vec<&str> = rule.groups.iter().map(|group| if group.is_empty() { "core" } else { group }).collect();
        let (resources, verbs) = (rule.resources.join(", "), rule.verbs.join(", "));
        let _ = writeln!(page, "| {} | {resources} | {verbs} | {} |", groups.join(", "), rule.why);
    }
    page
}

fn rules(rules: &[Rule]) -> String {
    let list = |items: &[&str]| items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    for rule in rules {
        for line in wrap(rule.why) {
            let _ = writeln!(text, "  # {line}");
        }
        let _ = writeln!(text, "  - apiGroups: [{}]", list(rule.groups));
        let _ = writeln!(text, "    resources: [{}]", list(rule.resources));
        let _ = writeln!(text, "    verbs: [{}]", list(rule.verbs));
    }
    text
}

fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.len() + word.len() < COMMENT_WIDTH);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn objects() -> Vec<Value> {
        serde_saphyr::from_multiple(&manifest()).unwrap()
    }

    fn object(kind: &str) -> Value {
        objects().into_iter().find(|object| object["kind"] == kind).unwrap()
    }

    #[test]
    fn every_placeholder_is_filled() {
        assert!(!manifest().contains("{{"));
        assert_eq!(objects().len(), 5);
    }

    #[test]
    fn the_role_holds_exactly_the_rules() {
        let meant: Vec<Value> = CONTROLLER
            .iter()
            .map(|rule| json!({"apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs}))
            .collect();
        assert_eq!(object("ClusterRole")["rules"], Value::from(meant));
    }

    #[test]
    fn the_operator_asks_for_nothing_that_the_restricted_level_forbids() {
        let pod = object("Deployment")["spec"]["template"]["spec"].clone();
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let context = &pod["containers"][0]["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        assert_eq!(object("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    }

    #[test]
    fn the_selector_finds_the_pods() {
        let deployment = object("Deployment");
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"]);
    }
}
