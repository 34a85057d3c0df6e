//! Seeded chance for tests: the same seed gives the same history, the same document, the same schedule.
//!
//! It knows nothing of Windlass, and nothing that is shipped is built from it.

mod documents;
mod junk;

pub use documents::Documents;
pub use junk::{junk, text};

/// A small generator (a Weyl sequence with mixed output).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// From a seed. Seeds that follow each other give rolls that have nothing in common.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one; 0 when there is none.
    pub fn below(&mut self, bound: u16) -> u16 {
        u16::try_from(self.roll() % u64::from(bound.max(1))).unwrap_or(0)
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u16) -> bool {
        self.below(100) < percent
    }

    /// One of these. There must be one.
    pub fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.index(all.len())]
    }

    /// A place in a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::from(self.below(u16::try_from(length).unwrap_or(u16::MAX)))
    }
}

/// The number that somebody gave in a variable of the environment, such as a seed to repeat or how many rounds to run.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_rolls() {
        let rolls = |seed| {
            let mut dice = Dice::new(seed);
            [dice.roll(), dice.roll(), dice.roll()]
        };
        assert_eq!(rolls(7), rolls(7));
        assert_ne!(rolls(7), rolls(8));
    }

    #[test]
    fn rolls_stay_below_their_bound_and_reach_it() {
        let mut dice = Dice::new(1);
        let rolled: std::collections::BTreeSet<u16> = (0..200).map(|_| dice.below(5)).collect();
        assert_eq!(rolled, (0..5).collect());
        assert_eq!(dice.below(0), 0);
    }
}
