//! `pause` and `resume`: the request, and the wait for its answer.

use windlass_core::lane::Lane;

use crate::arguments::{DryRun, Global, Pause, Resume};
use crate::change;
use crate::cluster::{Cluster, LANES, answer};
use crate::connect::Session;
use crate::error::{Error, code};
use crate::kinds::Target;
use crate::live::Waiting;
use crate::output::Output;
use crate::render;
use crate::render::paint::Tone;
use crate::view::{LaneState, OwnerState, StepState};
use crate::wait::{self, Verdict};

use super::conclude;

/// How often a resume that rests on what was read is tried when others write at the same time.
const ATTEMPTS: usize = 5;

fn both(lanes: &[Lane]) -> Vec<Lane> {
    if lanes.is_empty() { LANES.to_vec() } else { lanes.to_vec() }
}

fn words(lanes: &[Lane]) -> String {
    lanes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Asks for a pause, and waits until it is acknowledged.
pub(super) async fn pause(global: &Global, options: &Pause, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let session = Session::open(global).await?;
    let lanes = options.lanes.named();
    let patch = change::pause(target.kind, &lanes, options.reason.as_deref());
    let patched = match session.patch(&target, &patch, options.change.dry_run).await {
        Ok(patched) => patched,
        Err(error) if code(&error) == Some(404) => return Err(session.no_such(&target).await),
        Err(error) => return Err(Error::call(format!("pause {}", target.handle()), &error)),
    };
    let lanes = both(&lanes);
    if let Some(suffix) = unawaited(options.change.dry_run, options.change.no_wait) {
        let sentence = format!("{} pause of {} requested{suffix}", target.handle(), words(&lanes));
        return conclude(output, options.change.form.output, &session.get(&target).await?, &sentence);
    }
    let generation = patched.metadata.generation.unwrap_or_default();
    let hint = "; the request stays: the pause is acknowledged as soon as what is awaited has ended";
    let judge = |cluster: &Cluster| judge(cluster, &lanes, generation, true);
    let cluster = wait::until(&session, &target, options.change.timeout, output, hint, judge).await?;
    let held = cluster.entries().map_or(0, |entries| entries.plan.held.len());
    if held > 0 {
        let command = format!("kubectl windlass plan {} -n {}", target.handle(), session.namespace);
        output.remark(Tone::Warn, &format!("{held} steps are held back; `{command}` shows them"));
    }
    conclude(output, options.change.form.output, &cluster, &format!("{} paused: {}", target.handle(), words(&lanes)))
}

/// What is said of a change that is not waited for.
pub(super) fn unawaited(dry_run: DryRun, no_wait: bool) -> Option<&'static str> {
    match (dry_run, no_wait) {
        (DryRun::Server, _) => Some(" (server dry run)"),
        (DryRun::None, true) => Some(""),
        (DryRun::None, false) => None,
    }
}

/// Whether the lanes answered: closed, or open, for the generation that asked for it.
fn judge(cluster: &Cluster, lanes: &[Lane], generation: i64, closed: bool) -> Verdict {
    let mut details = Vec::new();
    for lane in lanes {
        let type_: &str = answer(*lane).into();
        match cluster.common(answer(*lane)) {
            None => details.push(format!("{type_} is not told yet")),
            Some(told) => {
                let seen = told.observed_generation.is_none_or(|observed| observed >= generation);
                let so = if closed {
                    told.status == "False" && told.reason == "Paused"
                } else {
                    told.status == "True" && !["Pausing", "Resuming"].contains(&told.reason.as_str())
                };
                if !(so && seen) {
                    details.push(format!("{type_} is {} ({}): {}", told.status, told.reason, told.message));
                }
            }
        }
        if cluster.is_pause_requested(*lane) != closed {
            let other = if closed { "withdrawn" } else { "asked for again" };
            return Verdict::Never(format!(
                "somebody else interfered: the pause of {lane} of {} was {other}",
                cluster.handle()
            ));
        }
    }
    if details.is_empty() {
        return Verdict::Met;
    }
    let owner = cluster.owner();
    if owner.state != OwnerState::Claimed && cluster.conditions().is_empty() {
        details.push(owner.message);
    }
    let state = if closed { "paused" } else { "resumed" };
    let what = format!("waiting until {} is {state}", cluster.handle());
    Verdict::NotYet(Waiting { what, details, ..Waiting::default() })
}

