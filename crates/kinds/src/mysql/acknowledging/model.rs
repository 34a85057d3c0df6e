//! Every order in which commits, acknowledgements, changes of the council, restarts, wipes and the loss of the primary can happen in
//! a small cluster. In each state, whoever would be promoted has every commit that a client was told of, and the rest can tell
//! nobody of another one.

use std::collections::{BTreeSet, HashSet};

use windlass_core::ordinals::Ordinal;

use super::*;

/// A set of transactions: one bit for each.
impl Transactions for u8 {
    fn contains(&self, other: &Self) -> bool {
        self & other == *other
    }
}

/// Voters as bits: two for each ordinal, one for each of its generations.
type Voters = u16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    primary: usize,
    /// What each member has.
    has: Vec<u8>,
    generation: Vec<u8>,
    /// Transactions in the order in which this primary committed them, and who acknowledged each.
    commits: Vec<(u8, Voters)>,
    begun: u8,
    /// What clients were told of.
    told: u8,
    /// What servers are set to.
    enabled: Voters,
    count: usize,
    /// What is recorded.
    councils: Vec<(Voters, usize)>,
    floor: Option<u8>,
    wanted: (u8, usize),
    /// How often somebody wanted another one.
    turns: u8,
    failovers: u8,
}

/// How far the model goes.
struct Bounds {
    members: usize,
    transactions: u8,
    /// The councils that somebody may want: members as bits, and the count.
    targets: &'static [(u8, usize)],
    /// How often somebody wants another one.
    turns: u8,
    /// Members that start again, and lose their data, at any time.
    restarts: bool,
    wipes: u8,
    failovers: u8,
}

fn bit(ordinal: usize, generation: u8) -> Voters {
    1 << (2 * ordinal + usize::from(generation))
}

fn voter(ordinal: usize, generation: u8) -> Voter {
    let number = u16::try_from(ordinal).unwrap();
    Voter { ordinal: Ordinal::new(number), server: Uuid::new(u128::from(number)), generation: u32::from(generation) }
}

fn voters(bits: Voters) -> BTreeSet<Voter> {
    let each = (0..8).flat_map(|ordinal| [(ordinal, 0), (ordinal, 1)]);
    each.filter(|(ordinal, generation)| bits & bit(*ordinal, *generation) != 0).map(|(o, g)| voter(o, g)).collect()
}

fn bits(voters: &BTreeSet<Voter>) -> Voters {
    let each = voters.iter().map(|it| bit(usize::from(it.ordinal.get()), u8::try_from(it.generation).unwrap()));
    each.fold(0, |all, one| all | one)
}

impl World {
    fn new(bounds: &Bounds) -> Self {
        let wanted = bounds.targets[0];
        let mut world = Self {
            primary: 0,
            has: vec![0; bounds.members],
            generation: vec![0; bounds.members],
            commits: Vec::new(),
            begun: 0,
            told: 0,
            enabled: 0,
            count: wanted.1,
            councils: Vec::new(),
            floor: Some(0),
            wanted,
            turns: 0,
            failovers: 0,
        };
        let council = world.council(wanted);
        (world.enabled, world.councils) = (council.0, vec![council]);
        world
    }

    fn bit(&self, ordinal: usize) -> Voters {
        bit(ordinal, self.generation[ordinal])
    }

    /// A council of these members as they are now. The primary is in none.
    fn council(&self, (members, count): (u8, usize)) -> (Voters, usize) {
        let chosen = (0..self.has.len()).filter(|ordinal| members & (1 << ordinal) != 0 && *ordinal != self.primary);
        let all = chosen.fold(0, |all, ordinal| all | self.bit(ordinal));
        (all, count.min(usize::try_from(all.count_ones()).unwrap()))
    }

    fn record(&self) -> Record<u8> {
        let councils = self.councils.iter().map(|(all, count)| Council { voters: voters(*all), count: *count }).collect();
        Record { councils, floor: self.floor }
    }

    /// Clients are told of what has enough acknowledgements.
    fn tell(mut self) -> Self {
        for (commit, acknowledged) in &self.commits {
            if usize::try_from(acknowledged.count_ones()).unwrap() >= self.count {
                self.told |= commit;
            }
        }
        self
    }

    /// The next transaction of the primary arrives at a member.
    fn delivered(&self, ordinal: usize) -> Option<Self> {
        let at = self.commits.iter().position(|(commit, _)| self.has[ordinal] & commit == 0)?;
        let mut next = self.clone();
        next.has[ordinal] |= self.commits[at].0;
        if self.enabled & self.bit(ordinal) != 0 {
            // Whoever has received this one has received all before it.
            for (_, acknowledged) in &mut next.commits[..=at] {
                *acknowledged |= self.bit(ordinal);
            }
        }
        Some(next.tell())
    }

