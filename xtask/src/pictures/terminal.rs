//! What a terminal shows, as a picture: text with the codes for colours becomes SVG. Pure.

use std::fmt::Write as _;

const FONT_SIZE: usize = 14;
/// Hundredths of a pixel that a letter of that size is wide.
const LETTER: usize = 843;
const LINE: usize = 20;
const EDGE: usize = 16;

/// How letters look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    bold: bool,
    dim: bool,
    colour: Option<u8>,
}

impl Style {
    /// Takes one code in.
    fn take(&mut self, code: u8) {
        match code {
            0 => *self = Self::default(),
            1 => self.bold = true,
            2 => self.dim = true,
            22 => (self.bold, self.dim) = (false, false),
            30..=37 => self.colour = Some(code - 30),
            39 => self.colour = None,
            90..=97 => self.colour = Some(code - 90),
            _ => {}
        }
    }

    fn attributes(self) -> String {
        let fill = match self.colour {
            Some(0) => "#7d8590",
            Some(1) => "#ff7b72",
            Some(2) => "#56d364",
            Some(3) => "#e3b341",
            Some(4) => "#79c0ff",
            Some(5) => "#d2a8ff",
            Some(6) => "#76e3ea",
            _ => "#e6edf3",
        };
        let weight = if self.bold { " font-weight=\"bold\"" } else { "" };
        let opacity = if self.dim { " opacity=\"0.65\"" } else { "" };
        format!("fill=\"{fill}\"{weight}{opacity}")
    }
}

/// Pieces of one line, each with its style.
type Line = Vec<(Style, String)>;

/// A picture of a terminal in which a line was typed and this was shown.
pub(super) fn picture(typed: &str, shown: &str, columns: usize) -> String {
    let mut lines = vec![vec![
        (Style { dim: true, ..Style::default() }, "$ ".to_owned()),
        (Style { bold: true, ..Style::default() }, typed.to_owned()),
    ]];
    lines.extend(read(shown));
    let length = |line: &Line| line.iter().map(|(_, text)| text.chars().count()).sum();
    // A line that a terminal would break is easier to read in one piece.
    let columns = lines.iter().map(length).fold(columns, usize::max);
    let (width, height) = (columns * LETTER / 100 + 2 * EDGE, lines.len() * LINE + 2 * EDGE);
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n\
         <g font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT_SIZE}\" xml:space=\"preserve\">\n",
        escaped(typed)
    );
    for (number, line) in lines.iter().enumerate() {
        let _ = write!(picture, "<text x=\"{EDGE}\" y=\"{}\">", EDGE + (number + 1) * LINE - 6);
        for (style, text) in line {
            let _ = write!(picture, "<tspan {}>{}</tspan>", style.attributes(), escaped(text));
        }
        picture.push_str("</text>\n");
    }
    picture.push_str("</g>\n</svg>\n");
    picture
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Takes text and codes apart. A style goes on over the end of a line.
fn read(shown: &str) -> Vec<Line> {
    let mut style = Style::default();
    let mut lines = Vec::new();
    for line in shown.trim_end().lines() {
        let mut pieces: Line = Vec::new();
        let mut rest = line.trim_end_matches('\r');
        while !rest.is_empty() {
            let (text, code) = rest.split_once('\u{1b}').unwrap_or((rest, ""));
            if !text.is_empty() {
                pieces.push((style, text.to_owned()));
            }
            rest = after_code(code, &mut style);
        }
        lines.push(pieces);
    }
    lines
}

/// What follows a code; one that sets a style is taken in, all others are left out.
fn after_code<'a>(code: &'a str, style: &mut Style) -> &'a str {
    let Some(code) = code.strip_prefix('[') else { return code };
    let Some(end) = code.find(|letter: char| letter.is_ascii_alphabetic()) else { return "" };
    if code[end..].starts_with('m') {
        for number in code[..end].split(';') {
            // No number is the same as 0.
            style.take(if number.is_empty() { 0 } else { number.parse().unwrap_or(u8::MAX) });
        }
    }
    &code[end + 1..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_become_styles_and_the_rest_of_them_goes() {
        let green = Style { colour: Some(2), ..Style::default() };
        let bold_green = Style { bold: true, ..green };
        let lines = read("a \u{1b}[32mb\u{1b}[1mc\r\nd\u{1b}[0m\u{1b}[2K e\u{1b}[m\r\n\r\n");
        let piece = |style: Style, text: &str| (style, text.to_owned());
        assert_eq!(lines[0], [piece(Style::default(), "a "), piece(green, "b"), piece(bold_green, "c")]);
        assert_eq!(lines[1], [piece(bold_green, "d"), piece(Style::default(), " e")]);
        assert_eq!(lines.len(), 2, "empty lines at the end show nothing");
    }

    #[test]
    fn a_picture_holds_the_text_and_no_code() {
        let picture = picture("kubectl get <x>", "\u{1b}[31mA & B\u{1b}[0m", 80);
        assert!(picture.contains("kubectl get &lt;x&gt;") && picture.contains("A &amp; B"), "{picture}");
        assert!(!picture.contains('\u{1b}'), "{picture}");
    }
}
