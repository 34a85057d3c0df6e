//! When logs are rotated: a schedule as users of cron write it, and a size. Pure.

use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::calendar::Calendar;

/// A schedule: five fields, a name such as `@daily`, or `@every 10m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Every(SignedDuration),
    Calendar(Calendar),
}

/// A schedule that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("schedule {text:?} cannot be read: {why}; write five fields such as \"*/5 * * * *\", or @hourly, @daily, @every 10m")]
pub struct BadSchedule {
    text: String,
    why: String,
}

impl FromStr for Schedule {
    type Err = BadSchedule;

    fn from_str(text: &str) -> Result<Self, BadSchedule> {
        let bad = |why: String| BadSchedule { text: text.to_owned(), why };
        let text = text.trim();
        if let Some(every) = text.strip_prefix("@every ") {
            let every = parse_duration(every).map_err(bad)?;
            let every = SignedDuration::try_from(every).map_err(|error| bad(error.to_string()))?;
            // Rotation looks once a second; what is shorter would only be a second late each time.
            return if every < SignedDuration::from_secs(1) {
                Err(bad("less than a second".into()))
            } else {
                Ok(Self(Kind::Every(every)))
            };
        }
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            fields => fields,
        };
        Calendar::parse(fields).map(Kind::Calendar).map(Self).map_err(bad)
    }
}

impl Schedule {
    /// The first time after this one, in UTC.
    pub(crate) fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Kind::Every(every) => moment.checked_add(*every).ok(),
            Kind::Calendar(calendar) => {
                let next = calendar.next_after(TimeZone::UTC.to_datetime(moment))?;
                TimeZone::UTC.to_timestamp(next).ok()
            }
        }
    }
}

/// A duration as people write it: `90s`, `1m`, `1h30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|_| format!("{text:?} is no duration; write 90s, 1m or 1h30m"))?;
    Duration::try_from(parsed).map_err(|_| format!("{text:?} is less than nothing"))
}

/// Why a log is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Schedule,
    Size,
}

/// Whether the log is to be rotated now. A limit of 0 is none.
pub(crate) fn decide(due: Option<Timestamp>, now: Timestamp, size: Option<u64>, limit: u64) -> Option<Cause> {
    if due.is_some_and(|due| due <= now) {
        Some(Cause::Schedule)
    } else if limit > 0 && size.is_some_and(|size| size >= limit) {
        Some(Cause::Size)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("*/5 * * * *", "2026-11-16T12:10:00Z")]
    #[case("@hourly", "2026-11-16T13:00:00Z")]
    #[case("@daily", "2026-11-17T00:00:00Z")]
    #[case("@weekly", "2026-11-22T00:00:00Z")]
    #[case("@monthly", "2026-12-01T00:00:00Z")]
    #[case("@yearly", "2027-01-01T00:00:00Z")]
    #[case("@every 10s", "2026-11-16T12:06:26Z")]
    #[case("@every 1h30m", "2026-11-16T13:36:16Z")]
    fn schedules_are_followed_in_utc(#[case] text: &str, #[case] next: Timestamp) {
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.next_after("2026-11-16T12:06:16Z".parse().unwrap()), Some(next));
    }

    #[rstest]
    #[case("@fortnightly")]
    #[case("@every soon")]
    #[case("@every 0s")]
    #[case("@every -1h")]
    #[case("")]
    fn what_is_no_schedule_is_refused(#[case] text: &str) {
        let error = text.parse::<Schedule>().unwrap_err().to_string();
        assert!(error.contains("@every 10m"), "{error}");
    }

    #[rstest]
    #[case(Some("2026-11-16T12:00:00Z"), None, 0, Some(Cause::Schedule))]
    #[case(Some("2026-11-16T12:00:01Z"), None, 0, None)]
    #[case(Some("2026-11-16T12:00:01Z"), Some(100), 100, Some(Cause::Size))]
    #[case(Some("2026-11-16T12:00:01Z"), Some(99), 100, None)]
    #[case(None, Some(1_000_000), 0, None)]
    #[case(None, None, 1, None)]
    fn rotation_is_due_by_time_or_by_size(
        #[case] due: Option<&str>,
        #[case] size: Option<u64>,
        #[case] limit: u64,
        #[case] expected: Option<Cause>,
    ) {
        let due = due.map(|due| due.parse().unwrap());
        assert_eq!(decide(due, "2026-11-16T12:00:00Z".parse().unwrap(), size, limit), expected);
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("1m0s").unwrap(), Duration::from_mins(1));
        assert_eq!(parse_duration("0s").unwrap(), Duration::ZERO);
        assert!(parse_duration("-1s").is_err() && parse_duration("60").is_err());
    }
}