    fn committed(&self) -> Self {
        let mut next = self.clone();
        let commit = 1 << self.begun;
        next.begun += 1;
        next.has[self.primary] |= commit;
        next.commits.push((commit, 0));
        next.tell()
    }

    /// What the operator does next; several where it works on several servers.
    fn operated(&self) -> Vec<Self> {
        let (all, count) = self.council(self.wanted);
        let wanted = Council { voters: voters(all), count };
        let mut next = self.clone();
        let seen = Settings { enabled: voters(self.enabled), count: self.count };
        match super::next(&self.record(), &seen, &wanted) {
            Next::Record(council) => {
                let mut record = self.record();
                record.add(council);
                next.councils = record.councils.iter().map(|it| (bits(&it.voters), it.count)).collect();
                // Only which one is the last makes a difference.
                let settled = next.councils.len() - 1;
                next.councils[..settled].sort_unstable();
            }
            Next::Enable(missing) => {
                return each(bits(&missing)).map(|one| Self { enabled: self.enabled | one, ..next.clone() }).collect();
            }
            Next::Count(count) => next = Self { count, ..next }.tell(),
            Next::Disable(surplus) => {
                return each(bits(&surplus)).map(|one| Self { enabled: self.enabled & !one, ..next.clone() }).collect();
            }
            // While a commit waits, what the primary has is not all that may still be told.
            Next::Settle if self.commits.iter().any(|(commit, _)| self.told & commit == 0) => return Vec::new(),
            Next::Settle => {
                next.councils = vec![(all, count)];
                next.floor = Some(self.has[self.primary]);
            }
            Next::Nothing => return Vec::new(),
        }
        vec![next]
    }

    /// It starts again, and forgets its settings.
    fn restarted(&self, ordinal: usize) -> Self {
        Self { enabled: self.enabled & !self.bit(ordinal), ..self.clone() }
    }

    /// Its data is replaced by what the primary has told so far.
    fn wiped(&self, ordinal: usize) -> Self {
        let mut next = self.restarted(ordinal);
        next.generation[ordinal] += 1;
        next.has[ordinal] = 0;
        next
    }

    fn readings(&self, heard: u8) -> Vec<Reading<u8>> {
        let each = (0..self.has.len()).filter(|ordinal| heard & (1 << ordinal) != 0);
        each.map(|ordinal| Reading { voter: voter(ordinal, self.generation[ordinal]), has: self.has[ordinal] }).collect()
    }

    /// What the rule says when the primary is lost and these are heard; checked against what clients were told.
    fn judged(&self, heard: u8) -> Option<Promotion<u8>> {
        let promotion = judge(&self.record(), &self.readings(heard)).ok()?;
        assert!(promotion.set.contains(&self.told), "{promotion:?} loses a commit, heard {heard:b}: {self:?}");
        let heard_voters = (0..self.has.len()).filter(|it| heard & (1 << it) != 0).fold(0, |all, it| all | self.bit(it));
        let rest = usize::try_from((self.enabled & !heard_voters).count_ones()).unwrap();
        assert!(rest < self.count, "the rest can go on without {heard:b}: {self:?}");
        Some(promotion)
    }

    /// Another primary, with those that were heard. Who has more than it is cloned anew.
    fn failed_over(&self, promotion: &Promotion<u8>) -> Self {
        let mut next = self.clone();
        next.primary = usize::from(promotion.ordinal.get());
        next.failovers += 1;
        next.commits.clear();
        for ordinal in 0..next.has.len() {
            if !promotion.set.contains(&next.has[ordinal]) {
                next.generation[ordinal] = 1;
                next.has[ordinal] = promotion.set;
            }
        }
        // Whoever lacks something of it receives it from the new primary.
        for commit in (0..8).map(|at| 1 << at).filter(|commit| promotion.set & commit != 0) {
            next.commits.push((commit, Voters::MAX));
        }
        let council = next.council(next.wanted);
        (next.enabled, next.count, next.councils, next.floor) = (council.0, council.1, vec![council], Some(promotion.set));
        next
    }

    fn successors(&self, bounds: &Bounds) -> Vec<Self> {
        let mut all = self.operated();
        if self.begun < bounds.transactions {
            all.push(self.committed());
        }
        if self.turns < bounds.turns {
            let others = bounds.targets.iter().filter(|wanted| **wanted != self.wanted);
            all.extend(others.map(|wanted| Self { wanted: *wanted, turns: self.turns + 1, ..self.clone() }));
        }
        for ordinal in (0..self.has.len()).filter(|ordinal| *ordinal != self.primary) {
            all.extend(self.delivered(ordinal));
            if bounds.restarts {
                all.push(self.restarted(ordinal));
            }
            if bounds.wipes & (1 << ordinal) != 0 && self.generation[ordinal] == 0 {
                all.push(self.wiped(ordinal));
            }
        }
        for heard in 0..1_u8 << self.has.len() {
            if heard & (1 << self.primary) != 0 {
                continue;
            }
            let promotion = self.judged(heard);
            all.extend(promotion.filter(|_| self.failovers < bounds.failovers).map(|it| self.failed_over(&it)));
        }
        all
    }
}

