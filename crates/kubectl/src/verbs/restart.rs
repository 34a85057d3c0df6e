//! `restart`: a new pod for every member, one after the other, and the wait until all serve again.

use windlass_core::conditions::Common;

use crate::arguments::{Global, Restart};
use crate::change;
use crate::cluster::{Cluster, LANES};
use crate::connect::Session;
use crate::error::{Error, code};
use crate::kinds::Target;
use crate::output::{Output, now};
use crate::render::paint::Tone;
use crate::wait::{self, Verdict};

use super::pause::unawaited;
use super::{awaited, conclude, held_by};

/// Notes the wish in the spec, and waits until every pod is of the new template.
pub(super) async fn restart(global: &Global, options: &Restart, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let (handle, form) = (target.handle(), options.change.form.output);
    let Some(patch) = change::restart(target.kind, now()) else {
        let why = format!("the spec of {} has no place for annotations of pods; delete its pods one by one", target.kind.short);
        return Err(Error::Usage(why));
    };
    let session = Session::open(global).await?;
    let patched = match session.patch(&target, &patch, options.change.dry_run).await {
        Ok(patched) => patched,
        Err(error) if code(&error) == Some(404) => return Err(session.no_such(&target).await),
        Err(error) => return Err(Error::call(format!("restart {handle}"), &error)),
    };
    let cluster = session.get(&target).await?;
    let held = held_by(&cluster, &LANES);
    if let Some(suffix) = unawaited(options.change.dry_run, options.change.no_wait) {
        if let Some(held) = &held {
            output.remark(Tone::Warn, held);
        }
        return conclude(output, form, &cluster, &format!("{handle} restart requested{suffix}"));
    }
    if let Some(held) = held {
        conclude(output, form, &cluster, &format!("{handle} restart requested"))?;
        return Err(Error::NotMet(held));
    }
    let generation = patched.metadata.generation.unwrap_or_default();
    let hint = "; the request stays and is worked on";
    let judge = |cluster: &Cluster| judge(cluster, generation);
    let cluster = wait::until(&session, &target, options.change.timeout, output, hint, judge).await?;
    let members = cluster.members();
    conclude(output, form, &cluster, &format!("{handle} restarted: {} of {} members ready", members.ready, members.wanted))
}

/// Whether the cluster is ready, as the spec of this generation asks: then every pod is of its template.
fn judge(cluster: &Cluster, generation: i64) -> Verdict {
    if let Some(held) = held_by(cluster, &LANES) {
        return Verdict::Never(held);
    }
    let ready = cluster.common(Common::Ready).filter(|ready| ready.observed_generation.is_some_and(|of| of >= generation));
    if ready.is_some_and(|ready| ready.status == "True") {
        return Verdict::Met;
    }
    let members = cluster.members();
    let what = format!("waiting until {} is restarted", cluster.handle());
    Verdict::NotYet(awaited(what, Some((members.ready, members.wanted)), cluster))
}
