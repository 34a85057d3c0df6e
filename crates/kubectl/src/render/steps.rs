//! The tables of `plan` and `log`.

use super::paint::Tone;
use super::table::{Table, cell, plain};
use crate::view::{LogView, PlanView, StepState};

/// The steps, and for each row what makes it another one.
pub(crate) fn plan(view: &PlanView) -> (Table, Vec<String>) {
    let mut table = Table::new(vec!["STATE", "LANE", "STEP", "REASON"]);
    let mut keys = Vec::new();
    for step in &view.steps {
        let tone = match step.state {
            StepState::Running => Tone::Good,
            StepState::Next => Tone::Plain,
            StepState::Held => Tone::Warn,
        };
        let percent = step.percent.map(|percent| format!(" ({percent} %)")).unwrap_or_default();
        table.row(vec![
            cell(tone, step.state.to_string()),
            plain(&step.lane),
            plain(format!("{}{percent}", step.step)),
            plain(&step.reason),
        ]);
        keys.push(format!("{step:?}"));
    }
    (table, keys)
}

/// The entries, and for each row what makes it another one.
pub(crate) fn log(view: &LogView, wide: bool) -> (Table, Vec<String>) {
    let mut heads = vec!["TIME", "ACT", "TARGET", "OUTCOME", "BY", "REASON"];
    if wide {
        heads.insert(5, "UID");
    }
    let mut table = Table::new(heads);
    let mut keys = Vec::new();
    for entry in &view.entries {
        let tone = match entry.outcome.as_str() {
            "Done" => Tone::Good,
            _ => Tone::Warn,
        };
        let mut row = vec![
            plain(format!("{:.0}", entry.time)),
            plain(&entry.act),
            plain(&entry.target),
            cell(tone, &entry.outcome),
            plain(&entry.by),
            plain(&entry.reason),
        ];
        if wide {
            row.insert(5, plain(&entry.uid));
        }
        table.row(row);
        keys.push(format!("{entry:?}"));
    }
    (table, keys)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PLAIN, busy, held};
    use super::*;

    #[test]
    fn a_paused_cluster_tells_what_is_held_and_why() {
        insta::assert_snapshot!(plan(&held().plan()).0.lines(PLAIN, None).join("\n"));
    }

    #[test]
    fn what_runs_stands_first_and_what_waits_after_it() {
        insta::assert_snapshot!(plan(&busy().plan()).0.lines(PLAIN, None).join("\n"));
    }

    #[test]
    fn the_log_has_acts_intents_and_overrides_the_newest_last() {
        insta::assert_snapshot!(log(&busy().log(), true).0.lines(PLAIN, None).join("\n"));
    }
}
