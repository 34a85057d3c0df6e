//! Durations as Go writes them: `1500m`, `1h30m`, `1.5h`, `400s`. Manifests of users have them so.

use std::time::Duration;

/// Reads a duration. `None`: it is none, or one that no one could wait for.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut nanoseconds: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        nanoseconds = nanoseconds.checked_add(part(number, unit)?)?;
        rest = after;
    }
    let seconds = u64::try_from(nanoseconds / SECOND).ok()?;
    let below = u32::try_from(nanoseconds % SECOND).ok()?;
    (!text.is_empty()).then(|| Duration::new(seconds, below))
}

/// A second in nanoseconds.
const SECOND: u128 = 1_000_000_000;

fn part(number: &str, unit: &str) -> Option<u128> {
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits.checked_mul(unit)? / parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0s", Some(0))]
    #[case("1500m", Some(90_000_000))]
    #[case("1h30m", Some(5_400_000))]
    #[case("1.5h", Some(5_400_000))]
    #[case("400s", Some(400_000))]
    #[case("2m0.5s", Some(120_500))]
    #[case("100ms", Some(100))]
    #[case("3000000ns", Some(3))]
    #[case("2000µs", Some(2))]
    #[case("", None)]
    #[case("5", None)]
    #[case("m", None)]
    #[case("-5m", None)]
    #[case("5d", None)]
    #[case("1.2.3s", None)]
    #[case("5 m", None)]
    #[case("99999999999999999999999999999999999999h", None)]
    fn durations(#[case] text: &str, #[case] milliseconds: Option<u64>) {
        assert_eq!(parse(text), milliseconds.map(Duration::from_millis));
    }
}
