//! Colours, or none.

use anstyle::{AnsiColor, Style};

/// What a word is meant to say by its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Warn,
    Bad,
    Faint,
    Strong,
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) colour: bool,
}

impl Paint {
    /// The text in its colour.
    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tone::Faint => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        };
        if self.colour && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// The colour of a condition's status, when `True` is good.
pub(crate) fn tone_of(status: &str) -> Tone {
    match status {
        "True" => Tone::Good,
        "False" => Tone::Bad,
        _ => Tone::Warn,
    }
}

/// Text of other people as one line: what moves a terminal's cursor or changes its colours must not get there.
pub(crate) fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_comes_through() {
        assert_eq!(one_line("a\x1b[2J\nb\t\u{9b}1A"), "a [2J b 1A");
    }

    #[test]
    fn without_colour_text_is_only_text() {
        assert_eq!(Paint { colour: false }.text(Tone::Bad, "x"), "x");
        assert_eq!(Paint { colour: true }.text(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
