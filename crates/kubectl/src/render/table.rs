//! Tables as kubectl prints them: heads in capitals, columns apart by blanks, no lines.

use unicode_width::UnicodeWidthStr as _;

use super::paint::{Paint, Tone, one_line};

/// The space between two columns.
const GAP: usize = 3;
/// The narrowest last column that is worth wrapping into.
const NARROWEST: usize = 20;

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

/// A cell with a colour.
pub(crate) fn cell(tone: Tone, text: impl AsRef<str>) -> Cell {
    let text = one_line(text.as_ref());
    Cell { text: if text.is_empty() { "-".to_owned() } else { text }, tone }
}

/// A cell without.
pub(crate) fn plain(text: impl AsRef<str>) -> Cell {
    cell(Tone::Plain, text)
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(heads: Vec<&'static str>) -> Self {
        Self { heads, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The lines. With a `width`, the last column is broken into several lines to stay within it.
    pub(crate) fn lines(&self, paint: Paint, width: Option<usize>) -> Vec<String> {
        let heads: Vec<Cell> = self.heads.iter().map(|head| cell(Tone::Strong, head)).collect();
        let all: Vec<&Vec<Cell>> = std::iter::once(&heads).chain(&self.rows).collect();
        let last = heads.len().saturating_sub(1);
        let widths: Vec<usize> = (0..last)
            .map(|column| all.iter().filter_map(|row| row.get(column)).map(|it| it.text.width()).max().unwrap_or(0) + GAP)
            .collect();
        let indent: usize = widths.iter().sum();
        let room = width.map(|width| width.saturating_sub(indent)).filter(|room| *room >= NARROWEST);
        let mut lines = Vec::new();
        for row in all {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(&paint.text(cell.tone, &cell.text));
                line.push_str(&" ".repeat(width.saturating_sub(cell.text.width())));
            }
            let Some(end) = row.get(last) else { continue };
            let mut parts = room.map_or_else(|| vec![end.text.clone()], |room| wrap(&end.text, room)).into_iter();
            line.push_str(&paint.text(end.tone, &parts.next().unwrap_or_default()));
            lines.push(line);
            lines.extend(parts.map(|part| format!("{}{}", " ".repeat(indent), paint.text(end.tone, &part))));
        }
        lines
    }
}

/// Breaks text between words, so that no line is wider than `width` unless one word is.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { colour: false };

    fn table() -> Table {
        let mut table = Table::new(vec!["NAME", "READY", "MESSAGE"]);
        table.row(vec![plain("rss/a"), cell(Tone::Good, "True"), plain("all three members serve and are ready")]);
        table.row(vec![plain("rss/Ångström"), cell(Tone::Bad, "False"), plain("")]);
        table
    }

    #[test]
    fn columns_are_aligned_and_nothing_ends_in_blanks() {
        insta::assert_snapshot!(table().lines(PLAIN, None).join("\n"), @r"
        NAME           READY   MESSAGE
        rss/a          True    all three members serve and are ready
        rss/Ångström   False   -
        ");
    }

    #[test]
    fn colours_do_not_change_the_alignment() {
        let coloured = table().lines(Paint { colour: true }, None).join("\n");
        let stripped =
            ["\x1b[1m", "\x1b[0m", "\x1b[31m", "\x1b[32m"].iter().fold(coloured.clone(), |text, it| text.replace(it, ""));
        assert_ne!(coloured, stripped);
        assert_eq!(stripped, table().lines(PLAIN, None).join("\n"));
    }

    #[test]
    fn a_long_last_column_is_broken_within_the_width() {
        insta::assert_snapshot!(table().lines(PLAIN, Some(45)).join("\n"), @r"
        NAME           READY   MESSAGE
        rss/a          True    all three members
                               serve and are ready
        rss/Ångström   False   -
        ");
    }
}
