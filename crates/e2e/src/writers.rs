//! Judges by the audit log that a cluster never had two writers.
//!
//! A claim lives in the logbook, so who wrote that last may write, until it gives the claim up or another release takes it. All objects
//! share one counter of versions, which tells in which order the server took the writes. Where an answer has no version, or one that
//! the write did not make (it changed nothing), the times of the request decide, and only what cannot have been in order is told:
//! requests that were under way at the same moment may have been taken either way. A claim whose answer was lost, because who made it
//! died meanwhile, may have been taken too.

use anyhow::{Context as _, Result, bail, ensure};
use jiff::Timestamp;
use serde_json::Value;

use crate::audit::Entry;

/// Something that a release did to a cluster.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Which release, as it is written in a claim.
    pub by: String,
    /// When the server received it.
    pub received: Timestamp,
    /// When the server was done with it.
    pub finished: Timestamp,
    /// The version that the object has by it, where that is told.
    pub version: Option<u64>,
    /// The claim, when it was a write to the logbook.
    pub claim: Option<Claim>,
    /// A write to the logbook of which it is not known whether it succeeded. Everything else did.
    pub lost: bool,
    /// The request in a few words.
    pub what: String,
}

/// A claim as a logbook has it after a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The release that looks after the cluster.
    pub release: String,
    /// Whether it gave the cluster up.
    pub released: bool,
}

/// A time in which one release looked after the cluster, and nobody else did.
#[derive(Clone, Debug)]
pub struct Tenure {
    /// Which release.
    pub by: String,
    /// The write that took the cluster, as a place in the deeds.
    first: usize,
    /// The write that ended it: its own, by which it gave the cluster up, or that of the next one.
    end: Option<usize>,
    /// When the cluster was taken.
    pub taken: Timestamp,
    /// When it was given up; absent when another release took it, or nobody has yet.
    pub given_up: Option<Timestamp>,
}

/// The writes and hooks among the requests of these users, whose releases have their names. Questions to members change nothing; nor
/// do Events, and a Lease is no part of a cluster.
pub fn deeds(entries: &[Entry], users: &[&str], release_namespace: &str, questions: &[Vec<String>]) -> Result<Vec<Deed>> {
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| users.contains(&entry.user())) {
        let hook = entry.command().is_some_and(|command| !questions.contains(&command));
        let write = entry.is_write() && !matches!(entry.resource().as_str(), "leases" | "events");
        let logbook = write && entry.resource() == "logbooks";
        let lost = entry.code() == 0 || entry.code() >= 500;
        let counts = if lost { logbook } else { (hook || write) && entry.code() < 400 };
        if !counts {
            continue;
        }
        let answer = entry.answer();
        let version = answer["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let claim = (logbook && !lost).then(|| read_claim(&answer["spec"]["claim"]));
        let claim = claim.transpose().with_context(|| format!("{} of {}", entry.describe(), entry.user()))?;
        found.push(Deed {
            by: format!("{release_namespace}/{}", entry.user()),
            received: entry.received(),
            finished: entry.finished(),
            version,
            claim,
            lost,
            what: entry.describe(),
        });
    }
    Ok(found)
}

fn read_claim(claim: &Value) -> Result<Claim> {
    let release = claim["release"].as_str().context("the audit log does not tell the claim")?.to_owned();
    Ok(Claim { release, released: claim["released"] == true })
}

/// Fails when there were two writers. `deeds` are those of all releases since the cluster was made.
pub fn judge(deeds: &[Deed]) -> Result<Vec<Tenure>> {
    let tenures = tenures(deeds)?;
    for deed in deeds.iter().filter(|deed| deed.claim.is_none() && !deed.lost) {
        let version = deed.version.filter(|version| is_made_by(*version, deed, deeds));
        let in_order = tenures.iter().filter(|tenure| tenure.by == deed.by).any(|tenure| match version {
            Some(version) => tenure.holds_version(version, deeds),
            None => tenure.may_hold(deed, deeds),
        });
        if !in_order && !may_hold_unknown(deed, deeds) {
            let times = format!("received {}, finished {}, version {:?}", deed.received, deed.finished, deed.version);
            bail!("{} wrote and did not hold the cluster: {} ({times})\n{}", deed.by, deed.what, story(deeds));
        }
    }
    Ok(tenures)
}

