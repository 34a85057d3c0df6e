//! What each verb does: find, tell, ask, wait.

mod look;
mod pause;
mod printer;
mod restart;
mod scale;
mod status;
mod switchover;

use std::io;

use clap::CommandFactory as _;
use clap_complete::Shell as ScriptShell;
use windlass_core::conditions::Common;
use windlass_core::lane::Lane;

use crate::arguments::{Arguments, Completion, OutputForm, Shell, Verb};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::live::Waiting;
use crate::output::{Output, now, write_out};
use crate::view::WorkView;
use crate::{WINDLASS_COMPLETION_SCRIPT, complete, render};

/// Does what the command line says.
pub(crate) async fn run(arguments: Arguments, output: &Output) -> Result<(), Error> {
    let global = &arguments.global;
    match arguments.verb {
        Verb::List(options) => look::list(global, &options, output).await,
        Verb::Status(options) => status::status(global, &options, output).await,
        Verb::Plan(options) => look::plan(global, &options, output).await,
        Verb::Log(options) => look::log(global, &options, output).await,
        Verb::Pause(options) => pause::pause(global, &options, output).await,
        Verb::Resume(options) => pause::resume(global, &options, output).await,
        Verb::Scale(options) => scale::scale(global, &options, output).await,
        Verb::Restart(options) => restart::restart(global, &options, output).await,
        Verb::Switchover(options) => switchover::switchover(global, &options, output).await,
        Verb::Owner(options) => look::owner(global, &options, output).await,
        Verb::Completion(options) => completion(&options, Arguments::command(), WINDLASS_COMPLETION_SCRIPT),
        Verb::Complete(options) => complete::answer(&Arguments::command(), &options.words, None).await,
    }
}

/// Prints a script that completes a program's words in a shell.
pub(crate) fn completion(options: &Completion, mut program: clap::Command, of_kubectl: &str) -> Result<(), Error> {
    let shell = match options.shell {
        Shell::Bash => ScriptShell::Bash,
        Shell::Zsh => ScriptShell::Zsh,
        Shell::Fish => ScriptShell::Fish,
        Shell::Kubectl => return write_out(of_kubectl),
    };
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(shell, &mut program, name, &mut script);
    io::Write::write_all(&mut io::stdout(), &script).map_err(Error::Print)
}

/// Why nothing will happen, if a pause of one of these lanes is in the way.
fn held_by(cluster: &Cluster, lanes: &[Lane]) -> Option<String> {
    let closed: Vec<String> = lanes.iter().filter(|lane| cluster.is_pause_requested(**lane)).map(ToString::to_string).collect();
    let command = format!("kubectl windlass resume {} -n {}", cluster.handle(), cluster.namespace());
    (!closed.is_empty()).then(|| format!("held by a pause of {}: nothing happens before `{command}`", closed.join(" and ")))
}

/// What keeps a cluster from being as it was asked to be, a line each.
fn awaited(what: String, members: Option<(usize, usize)>, cluster: &Cluster) -> Waiting {
    let mut details = Vec::new();
    if let Some(stalled) = cluster.common(Common::Stalled).filter(|stalled| stalled.status == "True") {
        details.push(format!("stalled ({}): {}", stalled.reason, stalled.message));
    }
    let (work, others): (Vec<WorkView>, Vec<WorkView>) = cluster.work().into_iter().partition(|work| work.percent.is_some());
    details.extend(others.into_iter().map(|work| work.what));
    if details.is_empty() && work.is_empty() {
        details.push(cluster.readiness().message);
    }
    Waiting { what, members, work, details }
}

/// Tells of a cluster at the end of a change: a sentence for people, all of it for programs.
fn conclude(output: &Output, form: OutputForm, cluster: &Cluster, sentence: &str) -> Result<(), Error> {
    match form {
        OutputForm::Table => Output::print(&[sentence.to_owned()]),
        OutputForm::Wide => {
            let width = output.terminal().map(|size| size.columns);
            let mut lines = vec![sentence.to_owned(), String::new()];
            lines.extend(render::status(&cluster.status(), output.paint(), width, now()));
            Output::print(&lines)
        }
        OutputForm::Json | OutputForm::Yaml => Output::print_form(form, &cluster.status()),
    }
}
