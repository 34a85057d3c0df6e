//! Printing an answer once, or again whenever it changes.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::arguments::OutputForm;
use crate::cluster::Cluster;
use crate::error::Error;
use crate::follow::Follow;
use crate::live::Region;
use crate::output::{Output, write_out};
use crate::render::Table;
use crate::render::paint::{Paint, Tone};

/// How often ages are drawn anew.
const REDRAW: std::time::Duration = std::time::Duration::from_secs(1);

/// An answer that is a table.
pub(super) struct Rows<V> {
    /// For programs.
    pub(super) view: V,
    /// For people.
    pub(super) table: Table,
    /// For each row, what makes it another one.
    pub(super) keys: Vec<String>,
    /// What is said when there is no row.
    pub(super) empty: String,
}

/// Prints a table once.
pub(super) fn print<V: Serialize>(output: &Output, form: OutputForm, rows: &Rows<V>) -> Result<(), Error> {
    match form {
        OutputForm::Json | OutputForm::Yaml => Output::print_form(form, &rows.view),
        _ if rows.keys.is_empty() => {
            output.remark(Tone::Plain, &rows.empty);
            Ok(())
        }
        _ => Output::print(&rows.table.lines(output.paint(), None)),
    }
}

/// Prints an answer whenever it changes.
pub(super) struct Printer<'a> {
    output: &'a Output,
    form: OutputForm,
    region: Region,
    seen: BTreeSet<String>,
    last: String,
    trouble: String,
}

impl<'a> Printer<'a> {
    pub(super) fn new(output: &'a Output, form: OutputForm) -> Self {
        let (region, seen) = (Region::default(), BTreeSet::new());
        Self { output, form, region, seen, last: String::new(), trouble: String::new() }
    }

    fn is_for_programs(&self) -> bool {
        matches!(self.form, OutputForm::Json | OutputForm::Yaml)
    }

    /// Whether the answer is drawn over itself.
    pub(super) fn is_live(&self) -> bool {
        !self.is_for_programs() && self.output.terminal().is_some()
    }

    /// Prints the answer in the form that was asked for, if it is another one than the last.
    fn print_view(&mut self, view: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_string(view).map_err(|error| Error::Form(error.to_string()))?;
        if text == self.last {
            return Ok(());
        }
        self.last = text;
        Output::print_next(self.form, view)
    }

    /// Tells of trouble with the connection, once.
    pub(super) fn trouble(&mut self, trouble: Option<&str>) {
        let trouble = trouble.unwrap_or_default();
        if trouble != self.trouble {
            trouble.clone_into(&mut self.trouble);
            if !trouble.is_empty() && !self.is_live() {
                self.output.remark(Tone::Warn, trouble);
            }
        }
    }

    /// A table: drawn over itself on a terminal, the rows that are new in a pipe.
    pub(super) fn rows<V: Serialize>(&mut self, rows: &Rows<V>) -> Result<(), Error> {
        if self.is_for_programs() {
            return self.print_view(&rows.view);
        }
        let lines = rows.table.lines(self.output.paint(), None);
        if self.is_live() {
            return self.draw(if rows.keys.is_empty() { vec![rows.empty.clone()] } else { lines });
        }
        let mut lines = lines.into_iter();
        let head = lines.next();
        let mut news: Vec<String> =
            lines.zip(&rows.keys).filter(|(_, key)| self.seen.insert((*key).clone())).map(|(line, _)| line).collect();
        // A row that comes back is news again.
        self.seen.retain(|key| rows.keys.contains(key));
        if news.is_empty() {
            return Ok(());
        }
        if let Some(head) = head.filter(|_| self.last.is_empty()) {
            self.last.clone_from(&head);
            news.insert(0, head);
        }
        Output::print(&news)
    }

    /// A screen: drawn over itself on a terminal; one line per change in a pipe, with the time before it.
    pub(super) fn screen(
        &mut self,
        view: &impl Serialize,
        screen: impl FnOnce(Paint, Option<usize>) -> Vec<String>,
        line: impl FnOnce() -> String,
        time: &str,
    ) -> Result<(), Error> {
        if self.is_for_programs() {
            return self.print_view(view);
        }
        if self.is_live() {
            let width = self.output.terminal().map(|size| size.columns);
            return self.draw(screen(self.output.paint(), width));
        }
        let line = line();
        if line == self.last {
            return Ok(());
        }
        self.last.clone_from(&line);
        Output::print(&[format!("{time}  {line}")])
    }

    fn draw(&mut self, mut lines: Vec<String>) -> Result<(), Error> {
        let Some(size) = self.output.terminal() else { return Ok(()) };
        if !self.trouble.is_empty() {
            lines.push(self.output.paint().text(Tone::Warn, &self.trouble));
        }
        write_out(&self.region.draw(&lines, size))
    }
}

/// What comes after an answer.
pub(super) enum Flow {
    GoOn,
    End,
}

/// Tells whenever something changes, until `tell` says that it is enough.
pub(super) async fn watch(
    mut follow: Follow,
    printer: &mut Printer<'_>,
    mut tell: impl FnMut(&mut Printer<'_>, &[Cluster]) -> Result<Flow, Error>,
) -> Result<(), Error> {
    let mut ticks = tokio::time::interval(REDRAW);
    let mut known: Option<Vec<Cluster>> = None;
    loop {
        tokio::select! {
            news = follow.next() => {
                if let Some(clusters) = news? {
                    known = Some(clusters);
                }
                printer.trouble(follow.trouble());
            }
            _ = ticks.tick() => {
                if !printer.is_live() {
                    continue;
                }
            }
        }
        if let Some(clusters) = &known
            && matches!(tell(printer, clusters)?, Flow::End)
        {
            return Ok(());
        }
    }
}
