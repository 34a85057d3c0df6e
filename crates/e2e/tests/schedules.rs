//! Random schedules of two releases on a real API server, each from its own seed: selectors overlap or do not, the label flips, processes
//! stop, die and come back, and meanwhile the cluster is scaled, edited and hurt. There are never two writers to one cluster, no pod is
//! restarted, and in the end the release whose selector matches looks after a cluster that is Ready.
//!
//! `WINDLASS_LAB_SCHEDULES` says how many; `WINDLASS_SEED` says from which seed on. The moments in which things happen on a server are
//! not repeated by a seed.

#![cfg(feature = "lab")]

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};
use rustix::process::Signal;
use serde_json::json;
use windlass_dice::{Dice, number};
use windlass_e2e::audit::Mark;
use windlass_e2e::helm::lives;
use windlass_e2e::process::{OWN, Operator, Order};
use windlass_e2e::writers::{self, Deed, Tenure};
use windlass_e2e::{Cluster, Entry, LONG, Place, Stage, dummy, wait_for};
use windlass_lab::TOLD_IN_FULL;

const SCHEDULES: u64 = 2;
const FIRST_SEED: u64 = 0x0073_6368_6564;
/// The two releases have the names of their users, and so have the labels of their clusters.
const USERS: [&str; 2] = ["schedule-one", "schedule-two"];
/// The label of a cluster that no selector matches.
const NOBODY: &str = "schedule-nobody";
/// Members that every size has; the others come and go with it.
const LEAST: u16 = 2;
const MOST: u16 = 4;

/// A release: its selector, and its process while it lives.
struct Release {
    user: &'static str,
    /// Whether its selector also matches what is the other's.
    overlaps: bool,
    process: Option<Operator>,
    /// The times without a process, the last one without an end while there is none.
    away: Vec<(Timestamp, Option<Timestamp>)>,
}

struct Theatre<'a> {
    place: &'a Place,
    cluster: Cluster,
    releases: [Release; 2],
    size: u16,
    /// When the label was set, and to what.
    flips: Vec<(Timestamp, &'static str)>,
    /// Commands that ask members something and change nothing.
    questions: Vec<Vec<String>>,
    /// The lives of the members that every size has.
    pods: Vec<(String, String, i32)>,
    began: Mark,
}

/// What all schedules so far showed.
#[derive(Debug, Default)]
struct Shown {
    writes: usize,
    hand_overs: usize,
    taken_from_the_dead: usize,
    /// In seconds, of hand-overs between two releases that lived.
    gaps: Vec<f64>,
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_never_two_writers_to_one_cluster_on_a_real_server() -> Result<()> {
    let stage = Stage::get().await?;
    let first = number("WINDLASS_SEED").unwrap_or(FIRST_SEED);
    let schedules = number("WINDLASS_LAB_SCHEDULES").unwrap_or(SCHEDULES);
    stage
        .beside_the_release(async || {
            for user in USERS {
                stage.grant_release(user).await?;
            }
            let played = stage.with_namespace("schedules", true, async |place| play_all(place, first, schedules).await).await;
            for user in USERS {
                stage.revoke_release(user).await?;
            }
            played
        })
        .await
}

async fn play_all(place: &Place, first: u64, schedules: u64) -> Result<()> {
    let stage = place.stage();
    let mut theatre = Theatre::open(place).await?;
    let mut shown = Shown::default();
    for schedule in 0..schedules {
        let seed = first + schedule;
        let played = theatre.play(&mut Dice::new(seed)).await;
        // Also when it did not come to its end: two writers would be why.
        let judged = theatre.judge().await;
        shown = judged
            .and_then(|shown| played.map(|()| shown))
            .with_context(|| format!("in the schedule of WINDLASS_SEED={seed:#x}"))?;
        let Shown { writes, hand_overs, taken_from_the_dead, .. } = shown;
        stage.say(&format!(
            "schedule {schedule}: {writes} writes, {hand_overs} hand-overs, {taken_from_the_dead} from the dead, so far"
        ));
    }
    shown.gaps.sort_by(f64::total_cmp);
    let (Some(longest), Some(half)) = (shown.gaps.last(), shown.gaps.get(shown.gaps.len() / 2)) else {
        bail!("the schedules show nothing: {shown:?}");
    };
    theatre.check_the_judge()?;
    println!(
        "{schedules} schedules of two releases on the lab from seed {first:#x}: {} writes, 0 double writers, {} hand-overs, gap p50 \
         {half:.2} s, max {longest:.2} s, 0 pods restarted",
        shown.writes, shown.hand_overs
    );
    Ok(())
}

impl<'a> Theatre<'a> {
    async fn open(place: &'a Place) -> Result<Self> {
        let began = place.stage().audit().mark()?;
        let release = |user| Release { user, overlaps: false, process: None, away: vec![(Timestamp::now(), None)] };
        place.apply(&[dummy::manifest_for(USERS[0], "shared", LEAST)]).await?;
        let cluster = place.cluster("shared")?;
        let commands = cluster.get().await?.spec.pod.commands;
        let questions = vec![commands.status.command, commands.sequence.command];
        let releases = USERS.map(release);
        let (flips, pods) = (vec![(Timestamp::now(), USERS[0])], Vec::new());
        let mut theatre = Self { place, cluster, releases, size: LEAST, flips, questions, pods, began };
        theatre.start(0).await?;
        theatre.start(1).await?;
        theatre.settled(0).await?;
        theatre.pods = theatre.members().await?;
        Ok(theatre)
    }

