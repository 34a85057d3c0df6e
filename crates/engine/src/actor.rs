//! One actor per cluster: it never makes two passes at once, and what happens in it stays in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use windlass_clients::members::{Acted, Members};
use windlass_core::claim::Identity;
use windlass_core::gate::Permit;
use windlass_core::kind::{Kind, Passed};
use windlass_core::lane::Clustering;
use windlass_core::likeness::Answered;
use windlass_core::step::{ObjectRef, Over};

use crate::authority::Authority;
use crate::caches::{Caches, Key};
use crate::calls::Calls;
use crate::clock::Clock;
use crate::controller::Clusters;
use crate::events::Events;
use crate::lease::Overlaps;
use crate::metrics::{ClusterMetrics, Metrics};
use crate::neighbours::Neighbours;
use crate::options::{Copy, Shelf};
use crate::pass::Next;
use crate::reclaim::Refusals;
use crate::rest::Rest;

/// How long a pass may take before it is given up; each request in it has a deadline of its own.
const PASS_DEADLINE: Duration = Duration::from_secs(30);

/// What all actors of a kind share.
pub(crate) struct Shared<K: Kind, M> {
    pub(crate) calls: Arc<Calls>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) clusters: Clusters<K>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: Events,
    pub(crate) members: M,
    /// What this process was told at its start.
    pub(crate) settings: K::Settings,
    /// The ConfigMaps of users.
    pub(crate) shelf: Arc<Shelf>,
    /// How many passes may run at once.
    pub(crate) passes: Semaphore,
    pub(crate) tasks: TaskTracker,
    pub(crate) clock: Clock,
    /// Who we are.
    pub(crate) identity: Identity,
    pub(crate) neighbours: Neighbours,
    pub(crate) overlaps: Overlaps,
    /// Who signs certificates.
    pub(crate) authority: Option<Arc<Authority>>,
    /// What cannot be done to volumes now.
    pub(crate) refusals: Refusals,
}

/// What an actor listens to.
#[derive(Clone)]
pub(crate) struct Signals {
    /// Something of the cluster moved.
    pub(crate) wake: Arc<Notify>,
    /// The cluster is gone or not ours any more.
    pub(crate) leave: CancellationToken,
    /// The process stops to act.
    pub(crate) stop: CancellationToken,
}

/// What comes back to an actor from its operations and probes.
pub(crate) enum Message<K: Kind> {
    /// A member answered a question of this outlook.
    Answer { fact: K::Fact, target: String, outlook: u32, took: Duration },
    /// An action ended, or is not waited for any longer.
    Ended(Acted<K>, K::Action, Duration),
    /// An action ended that was not waited for any longer.
    EndedLate(K::Fact),
    /// The code that asked or acted panicked.
    Broke(String),
    /// The actor was gone before the answer came.
    Unheard,
}

/// The code of a probe or an action panicked: what it was about to find out is not known.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(String);

