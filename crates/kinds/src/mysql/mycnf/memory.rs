//! How much memory a member has, from the quantities of its container.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The memory to count with: what is requested, else the limit. What cannot be read counts as not given.
pub fn memory_of(request: Option<&Quantity>, limit: Option<&Quantity>) -> Option<u64> {
    [request, limit].into_iter().flatten().find_map(|quantity| bytes(&quantity.0))
}

/// The number of bytes of a quantity such as `1Gi`, `500M` or `1e9`. A part of a byte counts as a whole one.
pub fn bytes(quantity: &str) -> Option<u64> {
    let quantity = quantity.strip_prefix('+').unwrap_or(quantity);
    let end = quantity.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (times, per) = factor(unit)?;
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    u64::try_from(digits.checked_mul(times)?.div_ceil(parts.checked_mul(per)?)).ok()
}

/// By what a unit multiplies, and by what it divides.
fn factor(unit: &str) -> Option<(u128, u128)> {
    const STEPS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    const SMALL_STEPS: [&str; 3] = ["m", "u", "n"];
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
