//! `switchover`: the primary hands over to another member, and the wait until that one takes writes.

use windlass_core::conditions::Common;
use windlass_core::lane::Lane;

use crate::arguments::{Global, Switchover};
use crate::change;
use crate::cluster::Cluster;
use crate::connect::Session;
use crate::error::Error;
use crate::kinds::Target;
use crate::output::Output;
use crate::render::paint::Tone;
use crate::wait::{self, Verdict};

use super::pause::unawaited;
use super::{awaited, conclude, held_by};

/// Asks the primary to hand over, and waits until another one takes writes.
pub(super) async fn switchover(global: &Global, options: &Switchover, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let (handle, form) = (target.handle(), options.change.form.output);
    let session = Session::open(global).await?;
    let cluster = session.get(&target).await?;
    let (former, annotation) = change::hand_over(&cluster)?;
    session.annotate_pod(&former, annotation, "true", options.change.dry_run).await?;
    let held = held_by(&cluster, &[Lane::Clustering]);
    if let Some(suffix) = unawaited(options.change.dry_run, options.change.no_wait) {
        if let Some(held) = &held {
            output.remark(Tone::Warn, held);
        }
        return conclude(output, form, &cluster, &format!("{handle} switchover from {former} requested{suffix}"));
    }
    if let Some(held) = held {
        conclude(output, form, &cluster, &format!("{handle} switchover from {former} requested"))?;
        return Err(Error::NotMet(held));
    }
    let hint = "; the request stays: the primary hands over as soon as it can";
    let judge = |cluster: &Cluster| judge(cluster, &former);
    let cluster = wait::until(&session, &target, options.change.timeout, output, hint, judge).await?;
    let primary = cluster.primary().unwrap_or_default();
    conclude(output, form, &cluster, &format!("{handle} switched over from {former} to {primary}"))
}

/// Whether another member is the primary and takes writes. Both are told in one write of the status.
fn judge(cluster: &Cluster, former: &str) -> Verdict {
    if let Some(held) = held_by(cluster, &[Lane::Clustering]) {
        return Verdict::Never(held);
    }
    let primary = cluster.primary();
    let changed = primary.as_deref().is_some_and(|primary| primary != former);
    if changed && cluster.common(Common::Available).is_some_and(|available| available.status == "True") {
        return Verdict::Met;
    }
    let what = match primary.filter(|_| changed) {
        Some(primary) => format!("waiting until {primary} of {} takes writes", cluster.handle()),
        None => format!("waiting until {former} of {} has handed over", cluster.handle()),
    };
    Verdict::NotYet(awaited(what, None, cluster))
}
