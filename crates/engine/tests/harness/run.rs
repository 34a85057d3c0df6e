//! Runs all cases on all cores, and tells what came of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use windlass_core::kind::Kind;

use super::cases::{Case, Sort, pair, singles};
use super::digest::differences;
use super::director::Director;
use super::judge::{Breach, Law};
use super::kit::{Scenario, World};
use super::play::{Ended, Part, Snapshot, play};
use super::sabotage::Sabotage;

/// The variable that names one case, or the beginning of the names of several.
const CASE: &str = "WINDLASS_CASE";
/// The variable that says how often it is played: the runtime's own dice fall differently each time.
const TIMES: &str = "WINDLASS_TIMES";
/// Custom resources with hundreds of fields are moved about on the stack, in builds that do not optimise.
const STACK: usize = 32 << 20;
/// How many failing cases are told in full.
const TOLD: usize = 5;

/// What is run.
pub struct Choice {
    /// Which sorts.
    pub sorts: Vec<Sort>,
    /// Of the crashes, one in so many.
    pub crashes: usize,
    /// Of the others, one in so many.
    pub others: usize,
    /// How many pairs of perturbations are drawn for each scenario.
    pub pairs: u64,
    /// Whether the scenarios of the campaigns are played as well.
    pub long: bool,
}

impl Choice {
    fn takes(&self, index: usize, case: &Case) -> bool {
        let sorted = case.sort == Sort::Pair || self.sorts.contains(&case.sort);
        let one_in = match case.sort {
            Sort::Pair => 1,
            Sort::Crash => self.crashes,
            Sort::Fault | Sort::Event | Sort::Stale => self.others,
        };
        sorted && index.is_multiple_of(one_in)
    }
}

/// A scenario, played without perturbations.
struct Prepared<W> {
    scenario: Scenario<W>,
    start: Snapshot<W>,
    plain: Ended<W>,
    /// Another end that is as good.
    other: Option<Value>,
    cases: Vec<Case>,
}

/// What came of a case.
struct Played {
    breaches: Vec<Breach>,
    /// Kept of a case that failed: played again, it may go another way.
    trace: Vec<String>,
}

/// What came of all cases.
#[derive(Default)]
pub struct Outcome {
    /// The lines to print.
    pub table: Vec<String>,
    /// What failed, in full.
    pub failures: Vec<String>,
    pub failed: usize,
    scenarios: usize,
    points: usize,
    runs: usize,
    /// How many runs there are in all.
    whole: usize,
    divergences: usize,
}

fn prepare<W: World>(scenario: Scenario<W>, choice: &Choice) -> Result<Prepared<W>, Vec<Breach>> {
    let setup = Part { script: &scenario.setup, goal: scenario.ready, settles: true, past: None, sabotage: None };
    let made = play(&Snapshot::empty(), &setup, Director::new(Vec::new()));
    let part = Part { script: &scenario.script, goal: scenario.goal, settles: true, past: None, sabotage: None };
    let plain = play(&made.end, &part, Director::new(Vec::new()));
    if made.breaches.iter().chain(&plain.breaches).any(|breach| matches!(breach.law, Law::Rest | Law::World)) {
        for line in made.trace.iter().chain(&plain.trace) {
            println!("{line}");
        }
        return Err(made.breaches.into_iter().chain(plain.breaches).collect());
    }
    let mut cases = singles(scenario.name, &plain, plain.end.revision());
    let drawn: Vec<Case> = cases.iter().filter(|case| choice.sorts.contains(&case.sort)).cloned().collect();
    cases.extend((0..choice.pairs).filter_map(|draw| pair(scenario.name, &drawn, draw)));
    let mut prepared = Prepared { scenario, start: made.end, plain, other: None, cases };
    let or_like = prepared.scenario.or_like;
    let like =
        or_like.map(|name| prepared.cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("no case {name}")));
    prepared.other = like.map(|case| prepared.ended(case).digest);
    Ok(prepared)
}

impl<W: World> Prepared<W> {
    fn run(&self, case: &Case) -> Played {
        let ended = catch_unwind(AssertUnwindSafe(|| self.ended(case)));
        if let Ok(ended) = ended {
            let mut breaches = ended.breaches;
            if self.other.as_ref().is_none_or(|other| !differences(other, &ended.digest).is_empty()) {
                let differing = differences(&self.plain.digest, &ended.digest);
                breaches.extend(differing.into_iter().map(|how| Breach { law: Law::SameEnd, how }));
            }
            Played { breaches, trace: ended.trace }
        } else {
            let breach = Breach { law: Law::NoPanic, how: "the harness or the world panicked".into() };
            Played { breaches: vec![breach], trace: Vec::new() }
        }
    }

    fn ended(&self, case: &Case) -> Ended<W> {
        let (start, script) =
            if case.from_end { (&self.plain.end, &[][..]) } else { (&self.start, self.scenario.script.as_slice()) };
        let part = Part { script, goal: self.scenario.goal, settles: !case.from_end, past: case.past, sabotage: None };
        play(start, &part, Director::new(case.strikes.clone()))
    }
}

