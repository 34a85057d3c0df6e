//! A small world in which the operator's decisions are carried out: an API server, a `StatefulSet` controller, kubelets, a
//! synchronously replicated database behind hooks, people who change their minds, and time.
//!
//! Hooks fail, time out and go on unseen; answers get lost or come late; containers, servers and pods die at any moment; the
//! operator restarts. Then all that ends, and the cluster must become what is asked for, and stay so.

mod database;
mod histories;
mod kubernetes;
mod operator;
mod people;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use windlass_api::ReplicatedStatefulSet;
use windlass_api::logbook::LogbookSpec;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::Children;
use windlass_dice::Dice;

use super::facts::{Fact, Facts, Of};
use super::fixtures::{Fixture, SET, STARTING, claim_template, command, exited};
use super::hooks::{About, Deed, Exec, ExecEnd, HookRun, Question};
use database::{Database, Server};

/// More members than any spec here asks for.
const LARGEST: u16 = 6;
/// One history in so many has the real objects, compares them in every pass, and is watched for long at its end.
const THOROUGH: u64 = 1000;

/// What happens at a time.
#[derive(Debug)]
enum Event {
    /// A member answers. What it says was true when it was asked, or is true now.
    Answers {
        question: Question,
        sampled: Option<ExecEnd>,
    },
    /// A hook ends in its container.
    HookEnds {
        ordinal: u16,
        id: u64,
        works: bool,
    },
    /// The operator is told of a hook.
    Reported {
        run: HookRun,
        end: ExecEnd,
    },
    ContainerStarts {
        ordinal: u16,
        uid: String,
    },
    PodEnds {
        ordinal: u16,
        uid: String,
    },
}

/// A hook that runs in a container.
#[derive(Debug)]
struct Hook {
    id: u64,
    deed: Deed,
    /// The operator waits for it.
    reports: Option<HookRun>,
}

#[derive(Debug)]
struct World {
    dice: Dice,
    now: Timestamp,
    /// Nothing goes wrong any more.
    calm: bool,
    resource: ReplicatedStatefulSet,
    children: Children,
    database: Database,
    hooks: BTreeMap<u16, Hook>,
    events: Vec<(Timestamp, Event)>,
    ids: u64,
    /// How often each member's volume was lost.
    losses: BTreeMap<u16, u32>,
    /// When a member was last lost without the operator's doing.
    disturbed: Timestamp,
    // What the operator has in its memory and in its logbook.
    facts: Facts,
    logbook: Option<LogbookSpec>,
    running: Vec<HookRun>,
    asking: BTreeSet<String>,
    /// Whether an object changed since a plan found all of them so.
    objects_changed: bool,
    /// Whether the objects are the real ones. Else they are sketches: building them is nearly all the cost of a pass.
    thorough: bool,
    passes: u64,
}

/// The UID of the nth volume of a member.
fn claim_uid(ordinal: u16, losses: u32) -> String {
    format!("claim-{ordinal}-{losses}")
}