/// One cluster.
pub(crate) struct Actor<K: Kind, M> {
    pub(crate) key: Key,
    pub(crate) shared: Arc<Shared<K, M>>,
    pub(crate) gauges: ClusterMetrics,
    /// The UID of the custom resource that the last pass saw.
    pub(crate) last_seen: Option<String>,
    pub(crate) facts: K::Facts,
    pub(crate) answered: BTreeMap<ObjectRef, Answered>,
    /// Actions that run now.
    pub(crate) running: Vec<K::Action>,
    /// Targets of questions that are under way.
    pub(crate) asking: Vec<String>,
    /// What the last pass wanted to write to, where somebody was faster.
    pub(crate) outrun: Vec<(ObjectRef, Option<Over>)>,
    /// The steps for which the cluster was looked at, past the caches, in the last pass.
    pub(crate) looked: Vec<String>,
    /// What was doubted in the last pass.
    pub(crate) doubted: Option<String>,
    /// How often everything that members had answered was dropped.
    outlook: u32,
    /// When this actor was started.
    pub(crate) born: tokio::time::Instant,
    /// How many passes in a row had to be tried again.
    pub(crate) troubles: u32,
    /// When status was written last.
    pub(crate) told: Option<tokio::time::Instant>,
    /// When the logbook was last written only to tell.
    pub(crate) noted: Option<tokio::time::Instant>,
    /// The reason of the last warning, to tell each one once.
    pub(crate) warned: Option<String>,
    /// What was last told of a step on each target, and when. Hashes: a cluster that was just created is told much of.
    pub(crate) steps_told: BTreeMap<u64, (u64, tokio::time::Instant)>,
    /// What the kind told of its own accord.
    pub(crate) news_told: K::Told,
    /// Since when another release was seen to hold the cluster.
    pub(crate) foreign_since: Option<tokio::time::Instant>,
    /// What the objects were found as they should be with.
    pub(crate) rest: Option<Rest>,
    /// The children that the last pass saw. Those that two passes in a row saw are worth packing.
    pub(crate) at_rest: Option<u64>,
    /// The user's ConfigMap, as it was read last.
    pub(crate) copy: Option<Copy>,
    /// The copy of labels that was refused last.
    pub(crate) copy_refused: Option<BTreeMap<String, String>>,
    /// In boxes: a channel has room for 32 messages from its beginning, which would be most of what a quiet cluster costs.
    messages: mpsc::UnboundedReceiver<Box<Message<K>>>,
    back: mpsc::UnboundedSender<Box<Message<K>>>,
}

impl<K: Kind, M: Members<K>> Actor<K, M> {
    pub(crate) fn new(key: Key, shared: Arc<Shared<K, M>>) -> Self {
        let (back, messages) = mpsc::unbounded_channel();
        Self {
            gauges: shared.metrics.cluster(K::NAME, K::METRICS, &key),
            key,
            shared,
            last_seen: None,
            rest: None,
            at_rest: None,
            copy: None,
            facts: K::Facts::default(),
            answered: BTreeMap::new(),
            running: Vec::new(),
            asking: Vec::new(),
            outrun: Vec::new(),
            looked: Vec::new(),
            doubted: None,
            outlook: 0,
            born: tokio::time::Instant::now(),
            troubles: 0,
            told: None,
            noted: None,
            warned: None,
            steps_told: BTreeMap::new(),
            news_told: K::Told::default(),
            foreign_since: None,
            copy_refused: None,
            messages,
            back,
        }
    }

