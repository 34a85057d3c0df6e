//! Lists of intervals of one source: in order, apart from each other by at least one number. Every walk is linear.

use std::fmt;

/// The numbers from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Interval {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// Puts intervals in order. Those that touch become one; those that end before they begin are dropped.
pub(super) fn in_order(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.retain(|interval| interval.first <= interval.last);
    // What a server writes is in order already, which this sort notices.
    intervals.sort();
    intervals.dedup_by(|later, earlier| {
        let touches = later.first <= earlier.last.saturating_add(1);
        if touches {
            earlier.last = earlier.last.max(later.last);
        }
        touches
    });
    intervals
}

/// Whether a number is in one of them.
pub(super) fn contains(intervals: &[Interval], number: u64) -> bool {
    let place = intervals.partition_point(|interval| interval.last < number);
    intervals.get(place).is_some_and(|interval| interval.first <= number)
}

/// The numbers that are in either.
pub(super) fn joined(left: &[Interval], right: &[Interval]) -> Vec<Interval> {
    if left.is_empty() || right.is_empty() {
        return [left, right].concat();
    }
    // Two runs in order: the sort merges them in one walk.
    in_order([left, right].concat())
}

/// The numbers of `left` that are not in `right`.
pub(super) fn without(left: &[Interval], right: &[Interval]) -> Vec<Interval> {
    let mut remaining = Vec::with_capacity(left.len());
    let mut cuts = right.iter().copied().peekable();
    for interval in left {
        let mut first = interval.first;
        while let Some(cut) = cuts.peek() {
            if cut.first > interval.last {
                break;
            }
            if cut.first > first {
                remaining.push(Interval { first, last: cut.first - 1 });
            }
            first = first.max(cut.last.saturating_add(1));
            if cut.last > interval.last {
                // The rest of this cut may take from the next interval.
                break;
            }
            cuts.next();
        }
        if first <= interval.last {
            remaining.push(Interval { first, last: interval.last });
        }
    }
    remaining
}

/// The numbers that are in both.
pub(super) fn shared(left: &[Interval], right: &[Interval]) -> Vec<Interval> {
    let mut shared = Vec::new();
    let (mut lefts, mut rights) = (left.iter().peekable(), right.iter().peekable());
    while let (Some(one), Some(other)) = (lefts.peek(), rights.peek()) {
        let (first, last) = (one.first.max(other.first), one.last.min(other.last));
        if first <= last {
            shared.push(Interval { first, last });
        }
        if one.last <= other.last {
            lefts.next();
        } else {
            rights.next();
        }
    }
    shared
}

/// Whether all numbers of `left` are in `right`. As intervals of a list never touch, each of `left` must be in one of `right`.
pub(super) fn is_within(left: &[Interval], right: &[Interval]) -> bool {
    let mut around = right.iter().peekable();
    left.iter().all(|interval| {
        while around.next_if(|candidate| candidate.last < interval.first).is_some() {}
        around.peek().is_some_and(|candidate| candidate.first <= interval.first && interval.last <= candidate.last)
    })
}
