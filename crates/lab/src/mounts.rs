//! The mounts of this machine.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

/// One mount.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) path: PathBuf,
    pub(crate) kind: String,
}

/// All mounts, in the order in which they were made.
pub(crate) fn all() -> Result<Vec<Mount>> {
    let text = std::fs::read_to_string("/proc/self/mounts").context("cannot read the machine's mounts")?;
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mount> {
    let mut fields = line.split(' ');
    let path = unescape(fields.nth(1)?);
    Some(Mount { path: path.into(), kind: fields.next()?.to_owned() })
}

/// The kernel writes space, tab, newline and backslash as a backslash and three octal digits.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (code, letter)| text.replace(code, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_space_is_read_whole() {
        assert_eq!(
            parse("tmpfs /run/a\\040b tmpfs rw,relatime 0 0"),
            Some(Mount { path: "/run/a b".into(), kind: "tmpfs".into() })
        );
    }
}
