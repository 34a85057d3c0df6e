//! Sizes as Kubernetes writes them.

/// The number of bytes of a size such as `1Gi`, `500M` or `1e9`; a fraction of a byte counts whole.
pub(crate) fn bytes(text: &str) -> Option<u128> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let value: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (numerator, denominator) = unit(suffix)?;
    Some(value.checked_mul(numerator)?.div_ceil(scale.checked_mul(denominator)?))
}

/// What one of the unit is, as a fraction.
fn unit(suffix: &str) -> Option<(u128, u128)> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E'])
        && !exponent.is_empty()
    {
        let exponent: i32 = exponent.parse().ok()?;
        let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
        return Some(if exponent < 0 { (1, power) } else { (power, 1) });
    }
    let binary = |power: u32| Some((1024_u128.pow(power), 1));
    let decimal = |power: u32| Some((1000_u128.pow(power), 1));
    match suffix {
        "" => Some((1, 1)),
        "m" => Some((1, 1000)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_notation() {
        for (text, expected) in [
            ("0", 0),
            ("1024", 1024),
            ("1Ki", 1024),
            ("1.5Gi", 1_610_612_736),
            ("2G", 2_000_000_000),
            ("1e3", 1000),
            ("1E", 1_000_000_000_000_000_000),
            ("1500m", 2),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_size() {
        for text in ["", "Gi", "1Xi", "-1", "."] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
