//! A part of the terminal that is drawn again and again, and a spinner with bars in it.
//!
//! Never moves the cursor of something that is no terminal: there, one plain line is printed per change.

use std::io::Write;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use unicode_width::UnicodeWidthChar as _;

use crate::output::now;
use crate::render::paint::{Paint, Tone, one_line};
use crate::render::{age, work};
use crate::view::WorkView;

/// How often the spinner turns.
pub(crate) const TICK: Duration = Duration::from_millis(120);
const FRAMES: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠴", "⠦", "⠧", "⠇"];

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Lines that are drawn over each other.
#[derive(Debug, Default)]
pub(crate) struct Region {
    drawn: usize,
}

impl Region {
    /// What puts these lines in the place of those drawn before. Lines are cut at the edge of the terminal: one that wraps
    /// would be two, and the next drawing would begin in the wrong place.
    pub(crate) fn draw(&mut self, lines: &[String], size: Size) -> String {
        let mut text = self.home();
        let shown = lines.len().min(size.rows.saturating_sub(1));
        for line in lines.iter().take(shown) {
            text.push_str(&cut(line, size.columns));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.drawn = shown;
        text
    }

    /// What takes away all that was drawn.
    pub(crate) fn clear(&mut self) -> String {
        let text = if self.drawn == 0 { String::new() } else { self.home() + "\x1b[J" };
        self.drawn = 0;
        text
    }

    fn home(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\r", self.drawn) }
    }
}

/// The beginning of a line that fits; colours take no room.
fn cut(line: &str, columns: usize) -> String {
    let mut text = String::new();
    let (mut width, mut inside, mut coloured) = (0, false, false);
    for letter in line.chars() {
        if letter == '\x1b' {
            (inside, coloured) = (true, true);
        }
        if !inside {
            width += letter.width().unwrap_or(0);
            if width > columns {
                break;
            }
        }
        text.push(letter);
        inside = inside && letter != 'm';
    }
    if width > columns && coloured {
        text.push_str("\x1b[0m");
    }
    text
}

/// What is waited for, and how it stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Waiting {
    /// What is waited for.
    pub(crate) what: String,
    /// How many of how many members are ready.
    pub(crate) members: Option<(usize, usize)>,
    /// What goes on, and how far it is.
    pub(crate) work: Vec<WorkView>,
    /// What else it is waiting on, a line each.
    pub(crate) details: Vec<String>,
}

impl Waiting {
    /// As lines of a terminal.
    fn frame(&self, turn: usize, elapsed: Duration, paint: Paint, now: Timestamp) -> Vec<String> {
        let spinner = FRAMES.get(turn % FRAMES.len()).copied().unwrap_or_default();
        let seconds = age::seconds(i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX));
        let mut lines =
            vec![format!("{} {} {}", paint.text(Tone::Warn, spinner), self.what, paint.text(Tone::Faint, &seconds))];
        if let Some((ready, wanted)) = self.members {
            let bar = paint.text(Tone::Good, &work::bar(ready, wanted));
            lines.push(format!("  {bar} {ready} of {wanted} members ready"));
        }
        lines.extend(self.work.iter().filter_map(|work| Some(format!("  {}", work::drawn(work, paint, now)?))));
        lines.extend(self.details.iter().map(|detail| format!("  {}", one_line(detail))));
        lines
    }

    /// As one line of a pipe.
    pub(crate) fn line(&self) -> String {
        let members = self.members.map(|(ready, wanted)| format!("{ready} of {wanted} members ready"));
        let told = self.work.iter().map(work::told).chain(self.details.iter().cloned());
        let parts: Vec<String> = members.into_iter().chain(told.map(|it| one_line(&it))).collect();
        if parts.is_empty() { self.what.clone() } else { format!("{}: {}", self.what, parts.join("; ")) }
    }
}

/// Tells how a wait goes, on the stream of remarks.
pub(crate) struct Progress<W: Write> {
    out: W,
    paint: Paint,
    /// Of the terminal, if it is one.
    size: Option<Size>,
    region: Region,
    turn: usize,
    told: String,
}

impl<W: Write> Progress<W> {
    pub(crate) fn new(out: W, paint: Paint, size: Option<Size>) -> Self {
        Self { out, paint, size, region: Region::default(), turn: 0, told: String::new() }
    }

    /// Whether it has to be shown again and again.
    pub(crate) fn is_live(&self) -> bool {
        self.size.is_some()
    }

    /// Shows how it stands. Failing to is no reason to give up what is waited for.
    pub(crate) fn show(&mut self, waiting: &Waiting, elapsed: Duration) {
        let text = if let Some(size) = self.size {
            self.turn += 1;
            self.region.draw(&waiting.frame(self.turn, elapsed, self.paint, now()), size)
        } else {
            let line = waiting.line();
            if line == self.told {
                return;
            }
            self.told.clone_from(&line);
            line + "\n"
        };
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    /// Leaves the terminal as it was.
    pub(crate) fn end(&mut self) {
        let text = self.region.clear();
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { columns: 10, rows: 4 };

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_second_drawing_begins_where_the_first_began() {
        let mut region = Region::default();
        assert_eq!(region.draw(&lines(&["one", "two"]), SIZE), "one\x1b[K\ntwo\x1b[K\n\x1b[J");
        assert_eq!(region.draw(&lines(&["three"]), SIZE), "\x1b[2A\rthree\x1b[K\n\x1b[J");
        assert_eq!(region.clear(), "\x1b[1A\r\x1b[J");
        assert_eq!(region.clear(), "");
    }

    #[test]
    fn what_does_not_fit_is_cut_so_that_no_line_becomes_two() {
        let mut region = Region::default();
        let drawn = region.draw(&lines(&["0123456789ab", "\x1b[31m0123456789ab\x1b[0m", "船船船船船船", "four", "five"]), SIZE);
        assert_eq!(drawn, "0123456789\x1b[K\n\x1b[31m0123456789\x1b[0m\x1b[K\n船船船船船\x1b[K\n\x1b[J");
        assert_eq!(region.drawn, 3);
    }

    fn scaling(ready: usize) -> Waiting {
        let work = WorkView { what: "store 5 leaves".to_owned(), percent: Some(50), since: None, announced: None };
        let (what, details) = ("rss/a is to settle".to_owned(), lines(&["scale StatefulSet"]));
        Waiting { what, members: Some((ready, 4)), work: vec![work], details }
    }

    #[test]
    fn a_terminal_gets_a_spinner_and_a_bar() {
        let frame = scaling(3).frame(1, Duration::from_secs(5), Paint { colour: false }, now());
        insta::assert_snapshot!(frame.join("\n"), @r"
        ⠙ rss/a is to settle 5s
          ██████████████████░░░░░░ 3 of 4 members ready
          ████████████░░░░░░░░░░░░  50 %  store 5 leaves
          scale StatefulSet
        ");
        assert!(
            Waiting { members: Some((0, 0)), ..scaling(0) }.frame(0, Duration::ZERO, Paint { colour: false }, now())[1]
                .contains('█')
        );
    }

    #[test]
    fn a_pipe_gets_one_plain_line_per_change() {
        let mut text = Vec::new();
        let mut progress = Progress::new(&mut text, Paint { colour: false }, None);
        for ready in [3, 3, 4] {
            progress.show(&scaling(ready), Duration::from_secs(1));
        }
        progress.end();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "rss/a is to settle: 3 of 4 members ready; store 5 leaves (50 %); scale StatefulSet\n\
             rss/a is to settle: 4 of 4 members ready; store 5 leaves (50 %); scale StatefulSet\n"
        );
    }
}