/// Whether a write has made this version, and not only found it there: nothing that the server had before it is newer.
fn is_made_by(version: u64, deed: &Deed, deeds: &[Deed]) -> bool {
    let claims = deeds.iter().filter(|other| other.claim.is_some());
    !claims.filter(|other| other.received < deed.received).any(|other| other.version > Some(version))
}

/// Whether a claim whose answer was lost can have made this deed one in order: nobody else has taken the cluster in between.
fn may_hold_unknown(deed: &Deed, deeds: &[Deed]) -> bool {
    let others = || deeds.iter().filter(|other| other.claim.is_some() && other.by != deed.by);
    deeds
        .iter()
        .filter(|lost| lost.lost && lost.by == deed.by && lost.received <= deed.finished)
        .any(|lost| !others().any(|other| other.received > lost.finished && other.finished < deed.received))
}

impl Tenure {
    fn holds_version(&self, version: u64, deeds: &[Deed]) -> bool {
        deeds[self.first].version < Some(version) && self.end.is_none_or(|end| Some(version) < deeds[end].version)
    }

    /// Not so when the deed was over before the cluster was taken, or began when it was already another's.
    fn may_hold(&self, deed: &Deed, deeds: &[Deed]) -> bool {
        deeds[self.first].received <= deed.finished && self.end.is_none_or(|end| deed.received <= deeds[end].finished)
    }
}

/// Reads the claims in the order in which the server took them.
fn tenures(deeds: &[Deed]) -> Result<Vec<Tenure>> {
    let mut claims = Vec::new();
    for (place, deed) in deeds.iter().enumerate() {
        if let Some(claim) = &deed.claim {
            ensure!(claim.release == deed.by, "{} wrote the claim of {}: {}", deed.by, claim.release, deed.what);
            let version = deed.version.with_context(|| format!("the audit log tells no version of {}", deed.what))?;
            claims.push((version, place, claim));
        }
    }
    claims.sort_by_key(|(version, ..)| *version);
    // A write that changed nothing has the version of the one before it.
    claims.dedup_by_key(|(version, ..)| *version);
    let mut found: Vec<Tenure> = Vec::new();
    for (_, place, claim) in claims {
        let deed = &deeds[place];
        match found.last_mut().filter(|tenure| tenure.end.is_none()) {
            Some(tenure) if tenure.by == claim.release && !claim.released => continue,
            Some(tenure) => {
                tenure.end = Some(place);
                tenure.given_up = (tenure.by == claim.release).then_some(deed.finished);
            }
            None => {}
        }
        if !claim.released {
            found.push(Tenure { by: claim.release.clone(), first: place, end: None, taken: deed.finished, given_up: None });
        }
    }
    Ok(found)
}

