//! A leader that is stopped past its Lease, and goes on when another one acts: at most the one call that it had in flight gets out,
//! and the server refuses it, or the hook does by its epoch. Also how long a hand-over takes.
//!
//! Half of the rounds stop it at a random moment, half between its last check and the server, by holding the request on the way.

#![cfg(feature = "lab")]

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use rustix::process::Signal;
use serde_json::json;
use windlass_e2e::audit::Mark;
use windlass_e2e::front::{Caught, Front};
use windlass_e2e::process::{Operator, Order};
use windlass_e2e::{Cluster, Entry, LONG, Place, Stage, dummy, wait_for};

/// How many rounds; an even number.
const ROUNDS_VARIABLE: &str = "WINDLASS_ROUNDS";
const ROUNDS: u64 = 4;
/// The users of the two processes.
const USERS: [&str; 2] = ["leader-one", "leader-two"];
const RELEASE: &str = "windlass-leader";
/// The longest that a random round waits before it stops the leader.
const LATEST_STOP: u64 = 1500;
/// Goals are told, not judged; this is only to notice that something is wrong.
const SANE_HAND_OVER: Duration = Duration::from_secs(10);
const SANE_TAKE_OVER: Duration = Duration::from_secs(30);

/// What a round changes, to give the leader something to do.
#[derive(Clone, Copy, Debug)]
enum Change {
    Size,
    Crash,
    Template,
    Service,
}

/// The call that is held back on its way: a verb and a part of the path.
type Wanted = (Change, &'static str, &'static str);

const HELD: [Wanted; 7] = [
    (Change::Size, "PATCH ", "/statefulsets/"),
    // A hook that changes something; questions do not write there.
    (Change::Crash, "GET ", "%2Fstate%2Fhooks"),
    (Change::Service, "PATCH ", "/services/"),
    (Change::Template, "DELETE ", "/pods/"),
    (Change::Size, "PUT ", "/logbooks/"),
    (Change::Crash, "PATCH ", "/pods/"),
    (Change::Template, "PUT ", "/status"),
];
/// Longer than a hook waits to be told its epoch.
const PATIENCE_OF_HOOKS: Duration = Duration::from_secs(45);
const CHANGES: [Change; 4] = [Change::Crash, Change::Size, Change::Template, Change::Service];

#[derive(Debug, Default)]
struct Figures {
    held: usize,
    refused_by_server: usize,
    refused_by_hook: usize,
    never_begun: usize,
    others: usize,
}

/// Two processes of one release, and a cluster of theirs.
struct Pair<'a> {
    place: &'a Place,
    cluster: Cluster,
    operators: [Operator; 2],
    fronts: [Front; 2],
    size: u16,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_leader_changes_nothing_after_another_has_taken_over() -> Result<()> {
    let stage = Stage::get().await?;
    let rounds = std::env::var(ROUNDS_VARIABLE).map_or(Ok(ROUNDS), |text| text.parse())?;
    stage
        .beside_the_release(async || {
            for user in USERS {
                stage.grant_release(user).await?;
            }
            let played = stage.with_namespace("leader", true, async |place| play(place, rounds).await).await;
            for user in USERS {
                stage.revoke_release(user).await?;
            }
            played
        })
        .await
}

async fn play(place: &Place, rounds: u64) -> Result<()> {
    let stage = place.stage();
    let mut pair = Pair::start(place).await?;
    let mut random = u64::try_from(Timestamp::now().as_nanosecond() & i128::from(u32::MAX))?;
    stage.say(&format!("random moments from {random}"));
    let mut figures = Figures::default();
    for round in 0..rounds {
        let turn = usize::try_from(round / 2)?;
        if round % 2 == 0 {
            pair.hold_back(HELD[turn % HELD.len()], &mut figures).await
        } else {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let after = Duration::from_millis((random >> 33) % LATEST_STOP);
            pair.stop_at_random(CHANGES[turn % CHANGES.len()], after, &mut figures).await
        }
        .with_context(|| format!("round {round}"))?;
    }
    let hand_over = pair.replace(Signal::TERM).await?;
    ensure!(hand_over < SANE_HAND_OVER, "a hand-over took {hand_over:?}");
    let take_over = pair.replace(Signal::KILL).await?;
    ensure!(take_over < SANE_TAKE_OVER, "a take-over took {take_over:?}");
    let Figures { held, refused_by_server, refused_by_hook, never_begun, others } = figures;
    println!(
        "{rounds} rounds of a stopped leader, {held} calls held between check and send: {refused_by_server} refused by the server, \
         {refused_by_hook} by the hook, {never_begun} ended on the way; {others} other calls got out; hand-over on SIGTERM {:.2} s, take-over after SIGKILL {:.2} s",
        hand_over.as_secs_f64(),
        take_over.as_secs_f64()
    );
    Ok(())
}

