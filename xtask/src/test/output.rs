//! What a test prints: shown at once, or in one piece, and read for the reason of its failure.

use std::io::{BufRead as _, BufReader, PipeReader, Write as _};

use anyhow::{Context as _, Result};
use tokio::process::Command;

use crate::cargo;

/// How many lines a reason has at most.
const LINES: usize = 20;

/// Runs a command and shows what it prints. If it fails, the error tells why.
pub(super) async fn show(command: Command) -> Result<()> {
    let (result, printed) = watch(command, |line| print!("{line}")).await?;
    with_reason(result, &printed)
}

/// Runs a command whose output comes in one piece, because another one prints meanwhile. While it runs, a file has it.
pub(super) async fn show_at_the_end(command: Command, name: &str) -> Result<()> {
    let (log, mut file) = cargo::log_file(name)?;
    let (result, printed) = watch(command, move |line| {
        let _whoever_looks_meanwhile = file.write_all(line.as_bytes());
    })
    .await
    .with_context(|| format!("what it printed is in {}", log.display()))?;
    println!("\n==> what {name} printed\n{printed}");
    with_reason(result, &printed)
}

/// Runs a command, gives away every line that it prints, and returns all of them.
async fn watch(mut command: Command, show: impl FnMut(&str) + Send + 'static) -> Result<(Result<()>, String)> {
    let (reader, writer) = std::io::pipe().context("there is no pipe to be had")?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let printed = tokio::task::spawn_blocking(move || read(reader, show));
    // With the command goes this side's end of the pipe; else the reader would wait for ever.
    let result = cargo::show(command).await;
    Ok((result, printed.await.context("what was printed cannot be read")?))
}

fn read(reader: PipeReader, mut show: impl FnMut(&str)) -> String {
    let (mut reader, mut printed, mut line) = (BufReader::new(reader), String::new(), Vec::new());
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        show(&text);
        printed.push_str(&text);
        line.clear();
    }
    printed
}

fn with_reason(result: Result<()>, printed: &str) -> Result<()> {
    result.with_context(|| reasons(printed).join("\n"))
}

/// The errors and panics in what tests printed.
fn reasons(printed: &str) -> Vec<&str> {
    let mut left = 0;
    let is_part = |line: &&str| {
        // A test that said nothing before has its error behind its name.
        if line.starts_with("Error: ") || line.contains(" ... Error: ") || line.contains("panicked at") {
            left = LINES;
        } else if ["FAILED", "failures:", "test "].iter().any(|end| line.starts_with(end)) {
            left = 0;
        }
        left = usize::saturating_sub(left, 1);
        left > 0 && !line.trim().is_empty()
    };
    printed.lines().filter(is_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_tells_what_was_printed_about_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; echo 'Error: no good answer' >&2; echo '    0: too late'; echo FAILED; exit 3"]);
        let error = format!("{:#}", show(command).await.unwrap_err());
        assert!(error.starts_with("Error: no good answer\n    0: too late: "), "{error}");
        assert!(error.ends_with("(exit status: 3)"), "{error}");
    }

    #[test]
    fn an_error_behind_the_name_of_its_test_is_a_reason() {
        let line = "test rights ... Error: refused: list leases";
        assert_eq!(reasons(&format!("running 1 test\n{line}\nFAILED\n\nfailures:\n    rights\n")), [line]);
    }

    #[test]
    fn a_reason_ends_with_its_test() {
        let printed = "test one ... 1 s said\nError: first\n\nCaused by: this\nFAILED\ntest two ... ok\n\
            thread 'three' panicked at src/x.rs:1:1:\nleft: 1\nfailures:\n    three\n";
        assert_eq!(
            reasons(printed),
            ["Error: first", "Caused by: this", "thread 'three' panicked at src/x.rs:1:1:", "left: 1"]
        );
        assert!(reasons("all is well\n").is_empty());
    }
}