/// Plays a scenario as it is, and shows its world at the end.
pub fn unspoiled<W: World, R: Send>(name: &str, look: fn(&W) -> R) -> R {
    let played = in_parallel(&[name], |name| {
        let scenario = W::scenarios().into_iter().find(|scenario| scenario.name == *name).unwrap();
        let prepared = prepare(scenario, &Choice { sorts: Vec::new(), crashes: 1, others: 1, pairs: 0, long: false });
        let prepared = prepared.unwrap_or_else(|breaches| panic!("{name}: {breaches:?}"));
        look(prepared.plain.end.world())
    });
    played.into_iter().next().unwrap()
}

/// Plays a scenario with a law broken on purpose, or with a world that its script spoils, and tells what was found.
pub fn spoiled<W: World>(name: &str, sabotage: Option<Sabotage>, spoil: fn(&W)) -> Vec<Breach> {
    in_parallel(&[name], |name| spoil_and_play::<W>(name, sabotage, spoil)).remove(0)
}

fn spoil_and_play<W: World>(name: &str, sabotage: Option<Sabotage>, spoil: fn(&W)) -> Vec<Breach> {
    let scenario = W::scenarios().into_iter().find(|scenario| scenario.name == name).unwrap();
    let setup = Part { script: &scenario.setup, goal: scenario.ready, settles: true, past: None, sabotage: None };
    let made = play(&Snapshot::empty(), &setup, Director::new(Vec::new()));
    assert_eq!(made.breaches, [], "{name} is sound before anything is spoiled");
    spoil(made.end.world());
    let part = Part { script: &scenario.script, goal: scenario.goal, settles: true, past: None, sabotage };
    play(&made.end, &part, Director::new(Vec::new())).breaches
}

/// Runs what is chosen.
pub fn run<W: World>(choice: &Choice) -> Outcome {
    let wanted = std::env::var(CASE).ok();
    let times = std::env::var(TIMES).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut outcome = Outcome::default();
    let scenarios = W::scenarios().into_iter().filter(|it| choice.long || !it.long || wanted.is_some()).filter(|it| {
        wanted.as_deref().is_none_or(|wanted| wanted.split('/').next().is_some_and(|name| name == it.name || wanted.is_empty()))
    });
    let prepared: Vec<Result<Prepared<W>, (&'static str, Vec<Breach>)>> = {
        let scenarios: Vec<Mutex<Option<Scenario<W>>>> = scenarios.map(|it| Mutex::new(Some(it))).collect();
        in_parallel(&scenarios, |scenario| {
            let scenario = scenario.lock().unwrap().take().unwrap();
            let name = scenario.name;
            prepare(scenario, choice).map_err(|breaches| (name, breaches))
        })
    };
    let mut ready = Vec::new();
    for scenario in prepared {
        match scenario {
            Ok(scenario) => ready.push(scenario),
            Err((name, breaches)) => {
                outcome.failed += 1;
                outcome.failures.push(format!("{name}: the run without perturbations fails: {breaches:#?}"));
            }
        }
    }
    let chosen: Vec<(&Prepared<W>, &Case)> = ready
        .iter()
        .flat_map(|scenario| scenario.cases.iter().enumerate().map(move |(index, case)| (scenario, index, case)))
        .filter(|(_, index, case)| match wanted.as_deref() {
            Some(wanted) => case.name == wanted || case.name.starts_with(&format!("{wanted}/")),
            None => choice.takes(*index, case),
        })
        .flat_map(|(scenario, _, case)| std::iter::repeat_n((scenario, case), times))
        .collect();
    let one = chosen.len() == 1;
    let progress = Mutex::new(Progress::new::<W>(chosen.len()));
    let results = in_parallel(&chosen, |(scenario, case)| {
        let played = scenario.run(case);
        if one {
            println!("{}", played.trace.join("\n"));
        }
        progress.lock().unwrap().count(&case.name, &played);
        if played.breaches.is_empty() { Played { trace: Vec::new(), ..played } } else { played }
    });
    outcome.tell(&ready, &chosen, &results);
    outcome
}

/// Tells how far a campaign is: it may take hours.
struct Progress {
    kind: &'static str,
    all: usize,
    done: usize,
    failed: usize,
    began: Instant,
    told: Instant,
}

impl Progress {
    /// So long between two lines.
    const PERIOD: Duration = Duration::from_secs(30);

    fn new<W: World>(all: usize) -> Self {
        let now = Instant::now();
        Self { kind: <W::Kind as Kind>::NAME, all, done: 0, failed: 0, began: now, told: now }
    }

    /// A case that fails is named at once, so that its cause can be looked for while the others are played.
    fn count(&mut self, case: &str, played: &Played) {
        self.done += 1;
        if let Some(breach) = played.breaches.first() {
            self.failed += 1;
            eprintln!("{case}: {:?}: {}", breach.law, breach.how);
        }
        if self.told.elapsed() >= Self::PERIOD {
            self.told = Instant::now();
            let Self { kind, all, done, failed, .. } = self;
            eprintln!("{kind}: {done} of {all} runs, {failed} failed, {} s", self.began.elapsed().as_secs());
        }
    }
}

