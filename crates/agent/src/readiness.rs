//! Whether an instance may serve, from what is known of it. Pure; the order of the rules counts.

use std::time::Duration;

/// The two threads of a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replication {
    pub(crate) receiver: String,
    pub(crate) applier: String,
    pub(crate) receiver_error: u64,
    pub(crate) applier_error: u64,
}

/// What the server tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    /// The last clone on this server, where there was one.
    pub(crate) clone_state: Option<String>,
    pub(crate) read_only: bool,
    /// `Ok(None)`: it replicates from nobody.
    pub(crate) replication: Result<Option<Replication>, String>,
    /// When the last transaction that was received was committed at its origin; seconds since 1970, 0 when there is none.
    pub(crate) queued: f64,
    /// The same for the last one that was applied.
    pub(crate) applied: f64,
    /// How often the source said that it has nothing to send.
    pub(crate) heartbeats: u64,
    pub(crate) uptime: Duration,
}

impl Facts {
    /// How far applying is behind receiving, in seconds.
    pub(crate) fn delay(&self) -> f64 {
        (self.queued - self.applied).max(0.0)
    }

    /// Whether a delay means anything.
    pub(crate) fn is_replica(&self) -> bool {
        matches!(self.replication, Ok(Some(_)))
    }
}

/// The limits that are given on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Zero: no delay is too long.
    pub(crate) max_delay: Duration,
    /// How long after its start a replica is given to hear of a transaction.
    pub(crate) queueing_wait: Duration,
}

/// An answer to the probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
}

fn answer(status: u16, text: impl Into<String>) -> Answer {
    Answer { status, text: text.into() }
}

pub(crate) fn decide(facts: &Facts, limits: Limits) -> Answer {
    if let Some(state) = facts.clone_state.as_deref().filter(|state| *state != "Completed") {
        return answer(503, format!("the last clone is not complete: {state}"));
    }
    if !facts.read_only {
        return answer(200, "ok: writable");
    }
    let replication = match &facts.replication {
        Ok(Some(replication)) => replication,
        Err(why) => return answer(500, format!("the state of replication cannot be read: {why}")),
        Ok(None) => return answer(500, "read-only, and replicates from nobody"),
    };
    if replication.receiver != "Yes" || replication.applier != "Yes" {
        let Replication { receiver, applier, .. } = replication;
        return answer(503, format!("replication does not run: receiving {receiver:?}, applying {applier:?}"));
    }
    if replication.receiver_error != 0 || replication.applier_error != 0 {
        let Replication { receiver_error, applier_error, .. } = replication;
        return answer(503, format!("replication has errors: receiving {receiver_error}, applying {applier_error}"));
    }
    if limits.max_delay.is_zero() {
        return answer(200, "ok: replicates");
    }
    // Who received nothing may have all, or may still wait for the first word of its source. A sign of life says which: it comes when
    // there is nothing to send.
    if facts.queued == 0.0 && facts.heartbeats == 0 && facts.uptime < limits.queueing_wait {
        let uptime = facts.uptime.as_secs();
        return answer(
            503,
            format!("started {uptime} s ago, and neither a transaction nor a sign of the source was received since"),
        );
    }
    if facts.delay() >= limits.max_delay.as_secs_f64() {
        let (delay, most) = (facts.delay(), limits.max_delay.as_secs_f64());
        return answer(503, format!("{delay:.1} s behind, and {most} s is too much"));
    }
    answer(200, "ok: replicates")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn running() -> Replication {
        Replication { receiver: "Yes".into(), applier: "Yes".into(), ..Replication::default() }
    }

    /// A replica that is up to date.
    fn replica() -> Facts {
        Facts {
            clone_state: None,
            read_only: true,
            replication: Ok(Some(running())),
            queued: 1000.0,
            applied: 1000.0,
            heartbeats: 0,
            uptime: Duration::from_hours(1),
        }
    }

    fn with(change: impl FnOnce(&mut Facts)) -> Facts {
        let mut facts = replica();
        change(&mut facts);
        facts
    }

    fn threads(receiver: &str, applier: &str, receiver_error: u64, applier_error: u64) -> Facts {
        let replication = Replication { receiver: receiver.into(), applier: applier.into(), receiver_error, applier_error };
        with(|facts| facts.replication = Ok(Some(replication)))
    }

    #[rstest]
    #[case::up_to_date(replica(), 200)]
    #[case::clone_runs(with(|it| it.clone_state = Some("In Progress".into())), 503)]
    #[case::clone_failed_on_a_writable_server(with(|it| { it.clone_state = Some("Failed".into()); it.read_only = false }), 503)]
    #[case::clone_completed(with(|it| it.clone_state = Some("Completed".into())), 200)]
    #[case::primary(with(|it| { it.read_only = false; it.replication = Ok(None) }), 200)]
    #[case::fresh(with(|it| it.replication = Ok(None)), 500)]
    #[case::unreadable(with(|it| it.replication = Err("denied".into())), 500)]
    #[case::receiver_stopped(threads("No", "Yes", 0, 0), 503)]
    #[case::receiver_connects(threads("Connecting", "Yes", 0, 0), 503)]
    #[case::applier_stopped(threads("Yes", "No", 0, 0), 503)]
    #[case::receiver_error(threads("Yes", "Yes", 2003, 0), 503)]
    #[case::applier_error(threads("Yes", "Yes", 0, 1062), 503)]
    #[case::just_started(with(|it| { it.queued = 0.0; it.applied = 0.0; it.uptime = Duration::from_secs(59) }), 503)]
    #[case::nothing_to_send(with(|it| { it.queued = 0.0; it.applied = 0.0; it.heartbeats = 1; it.uptime = Duration::ZERO }), 200)]
    #[case::idle_for_long(with(|it| { it.queued = 0.0; it.applied = 0.0; it.uptime = Duration::from_mins(1) }), 200)]
    #[case::a_little_behind(with(|it| it.applied = 940.1), 200)]
    #[case::too_far_behind(with(|it| it.applied = 940.0), 503)]
    #[case::ahead(with(|it| it.applied = 2000.0), 200)]
    fn rules_of_readiness(#[case] facts: Facts, #[case] status: u16) {
        let limits = Limits { max_delay: Duration::from_mins(1), queueing_wait: Duration::from_mins(1) };
        let answer = decide(&facts, limits);
        assert_eq!(answer.status, status, "{}", answer.text);
    }

    #[test]
    fn without_a_limit_no_delay_counts() {
        let limits = Limits { max_delay: Duration::ZERO, queueing_wait: Duration::from_mins(1) };
        assert_eq!(decide(&with(|it| it.applied = 0.0), limits).status, 200);
        let started = with(|it| {
            it.queued = 0.0;
            it.applied = 0.0;
            it.uptime = Duration::ZERO;
        });
        assert_eq!(decide(&started, limits).status, 200);
        assert_eq!(decide(&threads("No", "Yes", 0, 0), limits).status, 503);
    }
}
