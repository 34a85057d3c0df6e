//! All perturbations of a scenario, each with a name by which it can be had again.

use super::director::{Blow, Fault, Moment, Strike, Twist};
use super::play::Ended;

/// What kind of perturbation a case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Crash,
    Fault,
    Event,
    Stale,
    Pair,
}

impl Sort {
    pub fn name(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Fault => "fault",
            Self::Event => "event",
            Self::Stale => "stale",
            Self::Pair => "pair",
        }
    }
}

/// One perturbed run.
#[derive(Clone, Debug)]
pub struct Case {
    pub sort: Sort,
    /// The whole name, which begins with that of the scenario.
    pub name: String,
    /// Whether it begins at the end of the scenario.
    pub from_end: bool,
    pub strikes: Vec<Strike>,
    /// What fresh controllers are shown at first.
    pub past: Option<u64>,
}

/// Faults of a request, and how they are called in names.
const REQUEST_FAULTS: [(&str, Fault); 10] = [
    ("409", Fault::Code(409)),
    ("429", Fault::Code(429)),
    ("500", Fault::Code(500)),
    ("503", Fault::Code(503)),
    ("504", Fault::Code(504)),
    ("504-done", Fault::CodeAfter(504)),
    ("lost-done", Fault::LostAfter),
    ("hang", Fault::Hang),
    ("hang-done", Fault::HangAfter),
    ("slow", Fault::Slow),
];

/// Faults of an action on a member.
const ACTION_FAULTS: [(&str, Fault); 4] =
    [("lost", Fault::LostBefore), ("lost-done", Fault::LostAfter), ("lingers", Fault::Slow), ("fails", Fault::Fails)];

const TWISTS: [(&str, Twist); 4] =
    [("drop", Twist::Drop), ("delay", Twist::Delay), ("merge", Twist::Merge), ("410", Twist::Gone)];

/// Every single perturbation of a scenario that went like this by itself.
pub fn singles<W>(scenario: &str, plain: &Ended<W>, last: u64) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |sort: Sort, what: String, strikes: Vec<Strike>, past: Option<u64>, from_end: bool| {
        let name = format!("{scenario}/{}/{what}", sort.name());
        cases.push(Case { sort, name, from_end, strikes, past });
    };
    // Nothing at all: the same play twice must end in the same way.
    add(Sort::Crash, "never".into(), Vec::new(), None, false);
    for (at, call) in plain.calls.iter().enumerate() {
        let struck = |blow| vec![Strike::Call { at, blow }];
        let moments =
            [("before", Moment::Before), ("during", Moment::During), ("after", Moment::After), ("late", Moment::Late)];
        for (word, moment) in moments.into_iter().filter(|(_, moment)| call.hook || *moment != Moment::During) {
            add(Sort::Crash, format!("{word}/{at}"), struck(Blow::Crash(moment)), None, false);
        }
        let faults: &[(&str, Fault)] = if call.hook { &ACTION_FAULTS } else { &REQUEST_FAULTS };
        for (word, fault) in faults {
            add(Sort::Fault, format!("{word}/{at}"), struck(Blow::Fault(*fault)), None, false);
        }
        add(Sort::Stale, format!("call/{at}"), struck(Blow::Crash(Moment::After)), Some(plain.begun), false);
    }
    for (resource, events) in &plain.events {
        for at in 0..events.len() {
            // Nothing after the last event would show that it was lost; a real watch does not lose one without breaking, as in 410.
            let last = at + 1 == events.len();
            for (word, twist) in TWISTS.into_iter().filter(|(word, _)| !last || *word != "drop") {
                let strike = Strike::Event { resource: resource.clone(), at, twist };
                add(Sort::Event, format!("{word}/{resource}/{at}"), vec![strike], None, false);
            }
        }
    }
    for revision in plain.begun..last {
        add(Sort::Stale, format!("end/{}", revision - plain.begun), Vec::new(), Some(revision), true);
    }
    cases
}

/// Two single perturbations in one run, by the number of a draw.
pub fn pair(scenario: &str, singles: &[Case], draw: u64) -> Option<Case> {
    let mut dice = draw.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut roll = |bound: usize| {
        dice = (dice ^ (dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(0x94d0_49bb_1331_11eb);
        usize::try_from((dice >> 33) % u64::try_from(bound.max(1)).unwrap()).unwrap()
    };
    let fit: Vec<&Case> = singles.iter().filter(|case| !case.from_end).collect();
    let (one, other) = (fit.get(roll(fit.len()))?, fit.get(roll(fit.len()))?);
    Some(Case {
        sort: Sort::Pair,
        name: format!("{scenario}/pair/{draw}"),
        from_end: false,
        strikes: one.strikes.iter().chain(&other.strikes).cloned().collect(),
        past: one.past.or(other.past),
    })
}