    /// Some things happen, at random moments; then all is quiet, and the cluster goes to the release that did not have it.
    async fn play(&mut self, dice: &mut Dice) -> Result<()> {
        let last = 1 - self.owner().await?;
        let mut hurt = false;
        for _ in 0..6 + dice.below(8) {
            self.something_happens(dice, &mut hurt).await?;
            let lonely = self.releases.iter().any(|release| release.process.is_none());
            let pause = match dice.below(10) {
                0..=3 => dice.below(200),
                // Long enough for a release that is gone to be taken for dead.
                4..=6 if lonely => 10_000 + dice.below(4_000),
                _ => dice.below(4_000),
            };
            tokio::time::sleep(Duration::from_millis(pause.into())).await;
        }
        self.start(last).await?;
        if self.releases[1 - last].overlaps {
            self.stop(1 - last, Signal::TERM).await?;
            self.releases[1 - last].overlaps = false;
        }
        self.start(1 - last).await?;
        self.flip(USERS[last]).await?;
        self.settled(last).await
    }

    async fn something_happens(&mut self, dice: &mut Dice, hurt: &mut bool) -> Result<()> {
        // What happens to the one that looks after the cluster says more.
        let index = if dice.chance(50) { self.owner().await? } else { dice.index(self.releases.len()) };
        let (signal, how) = if dice.chance(50) { (Signal::TERM, "SIGTERM") } else { (Signal::KILL, "SIGKILL") };
        let user = self.releases[index].user;
        let what = match dice.below(16) {
            0..=4 => {
                let now = self.flips.last().map_or(NOBODY, |(_, label)| *label);
                let other = if now == USERS[0] { USERS[1] } else { USERS[0] };
                let label = dice.pick(&[other, other, other, NOBODY]);
                self.flip(label).await?;
                format!("the label is {label}")
            }
            5 | 6 => {
                self.stop(index, signal).await?;
                let overlaps = dice.chance(70);
                self.releases[index].overlaps = overlaps;
                self.start(index).await?;
                format!("{user} has the selector of {}, after {how}", if overlaps { "both" } else { "its own" })
            }
            7 => {
                self.stop(index, signal).await?;
                self.start(index).await?;
                format!("{user} was restarted by {how}")
            }
            8 => {
                let (owner, other) = (self.owner().await?, 1 - self.owner().await?);
                self.stop(other, Signal::TERM).await?;
                self.releases[other].overlaps = true;
                self.start(other).await?;
                self.stop(owner, signal).await?;
                format!("{} is gone by {how}, {} has the selector of both", USERS[owner], USERS[other])
            }
            9 => {
                self.stop(index, signal).await?;
                format!("{user} is gone by {how}")
            }
            10 => {
                self.start(index).await?;
                format!("{user} is there")
            }
            11 | 12 => {
                self.size = LEAST + dice.below(MOST - LEAST + 1);
                self.cluster.scale(self.size).await?;
                format!("size {}", self.size)
            }
            13 if !*hurt => {
                *hurt = true;
                let member = dice.below(LEAST);
                self.place.shell(&self.cluster.pod(member), "rm -f /state/running").await?;
                format!("member {member} crashed")
            }
            14 => {
                let service = self.cluster.names.client_service();
                // It may be gone since the last time.
                self.place.api::<Service>().delete(&service, &DeleteParams::default()).await.map(drop).or_else(missing)?;
                "the Service is gone".to_owned()
            }
            _ => {
                let interval = format!("{}s", 10 + dice.below(20));
                let labels = json!({ "e2e.windlass.dev/note": interval });
                self.cluster
                    .patch(&json!({ "metadata": { "labels": labels }, "spec": { "reconcileInterval": interval } }))
                    .await?;
                format!("edited: {interval}")
            }
        };
        self.place.stage().say(&what);
        Ok(())
    }

