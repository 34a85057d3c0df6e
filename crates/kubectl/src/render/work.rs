//! Something that takes its time: a bar, how much is done, and how long the rest may take.

use k8s_openapi::jiff::Timestamp;

use super::age;
use super::paint::{Paint, Tone, one_line};
use crate::view::WorkView;

const BAR: usize = 24;

/// A bar of which so many parts are full.
pub(crate) fn bar(done: usize, all: usize) -> String {
    let full = (done.min(all) * BAR).checked_div(all).unwrap_or(BAR);
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

/// For a terminal: the bar, and what it is about. Nothing where nobody knows how far it is.
pub(crate) fn drawn(work: &WorkView, paint: Paint, now: Timestamp) -> Option<String> {
    let percent = work.percent?;
    let left = left(work, now).map(|left| paint.text(Tone::Faint, &format!(", {left} left"))).unwrap_or_default();
    Some(format!("{} {percent:>3} %{left}  {}", paint.text(Tone::Good, &bar(percent.into(), 100)), one_line(&work.what)))
}

/// In words. How long the rest may take changes with every look, and is left out where lines are compared.
pub(crate) fn told(work: &WorkView) -> String {
    work.percent.map_or_else(|| work.what.clone(), |percent| format!("{} ({percent} %)", work.what))
}

/// How long the rest takes, if it goes on as it went.
pub(crate) fn left(work: &WorkView, now: Timestamp) -> Option<String> {
    let (done, since) = (i64::from(work.percent?), work.since?);
    let elapsed = now.as_second() - since.as_second();
    let rest = (elapsed.max(0) * (100 - done)).checked_div(done)?;
    (done < 100).then(|| format!("about {}", age::seconds(rest)))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::fixtures::{PLAIN, now};
    use super::*;

    fn work(percent: Option<u8>, ago: Option<i64>) -> WorkView {
        let since = ago.map(|ago| Timestamp::from_second(now().as_second() - ago).unwrap());
        WorkView { what: "store 5 (db-tikv-4) gives away 16 regions".to_owned(), percent, since, announced: None }
    }

    #[test]
    fn a_bar_comes_with_what_is_done_and_what_is_left() {
        insta::assert_snapshot!(
            drawn(&work(Some(25), Some(10)), PLAIN, now()).unwrap(),
            @"██████░░░░░░░░░░░░░░░░░░  25 %, about 30s left  store 5 (db-tikv-4) gives away 16 regions"
        );
        assert_eq!(drawn(&work(None, Some(10)), PLAIN, now()), None);
    }

    #[rstest]
    #[case::nothing_is_done(Some(0), Some(10))]
    #[case::all_is_done(Some(100), Some(10))]
    #[case::nobody_knows_since_when(Some(50), None)]
    #[case::nobody_knows_how_much(None, Some(10))]
    fn what_is_left_is_not_guessed(#[case] percent: Option<u8>, #[case] ago: Option<i64>) {
        assert_eq!(left(&work(percent, ago), now()), None);
    }

    #[test]
    fn a_clock_that_is_behind_does_no_harm() {
        assert_eq!(left(&work(Some(50), Some(-10)), now()), Some("about 0s".to_owned()));
    }
}