/// Does the work on all cores, each piece on one.
fn in_parallel<T: Sync, R: Send>(pieces: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(index) else { return };
                    let result = work(piece);
                    *results[index].lock().unwrap() = Some(result);
                }
            });
            drop(worker.unwrap());
        }
    });
    results.into_iter().map(|result| result.into_inner().unwrap().unwrap()).collect()
}

impl Played {
    fn text(&self, name: &str, plain: &[String]) -> String {
        let mut text = format!("\ncase {name}\n  what is wrong:\n");
        for breach in &self.breaches {
            let _ = writeln!(text, "    {:?}: {}", breach.law, breach.how);
        }
        let _ = writeln!(text, "  the calls without perturbations:\n    {}", plain.join("\n    "));
        let _ = writeln!(text, "  the calls of this case:\n    {}", self.trace.join("\n    "));
        let _ = writeln!(
            text,
            "  replay it with:\n    {CASE}='{name}' cargo test -p windlass-engine --test crash -- --nocapture\n  \
             and {TIMES}=100 with it, if it does not fail every time"
        );
        text
    }
}

impl Outcome {
    /// One line of figures.
    pub fn figures(outcomes: &[Self]) -> String {
        let sum = |of: fn(&Self) -> usize| outcomes.iter().map(of).sum::<usize>();
        format!(
            "crash harness: {} scenarios, {} points, {} runs of {}, {} divergences",
            sum(|it| it.scenarios),
            sum(|it| it.points),
            sum(|it| it.runs),
            sum(|it| it.whole),
            sum(|it| it.divergences)
        )
    }

    fn tell<W: World>(&mut self, ready: &[Prepared<W>], chosen: &[(&Prepared<W>, &Case)], results: &[Played]) {
        let mut laws: BTreeMap<Law, usize> = BTreeMap::new();
        let (mut points, mut runs, mut divergences) = (0, 0, 0);
        self.table.push(format!(
            "{:<14} {:>6} {:>7} {:>10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>12}",
            "scenario", "calls", "events", "revisions", "crash", "fault", "event", "stale", "pair", "divergences"
        ));
        for scenario in ready {
            let mine: Vec<usize> = (0..chosen.len()).filter(|index| std::ptr::eq(chosen[*index].0, scenario)).collect();
            let of = |sort: Sort| mine.iter().filter(|index| chosen[**index].1.sort == sort).count();
            let failed = mine.iter().filter(|index| !results[**index].breaches.is_empty()).count();
            let calls = scenario.plain.calls.len();
            let events: usize = scenario.plain.events.values().map(Vec::len).sum();
            let revisions = scenario.plain.end.revision() - scenario.plain.begun;
            self.table.push(format!(
                "{:<14} {calls:>6} {events:>7} {revisions:>10} {:>7} {:>7} {:>7} {:>7} {:>7} {failed:>12}",
                scenario.scenario.name,
                of(Sort::Crash),
                of(Sort::Fault),
                of(Sort::Event),
                of(Sort::Stale),
                of(Sort::Pair),
            ));
            points += calls;
            runs += mine.len();
            divergences += failed;
        }
        let plain = ready.iter().map(|scenario| &scenario.plain.breaches);
        for breaches in results.iter().map(|played| &played.breaches).chain(plain) {
            let mut broken: Vec<Law> = breaches.iter().map(|breach| breach.law).collect();
            broken.sort();
            broken.dedup();
            for law in broken {
                *laws.entry(law).or_default() += 1;
            }
        }
        for law in Law::ALL {
            self.table.push(format!("  {law:?}: broken in {} runs", laws.get(&law).copied().unwrap_or_default()));
        }
        self.failed += divergences;
        for scenario in ready.iter().filter(|scenario| !scenario.plain.breaches.is_empty()) {
            self.failed += 1;
            self.failures.push(format!("{}, without perturbations: {:#?}", scenario.scenario.name, scenario.plain.breaches));
        }
        (self.scenarios, self.points, self.runs, self.divergences) = (ready.len(), points, runs, divergences);
        self.whole = ready.iter().map(|scenario| scenario.cases.len()).sum();
        self.table.push(format!("  {}: {runs} of {} perturbations were played", <W::Kind as Kind>::NAME, self.whole));
        let failing = chosen.iter().zip(results).filter(|(_, played)| !played.breaches.is_empty());
        let mut names = Vec::new();
        for (index, ((scenario, case), played)) in failing.enumerate() {
            names.push(case.name.clone());
            if index < TOLD {
                let calls: Vec<String> =
                    scenario.plain.calls.iter().enumerate().map(|(at, call)| format!("{at:>4} {}", call.what)).collect();
                self.failures.push(played.text(&case.name, &calls));
            }
        }
        if names.len() > TOLD {
            self.failures.push(format!("and {} more:\n  {}", names.len() - TOLD, names[TOLD..].join("\n  ")));
        }
    }
}