impl<'a> Pair<'a> {
    async fn start(place: &'a Place) -> Result<Self> {
        let stage = place.stage();
        let mut fronts = Vec::new();
        let mut operators = Vec::new();
        for user in USERS {
            let front = Front::open(&stage.lab().user_kubeconfig(user, &[])?).await?;
            operators.push(start(place, user, front.address).await?);
            fronts.push(front);
        }
        place.apply(&[dummy::manifest_for("leader", "led", 3)]).await?;
        let cluster = place.cluster("led")?;
        cluster.wait_until_ready(3).await?;
        let operators = operators.try_into().ok().context("not two operators")?;
        let fronts = fronts.try_into().ok().context("not two fronts")?;
        Ok(Self { place, cluster, operators, fronts, size: 3 })
    }

    /// Stops the leader in the moment in which a call of it is on its way, and lets that call go after the take-over.
    async fn hold_back(&mut self, (change, verb, part): Wanted, figures: &mut Figures) -> Result<()> {
        let stage = self.place.stage();
        let leader = self.leader().await?;
        let namespace = format!("/namespaces/{}/", self.place.namespace());
        let caught = self.fronts[leader].arm(self.operators[leader].pid()?, move |line| {
            line.starts_with(verb) && line.contains(part) && line.contains(&namespace) && !line.contains("/leases/")
        });
        let began = stage.audit().mark()?;
        self.make(change).await?;
        let caught = tokio::time::timeout(LONG, caught).await;
        self.fronts[leader].disarm();
        let caught = caught.with_context(|| format!("no call {verb}{part} was made after {change:?}"))??;
        figures.held += 1;
        let taken = self.take_over(leader).await?;
        let hooks = (self.cluster.hooks(self.size).await?, self.cluster.refused_hooks(self.size).await?);
        let is_hook = caught.request.contains("/exec?");
        let request = caught.request.split('?').next().unwrap_or_default().to_owned();
        self.let_go(leader, caught, began, taken).await?;
        self.go_on(leader).await?;
        if is_hook {
            // The former leader gives the call up as soon as it goes on: on a slow machine the hook may not have begun by then.
            let refused = wait_for("the member has refused the hook of the former leader", PATIENCE_OF_HOOKS, async || {
                let now = self.cluster.refused_hooks(self.size).await?;
                ensure!(now.len() == hooks.1.len() + 1, "refused: {now:?}");
                Ok(())
            })
            .await
            .is_ok();
            ensure!(self.cluster.hooks(self.size).await? == hooks.0, "a hook ran: {:?}", self.cluster.hooks(self.size).await?);
            *if refused { &mut figures.refused_by_hook } else { &mut figures.never_begun } += 1;
        }
        let late = self.late(leader, began, taken)?;
        let [held] = late.as_slice() else {
            bail!("not one call of {} after the take-over: {:?}", USERS[leader], described(&late));
        };
        if !is_hook {
            ensure!(is_refused(held), "not refused: {}", held.describe());
            figures.refused_by_server += 1;
        }
        stage.say(&format!("{change:?}: {request} of {} was held, and refused ({})", USERS[leader], held.code()));
        self.cluster.wait_until_ready(self.size).await.map(drop)
    }

    /// Stops the leader a while after a change.
    async fn stop_at_random(&mut self, change: Change, after: Duration, figures: &mut Figures) -> Result<()> {
        let stage = self.place.stage();
        let leader = self.leader().await?;
        let began = stage.audit().mark()?;
        self.make(change).await?;
        tokio::time::sleep(after).await;
        self.operators[leader].signal(Signal::STOP)?;
        let taken = self.take_over(leader).await?;
        self.go_on(leader).await?;
        let late = self.late(leader, began, taken)?;
        ensure!(late.len() <= 1 && late.iter().all(is_refused), "calls after the take-over: {:?}", described(&late));
        figures.others += late.len();
        stage.say(&format!(
            "{change:?}: {} was stopped after {after:?}, {} calls after the take-over",
            USERS[leader],
            late.len()
        ));
        self.cluster.wait_until_ready(self.size).await.map(drop)
    }

    /// Which of the two leads.
    async fn leader(&self) -> Result<usize> {
        let holder = self.lease().await?.0;
        USERS.iter().position(|user| *user == holder).with_context(|| format!("{holder:?} holds the Lease"))
    }

