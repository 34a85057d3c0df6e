//! The page of the `windlass` binary: what it says about itself.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use tokio::process::Command;

use super::COMMAND;
use crate::cargo;

/// `docs/reference/windlass.md`.
pub(super) async fn windlass() -> Result<String> {
    let build = cargo::command(&["build", "--quiet", "--locked", "--package", "windlass-operator", "--bin", "windlass"]);
    let binary = cargo::build(build, "windlass").await?;
    let overview = ask(&binary, &["--help"]).await?;
    let mut page = format!(
        "<!-- Written by `{COMMAND}` from `windlass --help`. Do not edit. -->\n\
         # windlass\n\n\
         One program, one image; each component is a subcommand.\n\n```text\n{overview}\n```\n"
    );
    for component in components(&overview) {
        let help = ask(&binary, &[component, "--help"]).await?;
        let _ = write!(page, "\n## windlass {component}\n\n```text\n{help}\n```\n");
    }
    Ok(page)
}

/// What it prints, whatever the environment of whoever asks is: the help shows the value of variables.
async fn ask(binary: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(binary);
    command.args(arguments).env_clear();
    let text = cargo::read(command).await?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned())
}

/// The subcommands that an overview lists, `help` left out.
fn components(overview: &str) -> Vec<&str> {
    overview
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_found_in_the_overview() {
        let overview = "About\n\nCommands:\n  one  Does it\n  two  Does more\n  help Print\n\nOptions:\n  -h, --help";
        assert_eq!(components(overview), ["one", "two"]);
    }
}
