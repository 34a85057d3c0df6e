//! `scale`: another number of members, and the wait until the cluster has settled.

use windlass_core::conditions::Common;

use crate::arguments::{Global, Scale};
use crate::change;
use crate::cluster::{Cluster, LANES};
use crate::connect::Session;
use crate::error::{Error, code};
use crate::kinds::Target;
use crate::output::Output;
use crate::render::paint::Tone;
use crate::wait::{self, Verdict};

use super::pause::unawaited;
use super::{awaited, conclude, held_by};

/// Asks for another size, and waits until the cluster has it.
pub(super) async fn scale(global: &Global, options: &Scale, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let session = Session::open(global).await?;
    // Before the size: the first members that leave are to leave at this pace.
    if let Some(pace) = change::pace(target.kind, options.in_parallelism, options.out_parallelism)? {
        match session.patch(&target, &pace, options.change.dry_run).await {
            Ok(_) => {}
            Err(error) if code(&error) == Some(404) => return Err(session.no_such(&target).await),
            Err(error) => return Err(Error::call(format!("change the pace of {}", target.handle()), &error)),
        }
    }
    match session.scale(&target, options.replicas, options.change.dry_run).await {
        Ok(()) => {}
        Err(error) if code(&error) == Some(404) => return Err(session.no_such(&target).await),
        Err(error) => return Err(Error::call(format!("scale {} to {}", target.handle(), options.replicas), &error)),
    }
    let handle = target.handle();
    let (form, replicas) = (options.change.form.output, options.replicas);
    let cluster = session.get(&target).await?;
    let held = held_by(&cluster, &LANES);
    if let Some(suffix) = unawaited(options.change.dry_run, options.change.no_wait) {
        if let Some(held) = &held {
            output.remark(Tone::Warn, held);
        }
        return conclude(output, form, &cluster, &format!("{handle} scale to {replicas} requested{suffix}"));
    }
    if let Some(held) = held {
        conclude(output, form, &cluster, &format!("{handle} scale to {replicas} requested"))?;
        return Err(Error::NotMet(held));
    }
    let hint = "; the request stays and is worked on";
    let cluster =
        wait::until(&session, &target, options.change.timeout, output, hint, |cluster| judge(cluster, replicas)).await?;
    let members = cluster.members();
    let sentence = format!("{handle} scaled to {replicas}: {} of {} members ready", members.ready, members.wanted);
    conclude(output, form, &cluster, &sentence)
}

/// Whether the cluster has this size, and nothing is left to do.
fn judge(cluster: &Cluster, replicas: u16) -> Verdict {
    let members = cluster.members();
    if members.wanted != usize::from(replicas) {
        let why = format!("somebody else asked {} for {} members meanwhile", cluster.handle(), members.wanted);
        return Verdict::Never(why);
    }
    if let Some(held) = held_by(cluster, &LANES) {
        return Verdict::Never(held);
    }
    let told = |type_| cluster.common(type_).filter(|told| cluster.is_current(told));
    let is = |type_, status: &str| told(type_).is_some_and(|told| told.status == status);
    // A cluster of no members is never ready; it has settled when they are gone and nothing is in hand.
    let stopped = replicas == 0 && members.running == Some(0) && is(Common::Progressing, "False");
    let complete = is(Common::Ready, "True") && members.ready == members.wanted;
    if stopped || complete {
        return Verdict::Met;
    }
    let what = format!("waiting until {} has settled at {replicas}", cluster.handle());
    Verdict::NotYet(awaited(what, Some((members.ready, members.wanted)), cluster))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::render::fixtures::{busy, cluster, condition, fresh, healthy, held};

    #[test]
    fn a_cluster_has_settled_when_it_is_ready_for_the_newest_spec() {
        assert!(matches!(judge(&healthy(), 3), Verdict::Met));
        let mut older = healthy();
        std::sync::Arc::make_mut(&mut older.object).metadata.generation = Some(5);
        assert!(matches!(judge(&older, 3), Verdict::NotYet(_)));
        assert!(matches!(judge(&fresh(), 3), Verdict::NotYet(_)));
    }

    #[test]
    fn no_members_at_all_is_a_size_too() {
        let gone = |running: u16, progressing: &str| {
            let conditions = [
                condition("Ready", "False", "Stopped", "spec.replicas is 0; the data is kept"),
                condition("Progressing", progressing, "Working", "stop rss-harbour-0"),
            ];
            cluster(json!({ "spec": { "replicas": 0 }, "status": { "replicas": running, "conditions": conditions } }), None)
        };
        assert!(matches!(judge(&gone(0, "False"), 0), Verdict::Met));
        assert!(matches!(judge(&gone(1, "False"), 0), Verdict::NotYet(_)));
        assert!(matches!(judge(&gone(0, "True"), 0), Verdict::NotYet(_)));
    }

    #[test]
    fn neither_a_pause_nor_another_size_is_waited_for() {
        let Verdict::Never(why) = judge(&held(), 4) else { panic!("waited for") };
        assert!(why.contains("Resources and Clustering") && why.contains("resume rss/harbour -n shop"), "{why}");
        let Verdict::Never(why) = judge(&healthy(), 5) else { panic!("waited for") };
        assert!(why.contains("for 3 members"), "{why}");
        assert!(matches!(judge(&busy(), 3), Verdict::Never(_)));
    }
}
