//! Who looks after a cluster: at most one release at a time, and in it one process.
//!
//! Decides from the claim in the logbook and from how long the owner's Lease did not move. Taking a claim is a write to the
//! logbook, by compare-and-swap; this module only says whether it may be tried.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::logbook::Claim;

/// Who we are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The release, as `namespace/name` of its Lease.
    pub release: String,
    /// Its version.
    pub version: String,
    /// This process.
    pub holder: String,
}

impl Identity {
    /// The release and its version, for records.
    pub fn signature(&self) -> String {
        format!("{}@{}", self.release, self.version)
    }
}

/// How we stand to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Our release holds it.
    Ours,
    /// Nobody holds it: it was never claimed.
    Unclaimed,
    /// Another release held it, and gave it up or died: it may be taken, after a fresh look at everything.
    Left,
    /// Another release holds it.
    Foreign {
        /// Which one.
        release: String,
        /// Its version.
        version: String,
    },
}

/// Judges a claim. `silent` is how long the owner's Lease did not change, or was missing, by our own clock; `patience` is the
/// Lease's period and the time of one call.
pub fn judge(claim: Option<&Claim>, me: &Identity, silent: Option<Duration>, patience: Duration) -> Standing {
    match claim {
        None => Standing::Unclaimed,
        Some(claim) if claim.release == me.release => Standing::Ours,
        Some(claim) if claim.released => Standing::Left,
        Some(_) if silent.is_some_and(|silent| silent >= patience) => Standing::Left,
        Some(claim) => Standing::Foreign { release: claim.release.clone(), version: claim.version.clone() },
    }
}

/// Whether this very process, in this version, holds the claim.
pub fn is_held_by(claim: Option<&Claim>, me: &Identity) -> bool {
    claim.is_some_and(|it| !it.released && it.release == me.release && it.version == me.version && it.holder == me.holder)
}

/// The claim as this process makes it. The epoch grows, so that what an earlier process sent late is refused. It is never below
/// the time in seconds: members remember the highest they were told, and a logbook that was lost, or put back from a backup, does not.
pub fn taken(claim: Option<&Claim>, me: &Identity, now: Timestamp) -> Claim {
    let time = u64::try_from(now.as_second()).unwrap_or(0);
    Claim {
        release: me.release.clone(),
        version: me.version.clone(),
        holder: me.holder.clone(),
        epoch: claim.map_or(0, |claim| claim.epoch).saturating_add(1).max(time),
        released: false,
        unknown: claim.map(|claim| claim.unknown.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const PATIENCE: Duration = Duration::from_secs(9);

    fn me() -> Identity {
        Identity { release: "ops/windlass".into(), version: "2".into(), holder: "pod-2".into() }
    }

    fn claim(release: &str, released: bool) -> Claim {
        let (release, version, holder) = (release.into(), "1".into(), "pod-1".into());
        Claim { release, version, holder, epoch: 7, released, ..Claim::default() }
    }

    fn foreign() -> Standing {
        Standing::Foreign { release: "ops/canary".into(), version: "1".into() }
    }

    #[rstest]
    #[case::never_claimed(None, None, Standing::Unclaimed)]
    #[case::our_own(Some(claim("ops/windlass", false)), None, Standing::Ours)]
    #[case::given_up(Some(claim("ops/canary", true)), None, Standing::Left)]
    #[case::not_looked_yet(Some(claim("ops/canary", false)), None, foreign())]
    #[case::alive(Some(claim("ops/canary", false)), Some(Duration::from_secs(8)), foreign())]
    #[case::dead(Some(claim("ops/canary", false)), Some(PATIENCE), Standing::Left)]
    fn standing(#[case] claim: Option<Claim>, #[case] silent: Option<Duration>, #[case] expected: Standing) {
        assert_eq!(judge(claim.as_ref(), &me(), silent, PATIENCE), expected);
    }

    #[test]
    fn another_process_of_the_release_has_to_take_it_anew_with_a_higher_epoch() {
        let old = claim("ops/windlass", false);
        assert!(!is_held_by(Some(&old), &me()));
        let new = taken(Some(&old), &me(), Timestamp::UNIX_EPOCH);
        assert!(is_held_by(Some(&new), &me()));
        assert_eq!(new.epoch, 8);
    }

    #[test]
    fn a_claim_without_a_past_is_above_all_that_came_before_a_logbook_was_lost() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(1_800_000_000).unwrap());
        let seen = taken(Some(&taken(None, &me(), early)), &me(), early).epoch;
        assert!(taken(None, &me(), late).epoch > seen);
        // A clock that went back does not make it smaller.
        let held = taken(None, &me(), late);
        assert_eq!(taken(Some(&held), &me(), early).epoch, held.epoch + 1);
    }

    #[test]
    fn an_epoch_that_cannot_grow_stays() {
        let last = Claim { epoch: u64::MAX, ..claim("ops/canary", true) };
        assert_eq!(taken(Some(&last), &me(), Timestamp::UNIX_EPOCH).epoch, u64::MAX);
    }

    #[test]
    fn what_was_given_up_is_not_held() {
        let mine = Claim { released: true, ..taken(None, &me(), Timestamp::UNIX_EPOCH) };
        assert!(!is_held_by(Some(&mine), &me()));
    }
}