/// Withdraws a pause, waits until both lanes work again, and shows what is done then.
pub(super) async fn resume(global: &Global, options: &Resume, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let session = Session::open(global).await?;
    let named = options.lanes.named();
    let generation = withdraw(&session, &target, &named, options.change.dry_run).await?;
    let lanes = both(&named);
    if let Some(suffix) = unawaited(options.change.dry_run, options.change.no_wait) {
        let sentence = format!("{} resume of {} requested{suffix}", target.handle(), words(&lanes));
        return conclude(output, options.change.form.output, &session.get(&target).await?, &sentence);
    }
    let judge = |cluster: &Cluster| judge(cluster, &lanes, generation, false);
    let hint = "; the request stays; is an operator running?";
    let cluster = wait::until(&session, &target, options.change.timeout, output, hint, judge).await?;
    conclude(output, options.change.form.output, &cluster, &format!("{} resumed: {}", target.handle(), words(&lanes)))?;
    tell_what_runs(output, options, &cluster)
}

/// Writes the request, and returns the generation that carries it. A patch that rests on what was read is made anew when
/// somebody else wrote meanwhile.
async fn withdraw(session: &Session, target: &Target, lanes: &[Lane], dry_run: DryRun) -> Result<i64, Error> {
    let mut attempt = 1;
    loop {
        let before = session.get(target).await?;
        match session.patch(target, &change::resume(&before, lanes), dry_run).await {
            Ok(patched) => return Ok(patched.metadata.generation.unwrap_or_default()),
            Err(error) if code(&error) == Some(409) && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(Error::call(format!("resume {}", target.handle()), &error)),
        }
    }
}

fn tell_what_runs(output: &Output, options: &Resume, cluster: &Cluster) -> Result<(), Error> {
    use crate::arguments::OutputForm::{Json, Yaml};
    if matches!(options.change.form.output, Json | Yaml) {
        return Ok(());
    }
    for lane in LANES.map(|lane| cluster.lane(lane)).iter().filter(|lane| lane.state != LaneState::Active && lane.requested) {
        output.remark(Tone::Warn, &format!("{} stays paused", lane.lane));
    }
    let mut plan = cluster.plan();
    // What a pause of the other lane holds back was held before, too.
    plan.steps.retain(|step| step.state != StepState::Held);
    if !plan.steps.is_empty() {
        return Output::print(&render::plan(&plan).0.lines(output.paint(), None));
    }
    let work = cluster.work();
    if work.is_empty() {
        return Output::print(&["nothing is in hand".to_owned()]);
    }
    Output::print(&work.iter().map(|work| format!("in hand: {}", render::paint::one_line(&work.what))).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::render::fixtures::{cluster, condition, held};

    fn asked(paused: bool, answers: &[(&str, &str)]) -> Cluster {
        let conditions: Vec<_> = ["ReconciliationActive", "ClusteringActive"]
            .iter()
            .zip(answers)
            .map(|(type_, (status, reason))| condition(type_, status, reason, "because"))
            .collect();
        cluster(json!({ "spec": { "paused": paused }, "status": { "conditions": conditions } }), None)
    }

    fn met(verdict: &Verdict) -> Option<bool> {
        match verdict {
            Verdict::Met => Some(true),
            Verdict::NotYet(_) => Some(false),
            Verdict::Never(_) => None,
        }
    }

    #[rstest]
    #[case(&[("False", "Paused"), ("False", "Paused")], 4, Some(true))]
    #[case(&[("False", "Paused"), ("True", "Pausing")], 4, Some(false))]
    #[case(&[("False", "Paused"), ("False", "Paused")], 5, Some(false))]
    #[case(&[("False", "Paused")], 4, Some(false))]
    #[case(&[], 4, Some(false))]
    fn a_pause_is_acknowledged_by_both_lanes_for_this_request(
        #[case] answers: &[(&str, &str)],
        #[case] generation: i64,
        #[case] expected: Option<bool>,
    ) {
        assert_eq!(met(&judge(&asked(true, answers), &LANES, generation, true)), expected);
    }

    #[rstest]
    #[case(&[("True", "Active"), ("True", "Active")], Some(true))]
    #[case(&[("True", "Active"), ("True", "Resuming")], Some(false))]
    #[case(&[("True", "Active"), ("False", "Paused")], Some(false))]
    #[case(&[("True", "Active"), ("True", "Pausing")], Some(false))]
    fn a_resume_is_answered_when_both_lanes_work(#[case] answers: &[(&str, &str)], #[case] expected: Option<bool>) {
        assert_eq!(met(&judge(&asked(false, answers), &LANES, 4, false)), expected);
    }

    #[test]
    fn one_lane_is_waited_for_alone() {
        let it = asked(true, &[("True", "Pausing"), ("False", "Paused")]);
        assert_eq!(met(&judge(&it, &[Lane::Clustering], 4, true)), Some(true));
    }

    #[test]
    fn a_request_that_somebody_else_took_back_is_not_waited_for() {
        assert_eq!(met(&judge(&asked(false, &[("True", "Active"), ("True", "Active")]), &LANES, 4, true)), None);
        assert_eq!(met(&judge(&held(), &LANES, 4, false)), None);
    }
}
