//! Where answers go and how they look there: colours and redrawing on a terminal, plain text in a pipe.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use crate::arguments::OutputForm;
use crate::error::Error;
use crate::live::Size;
use crate::render::paint::{Paint, Tone, one_line};

/// The two streams of this program.
pub(crate) struct Output {
    out_is_terminal: bool,
    error_is_terminal: bool,
    wants_colour: bool,
}

impl Output {
    /// Looks at what the streams are.
    pub(crate) fn new(no_color: bool) -> Self {
        let variable = |name: &str| std::env::var_os(name).unwrap_or_default();
        let dumb = variable("TERM") == "dumb";
        Self {
            out_is_terminal: io::stdout().is_terminal() && !dumb,
            error_is_terminal: io::stderr().is_terminal() && !dumb,
            wants_colour: !no_color && variable("NO_COLOR").is_empty(),
        }
    }

    /// The colours of answers.
    pub(crate) fn paint(&self) -> Paint {
        Paint { colour: self.wants_colour && self.out_is_terminal }
    }

    /// The colours of remarks and progress.
    pub(crate) fn error_paint(&self) -> Paint {
        Paint { colour: self.wants_colour && self.error_is_terminal }
    }

    /// The size of the terminal that answers go to.
    pub(crate) fn terminal(&self) -> Option<Size> {
        if self.out_is_terminal { size(io::stdout()) } else { None }
    }

    /// The size of the terminal that remarks go to.
    pub(crate) fn error_terminal(&self) -> Option<Size> {
        if self.error_is_terminal { size(io::stderr()) } else { None }
    }

    /// Prints lines of an answer.
    pub(crate) fn print(lines: &[String]) -> Result<(), Error> {
        let mut text = lines.join("\n");
        text.push('\n');
        write_out(&text)
    }

    /// Prints an answer for programs, whole and by itself.
    pub(crate) fn print_form(form: OutputForm, answer: &impl Serialize) -> Result<(), Error> {
        let text = match form {
            OutputForm::Yaml => yaml(answer)?,
            _ => serde_json::to_string_pretty(answer).map_err(|error| Error::Form(error.to_string()))? + "\n",
        };
        write_out(&text)
    }

    /// Prints one of many answers for programs: a line of JSON, or a document of YAML.
    pub(crate) fn print_next(form: OutputForm, answer: &impl Serialize) -> Result<(), Error> {
        let text = match form {
            OutputForm::Yaml => format!("---\n{}", yaml(answer)?),
            _ => serde_json::to_string(answer).map_err(|error| Error::Form(error.to_string()))? + "\n",
        };
        write_out(&text)
    }

    /// Says something beside the answer.
    pub(crate) fn remark(&self, tone: Tone, text: &str) {
        // Nobody is left to be told when this fails.
        let _ = writeln!(io::stderr(), "{}", self.error_paint().text(tone, &one_line(text)));
    }

    /// Says what went wrong.
    pub(crate) fn complain(&self, error: &Error) {
        let word = self.error_paint().text(Tone::Bad, "error:");
        let _ = writeln!(io::stderr(), "{word} {}", one_line(&error.to_string()));
    }
}

fn yaml(answer: &impl Serialize) -> Result<String, Error> {
    let text = serde_saphyr::to_string(answer).map_err(|error| Error::Form(error.to_string()))?;
    Ok(format!("{}\n", text.trim_end()))
}

pub(crate) fn write_out(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Print)
}

fn size(stream: impl AsFd) -> Option<Size> {
    // A terminal that tells no size, as some do over a serial line, gets the usual one.
    let told = rustix::termios::tcgetwinsize(stream).ok()?;
    let or = |value: u16, usual: usize| if value == 0 { usual } else { usize::from(value) };
    Some(Size { columns: or(told.ws_col, 80), rows: or(told.ws_row, 24) })
}

/// The time, for ages.
pub(crate) fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or_default()
}
