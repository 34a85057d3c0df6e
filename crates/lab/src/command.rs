//! Running other programs to their end, with errors that show what they said.

use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// How much of a failed program's output is worth showing.
const SHOWN_LINES: usize = 15;

/// Runs a program and returns what it printed.
pub(crate) async fn run<S: AsRef<str>>(program: &str, arguments: &[S]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments.iter().map(AsRef::as_ref));
    output(command).await
}

/// Runs a prepared command and returns what it printed.
pub(crate) async fn output(mut command: Command) -> Result<String> {
    let shown = describe(&command);
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| missing(&command, error))
        .with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.success() {
        let mut text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stdout));
        bail!("`{shown}` failed ({}):\n{}", output.status, tail(&text, SHOWN_LINES));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a program ends well; its output is not wanted.
pub(crate) async fn succeeds(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status()
        .await
        .is_ok_and(|status| status.success())
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

fn describe(command: &Command) -> String {
    let command = command.as_std();
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn missing(command: &Command, error: std::io::Error) -> anyhow::Error {
    if error.kind() != std::io::ErrorKind::NotFound {
        return error.into();
    }
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    match package_of(&program) {
        Some(package) => anyhow::anyhow!("`{program}` is not installed: apt-get install {package}"),
        None => anyhow::anyhow!("`{program}` is not installed or not on the PATH"),
    }
}

fn package_of(program: &str) -> Option<&'static str> {
    Some(match program {
        "ip" => "iproute2",
        "nsenter" | "setsid" => "util-linux",
        "containerd" | "ctr" => "containerd",
        "mmdebstrap" => "mmdebstrap",
        "iptables" => "iptables",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_short_text_is_all_of_it() {
        assert_eq!(tail("a\nb", 5), "a\nb");
        assert_eq!(tail("a\nb\nc", 2), "b\nc");
    }

    #[tokio::test]
    async fn a_failure_shows_what_the_program_said() {
        let error = run("sh", &["-c", "echo broken pipe dream >&2; exit 3"]).await.unwrap_err();
        assert!(format!("{error:#}").contains("broken pipe dream"), "{error:#}");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error = run::<&str>("windlass-no-such-program", &[]).await.unwrap_err();
        assert!(format!("{error:#}").contains("not installed"), "{error:#}");
    }
}
