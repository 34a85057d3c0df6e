//! `list`, `plan`, `log` and `owner`.

use crate::arguments::{Global, List, Look, OutputForm, Owner};
use crate::cluster::{Cluster, Logbook};
use crate::connect::Session;
use crate::error::Error;
use crate::follow::{Follow, Scope};
use crate::kinds::Target;
use crate::output::{Output, now};
use crate::render;
use crate::render::paint::Tone;
use crate::tell::owners_of;
use crate::view::{ListView, LogView, PlanView};

use super::printer::{Flow, Printer, Rows, print, watch};

/// All clusters.
pub(super) async fn list(global: &Global, options: &List, output: &Output) -> Result<(), Error> {
    let session = Session::open(global).await?;
    let namespace = (!options.all_namespaces).then_some(session.namespace.as_str());
    let selector = options.selector.to_string();
    let form = options.form.output;
    let tell = |clusters: &[Cluster]| {
        let views: Vec<_> = clusters.iter().map(Cluster::view).collect();
        let (table, keys) = render::list(&views, options.all_namespaces, form == OutputForm::Wide, now());
        let place = namespace.map(|namespace| format!(" in namespace {namespace:?}; -A looks everywhere")).unwrap_or_default();
        Rows { view: ListView { clusters: views }, table, keys, empty: format!("no clusters found{place}") }
    };
    if options.watch {
        let follow = Follow::start(&session, &Scope::all(namespace, &selector));
        let mut printer = Printer::new(output, form);
        return watch(follow, &mut printer, |printer, clusters| printer.rows(&tell(clusters)).map(|()| Flow::GoOn)).await;
    }
    let clusters = session.list(namespace, &selector).await?;
    warn_of_logbooks(output, &clusters);
    print(output, form, &tell(&clusters))
}

/// What a table cannot show: that logbooks could not be read at all, once.
fn warn_of_logbooks(output: &Output, clusters: &[Cluster]) {
    if let Some(Logbook::Unknown(why)) =
        clusters.iter().map(|cluster| &cluster.logbook).find(|it| matches!(it, Logbook::Unknown(_)))
    {
        output.remark(Tone::Warn, why);
    }
}

/// What runs, comes next and is held.
pub(super) async fn plan(global: &Global, options: &Look, output: &Output) -> Result<(), Error> {
    look(global, options, output, |cluster| {
        let view = cluster.plan();
        let (table, keys) = render::plan(&view);
        let empty = nothing(cluster, format!("{} has nothing to do: no step runs, waits or is held back", view.handle));
        Rows::<PlanView> { view, table, keys, empty }
    })
    .await
}

/// What could not be undone.
pub(super) async fn log(global: &Global, options: &Look, output: &Output) -> Result<(), Error> {
    look(global, options, output, |cluster| {
        let view = cluster.log();
        let (table, keys) = render::log(&view, options.form.output == OutputForm::Wide);
        let empty = nothing(cluster, format!("the log of {} is empty: nothing was done that cannot be undone", view.handle));
        Rows::<LogView> { view, table, keys, empty }
    })
    .await
}

/// Why there is nothing to tell.
fn nothing(cluster: &Cluster, known: String) -> String {
    match &cluster.logbook {
        Logbook::Read(_) => known,
        Logbook::Absent => format!("{} has no logbook: {}", cluster.handle(), cluster.owner().message),
        Logbook::Unknown(why) => format!("nothing is known of {}: {why}", cluster.handle()),
    }
}

async fn look<V: serde::Serialize>(
    global: &Global,
    options: &Look,
    output: &Output,
    tell: impl Fn(&Cluster) -> Rows<V>,
) -> Result<(), Error> {
    let target = Target::parse(&options.cluster.cluster)?;
    let session = Session::open(global).await?;
    let cluster = session.get(&target).await?;
    let form = options.form.output;
    if !options.watch {
        return print(output, form, &tell(&cluster));
    }
    let follow = Follow::start(&session, &Scope::one(&session, &target));
    watch(follow, &mut Printer::new(output, form), |printer, clusters| match clusters.first() {
        Some(cluster) => printer.rows(&tell(cluster)).map(|()| Flow::GoOn),
        None => Err(Error::Gone(target.handle())),
    })
    .await
}

/// Who looks after a cluster, or which release after which.
pub(super) async fn owner(global: &Global, options: &Owner, output: &Output) -> Result<(), Error> {
    let form = options.form.output;
    if !options.cluster.is_empty() {
        let target = Target::parse(&options.cluster)?;
        let view = Session::open(global).await?.get(&target).await?.owner_view();
        return match form {
            OutputForm::Json | OutputForm::Yaml => Output::print_form(form, &view),
            OutputForm::Table | OutputForm::Wide => Output::print(&render::owner(&view, output.paint(), now())),
        };
    }
    let session = Session::open(global).await?;
    let namespace = (!options.all_namespaces).then_some(session.namespace.as_str());
    let clusters = session.list(namespace, "").await?;
    let view = owners_of(&clusters);
    let table = render::owners(&view, form == OutputForm::Wide);
    let keys = view.releases.iter().map(|release| format!("{release:?}")).collect();
    let place = namespace.map(|namespace| format!(" in namespace {namespace:?}; -A looks everywhere")).unwrap_or_default();
    print(output, form, &Rows { view, table, keys, empty: format!("no clusters found{place}") })
}
