//! `status`: one cluster on one screen, now or until something is so.

use crate::arguments::{Global, OutputForm, Status, Wanted};
use crate::cluster::Cluster;
use crate::connect::Session;
use crate::error::Error;
use crate::follow::{Follow, Scope};
use crate::kinds::Target;
use crate::live::Waiting;
use crate::output::{Output, now};
use crate::render;
use crate::wait::{self, Verdict};

use super::printer::{Flow, Printer, watch};

/// One cluster on one screen.
pub(super) async fn status(global: &Global, options: &Status, output: &Output) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let session = Session::open(global).await?;
    let cluster = session.get(&target).await?;
    if options.watch {
        return follow(&session, &target, options, output).await;
    }
    let Some(wanted) = &options.wanted else {
        return print(output, options.form.output, &cluster);
    };
    let cluster = wait::until(&session, &target, options.timeout, output, "", |cluster| judge(cluster, wanted)).await?;
    print(output, options.form.output, &cluster)
}

fn print(output: &Output, form: OutputForm, cluster: &Cluster) -> Result<(), Error> {
    let view = cluster.status();
    match form {
        OutputForm::Json | OutputForm::Yaml => Output::print_form(form, &view),
        OutputForm::Table | OutputForm::Wide => {
            let width = output.terminal().map(|size| size.columns);
            Output::print(&render::status(&view, output.paint(), width, now()))
        }
    }
}

fn judge(cluster: &Cluster, wanted: &Wanted) -> Verdict {
    if holds(cluster, wanted) {
        return Verdict::Met;
    }
    let told = cluster.condition(&wanted.type_).map_or_else(
        || format!("{} is not told", wanted.type_),
        |told| format!("{} is {} ({}): {}", told.type_, told.status, told.reason, told.message),
    );
    let members = cluster.members();
    Verdict::NotYet(Waiting {
        what: format!("waiting until {} is {}={}", cluster.handle(), wanted.type_, wanted.status),
        members: Some((members.ready, members.wanted)),
        details: vec![told],
        ..Waiting::default()
    })
}

/// Whether a condition has the status, and says so of the spec as it is now.
fn holds(cluster: &Cluster, wanted: &Wanted) -> bool {
    cluster.condition(&wanted.type_).is_some_and(|told| told.status == wanted.status && cluster.is_current(&told))
}

async fn follow(session: &Session, target: &Target, options: &Status, output: &Output) -> Result<(), Error> {
    let mut printer = Printer::new(output, options.form.output);
    let follow = Follow::start(session, &Scope::one(session, target));
    let mut last = String::new();
    let watching = watch(follow, &mut printer, |printer, clusters| {
        let cluster = clusters.first().ok_or_else(|| Error::Gone(target.handle()))?;
        let view = cluster.status();
        last = format!("Ready is {} ({}): {}", view.cluster.ready, view.cluster.reason, view.cluster.message);
        let time = format!("{:.0}", now());
        let screen = |paint, width| render::status(&view, paint, width, now());
        printer.screen(&view, screen, || render::change_line(&view), &time)?;
        let met = options.wanted.as_ref().is_some_and(|wanted| holds(cluster, wanted));
        Ok(if met { Flow::End } else { Flow::GoOn })
    });
    // Without something to wait for, it ends when the person does.
    let limit = options.timeout.0.filter(|_| options.wanted.is_some());
    let (Some(limit), Some(wanted)) = (limit, &options.wanted) else {
        return watching.await;
    };
    match tokio::time::timeout(limit, watching).await {
        Ok(ended) => ended,
        Err(_) => Err(Error::NotMet(format!(
            "gave up after {}: {} is not {}={}; {last}",
            render::age::seconds(i64::try_from(limit.as_secs()).unwrap_or(i64::MAX)),
            target.handle(),
            wanted.type_,
            wanted.status
        ))),
    }
}
