//! When certificates are made, renewed and replaced. Nothing here knows a key: only when something was made.
//!
//! A root is believed for the life of a certificate before it signs the first one, and for the life of a certificate after it signed
//! its last one. Whoever renews in time therefore knows every root by which a certificate that it meets can be signed.

use jiff::{SignedDuration, Timestamp};

const DAY: i64 = 24 * 60 * 60;
/// How long a certificate is good.
pub const CERTIFICATE: SignedDuration = SignedDuration::from_secs(90 * DAY);
/// How long a root is good.
pub const ROOT: SignedDuration = SignedDuration::from_secs(10 * 365 * DAY);
/// How often it is looked whether a certificate that somebody else renews was renewed.
pub const COPY: SignedDuration = SignedDuration::from_secs(DAY / 2);

/// The annotation of a Secret that says when its certificate was asked for.
pub const ISSUED: &str = "windlass.dev/certificate-issued";
/// The annotation of a Secret that names the roots in it, by the second in which each was made.
pub const ROOTS: &str = "windlass.dev/certificate-roots";
/// The annotation of a Secret whose certificate is a copy of another Secret's.
pub const COPY_OF: &str = "windlass.dev/certificate-copy-of";

/// What is due with the roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Make the first one.
    Make,
    /// Make the next one. It is believed from now on, and signs later.
    Add,
    /// Forget the one that was made then: nothing that it signed is good any more.
    Forget(Timestamp),
    /// Nothing.
    Keep,
}

/// What is due with roots that were made at these times.
pub fn due(roots: &[Timestamp], now: Timestamp) -> Due {
    let made = in_order(roots);
    let (Some(oldest), Some(newest)) = (made.first(), made.last()) else { return Due::Make };
    // The one after the oldest signs from its time on; the last that the oldest signed is good until then.
    if let Some(next) = made.get(1)
        && after(after(*next, CERTIFICATE), CERTIFICATE) <= now
    {
        return Due::Forget(*oldest);
    }
    if is_renewed(*newest, ROOT, now) { Due::Add } else { Due::Keep }
}

/// The root that signs now: the newest one that everybody had the time to hear of, else the oldest that is good.
pub fn signer(roots: &[Timestamp], now: Timestamp) -> Option<Timestamp> {
    let good: Vec<Timestamp> = in_order(roots).into_iter().filter(|made| after(*made, ROOT) > now).collect();
    good.iter().rev().find(|made| after(**made, CERTIFICATE) <= now).or(good.first()).copied()
}

/// Whether something that was made then, for so long, is to be made anew: after two thirds of its life.
pub fn is_renewed(made: Timestamp, life: SignedDuration, now: Timestamp) -> bool {
    after(made, life * 2 / 3) <= now
}

/// Roots as an annotation names them.
pub fn name_roots(roots: &[Timestamp]) -> String {
    in_order(roots).iter().map(|made| made.as_second().to_string()).collect::<Vec<_>>().join(".")
}

fn in_order(roots: &[Timestamp]) -> Vec<Timestamp> {
    let mut made = roots.to_vec();
    made.sort_unstable();
    made.dedup();
    made
}

fn after(made: Timestamp, life: SignedDuration) -> Timestamp {
    made.checked_add(life).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + number * DAY).unwrap()
    }

    fn days(numbers: &[i64]) -> Vec<Timestamp> {
        numbers.iter().copied().map(day).collect()
    }

    #[test]
    fn a_root_is_made_followed_and_forgotten_in_time() {
        // A root lives for 3650 days; 2433 and a bit are two thirds of that.
        let table: &[(&[i64], i64, Due)] = &[
            (&[], 0, Due::Make),
            (&[0], 0, Due::Keep),
            (&[0], 2433, Due::Keep),
            (&[0], 2434, Due::Add),
            (&[0, 2434], 2434, Due::Keep),
            (&[0, 2434], 2434 + 179, Due::Keep),
            (&[2434, 0], 2434 + 180, Due::Forget(day(0))),
            (&[2434], 2434 + 180, Due::Keep),
            // An operator that slept for long: what is too old goes, and what is next comes, one after the other.
            (&[0], 9000, Due::Add),
            (&[0, 9000], 9180, Due::Forget(day(0))),
        ];
        for (roots, now, expected) in table {
            assert_eq!(due(&days(roots), day(*now)), *expected, "{roots:?} on day {now}");
        }
    }

    #[test]
    fn a_new_root_signs_when_everybody_had_the_time_to_hear_of_it() {
        let table: &[(&[i64], i64, Option<i64>)] = &[
            (&[], 0, None),
            (&[0], 0, Some(0)),
            (&[0, 2434], 2434, Some(0)),
            (&[0, 2434], 2434 + 89, Some(0)),
            (&[2434, 0], 2434 + 90, Some(2434)),
            // The old one is of no use any more: the new one signs at once.
            (&[0, 3649], 3650, Some(3649)),
            (&[0], 3650, None),
        ];
        for (roots, now, expected) in table {
            assert_eq!(signer(&days(roots), day(*now)), expected.map(day), "{roots:?} on day {now}");
        }
    }

    #[test]
    fn over_a_hundred_years_nobody_meets_a_certificate_of_a_root_that_he_does_not_know() {
        let mut roots: Vec<Timestamp> = Vec::new();
        // What one side has: its root, and those that it knew when it was made. Renewed at two thirds, on different days.
        let mut parties: [Option<(Timestamp, Timestamp, Vec<Timestamp>)>; 2] = [None, None];
        for number in 0..36_500 {
            let now = day(number);
            match due(&roots, now) {
                Due::Make | Due::Add => roots.push(now),
                Due::Forget(root) => roots.retain(|made| *made != root),
                Due::Keep => {}
            }
            assert!((1..=2).contains(&roots.len()), "day {number}");
            for (turn, party) in parties.iter_mut().enumerate() {
                let starts = party.is_none() && number >= i64::try_from(turn).unwrap() * 17;
                if starts || party.as_ref().is_some_and(|(made, ..)| is_renewed(*made, CERTIFICATE, now)) {
                    *party = Some((now, signer(&roots, now).unwrap(), roots.clone()));
                }
            }
            if let [Some((_, one, known_to_one)), Some((_, other, known_to_other))] = &parties {
                assert!(known_to_one.contains(other) && known_to_other.contains(one), "day {number}");
                assert!(after(*one, ROOT) > now && after(*other, ROOT) > now, "day {number}");
            }
        }
    }

    #[test]
    fn roots_are_named_in_order() {
        assert_eq!(name_roots(&days(&[1, 0])), "1800000000.1800086400");
    }
}
