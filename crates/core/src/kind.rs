//! What a kind of cluster has to decide. The engine runs every kind through this, and knows none of them.
//!
//! Everything here is pure: values in, values out. Time comes in as a value.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_api::logbook::LogbookSpec;

use crate::conditions::Reason;
use crate::gate::{Gate, PauseRequests};
use crate::likeness::Answered;
use crate::memory::{Entry, Memory};
use crate::metrics::{Described, Measure};
use crate::outcome::Outcome;
use crate::plan::Plan;
use crate::step::{Action, ObjectRef, Over, Owner, Step};
use crate::views::Children;

/// The label that tells of which kind of cluster an object is a part. Its value is [`Kind::NAME`].
pub const KIND_LABEL: &str = "windlass.dev/kind";

/// A kind of cluster.
pub trait Kind: Sized + Send + Sync + 'static {
    /// Its custom resource.
    type Resource: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync;
    /// Its status.
    type Status: Serialize + PartialEq + Send + Sync;
    /// What can be done to its members.
    type Action: Action;
    /// What its members can be asked.
    type Probe: Clone + Debug + PartialEq + Send + Sync;
    /// What a member answered, or what came of an action on it.
    type Fact: Clone + Debug + std::fmt::Display + Send;
    /// All that is known of the members.
    type Facts: Clone + Debug + Default + Send + Sync;
    /// What this process has told of a cluster so far, so that each thing is told once. It ends with the process.
    type Told: Debug + Default + Send + Sync;
    /// What the operator itself was told at its start, and clusters of this kind depend on.
    type Settings: Clone + Debug + Default + Send + Sync;

    /// The short name: names of logbooks, labels, metrics.
    const NAME: &'static str;

    /// The names of its actions that are announced before they are taken.
    const INTENTS: &'static [&'static str];

    /// The finalizer that holds its resource until nothing is left to do for it. Only the release that looks after it touches it.
    const FINALIZER: Option<&'static str> = None;

    /// The metrics that this kind has of its own.
    const METRICS: &'static [Described] = &[];

    /// The status that is stored with a resource.
    fn stored_status(resource: &Self::Resource) -> Option<&Self::Status>;

    /// Who owns what is made for a resource.
    fn owner(resource: &Self::Resource) -> Owner {
        let metadata = resource.meta();
        Owner {
            api_version: Self::Resource::api_version(&()).into_owned(),
            kind: Self::Resource::kind(&()).into_owned(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// The ConfigMap of the user's, in the cluster's namespace, that the cluster depends on.
    fn options(_resource: &Self::Resource) -> Option<String> {
        None
    }

    /// What the user asks of the lanes.
    fn pause(resource: &Self::Resource) -> PauseRequests;

    /// What is halfway in the clustering, by what is remembered. A pause waits until it is finished or undone; the plan of that time is
    /// let through, and must do nothing else.
    fn halfway(_logbook: &LogbookSpec) -> Vec<String> {
        Vec::new()
    }

    /// Adds a fact to what is known, and tells whether it says anything new. An answer that does not is no reason for a pass while
    /// nobody waits for one.
    fn learn(facts: &mut Self::Facts, fact: Self::Fact, now: Timestamp) -> bool;

    /// Drops what is known of pods that are not there any more.
    fn forget(facts: &mut Self::Facts, children: &Children);

    /// The questions that are due.
    fn probes(observed: &Observed<'_, Self>) -> Vec<Self::Probe>;

    /// The target of a probe: two probes of one target never run at once.
    fn probe_target(probe: &Self::Probe) -> String;

    /// What to do.
    fn plan(observed: &Observed<'_, Self>) -> Plan<Self::Action>;

    /// What observation adds to the memory. Called before steps are taken and again before status is told.
    fn remember(observed: &Observed<'_, Self>, logbook: &mut LogbookSpec);

    /// Whether the spec is refused, so that its generation is not acted upon.
    fn is_invalid(observed: &Observed<'_, Self>) -> bool;

    /// Whether members were not asked yet since the operator started, so that a stored status knows more than this pass.
    fn is_blind(observed: &Observed<'_, Self>) -> bool;

    /// What else must be remembered of intents that are announced in this pass.
    fn note_intents(_observed: &Observed<'_, Self>, _logbook: &mut LogbookSpec) {}

    /// Which entries of a doubted memory observation proves again.
    fn proves(observed: &Observed<'_, Self>) -> Vec<Entry>;

    /// What to tell.
    fn status(observed: &Observed<'_, Self>, report: &Report<'_, Self::Action>) -> Self::Status;

    /// What metrics show of a cluster, as it stands.
    fn figures(observed: &Observed<'_, Self>, report: &Report<'_, Self::Action>, status: &Self::Status) -> Figures;

    /// What happened since it was told last, beside the steps that were taken. What is on record is told; what is not, never.
    fn news(_told: &mut Self::Told, _observed: &Observed<'_, Self>, _report: &Report<'_, Self::Action>) -> Vec<News> {
        Vec::new()
    }

    /// What a pass adds to metrics of the kind's own.
    fn passed(_pass: &Passed) -> Vec<Measure> {
        Vec::new()
    }

    /// What a fact is about and what came of it, each by a name of a closed set, for metrics.
    fn named(fact: &Self::Fact) -> (&'static str, &'static str);

    /// Annotations that keep pods from being deleted. They are taken away before the cluster itself may end.
    fn bonds(_children: &Children) -> Vec<Bond> {
        Vec::new()
    }

    /// When to look again although nothing happened.
    fn look_again(observed: &Observed<'_, Self>) -> Duration;
}

/// What keeps a pod from being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bond {
    /// Which pod.
    pub pod: ObjectRef,
    /// As it was judged.
    pub over: Over,
    /// Which annotation.
    pub annotation: &'static str,
}

/// What a user's ConfigMap says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Options {
    /// The cluster depends on none.
    #[default]
    None,
    /// It is not there.
    Missing,
    /// It could not be read.
    Unknown(String),
    /// Its data.
    Read(BTreeMap<String, String>),
}

/// What metrics show of one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The phase that it is in.
    pub phase: Option<&'static str>,
    /// How many members are in which state.
    pub members: Vec<(&'static str, usize)>,
    /// Gauges of the kind's own. Those that are not in the list are not shown.
    pub own: Vec<(&'static Described, f64)>,
    /// Gauges of the kind's own with one series for each part of the cluster, by the value of their further label.
    pub parts: Vec<(&'static Described, &'static str, f64)>,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// It is told to people, as an Event.
    Event {
        /// Whether somebody should look.
        warning: bool,
        /// What happened, in a word.
        reason: Reason,
        /// What happened, in a sentence.
        note: String,
    },
    /// It is counted or measured.
    Measured(Measure),
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whether it has to be made again because something went wrong.
    pub failed: bool,
    /// How long it took.
    pub took: Duration,
}

/// Everything that a pass knows.
#[derive(Debug)]
pub struct Observed<'a, K: Kind> {
    /// The custom resource.
    pub resource: &'a K::Resource,
    /// The children in the caches.
    pub children: &'a Children,
    /// What is known of the members.
    pub facts: &'a K::Facts,
    /// What the operator was told at its start.
    pub settings: &'a K::Settings,
    /// What the user's ConfigMap says.
    pub options: &'a Options,
    /// What is remembered.
    pub memory: &'a Memory,
    /// What the server answered to our last apply of each object.
    pub answered: &'a BTreeMap<ObjectRef, Answered>,
    /// Actions that run now.
    pub running: &'a [K::Action],
    /// Whether the objects were found as they should be a moment ago ([`Plan::settled`](crate::plan::Plan::settled)), and nothing that
    /// they depend on has changed since. Then nobody needs to render them again.
    pub settled: bool,
    /// The time.
    pub now: Timestamp,
}

/// What came of a pass.
#[derive(Debug)]
pub struct Report<'a, A> {
    /// The plan.
    pub plan: &'a Plan<A>,
    /// The gate.
    pub gate: &'a Gate,
    /// Steps that a pause holds back.
    pub held: &'a [Step<A>],
    /// Steps that were taken, and what came of them.
    pub taken: &'a [(Step<A>, Outcome)],
    /// What is remembered now, this pass included.
    pub remembered: &'a LogbookSpec,
}
