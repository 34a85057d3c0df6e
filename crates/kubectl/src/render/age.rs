//! How long something took, as kubectl writes it.

use k8s_openapi::jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time since a moment.
pub(crate) fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(|| "<unknown>".to_owned(), |since| seconds(now.as_second() - since.as_second()))
}

/// A number of seconds.
pub(crate) fn seconds(seconds: i64) -> String {
    // Clocks differ a little: what lies in the future has just happened.
    let seconds = seconds.max(0);
    let two = |large: i64, small: i64, letters: (char, char)| {
        if small == 0 { format!("{large}{}", letters.0) } else { format!("{large}{}{small}{}", letters.0, letters.1) }
    };
    match seconds {
        ..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, seconds % MINUTE, ('m', 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, seconds % HOUR / MINUTE, ('h', 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, seconds % DAY / HOUR, ('d', 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, seconds % YEAR / DAY, ('y', 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    // The values are what kubectl prints for the same ages.
    #[rstest]
    #[case(-3, "0s")]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(121, "2m1s")]
    #[case(599, "9m59s")]
    #[case(600, "10m")]
    #[case(10_799, "179m")]
    #[case(10_800, "3h")]
    #[case(11_000, "3h3m")]
    #[case(28_800, "8h")]
    #[case(172_799, "47h")]
    #[case(172_800, "2d")]
    #[case(180_000, "2d2h")]
    #[case(691_200, "8d")]
    #[case(63_072_000, "2y")]
    #[case(70_000_000, "2y80d")]
    #[case(252_288_000, "8y")]
    fn ages_look_as_those_of_kubectl(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(super::seconds(seconds), expected);
    }
}
