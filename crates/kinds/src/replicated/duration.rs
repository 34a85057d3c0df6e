//! Durations as users write them: `30s`, `1h30m`, `500ms`, or a bare number of seconds.

use std::time::Duration;

use thiserror::Error;

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no duration: write a number of seconds, or numbers with the units ms, s, m, h, d such as 1m30s")]
pub struct InvalidDuration {
    text: String,
}

/// Reads a duration.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration { text: text.to_owned() };
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
        let (number, after) = rest.split_at(digits);
        let number: u64 = number.parse().map_err(|_| invalid())?;
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let milliseconds = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(invalid()),
        };
        let part = number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(invalid)?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = after;
    }
    if text.is_empty() { Err(invalid()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0", 0)]
    #[case("45", 45_000)]
    #[case("500ms", 500)]
    #[case("30s", 30_000)]
    #[case("1m30s", 90_000)]
    #[case("2h", 7_200_000)]
    #[case("1d1ms", 86_400_001)]
    fn durations_are_read(#[case] text: &str, #[case] milliseconds: u64) {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)));
    }

    #[rstest]
    #[case("")]
    #[case("s")]
    #[case("5x")]
    #[case("-5s")]
    #[case("5s7")]
    #[case("1 m")]
    #[case("99999999999999999999s")]
    #[case("18446744073709551615d")]
    fn other_texts_are_refused(#[case] text: &str) {
        let message = parse_duration(text).unwrap_err().to_string();
        assert!(message.contains("1m30s"), "{message}");
    }
}
