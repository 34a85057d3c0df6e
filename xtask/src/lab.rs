//! `cargo xtask lab`: the lab by itself.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use windlass_lab::{DEFAULT_NAME, Lab, LabStatus, Progress, tidb};

use crate::example::Example;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The lab's name: several run at once under different names.
    #[arg(long, global = true, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,

    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Brings it up; costs nothing when it is up.
    Up,
    /// Ends it; leaves no process, mount, namespace or interface.
    Down,
    /// What runs, and since when.
    Status {
        /// The form of the answer.
        #[arg(short, long, value_enum, default_value = "table")]
        output: Output,
    },
    /// Prints the log of one part, or which logs there are.
    Logs {
        /// The part, such as `kube-apiserver`.
        component: Option<String>,
    },
    /// Imports an image archive.
    LoadImage {
        /// The archive, as `docker save` or this lab makes it.
        archive: PathBuf,
    },
    /// Makes the images of the real PD and of the stand-ins for the rest of TiDB, and imports them.
    LoadTidb,
    /// Prints the path of the administrator's kubeconfig.
    Kubeconfig,
    /// Runs a command with KUBECONFIG set, and with the lab's kubectl and helm and our plugins on PATH.
    Exec {
        /// The command and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Gets everything slow into the cache, without starting anything.
    Build,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

pub(crate) async fn run(options: Options) -> Result<()> {
    let lab = Lab::named(&options.name)?;
    match options.action {
        Action::Up => up(&lab).await,
        Action::Down => down(&options.name).await,
        Action::Status { output } => status(&lab, output).await,
        Action::Logs { component } => logs(&lab, component.as_deref()),
        Action::LoadImage { archive } => {
            Progress::new().step(format!("loading {}", archive.display()), lab.load_image(&archive)).await
        }
        Action::LoadTidb => tidb::load(&lab, &Progress::new()).await,
        Action::Kubeconfig => {
            println!("{}", lab.kubeconfig().display());
            Ok(())
        }
        Action::Exec { command } => exec(&lab, &command),
        Action::Build => build(&lab).await,
    }
}

async fn up(lab: &Lab) -> Result<()> {
    let began = std::time::Instant::now();
    lab.up(&Progress::new()).await?;
    println!("the lab {} is up ({})", lab.name(), crate::report::seconds(began.elapsed()));
    println!("export KUBECONFIG={}", lab.kubeconfig().display());
    println!("export PATH={}:{}:$PATH", std::env::join_paths(lab.path())?.display(), crate::plugin::directory()?.display());
    Ok(())
}

/// Ends the lab, and fails when it left something.
pub(crate) async fn down(name: &str) -> Result<()> {
    let lab = Lab::named(name)?;
    lab.down(&Progress::new()).await?;
    let left = lab.leftovers()?;
    if !left.is_empty() {
        bail!("the lab {name} left something on the machine:\n  {}", left.join("\n  "));
    }
    Ok(())
}

async fn status(lab: &Lab, output: Output) -> Result<()> {
    let status = lab.status().await;
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&status)?),
        Output::Table => print!("{}", table(&status)),
    }
    Ok(())
}

fn table(status: &LabStatus) -> String {
    use std::fmt::Write as _;

    let yes = |it: bool| if it { "yes" } else { "no" };
    let mut text = String::new();
    let _ = writeln!(text, "lab         {}", status.name);
    let _ = writeln!(text, "healthy     {}", yes(status.healthy));
    let _ = writeln!(text, "API ready   {}", yes(status.api_ready));
    let _ = writeln!(text, "node ready  {}", yes(status.node_ready));
    if let (Some(since), Some(address)) = (status.since, status.address) {
        let _ = writeln!(text, "since       {since:.0}\naddress     {address}\nkubeconfig  {}", status.kubeconfig.display());
    }
    if !status.processes.is_empty() {
        let _ = writeln!(text, "\n{:28}{:>8}  {:8}since", "part", "pid", "running");
    }
    for process in &status.processes {
        let _ = writeln!(text, "{:28}{:>8}  {:8}{:.0}", process.name, process.pid, yes(process.running), process.since);
    }
    text
}

fn logs(lab: &Lab, component: Option<&str>) -> Result<()> {
    let directory = lab.log_dir();
    let mut names: Vec<String> = std::fs::read_dir(&directory)
        .with_context(|| format!("the lab {} has no logs in {}: it was never up", lab.name(), directory.display()))?
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned()))
        .collect();
    names.sort();
    let Some(component) = component else {
        println!("logs are in {}; name one of: {}", directory.display(), names.join(" "));
        return Ok(());
    };
    if !names.iter().any(|name| name == component) {
        bail!("there is no log of {component:?}: name one of {}", names.join(", "));
    }
    let mut log = std::fs::File::open(directory.join(format!("{component}.log")))?;
    match std::io::copy(&mut log, &mut std::io::stdout()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("the log cannot be printed"),
        _ => Ok(()),
    }
}

/// What a program is given that talks to the lab: its kubeconfig, and a PATH on which the lab's programs and the plugin are.
pub(crate) fn environment(lab: &Lab) -> Result<(PathBuf, OsString)> {
    let kubeconfig = lab.kubeconfig();
    if !kubeconfig.exists() {
        bail!("the lab {} is not up: `cargo xtask lab up --name {0}` starts it", lab.name());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let ours = lab.path().into_iter().chain([crate::plugin::directory()?]);
    Ok((kubeconfig, std::env::join_paths(ours.chain(std::env::split_paths(&path)))?))
}

fn exec(lab: &Lab, command: &[String]) -> Result<()> {
    let [program, arguments @ ..] = command else { bail!("say what to run") };
    let (kubeconfig, path) = environment(lab)?;
    // Searched for on the new PATH, not on ours.
    let found = std::env::split_paths(&path).map(|directory| directory.join(program)).find(|candidate| candidate.is_file());
    let mut command = std::process::Command::new(found.unwrap_or_else(|| program.into()));
    command.args(arguments).env("KUBECONFIG", kubeconfig).env("PATH", path);
    // Only an error comes back: the command takes the place of this program, with its terminal and its exit code.
    Err(command.exec()).with_context(|| format!("cannot run {program:?}"))
}

async fn build(lab: &Lab) -> Result<()> {
    let progress = Progress::new();
    lab.build_artifacts(&progress).await?;
    for example in Example::value_variants() {
        example.build_image(&progress).await?;
    }
    Ok(())
}
