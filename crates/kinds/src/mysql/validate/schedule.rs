//! Whether the agent can follow a schedule. One that it cannot read ends it at its start, and with it the readiness of the server.
//!
//! The grammar is that of `windlass mysql-agent --log-rotation-schedule`: five fields of cron, a word, or `@every 10m`; all in UTC.

use jiff::SignedDuration;

/// A field: how it is called, its least and its most, and the names of its first values.
type Field = (&'static str, u8, u8, &'static [&'static str]);

const FIELDS: [Field; 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    ("month", 1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    ("day of the week", 0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];
const WORDS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// What is wrong with a schedule, if anything is.
pub(super) fn check(text: &str) -> Result<(), String> {
    let text = text.trim();
    if let Some(every) = text.strip_prefix("@every ") {
        let every: SignedDuration = every.parse().map_err(|_| format!("{every:?} is no duration"))?;
        return if every < SignedDuration::from_secs(1) { Err("it is less than a second".to_owned()) } else { Ok(()) };
    }
    if WORDS.contains(&text) {
        return Ok(());
    }
    if text.starts_with("TZ=") || text.starts_with("CRON_TZ=") {
        return Err("logs are rotated by UTC, without a time zone".to_owned());
    }
    let parts: Vec<&str> = text.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!("it has {} fields, not 5", parts.len()));
    }
    FIELDS.iter().zip(parts).try_for_each(|(field, part)| {
        let items = part.split(',').try_for_each(|item| check_item(field, item));
        items.map_err(|why| format!("{} {part:?}: {why}", field.0))
    })
}

fn check_item(field: &Field, item: &str) -> Result<(), String> {
    let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
    if !matches!(range, "*" | "?") {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        if number(field, first)? > number(field, last)? {
            return Err(format!("{range:?} runs backwards"));
        }
    }
    match step.map(str::parse::<usize>) {
        None | Some(Ok(1..)) => Ok(()),
        Some(_) => Err("its step is no number above 0".to_owned()),
    }
}

fn number(field: &Field, text: &str) -> Result<u8, String> {
    let (_, least, most, names) = field;
    let lower = text.to_ascii_lowercase();
    let by_name = names.iter().zip(*least..).find(|(name, _)| **name == lower).map(|(_, number)| number);
    let number: u8 = by_name.or_else(|| text.parse().ok()).ok_or_else(|| format!("{text:?} is no number"))?;
    if (*least..=*most).contains(&number) { Ok(number) } else { Err(format!("{number} is not between {least} and {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("*/5 * * * *")]
    #[case(" 0 0 29 2 * ")]
    #[case("50/5 23 31 DEC ?")]
    #[case("0 12 1,15 * mon-fri")]
    #[case("0 12 * * 7")]
    #[case("@midnight")]
    #[case("@every 1h30m")]
    fn what_the_agent_follows_is_accepted(#[case] text: &str) {
        assert_eq!(check(text), Ok(()));
    }

    #[rstest]
    #[case("* * * *")]
    #[case("60 * * * *")]
    #[case("* * 0 * *")]
    #[case("* * * * 5-1")]
    #[case("*/0 * * * *")]
    #[case("*/x * * * *")]
    #[case("a * * * *")]
    #[case("@fortnightly")]
    #[case("@every soon")]
    #[case("@every 10ms")]
    #[case("TZ=Asia/Tokyo 0 0 * * *")]
    #[case("CRON_TZ=UTC @daily")]
    fn what_it_cannot_follow_is_not(#[case] text: &str) {
        assert!(check(text).is_err_and(|why| why.len() > 10));
    }
}