fn lost(why: &str) -> ExecEnd {
    ExecEnd::Unknown { why: why.into() }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let size = 1 + dice.below(5);
        let old = dice.chance(70);
        let structured = dice.chance(75);
        let mut database = Database::new(LARGEST + 1, structured);
        let mut fixture = if old { Fixture::serving_pods(size) } else { Fixture::new(size) };
        if dice.chance(20) {
            fixture.resource.spec.pod.commands.seed = None;
        }
        if dice.chance(50) {
            fixture.resource.spec.pod.commands.promote = Some(command("promote"));
        }
        fixture.resource.spec.pod.volume_claim_templates = Some(vec![claim_template()]);
        if old {
            database.all_serve(size);
        }
        let histories = if structured { vec!["h1".to_owned()] } else { Vec::new() };
        let volumes = (0..size).map(|it| (Ordinal::new(it).pod_name(SET), claim_uid(it, 0))).collect();
        let logbook = old.then(|| LogbookSpec { histories, volumes, ..fixture.memory.entries() });
        let mut world = Self {
            dice,
            now: fixture.now,
            calm: false,
            resource: fixture.resource,
            children: fixture.children,
            database,
            hooks: BTreeMap::new(),
            events: Vec::new(),
            ids: 100,
            losses: BTreeMap::new(),
            disturbed: fixture.now,
            facts: fixture.facts,
            logbook,
            running: Vec::new(),
            asking: BTreeSet::new(),
            objects_changed: true,
            thorough: seed.is_multiple_of(THOROUGH),
            passes: 0,
        };
        if old {
            world.begin_with_objects(size);
            (0..size).for_each(|ordinal| world.claim(ordinal));
        }
        world
    }

    /// How long something takes. In a quiet world all takes two seconds, so that much happens at once and few passes show it.
    fn seconds(&mut self, least: u16, spread: u16) -> u16 {
        if self.calm { 2 } else { least + self.dice.below(spread) }
    }

    fn after(&mut self, seconds: u16, event: Event) {
        let at = self.now.checked_add(SignedDuration::from_secs(i64::from(seconds))).unwrap();
        self.events.push((at, event));
    }

    /// Goes to the next event, or to the time at which the operator looks again, and lets all happen that is due.
    fn advance(&mut self, look_again: Timestamp) {
        let next = self.events.iter().map(|(at, _)| *at).min().map_or(look_again, |at| at.min(look_again));
        self.now = self.now.max(next);
        let (due, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.events).into_iter().partition(|(at, _)| *at <= self.now);
        self.events = later;
        for (_, event) in due {
            self.happen(event);
        }
        let writes = u64::from(self.dice.below(3));
        self.database.commit(writes);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Answers { question, sampled } => {
                let end = sampled.unwrap_or_else(|| self.sample(&question.exec, question.about));
                self.asking.remove(&question.target());
                self.facts.learn(Fact { exec: question.exec, of: Of::Question(question.about), end }, self.now);
            }
            Event::Reported { run, end } => {
                self.running.retain(|other| *other != run);
                self.facts.learn(Fact { of: Of::Deed(run.deed), exec: run.exec, end }, self.now);
            }
            Event::HookEnds { ordinal, id, works } => self.hook_ends(ordinal, id, works),
            Event::ContainerStarts { ordinal, uid } => self.container_starts(ordinal, &uid),
            Event::PodEnds { ordinal, uid } => self.pod_ends(ordinal, &uid),
        }
    }

    fn reaches(&self, exec: &Exec) -> bool {
        let pod = self.children.pods.get(&exec.ordinal.pod_name(SET));
        pod.is_some_and(|pod| pod.meta.uid == exec.pod_uid && pod.process.as_ref() == Some(&exec.process))
    }

    /// What a member would answer now.
    fn sample(&self, exec: &Exec, about: About) -> ExecEnd {
        let ordinal = exec.ordinal.get();
        let starts = self.hooks.get(&ordinal).is_some_and(|hook| !matches!(hook.deed, Deed::Stop | Deed::Promote));
        match about {
            _ if !self.reaches(exec) => lost("no such container"),
            About::Status if starts && self.database.server(ordinal) == Server::Down => exited(STARTING, ""),
            About::Status => exited(self.database.status(ordinal), ""),
            About::Sequence => exited(0, &self.database.sequence(ordinal)),
        }
    }

    fn ask(&mut self, question: Question) {
        if !self.asking.insert(question.target()) {
            return;
        }
        let wait = self.seconds(0, 4);
        let sampled = match self.dice.below(10) {
            0 if !self.calm => Some(lost("connection reset")),
            0..=5 => Some(self.sample(&question.exec, question.about)),
            _ => None,
        };
        self.after(wait, Event::Answers { question, sampled });
    }

    /// The operator runs a hook.
    fn start(&mut self, run: HookRun) {
        self.running.push(run.clone());
        let ordinal = run.exec.ordinal.get();
        let wait = self.seconds(1, 5);
        let up = self.database.server(ordinal) != Server::Down;
        if !self.reaches(&run.exec) {
            return self.after(1, Event::Reported { run, end: lost("no such container") });
        }
        if run.deed == Deed::Stop {
            self.hooks.remove(&ordinal);
        } else if run.deed == Deed::Promote && self.database.server(ordinal) == Server::WithoutQuorum {
            // It is for servers that run.
        } else if self.hooks.contains_key(&ordinal) || up {
            // Hooks that start a server refuse to do it twice.
            let code = i32::from(!up);
            return self.after(1, Event::Reported { run, end: exited(code, "") });
        }
        let id = self.fresh();
        let fate = if self.calm { 9 } else { self.dice.below(10) };
        let (reports, works, unseen) = match fate {
            0 => (Some(run.clone()), false, None),
            1 => (None, self.dice.chance(60), Some(lost("connection reset"))),
            2 => (Some(run.clone()), true, Some(ExecEnd::StillRunning { after: run.exec.timeout })),
            _ => (Some(run.clone()), true, None),
        };
        self.hooks.insert(ordinal, Hook { id, deed: run.deed, reports });
        let mut ends = wait;
        if let Some(end) = unseen {
            // One that is not waited for any longer ends after that.
            let after = if matches!(end, ExecEnd::StillRunning { .. }) { wait } else { 0 };
            ends = after + 1 + self.dice.below(20);
            self.after(wait, Event::Reported { run, end });
        }
        self.after(ends, Event::HookEnds { ordinal, id, works });
    }

    fn hook_ends(&mut self, ordinal: u16, id: u64, works: bool) {
        if self.hooks.get(&ordinal).is_none_or(|hook| hook.id != id) {
            return;
        }
        let Some(hook) = self.hooks.remove(&ordinal) else { return };
        let done = works
            && match hook.deed {
                Deed::Seed => {
                    self.database.seed(ordinal);
                    true
                }
                Deed::Primary | Deed::Secondary => self.database.join(ordinal),
                Deed::Promote => self.database.promote(ordinal),
                Deed::Stop => {
                    self.database.stop(ordinal);
                    true
                }
            };
        if let Some(run) = hook.reports {
            self.happen(Event::Reported { run, end: exited(i32::from(!done), "") });
        }
    }

    /// The ordinal of a pod that a step names.
    fn ordinal(pod: &str) -> u16 {
        Ordinal::of_pod(SET, pod).unwrap().get()
    }
}
