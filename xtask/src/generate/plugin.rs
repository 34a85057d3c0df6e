//! The page of `kubectl windlass`: what it says about itself, and the shapes of its answers for programs.

use std::fmt::Write as _;

use anyhow::Result;
use clap::Command;
use schemars::JsonSchema;
use windlass_kubectl::view;

use super::{COMMAND, reference};

/// `docs/reference/kubectl-windlass.md`.
pub(super) fn kubectl_windlass() -> Result<String> {
    let mut command = windlass_kubectl::windlass_command();
    // Only then do subcommands know the options of all commands, and how they are called.
    command.build();
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from the command line of `kubectl windlass`. Do not edit. -->\n\
         # kubectl windlass\n\n\
         A plugin of kubectl: put `kubectl-windlass` on PATH. `kubectl windlass completion kubectl` prints a script; as an executable\n\
         `kubectl_complete-windlass` on PATH it completes words after `kubectl windlass`.\n\n\
         On a terminal answers have colours, and waits are drawn live; in a pipe everything is plain text, one line per change.\n\n\
         ```text\n{}\n```\n",
        help(&mut command)
    );
    verbs(&mut page, "kubectl windlass", &mut command);
    page.push_str(
        "\n# Answers for programs\n\n\
         With `-o json` or `-o yaml`. Fields are added in later versions, never renamed or taken away; what is not known is absent. \
         `pause`, `resume` and `scale` answer as `status` does. With `--watch`, each change is one line of JSON, or one document of YAML.\n",
    );
    shape::<view::ListView>(&mut page, "list")?;
    shape::<view::StatusView>(&mut page, "status")?;
    shape::<view::PlanView>(&mut page, "plan")?;
    shape::<view::LogView>(&mut page, "log")?;
    shape::<view::ClusterOwnerView>(&mut page, "owner KIND/NAME")?;
    shape::<view::OwnersView>(&mut page, "owner")?;
    Ok(page)
}

/// `docs/reference/kubectl-moco.md`.
pub(super) fn kubectl_moco() -> String {
    let mut command = windlass_kubectl::moco_command();
    command.build();
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from the command line of `kubectl moco`. Do not edit. -->\n\
         # kubectl moco\n\n\
         A plugin of kubectl for clusters of MySQL: put `kubectl-moco` on PATH. Its words are those that scripts know. It does not wait; \n\
         `kubectl windlass status mysql/NAME` shows what comes of it.\n\n\
         ```text\n{}\n```\n",
        help(&mut command)
    );
    verbs(&mut page, "kubectl moco", &mut command);
    page
}

/// What each verb says about itself.
fn verbs(page: &mut String, of: &str, command: &mut Command) {
    for verb in command.get_subcommands_mut().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
        let name = verb.get_name().to_owned();
        let _ = write!(page, "\n## {of} {name}\n\n```text\n{}\n```\n", help(verb));
    }
}

fn help(command: &mut Command) -> String {
    let text = command.render_long_help().to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn shape<T: JsonSchema>(page: &mut String, verb: &str) -> Result<()> {
    let mut section = String::new();
    reference::section::<T>(&mut section, verb)?;
    // Nobody has to fill in an answer, so it has neither required fields nor defaults.
    let section = section.replace("**Required.** ", "").replace(&format!("| `{verb}."), "| `").replace(" |  | ", " | ");
    let section = section.replace(
        "| field | type | default | description |\n|---|---|---|---|",
        "| field | type | description |\n|---|---|---|",
    );
    page.push_str(&section);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_verb_and_every_answer() {
        let page = kubectl_windlass().unwrap();
        for verb in ["list", "status", "plan", "log", "pause", "resume", "scale", "owner", "completion"] {
            assert!(page.contains(&format!("\n## kubectl windlass {verb}\n")), "{verb}");
        }
        assert!(!page.contains("__complete") && !page.contains("Required"), "{page}");
        assert!(page.contains("| `clusters[].members.ready` | integer |"), "{page}");
        assert!(page.contains("| `conditions[].type` |") && page.contains("| `owner.epoch` |"), "{page}");
        assert!(page.contains("Usage: kubectl windlass pause"), "{page}");
    }
}
