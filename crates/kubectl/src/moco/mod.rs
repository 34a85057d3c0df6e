//! `kubectl moco`: the verbs that users of MySQLCluster know, with the words that their scripts look for.
//!
//! Each verb writes what a person could write by hand, one annotation, and does not wait; `kubectl windlass` does.

mod arguments;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use serde_json::{Value, json};
use tokio::process::Command;
use windlass_api::mysql::{DEFAULT_REPLICAS, keys};

use crate::arguments::DryRun;
use crate::cluster::Cluster;
use crate::connect::Session;
use crate::error::Error;
use crate::kinds::Target;
use crate::output::Output;
use crate::verbs::completion;
use crate::{MOCO_COMPLETION_SCRIPT, change, complete};
use arguments::{Arguments, Credential, Mysql, Verb, What};

/// The kind, as `kubectl windlass` writes it.
const KIND: &str = "mysql";

/// The accounts that a person may use, and the keys of their passwords.
const ACCOUNTS: [(&str, &str); 3] =
    [("moco-readonly", "READONLY_PASSWORD"), ("moco-writable", "WRITABLE_PASSWORD"), ("moco-admin", "ADMIN_PASSWORD")];

/// The command line of `kubectl moco`, for the reference page.
pub fn moco_command() -> clap::Command {
    Arguments::command()
}