    /// Runs until the process stops to act, or the cluster leaves: then its claim is given up.
    pub(crate) async fn run(mut self, signals: Signals) -> Result<(), Broken> {
        let Signals { wake, leave, stop } = signals;
        let mut next = Next::new("Begun", Duration::ZERO);
        let mut due = tokio::time::Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = leave.cancelled() => {
                    // A process that stops to act has no time to wait for operations.
                    stop.run_until_cancelled(Box::pin(self.give_up())).await;
                    return Ok(());
                }
                () = wake.notified(), if next.heeds_changes => {}
                Some(message) = self.messages.recv() => {
                    if !self.take(*message)? && next.is_calm() {
                        continue;
                    }
                }
                () = tokio::time::sleep_until(due) => {}
            }
            while let Ok(message) = self.messages.try_recv() {
                self.take(*message)?;
            }
            let shared = Arc::clone(&self.shared);
            let Ok(_place) = shared.passes.acquire().await else {
                return Ok(());
            };
            let started = Instant::now();
            // In a box: what a pass needs is large, and most clusters are quiet most of the time.
            let passed = tokio::time::timeout(PASS_DEADLINE, Box::pin(self.pass())).await;
            next = passed.unwrap_or_else(|_| {
                tracing::warn!(cluster = %self.key, "a pass took longer than {} s and was given up", PASS_DEADLINE.as_secs());
                Next::new("TimedOut", Duration::from_secs(5))
            });
            due = tokio::time::Instant::now() + next.after;
            let took = started.elapsed();
            shared.metrics.pass(K::NAME, next.outcome, took);
            let failed = matches!(next.outcome, "Retry" | "TimedOut");
            for measure in K::passed(&Passed { failed, took }) {
                self.gauges.add(measure);
            }
        }
    }

    /// Waits for an operation or a probe.
    pub(crate) async fn next_message(&mut self) -> Result<(), Broken> {
        match self.messages.recv().await {
            Some(message) => self.take(*message).map(drop),
            None => Ok(()),
        }
    }

    /// Takes in what came back, and tells whether it says anything new.
    fn take(&mut self, message: Message<K>) -> Result<bool, Broken> {
        let now = self.shared.clock.now();
        Ok(match message {
            Message::Answer { fact, target, outlook, took } => {
                self.shared.metrics.question(K::NAME, K::named(&fact), took);
                self.asking.retain(|asked| *asked != target);
                outlook != self.outlook || K::learn(&mut self.facts, fact, now)
            }
            Message::Ended(Acted { fact, rest }, action, took) => {
                self.running.retain(|run| *run != action);
                self.shared.metrics.operation(K::NAME, K::named(&fact), took);
                tracing::info!(cluster = %self.key, action = %action, seconds = took.as_secs_f64(), "operation ended: {fact}");
                K::learn(&mut self.facts, fact, now);
                if let Some(rest) = rest {
                    self.beside(action.to_string(), async move { Message::EndedLate(rest.await) });
                }
                true
            }
            Message::EndedLate(fact) => {
                tracing::info!(cluster = %self.key, "operation ended late: {fact}");
                K::learn(&mut self.facts, fact, now);
                true
            }
            Message::Broke(what) => return Err(Broken(what)),
            Message::Unheard => false,
        })
    }

    /// Starts an action beside the pass.
    pub(crate) fn start(&mut self, permit: Permit<Clustering>, action: K::Action) {
        self.running.push(action.clone());
        let (shared, started) = (Arc::clone(&self.shared), Instant::now());
        self.beside(action.to_string(), async move {
            let acted = shared.members.act(&permit, action.clone()).await;
            Message::Ended(acted, action, started.elapsed())
        });
    }

    /// Runs something beside the pass and brings back what came of it, a panic included.
    fn beside(&self, what: String, work: impl Future<Output = Message<K>> + Send + 'static) {
        let back = self.back.clone();
        let work = self.shared.tasks.spawn(work);
        self.shared.tasks.spawn(async move {
            let message = work.await.unwrap_or_else(|error| Message::Broke(format!("{what}: {error}")));
            // Nobody listens when the cluster was forgotten meanwhile.
            let _forgotten = back.send(Box::new(message));
        });
    }

    /// Asks a member beside the pass, unless it is being asked already.
    pub(crate) fn ask(&mut self, probe: K::Probe) {
        let target = K::probe_target(&probe);
        if self.asking.contains(&target) {
            return;
        }
        self.asking.push(target.clone());
        let (shared, outlook, asked) = (Arc::clone(&self.shared), self.outlook, Instant::now());
        let back = self.back.clone();
        self.beside(target.clone(), async move {
            tokio::select! {
                fact = shared.members.probe(probe) => Message::Answer { fact, target, outlook, took: asked.elapsed() },
                // A question may be one that is answered in days.
                () = back.closed() => Message::Unheard,
            }
        });
    }

    /// What proves a doubted memory again must have been seen after the doubt arose: members may have stopped since they last
    /// answered. So all answers are dropped, and those that are under way.
    pub(crate) fn doubt(&mut self, why: Option<&str>) {
        if why.is_some() && why != self.doubted.as_deref() {
            self.facts = K::Facts::default();
            self.outlook += 1;
        }
        self.doubted = why.map(ToOwned::to_owned);
    }
}