    /// Who holds the Lease, and since when.
    async fn lease(&self) -> Result<(String, Timestamp)> {
        let spec = self.place.api::<Lease>().get(RELEASE).await?.spec.context("a Lease without a holder")?;
        Ok((spec.holder_identity.unwrap_or_default(), spec.acquire_time.context("a Lease without a time")?.0))
    }

    /// Waits until the other one leads, and has made another change and the cluster Ready. Tells since when it leads.
    async fn take_over(&mut self, former: usize) -> Result<Timestamp> {
        let taken = self.held_by_other(former).await?;
        self.make(Change::Size).await?;
        self.cluster.wait_until_ready(self.size).await?;
        Ok(taken)
    }

    async fn held_by_other(&self, former: usize) -> Result<Timestamp> {
        wait_for("the other process holds the Lease", LONG, async || {
            let (holder, since) = self.lease().await?;
            ensure!(holder == USERS[1 - former], "{holder:?} holds it");
            Ok(since)
        })
        .await
    }

    /// Lets a held call go, and waits until the server has it.
    async fn let_go(&self, former: usize, caught: Caught, began: Mark, taken: Timestamp) -> Result<()> {
        let before = self.late(former, began, taken)?;
        ensure!(before.is_empty(), "a stopped process made calls: {:?}", described(&before));
        caught.release()?;
        wait_for("the held call has arrived", LONG, async || {
            ensure!(!self.late(former, began, taken)?.is_empty(), "it is not in the audit log");
            Ok(())
        })
        .await
    }

    /// Lets a stopped leader go on, and waits until it knows that it leads no more.
    async fn go_on(&mut self, former: usize) -> Result<()> {
        let operator = &mut self.operators[former];
        operator.signal(Signal::CONT)?;
        wait_for("the former leader stands by", LONG, async || {
            operator.check()?;
            ensure!(!operator.leads().await?, "it takes itself for the leader");
            Ok(())
        })
        .await
    }

    /// What a former leader changed, or tried to, after the take-over: writes and commands. Events tell, and change nothing; they go
    /// beside the one call that a pass has under way.
    fn late(&self, former: usize, began: Mark, taken: Timestamp) -> Result<Vec<Entry>> {
        let mut entries = self.place.stage().audit().requests_of(USERS[former], began)?;
        entries.retain(|entry| {
            entry.received() > taken && (entry.is_write() || entry.command().is_some()) && entry.resource() != "events"
        });
        Ok(entries)
    }

    async fn make(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Size => {
                // Never back to the size before: a successor that finds nothing to do changes no version, and without another version
                // the server has no reason to refuse the former leader's call.
                self.size = if self.size == 5 { 3 } else { self.size + 1 };
                self.cluster.scale(self.size).await
            }
            Change::Crash => self.cluster.crash(1).await,
            Change::Template => {
                let mut containers = serde_json::to_value(self.cluster.get().await?.spec.pod.containers)?;
                containers[0]["env"] = json!([{ "name": "EDITED", "value": Timestamp::now().to_string() }]);
                self.cluster.patch(&json!({ "spec": { "pod": { "containers": containers } } })).await.map(drop)
            }
            Change::Service => {
                let name = self.cluster.names.client_service();
                self.place.api::<Service>().delete(&name, &DeleteParams::default()).await?;
                Ok(())
            }
        }
    }

    /// Ends the leader, and tells how long it took until the other one led. The ended one is started again.
    async fn replace(&mut self, signal: Signal) -> Result<Duration> {
        let leader = self.leader().await?;
        let sent = Timestamp::now();
        self.operators[leader].signal(signal)?;
        self.operators[leader].ended().await?;
        let taken = self.held_by_other(leader).await?;
        self.operators[leader] = start(self.place, USERS[leader], self.fronts[leader].address).await?;
        self.make(Change::Size).await?;
        self.cluster.wait_until_ready(self.size).await?;
        Ok(Duration::try_from(taken.duration_since(sent))?)
    }
}

async fn start(place: &Place, user: &str, server: SocketAddr) -> Result<Operator> {
    let namespace = place.namespace();
    let order = Order { user, release: RELEASE, namespace, own: "leader", server: Some(server), ..Order::default() };
    place.stage().start_operator(&order).await
}

fn is_refused(entry: &Entry) -> bool {
    entry.command().is_none() && matches!(entry.code(), 404 | 409)
}

fn described(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(Entry::describe).collect()
}