/// Runs `kubectl moco`.
pub async fn moco(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody is left to be told when this fails.
            let _ = error.print();
            // One code for every error, as scripts expect.
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    // Another crypto provider cannot be there: this is the program's first act.
    let _installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let output = Output::new(arguments.global.no_color);
    match run(arguments).await {
        Ok(code) => code,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            output.complain(&error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let Arguments { global, verb } = arguments;
    let verb = match verb {
        Verb::Completion(options) => {
            return completion(&options, Arguments::command(), MOCO_COMPLETION_SCRIPT).map(|()| ExitCode::SUCCESS);
        }
        Verb::Complete(options) => {
            return complete::answer(&Arguments::command(), &options.words, Some(KIND)).await.map(|()| ExitCode::SUCCESS);
        }
        verb => verb,
    };
    let session = Session::open(&global).await?;
    match verb {
        // Answered above: they need no server.
        Verb::Completion(_) | Verb::Complete(_) => Ok(ExitCode::SUCCESS),
        Verb::Mysql(options) => {
            let pod = pod(&session, &options).await?;
            let mut command = Command::new("kubectl");
            command.args(["exec", "--namespace", &session.namespace]);
            command.args(global.kubeconfig.iter().map(|path| format!("--kubeconfig={}", path.display())));
            command.args(global.context.iter().map(|context| format!("--context={context}")));
            command.args(flags(&options));
            command.args([&pod, "--container", "mysqld", "--", "mysql"]);
            command.arg(format!("--defaults-extra-file=/mysql-credentials/{}-my.cnf", options.account));
            let ended = command.args(&options.arguments).status().await;
            let status = ended.map_err(|error| Error::Call { act: "run kubectl exec".into(), why: error.to_string() })?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Verb::Credential(options) => {
            Output::print(&[credential(&session, &options).await?])?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Switchover { cluster } => switch_over(&session, &cluster).await.map(|()| ExitCode::SUCCESS),
        Verb::Stop(what) => annotate(&session, &what, true).await.map(|()| ExitCode::SUCCESS),
        Verb::Start(what) => annotate(&session, &what, false).await.map(|()| ExitCode::SUCCESS),
    }
}

fn flags(options: &Mysql) -> Vec<&'static str> {
    [(options.stdin, "--stdin"), (options.tty, "--tty")].into_iter().filter_map(|(is, flag)| is.then_some(flag)).collect()
}

async fn get(session: &Session, name: &str) -> Result<(Target, Cluster), Error> {
    let target = Target::parse(&[KIND.to_owned(), name.to_owned()])?;
    let cluster = session.get(&target).await?;
    Ok((target, cluster))
}

/// The pod of the instance that is meant.
async fn pod(session: &Session, options: &Mysql) -> Result<String, Error> {
    let (_, cluster) = get(session, &options.cluster).await?;
    instance(&cluster.object.data, &options.cluster, options.index)
}

fn instance(data: &Value, name: &str, index: i32) -> Result<String, Error> {
    let replicas = data["spec"]["replicas"].as_i64().unwrap_or(DEFAULT_REPLICAS.into());
    if i64::from(index) >= replicas {
        return Err(Error::Usage("index should be smaller than replicas".to_owned()));
    }
    let index = if index < 0 { data["status"]["currentPrimaryIndex"].as_i64().unwrap_or(0) } else { index.into() };
    Ok(format!("moco-{name}-{index}"))
}

async fn credential(session: &Session, options: &Credential) -> Result<String, Error> {
    let user = &options.account;
    let Some((_, key)) = ACCOUNTS.iter().find(|(account, _)| account == user) else {
        return Err(Error::Usage(format!("invalid user: {user}")));
    };
    if !["plain", "mycnf"].contains(&options.format.as_str()) {
        return Err(Error::Usage(format!("unknown format: {}", options.format)));
    }
    get(session, &options.cluster).await?;
    let name = format!("moco-{}", options.cluster);
    let password = session.secret(&name, key).await?;
    let file = || format!("[client]\nuser={user}\npassword=\"{password}\"");
    Ok(if options.format == "mycnf" { file() } else { password })
}

async fn switch_over(session: &Session, name: &str) -> Result<(), Error> {
    let (_, cluster) = get(session, name).await?;
    let (pod, annotation) = change::hand_over(&cluster)?;
    session.annotate_pod(&pod, annotation, "true", DryRun::None).await
}

async fn annotate(session: &Session, what: &What, stop: bool) -> Result<(), Error> {
    let (name, part, key) = match what {
        What::Clustering { cluster } => (cluster, "clustering", keys::CLUSTERING_STOPPED),
        What::Reconciliation { cluster } => (cluster, "reconciliation", keys::RECONCILIATION_STOPPED),
    };
    let (target, cluster) = get(session, name).await?;
    let has = cluster.object.metadata.annotations.as_ref().and_then(|all| all.get(key)).is_some_and(|value| value == "true");
    if has == stop {
        let is = if stop { "stopped" } else { "running" };
        return Output::print(&[format!("The {part} is already {is}.")]);
    }
    let value = if stop { json!("true") } else { Value::Null };
    let change = json!({ "metadata": { "annotations": { key: value } } });
    let act = format!("annotate {}", target.handle());
    session.patch(&target, &change, DryRun::None).await.map_err(|error| Error::call(act, &error))?;
    let done = if stop { "stopped" } else { "started" };
    Output::print(&[format!("{done} {part} of MySQLCluster \"{}/{name}\"", session.namespace)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_is_meant_unless_another_instance_is_named() {
        let data = json!({ "spec": { "replicas": 3 }, "status": { "currentPrimaryIndex": 2 } });
        assert_eq!(instance(&data, "shop", -1).unwrap(), "moco-shop-2");
        assert_eq!(instance(&data, "shop", 0).unwrap(), "moco-shop-0");
        assert!(instance(&data, "shop", 3).unwrap_err().to_string().contains("index should be smaller than replicas"));
        assert_eq!(instance(&json!({}), "shop", -1).unwrap(), "moco-shop-0");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
        let words = ["kubectl-moco", "mysql", "-u", "moco-writable", "-it", "shop", "--", "-e", "SELECT 1"];
        let Verb::Mysql(options) = Arguments::try_parse_from(words).unwrap().verb else { panic!("another verb") };
        assert_eq!(flags(&options), ["--stdin", "--tty"]);
        assert_eq!(options.arguments, ["-e", "SELECT 1"]);
    }
}