/// All deeds, one a line, for whoever has to find out what happened.
fn story(deeds: &[Deed]) -> String {
    let line = |deed: &Deed| {
        let claim = deed.claim.as_ref().map(|claim| if claim.released { " gives up" } else { " holds" }).unwrap_or_default();
        format!("  {:>9} {} {}{claim}", deed.version.map(|version| version.to_string()).unwrap_or_default(), deed.by, deed.what)
    };
    deeds.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "ops/one";
    const TWO: &str = "ops/two";

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn write(by: &str, (received, finished): (i64, i64), version: impl Into<Option<u64>>) -> Deed {
        let (received, finished, what) = (at(received), at(finished), format!("write at {received}"));
        Deed { by: by.into(), received, finished, version: version.into(), claim: None, lost: false, what }
    }

    fn claim(by: &str, times: (i64, i64), version: u64, released: bool) -> Deed {
        Deed { claim: Some(Claim { release: by.into(), released }), ..write(by, times, version) }
    }

    /// One takes the cluster, writes, gives it up; two takes it.
    fn handed_over() -> Vec<Deed> {
        vec![
            claim(ONE, (0, 10), 1, false),
            write(ONE, (20, 30), 2),
            claim(ONE, (40, 50), 3, true),
            claim(TWO, (100, 110), 4, false),
            write(TWO, (120, 130), 5),
        ]
    }

    fn with(deed: Deed) -> Vec<Deed> {
        let mut deeds = handed_over();
        deeds.push(deed);
        deeds
    }

    #[test]
    fn a_hand_over_is_in_order_and_told_with_its_times() {
        let tenures = judge(&handed_over()).unwrap();
        let told: Vec<_> = tenures.iter().map(|it| (it.by.as_str(), it.taken, it.given_up)).collect();
        assert_eq!(told, [(ONE, at(10), Some(at(50))), (TWO, at(110), None)]);
    }

    #[test]
    fn a_second_writer_is_found() {
        let error = judge(&with(write(ONE, (140, 150), 6))).unwrap_err().to_string();
        assert!(error.starts_with("ops/one wrote and did not hold the cluster: write at 140"), "{error}");
    }

    #[test]
    fn one_that_never_had_the_cluster_is_found() {
        assert!(judge(&with(write("ops/three", (140, 150), 6))).is_err());
        assert!(judge(&[write(ONE, (20, 30), 2)]).is_err());
    }

    #[test]
    fn one_that_writes_after_it_gave_up_is_found_before_another_takes_the_cluster() {
        let mut deeds = handed_over();
        deeds.insert(3, write(ONE, (60, 70), None));
        assert!(judge(&deeds).is_err());
    }

    #[test]
    fn a_taker_that_did_not_wait_for_a_claim_to_be_given_up_makes_a_writer_of_the_former_owner() {
        let mut deeds = handed_over();
        deeds.remove(2);
        assert!(judge(&deeds).is_ok());
        deeds.push(write(ONE, (140, 150), 6));
        assert!(judge(&deeds).is_err());
    }

    #[test]
    fn versions_decide_between_requests_that_were_under_way_at_the_same_time() {
        let mut deeds = handed_over();
        deeds.remove(2);
        deeds.push(write(ONE, (95, 115), 3));
        assert!(judge(&deeds).is_ok());
        deeds.last_mut().unwrap().version = Some(6);
        assert!(judge(&deeds).is_err());
    }

    #[test]
    fn without_a_version_only_what_cannot_have_been_in_order_is_told() {
        let mut deeds = handed_over();
        deeds.remove(2);
        deeds.push(write(ONE, (105, 115), None));
        assert!(judge(&deeds).is_ok());
        deeds.push(write(ONE, (111, 115), None));
        assert!(judge(&deeds).is_err());
    }

    #[test]
    fn a_write_that_changed_nothing_is_judged_by_its_time_and_not_by_the_version_that_it_found() {
        assert!(judge(&with(write(TWO, (140, 150), 2))).is_ok());
        assert!(judge(&with(write(ONE, (140, 150), 2))).is_err());
    }

    #[test]
    fn a_claim_whose_answer_was_lost_may_have_been_taken_until_another_takes_the_cluster() {
        let lost = Deed { lost: true, ..write(ONE, (135, 139), None) };
        let mut deeds = with(lost);
        deeds.push(write(ONE, (140, 150), 6));
        assert!(judge(&deeds).is_ok());
        deeds.push(claim(TWO, (160, 170), 7, false));
        deeds.push(write(ONE, (180, 190), 8));
        assert!(judge(&deeds).is_err());
    }

    #[test]
    fn the_claim_of_another_is_not_written() {
        let mut stolen = claim(ONE, (140, 150), 6, false);
        stolen.by = TWO.into();
        assert!(judge(&with(stolen)).is_err());
    }
}
