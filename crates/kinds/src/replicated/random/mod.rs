//! Random custom resources, each from its own seed, through everything that is decided about one: none may end in a panic, and
//! each that can be read is accepted, or refused with a message that names the field.

mod surroundings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use kube::core::DeserializeGuard;
use serde_json::Value;
use windlass_api::ReplicatedStatefulSet;
use windlass_core::bookkeeping;
use windlass_core::claim::{self, Identity};
use windlass_core::gate::Gate;
use windlass_core::kind::{Kind as _, Observed, Report};
use windlass_core::memory::{self, Memory};
use windlass_core::plan::Plan;
use windlass_core::step::Act;
use windlass_dice::{Dice, Documents, number};

use super::hooks::HookRun;
use super::plan::reason;
use super::{Replicated, ReplicatedStatefulSetStatus, fixtures, validate};
use surroundings::Surroundings;

const DOCUMENTS: u64 = 20_000;
const FIRST_SEED: u64 = 0x0066_757a_7a79;

/// What became of a document.
#[derive(Clone, Copy)]
enum Fate {
    /// Not even its metadata could be read, or its spec has another form.
    Unreadable,
    Accepted,
    Refused,
}

/// The documents that this test makes, and the logbooks beside them.
struct Sources {
    resources: Documents,
    logbooks: Documents,
}

impl Sources {
    fn new() -> Self {
        let definitions = windlass_api::custom_resource_definitions();
        let schema = |kind: &str| {
            let definition = definitions.iter().find(|it| it.spec.names.kind == kind).unwrap();
            let schema = definition.spec.versions[0].schema.as_ref().unwrap();
            serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap()
        };
        let good = serde_json::to_value(fixtures::resource(3)).unwrap();
        Self {
            resources: Documents::new(schema("ReplicatedStatefulSet"), good),
            logbooks: Documents::new(schema("Logbook"), surroundings::logbook()),
        }
    }
}

/// Reads a document as the watch does, and decides everything that there is to decide about it.
fn judge(document: &Value, sources: &Sources, dice: &mut Dice) -> Fate {
    let text = document.to_string();
    let Ok(DeserializeGuard(Ok(resource))) = serde_json::from_str::<DeserializeGuard<ReplicatedStatefulSet>>(&text) else {
        return Fate::Unreadable;
    };
    let verdict = validate(&resource);
    if let Err(invalid) = &verdict {
        let named = invalid.field.starts_with("spec.") || invalid.field == "metadata.name";
        assert!(named && !invalid.problem.is_empty(), "the message names no field: {invalid}");
    }
    let surroundings = Surroundings::roll(dice, &resource, verdict.as_ref().ok(), &sources.logbooks);
    let memory = surroundings.memory(&resource);
    let observed = surroundings.observed(&resource, &memory);
    let plan = Replicated::plan(&observed);
    match &verdict {
        Ok(_) => assert!(plan.waiting.iter().all(|it| it.reason != reason::INVALID_SPEC), "{:?}", plan.waiting),
        Err(invalid) => {
            let said = plan.waiting.iter().any(|it| it.stalled && it.message == invalid.to_string());
            assert!(said, "the refusal {invalid} is not told: {:?}", plan.waiting);
            assert!(!plan.steps.iter().any(|step| matches!(step.act, Act::Apply(_))), "a refused spec is applied");
        }
    }
    let irreversible = plan.steps.iter().find(|step| bookkeeping::intent_of(step, observed.now).is_some());
    if let (Some(why), Some(step)) = (memory.lost(), irreversible) {
        panic!("{step} is planned although {why}");
    }
    for step in &plan.steps {
        assert!(!step.to_string().is_empty());
        if let Act::Apply(manifest) = &step.act {
            assert!(manifest.body().is_object());
        }
    }
    let status = keep_books(&observed, &plan);
    assert_eq!(status.conditions.len(), 7);
    assert!(status.conditions.iter().all(|it| it.observed_generation.is_some()));
    let stalled = status.conditions.iter().find(|it| it.type_ == "Stalled").unwrap();
    if let Err(invalid) = &verdict {
        assert_eq!((stalled.status.as_str(), stalled.message.contains(&invalid.field)), ("True", true), "{stalled:?}");
        assert_eq!(stalled.observed_generation, Some(resource.metadata.generation.unwrap_or_default()));
    }
    let again: ReplicatedStatefulSetStatus = serde_json::from_value(serde_json::to_value(&status).unwrap()).unwrap();
    assert_eq!(again, status, "the status is not read as it was written");
    let questions = Replicated::probes(&observed);
    assert!(questions.iter().all(|question| !Replicated::probe_target(question).is_empty()));
    assert!(!Replicated::look_again(&observed).is_zero());
    let _blind = Replicated::is_blind(&observed);
    if verdict.is_ok() { Fate::Accepted } else { Fate::Refused }
}

