//! Showing where two texts part: enough for a reader to see what changed.

use std::fmt::Write as _;

/// How many lines of each side are shown.
const SHOWN: usize = 20;

/// The lines between the common beginning and the common end, `-` on disk and `+` as it should be.
pub(super) fn between(path: &str, on_disk: &str, wanted: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (on_disk.lines().collect(), wanted.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(same).count();
    let shorter = old.len().min(new.len());
    let after = old.iter().rev().zip(new.iter().rev()).take(shorter - before).take_while(same).count();

    let mut text = format!("--- {path} on disk\n+++ {path} from the code\n@@ line {} @@\n", before + 1);
    if before == old.len() && before == new.len() {
        text.push_str("(only the line end at the end of the file differs)\n");
    }
    for (sign, lines) in [('-', &old[before..old.len() - after]), ('+', &new[before..new.len() - after])] {
        for line in lines.iter().take(SHOWN) {
            let _ = writeln!(text, "{sign}{line}");
        }
        if lines.len() > SHOWN {
            let _ = writeln!(text, "{sign}... and {} more lines", lines.len() - SHOWN);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_shown() {
        let text = between("a.yaml", "one\ntwo\nthree\n", "one\n2\nthree\n");
        assert_eq!(text, "--- a.yaml on disk\n+++ a.yaml from the code\n@@ line 2 @@\n-two\n+2\n");
    }

    #[test]
    fn a_missing_file_and_a_repeated_line_are_shown_too() {
        assert!(between("a", "", "one\ntwo\n").ends_with("@@ line 1 @@\n+one\n+two\n"));
        assert!(between("a", "x\nx\n", "x\n").ends_with("@@ line 2 @@\n-x\n"));
        assert!(between("a", "x", "x\n").contains("line end"));
    }
}
