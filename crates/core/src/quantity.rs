//! Sizes as Kubernetes writes them: `1Gi`, `500M`, `1e9`.

/// The steps of the decimal units, from a thousand up.
const STEPS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
/// And from a thousandth down.
const SMALL_STEPS: [&str; 3] = ["m", "u", "n"];

/// The number of bytes of a quantity; a part of a byte counts as a whole one. `None`: it is no quantity, or a negative one.
pub fn bytes(quantity: &str) -> Option<u128> {
    let quantity = quantity.strip_prefix('+').unwrap_or(quantity);
    let end = quantity.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, per) = factor(unit)?;
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(digits.checked_mul(times)?.div_ceil(parts.checked_mul(per)?))
}

/// By what a unit multiplies, and by what it divides.
fn factor(unit: &str) -> Option<(u128, u128)> {
    let power = |base: u128, step: usize| base.checked_pow(u32::try_from(step).ok()? + 1);
    if unit.is_empty() {
        return Some((1, 1));
    }
    if let Some(step) = STEPS.iter().position(|name| *name == unit) {
        return Some((power(1000, step)?, 1));
    }
    if let Some(step) = SMALL_STEPS.iter().position(|name| *name == unit) {
        return Some((1, power(1000, step)?));
    }
    if let Some(binary) = unit.strip_suffix('i') {
        // The one unit that is written with another letter: `Ki`, not `ki`.
        let step = if binary == "K" { 0 } else { STEPS.iter().skip(1).position(|name| *name == binary)? + 1 };
        return Some((power(1024, step)?, 1));
    }
    let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_notation() {
        for (text, expected) in [
            ("0", 0),
            ("1024", 1024),
            ("+1", 1),
            ("1Ki", 1024),
            ("1.5Gi", 1_610_612_736),
            ("2G", 2_000_000_000),
            ("1e3", 1000),
            ("1E3", 1000),
            ("1E", 1_000_000_000_000_000_000),
            ("1500m", 2),
            ("1n", 1),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_no_size() {
        for text in ["", "Gi", "1Xi", "1ki", "-1", ".", "1e", "1.2.3", "1e99"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