    async fn flip(&mut self, label: &'static str) -> Result<()> {
        if self.flips.last().is_none_or(|(_, last)| *last != label) {
            self.flips.push((Timestamp::now(), label));
            self.cluster.patch(&json!({ "metadata": { "labels": { OWN: label } } })).await?;
        }
        Ok(())
    }

    async fn start(&mut self, index: usize) -> Result<()> {
        let release = &mut self.releases[index];
        if release.process.is_some() {
            return Ok(());
        }
        let (user, namespace) = (release.user, self.place.namespace());
        let selector = release.overlaps.then(|| format!("{OWN} in ({}, {})", USERS[0], USERS[1]));
        let order = Order { user, groups: &[TOLD_IN_FULL], release: user, namespace, own: user, selector, server: None };
        release.process = Some(self.place.stage().start_operator(&order).await?);
        if let Some((_, until)) = release.away.last_mut() {
            *until = Some(Timestamp::now());
        }
        Ok(())
    }

    async fn stop(&mut self, index: usize, signal: Signal) -> Result<()> {
        let release = &mut self.releases[index];
        if let Some(mut process) = release.process.take() {
            release.away.push((Timestamp::now(), None));
            process.signal(signal)?;
            process.ended().await?;
        }
        Ok(())
    }

    /// A release as it is written in a claim.
    fn claim_of(&self, user: &str) -> String {
        format!("{}/{user}", self.place.namespace())
    }

    async fn owner(&self) -> Result<usize> {
        let claim = self.cluster.logbook().await?.spec.claim.context("nobody has claimed the cluster")?;
        let owner = USERS.iter().position(|user| self.claim_of(user) == claim.release);
        owner.with_context(|| format!("the cluster is claimed by a stranger: {claim:?}"))
    }

    /// Waits until this release looks after a cluster that is Ready.
    async fn settled(&mut self, index: usize) -> Result<()> {
        let release = self.claim_of(USERS[index]);
        wait_for(&format!("the cluster is {release}'s"), LONG, async || {
            let claim = self.cluster.logbook().await?.spec.claim.context("nobody has claimed it")?;
            ensure!(claim.release == release && !claim.released, "it is claimed by {claim:?}");
            Ok(())
        })
        .await?;
        for member in 0..self.size {
            self.cluster.wait_until_runs(member).await?;
        }
        self.cluster.wait_until_ready(self.size).await?;
        self.releases.iter_mut().filter_map(|release| release.process.as_mut()).try_for_each(Operator::check)
    }

    /// The lives of the members that every size has.
    async fn members(&self) -> Result<Vec<(String, String, i32)>> {
        let always = self.cluster.pods(LEAST);
        let mut pods = self.place.api::<Pod>().list(&ListParams::default()).await?.items;
        let restarted = lives(&pods).into_iter().find(|(.., restarts)| *restarts > 0);
        ensure!(restarted.is_none(), "a container was restarted: {restarted:?}");
        pods.retain(|pod| always.contains(&pod.name_any()));
        Ok(lives(&pods))
    }

