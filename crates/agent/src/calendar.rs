//! The five fields of cron, as sets of numbers, and the next minute that is in all of them. Pure; all times are UTC.
//!
//! As everywhere: where both days of the month and days of the week are restricted, either is enough.

use jiff::civil::{DateTime, Time};
use jiff::{Span, ToSpan as _};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The rarest date, 29 February, comes within eight years.
const FARTHEST_DAYS: u32 = 8 * 366;

/// One field: what it is called, what it may hold, and the names of its first values.
struct Field {
    called: &'static str,
    least: u8,
    most: u8,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { called: "minute", least: 0, most: 59, names: &[] },
    Field { called: "hour", least: 0, most: 23, names: &[] },
    Field { called: "day of the month", least: 1, most: 31, names: &[] },
    Field { called: "month", least: 1, most: 12, names: &MONTHS },
    // 7 is Sunday as well.
    Field { called: "day of the week", least: 0, most: 7, names: &WEEKDAYS },
];

/// A set of numbers below 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Set(u64);

impl Set {
    fn add(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    fn has(self, number: impl TryInto<u8>) -> bool {
        number.try_into().is_ok_and(|number: u8| number < 64 && self.0 & (1 << number) != 0)
    }
}

/// The minutes at which something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Calendar {
    minutes: Set,
    hours: Set,
    days: Set,
    months: Set,
    weekdays: Set,
    /// Whether a day must be in both sets of days, or in either.
    both_days: bool,
}

impl Calendar {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let parts: [&str; 5] = parts.try_into().map_err(|parts: Vec<&str>| format!("it has {} fields, not 5", parts.len()))?;
        let mut sets = [Set::default(); 5];
        for ((field, part), set) in FIELDS.iter().zip(parts).zip(&mut sets) {
            *set = parse_field(field, part).map_err(|why| format!("{} {part:?}: {why}", field.called))?;
        }
        let [minutes, hours, days, months, mut weekdays] = sets;
        if weekdays.has(7) {
            weekdays.add(0);
        }
        let both_days = [parts[2], parts[4]].iter().any(|part| matches!(*part, "*" | "?"));
        Ok(Self { minutes, hours, days, months, weekdays, both_days })
    }

    fn has_day(&self, day: DateTime) -> bool {
        let (of_month, of_week) = (self.days.has(day.day()), self.weekdays.has(day.weekday().to_sunday_zero_offset()));
        let matches = if self.both_days { of_month && of_week } else { of_month || of_week };
        matches && self.months.has(day.month())
    }

    /// The first minute after this moment; none for a date that never comes, such as 30 February.
    pub(crate) fn next_after(&self, moment: DateTime) -> Option<DateTime> {
        let minute: Span = 1.minute();
        let mut at = moment.with().second(0).subsec_nanosecond(0).build().ok()?.checked_add(minute).ok()?;
        for _ in 0..FARTHEST_DAYS {
            let day = at.date();
            while at.date() == day && self.has_day(at) {
                if self.hours.has(at.hour()) && self.minutes.has(at.minute()) {
                    return Some(at);
                }
                at = at.checked_add(minute).ok()?;
            }
            if at.date() == day {
                at = day.tomorrow().ok()?.to_datetime(Time::midnight());
            }
        }
        None
    }
}

fn parse_field(field: &Field, part: &str) -> Result<Set, String> {
    let mut set = Set::default();
    for item in part.split(',') {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        let (first, last) = if matches!(range, "*" | "?") {
            (field.least, field.most)
        } else if let Some((first, last)) = range.split_once('-') {
            (parse_number(field, first)?, parse_number(field, last)?)
        } else {
            let only = parse_number(field, range)?;
            // `5/10` goes on to the end.
            (only, if step.is_some() { field.most } else { only })
        };
        if first > last {
            return Err(format!("{range:?} runs backwards"));
        }
        let step: usize = step.map_or(Ok(1), |step| step.parse().map_err(|_| format!("step {step:?} is no number")))?;
        if step == 0 {
            return Err("a step of 0 never ends".to_owned());
        }
        (first..=last).step_by(step).for_each(|number| set.add(number));
    }
    Ok(set)
}

fn parse_number(field: &Field, text: &str) -> Result<u8, String> {
    let lower = text.to_ascii_lowercase();
    let named = field.names.iter().zip(field.least..).find(|(name, _)| **name == lower).map(|(_, number)| number);
    let number = named.or_else(|| text.parse().ok()).ok_or_else(|| format!("{text:?} is no number"))?;
    if (field.least..=field.most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} is not between {} and {}", field.least, field.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("*/5 * * * *", "2026-11-16T12:06:30", "2026-11-16T12:10:00")]
    #[case("*/5 * * * *", "2026-11-16T12:10:00", "2026-11-16T12:15:00")]
    #[case("0 0 * * *", "2026-12-31T00:00:00", "2027-01-01T00:00:00")]
    #[case("30 2,14 * * *", "2026-11-16T03:00:00", "2026-11-16T14:30:00")]
    #[case("0 0 29 2 *", "2026-11-16T00:00:00", "2028-02-29T00:00:00")]
    #[case("0 12 * * mon-fri", "2026-11-14T00:00:00", "2026-11-16T12:00:00")]
    #[case("0 12 * * 7", "2026-11-16T00:00:00", "2026-11-22T12:00:00")]
    #[case("0 0 1 * mon", "2026-11-17T00:00:00", "2026-11-23T00:00:00")]
    #[case("0 0 */2 * mon", "2026-11-17T00:00:00", "2026-11-19T00:00:00")]
    #[case("50/5 23 31 DEC ?", "2026-11-17T00:00:00", "2026-12-31T23:50:00")]
    fn the_next_minute(#[case] text: &str, #[case] from: DateTime, #[case] expected: DateTime) {
        assert_eq!(Calendar::parse(text).unwrap().next_after(from), Some(expected));
    }

    #[test]
    fn a_date_that_never_comes_is_never_due() {
        assert_eq!(Calendar::parse("0 0 30 2 *").unwrap().next_after("2026-11-16T00:00:00".parse().unwrap()), None);
    }

    #[rstest]
    #[case("* * * *", "4 fields")]
    #[case("60 * * * *", "minute \"60\": 60 is not between 0 and 59")]
    #[case("* * 0 * *", "day of the month")]
    #[case("5-1 * * * *", "runs backwards")]
    #[case("*/0 * * * *", "never ends")]
    #[case("* * * foo *", "\"foo\" is no number")]
    #[case("1,,2 * * * *", "no number")]
    fn mistakes_are_told_with_their_field(#[case] text: &str, #[case] expected: &str) {
        let error = Calendar::parse(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
