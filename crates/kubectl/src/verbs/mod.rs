//! What each verb does: find, tell, ask, wait.

mod look;
mod pause;
mod printer;
mod scale;
mod status;

use std::io;

use clap::CommandFactory as _;
use clap_complete::Shell as ScriptShell;

use crate::arguments::{Arguments, Completion, OutputForm, Shell, Verb};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::output::{Output, now, write_out};
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
        Verb::Owner(options) => look::owner(global, &options, output).await,
        Verb::Completion(options) => completion(&options),
        Verb::Complete(options) => complete::answer(&options.words).await,
    }
}

fn completion(options: &Completion) -> Result<(), Error> {
    let shell = match options.shell {
        Shell::Bash => ScriptShell::Bash,
        Shell::Zsh => ScriptShell::Zsh,
        Shell::Fish => ScriptShell::Fish,
        Shell::Kubectl => return write_out(WINDLASS_COMPLETION_SCRIPT),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kubectl-windlass", &mut script);
    io::Write::write_all(&mut io::stdout(), &script).map_err(Error::Print)
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