    /// Everything that both releases did since the cluster was made, and what else was asked for.
    fn deeds(&self) -> Result<(Vec<Entry>, Vec<Deed>)> {
        let entries = self.place.stage().audit().requests_in(self.place.namespace(), self.began)?;
        let deeds = writers::deeds(&entries, &USERS, self.place.namespace(), &self.questions)?;
        Ok((entries, deeds))
    }

    /// Had a write of this very history been the other release's, it would have been told: else the figures would say nothing.
    fn check_the_judge(&self) -> Result<()> {
        let (_, mut deeds) = self.deeds()?;
        let writes: Vec<usize> =
            (0..deeds.len()).filter(|place| deeds[*place].claim.is_none() && !deeds[*place].lost).collect();
        let mut found = 0;
        for place in &writes {
            let other = USERS.iter().map(|user| self.claim_of(user)).find(|release| *release != deeds[*place].by);
            let by = std::mem::replace(&mut deeds[*place].by, other.unwrap_or_default());
            found += usize::from(writers::judge(&deeds).is_err());
            deeds[*place].by = by;
        }
        self.place.stage().say(&format!("{found} of {} writes would be told, were they the other release's", writes.len()));
        // Those that were under way while the cluster changed hands without a version may have been either's.
        ensure!(found * 10 >= writes.len() * 9, "the judge is too kind");
        Ok(())
    }

    /// Judges everything since the cluster was made.
    async fn judge(&self) -> Result<Shown> {
        let (entries, deeds) = self.deeds()?;
        let tenures = writers::judge(&deeds)?;
        let now = self.members().await?;
        ensure!(now == self.pods, "a pod was restarted: they were {:?}, and are {now:?}", self.pods);
        let deleted =
            entries.iter().find(|it| is_ours(it) && it.verb == "delete" && it.resource() == "pods" && it.code() < 400);
        ensure!(deleted.is_none(), "a pod was deleted: {}", deleted.map(Entry::describe).unwrap_or_default());
        let mut shown = Shown { writes: deeds.len(), ..Shown::default() };
        for pair in tenures.windows(2) {
            let [former, next] = pair else { continue };
            if former.by != next.by {
                self.note(former, next, &mut shown)?;
            }
        }
        Ok(shown)
    }

    /// Notes a hand-over: how long the cluster was nobody's, or on its way.
    fn note(&self, former: &Tenure, next: &Tenure, shown: &mut Shown) -> Result<()> {
        shown.hand_overs += 1;
        let Some(given_up) = former.given_up else {
            ensure!(
                self.was_away(&former.by, former.taken, next.taken),
                "{} took the cluster from {}, which lived and had not given it up: {former:?}, {next:?}",
                next.by,
                former.by
            );
            shown.taken_from_the_dead += 1;
            return Ok(());
        };
        // From the last flip, when that is why; a release that came back with another selector gives up without one.
        let flip = self.flips.iter().rev().find(|(at, _)| *at < next.taken).filter(|(at, _)| *at > former.taken);
        let since = match flip {
            Some((at, _)) if *at < given_up && self.was_away(&former.by, *at, given_up) => given_up,
            Some((at, label)) if next.by == self.claim_of(label) => *at,
            // The label is not the new owner's any more: it was faster than the last flip.
            Some(_) => return Ok(()),
            None => given_up,
        };
        if !self.was_away(&next.by, since, next.taken) {
            shown.gaps.push(next.taken.duration_since(since).as_secs_f64());
        }
        Ok(())
    }

    /// Whether a release had no process at some moment between two.
    fn was_away(&self, release: &str, from: Timestamp, until: Timestamp) -> bool {
        let of_release = self.releases.iter().filter(|it| self.claim_of(it.user) == release);
        of_release.flat_map(|it| &it.away).any(|(left, back)| *left <= until && back.is_none_or(|back| back >= from))
    }
}

fn is_ours(entry: &Entry) -> bool {
    USERS.contains(&entry.user())
}

fn missing(error: kube::Error) -> Result<(), kube::Error> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        error => Err(error),
    }
}