/// What a pass writes down and tells.
fn keep_books(observed: &Observed<'_, Replicated>, plan: &Plan<HookRun>) -> ReplicatedStatefulSetStatus {
    let me = Identity { release: "ops/windlass".into(), version: "1".into(), holder: "process".into() };
    let mut entries = observed.memory.entries();
    let announced = entries.intents.clone();
    Replicated::remember(observed, &mut entries);
    memory::reprove(&mut entries, &Replicated::proves(observed));
    memory::take_overrides(&mut entries, observed.resource.metadata.annotations.as_ref(), observed.now);
    assert!(observed.memory == &Memory::New || memory::ways_out(&entries).is_ascii() || !entries.own_uid.is_ascii());
    bookkeeping::record_ended(&announced, &me, &mut entries);
    let gate: Gate = bookkeeping::gate::<Replicated>(observed.resource, observed.running, &entries);
    let parted = gate.part(plan);
    bookkeeping::note_pass(observed, &me, plan, &gate, &parted, &mut entries);
    if !claim::is_held_by(entries.claim.as_ref(), &me) {
        let epoch = entries.claim.as_ref().map_or(0, |claim| claim.epoch);
        entries.claim = Some(claim::taken(entries.claim.as_ref(), &me, observed.now));
        assert!(entries.claim.as_ref().unwrap().epoch > epoch || epoch == u64::MAX);
    }
    let stored = observed.memory.entries();
    bookkeeping::count_edition(Some(&stored), observed.children, &mut entries);
    assert!(entries.edition >= stored.edition, "the edition went back from {} to {}", stored.edition, entries.edition);
    let _intent = bookkeeping::unknown_intent::<Replicated>(&entries);
    let report = Report { plan, gate: &gate, held: &parted.held, taken: &[], remembered: &entries };
    Replicated::status(observed, &report)
}

fn run(seed: u64, sources: &Sources) -> Option<Fate> {
    let mut dice = Dice::new(seed);
    let document = sources.resources.roll(&mut dice);
    let fate = catch_unwind(AssertUnwindSafe(|| judge(&document, sources, &mut dice)));
    if fate.is_err() {
        println!(
            "the document of seed {seed:#x} ended in a panic; repeat it alone with\n    WINDLASS_SEED={seed:#x} cargo test \
             --package windlass-kinds --lib random:: -- --nocapture\n{document}"
        );
    }
    fate.ok()
}

#[test]
fn every_document_is_accepted_or_refused_by_name_and_none_panics() {
    let sources = Sources::new();
    if let Some(seed) = number("WINDLASS_SEED") {
        println!("{}", sources.resources.roll(&mut Dice::new(seed)));
        assert!(run(seed, &sources).is_some());
        return;
    }
    let documents = number("WINDLASS_DOCUMENTS").unwrap_or(DOCUMENTS);
    let [next, unreadable, accepted, refused, panics] = [const { AtomicU64::new(0) }; 5];
    let work = || {
        loop {
            let document = next.fetch_add(1, Ordering::Relaxed);
            if document >= documents {
                return;
            }
            let count = match run(FIRST_SEED + document, &sources) {
                Some(Fate::Unreadable) => &unreadable,
                Some(Fate::Accepted) => &accepted,
                Some(Fate::Refused) => &refused,
                None => &panics,
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    let [unreadable, accepted, refused, panics] = [unreadable, accepted, refused, panics].map(AtomicU64::into_inner);
    println!(
        "{documents} random documents from seed {FIRST_SEED:#x}: {} decoded, {accepted} accepted, {refused} refused by name, \
         {unreadable} unreadable, panics {panics}",
        accepted + refused
    );
    assert_eq!(panics, 0);
    // A generator that makes only junk would show nothing.
    assert!(accepted > documents / 10 && refused > documents / 50 && unreadable > documents / 50);
}

#[test]
fn a_pod_with_the_highest_number_there_is_ends_in_no_panic() {
    let mut fixture = fixtures::Fixture::new(3);
    fixture.add(fixtures::pod(u16::MAX));
    assert_eq!(fixture.members(|members| members.all.len()), usize::from(u16::MAX));
}