fn each(bits: Voters) -> impl Iterator<Item = Voters> {
    (0..Voters::BITS).map(|at| 1 << at).filter(move |one| bits & one != 0)
}

/// Visits every state that can be reached. Returns how many, and in how many of them somebody could be promoted.
fn explore(bounds: &Bounds) -> (usize, usize) {
    let first = World::new(bounds);
    let (mut seen, mut open, mut promotable) = (HashSet::from([first.clone()]), vec![first], 0);
    while let Some(world) = open.pop() {
        let others = !(1_u8 << world.primary) & ((1 << world.has.len()) - 1);
        promotable += usize::from(world.judged(others).is_some());
        for next in world.successors(bounds) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen.len(), promotable)
}

#[test]
fn three_members_never_lose_what_a_client_was_told() {
    let targets = &[(0b111, 1), (0b111, 2), (0b011, 1)];
    let bounds = Bounds { members: 3, transactions: 2, targets, turns: 2, restarts: true, wipes: 0b100, failovers: 1 };
    let (states, promotable) = explore(&bounds);
    println!("three members: {states} states, a promotion is possible in {promotable}");
    assert!(promotable > states / 10);
}

#[test]
fn five_members_never_lose_what_a_client_was_told_while_the_council_widens_and_shrinks() {
    let targets = &[(0b00110, 1), (0b11110, 2), (0b11000, 1)];
    let bounds = Bounds { members: 5, transactions: 1, targets, turns: 2, restarts: true, wipes: 0, failovers: 0 };
    let (states, promotable) = explore(&bounds);
    println!("five members: {states} states, a promotion is possible in {promotable}");
    assert!(promotable > states / 10);
}

/// Each of two councils alone would allow it; a commit that the fourth member alone acknowledged, on the way, would be lost.
#[test]
fn on_the_way_the_mixture_of_two_councils_counts() {
    let council = |members: &[usize], count| Council { voters: members.iter().map(|it| voter(*it, 0)).collect(), count };
    let record = Record { councils: vec![council(&[1, 2], 1), council(&[1, 2, 3, 4], 2)], floor: Some(0) };
    let readings: Vec<Reading<u8>> = [1, 2, 3].map(|it| Reading { voter: voter(it, 0), has: 0 }).into();
    let refused = judge(&record, &readings).unwrap_err();
    assert_eq!(refused, Refusal::TooFewHeard { missing: vec![Ordinal::new(4)], allowed: 0 });
    let settled = Record { councils: vec![record.councils[1].clone()], ..record };
    assert_eq!(judge(&settled, &readings).unwrap().ordinal, Ordinal::new(1));
}

#[test]
fn who_was_cloned_anew_is_not_who_was_recorded() {
    let council = Council { voters: [voter(1, 0), voter(2, 0)].into(), count: 1 };
    let record = Record { councils: vec![council], floor: Some(0) };
    let readings: Vec<Reading<u8>> = vec![Reading { voter: voter(1, 0), has: 1 }, Reading { voter: voter(2, 1), has: 1 }];
    assert!(matches!(judge(&record, &readings), Err(Refusal::TooFewHeard { .. })));
}

#[rstest::rstest]
#[case::nobody_acknowledges(0, None, &[(1, 1)], Refusal::NobodyAcknowledges)]
#[case::the_floor(1, Some(0b100), &[(1, 0b011), (2, 0b001)], Refusal::BelowFloor { best: Ordinal::new(1) })]
#[case::no_order_explains_it(1, Some(0), &[(1, 0b011), (2, 0b101)], Refusal::Diverged { one: Ordinal::new(1), other: Ordinal::new(2) })]
fn others_are_refused_by_name(
    #[case] count: usize,
    #[case] floor: Option<u8>,
    #[case] has: &[(usize, u8)],
    #[case] expected: Refusal,
) {
    let council = Council { voters: [voter(1, 0), voter(2, 0)].into(), count };
    let readings: Vec<Reading<u8>> = has.iter().map(|(it, has)| Reading { voter: voter(*it, 0), has: *has }).collect();
    let refused = judge(&Record { councils: vec![council], floor }, &readings).unwrap_err();
    assert_eq!(refused, expected);
    assert!(!refused.to_string().is_empty());
}
