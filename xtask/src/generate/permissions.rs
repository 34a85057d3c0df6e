//! The permissions, as rules for the chart and as a page for people.

use std::fmt::Write as _;

use super::COMMAND;
use crate::rbac::{CLUSTERS, RELEASE, Rule};

/// Where a comment is broken.
const COMMENT_WIDTH: usize = 110;

/// `docs/reference/permissions.md`.
pub(super) fn page() -> String {
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from xtask/src/rbac.rs. Do not edit. -->\n\
         # Permissions\n\n\
         What the roles of a release allow, and which call needs it. A test compares this with the calls that all tests together\n\
         make: nothing is missing, and nothing is unused.\n"
    );
    let sections = [
        ("Where its clusters are", "A ClusterRole; with `spec.namespace` a Role in that namespace.", CLUSTERS),
        ("In the namespace of the release", "A Role.", RELEASE),
    ];
    for (title, about, rules) in sections {
        let _ = write!(page, "\n## {title}\n\n{about}\n\n| group | resource | verbs | why |\n|---|---|---|---|\n");
        for rule in rules {
            let groups: Vec<&str> = rule.groups.iter().map(|group| if group.is_empty() { "core" } else { group }).collect();
            let (resources, verbs) = (rule.resources.join(", "), rule.verbs.join(", "));
            // For a person the release's name is a word, not a template.
            let names: Vec<String> =
                rule.names.iter().map(|name| name.replace("{{ include `windlass.name` . }}", "RELEASE")).collect();
            let only = if names.is_empty() { String::new() } else { format!(" (only {})", names.join(", ")) };
            let _ = writeln!(page, "| {} | {resources}{only} | {verbs} | {} |", groups.join(", "), rule.why);
        }
    }
    page
}

/// Rules of a role, each with its reason.
pub(super) fn rules(rules: &[Rule]) -> String {
    let list = |items: &[&str]| items.iter().map(|item| format!("{item:?}")).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    for rule in rules {
        for line in wrap(rule.why) {
            let _ = writeln!(text, "  # {line}");
        }
        let _ = writeln!(text, "  - apiGroups: [{}]", list(rule.groups));
        let _ = writeln!(text, "    resources: [{}]", list(rule.resources));
        if !rule.names.is_empty() {
            let _ = writeln!(text, "    resourceNames: [{}]", list(rule.names));
        }
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
