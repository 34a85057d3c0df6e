//! What can be said on the command line of `kubectl windlass`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use k8s_openapi::jiff::SignedDuration;
use windlass_core::lane::Lane;
use windlass_core::selector::Selector;

/// Looks at, pauses, resumes and scales the clusters that Windlass serves.
///
/// Exit codes: 0 done, 1 error, 2 usage, 3 condition not met (for example a pause that was not acknowledged in time).
#[derive(Debug, Parser)]
#[command(name = "kubectl-windlass", bin_name = "kubectl windlass", version)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// The namespace; that of the context when absent.
    #[arg(short, long, global = true, help_heading = "Global options", value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// The context of the kubeconfig.
    #[arg(long, global = true, help_heading = "Global options", value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The kubeconfig; KUBECONFIG, or ~/.kube/config, when absent.
    #[arg(long, global = true, help_heading = "Global options", value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// No colours, as with the variable NO_COLOR. There are none in a pipe anyway.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_color: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// All clusters of all kinds.
    List(List),
    /// One cluster on one screen: what it is, what is in hand, what is stalled and what to do.
    Status(Status),
    /// What runs, what comes next, and what a pause holds back: what will happen on resume.
    Plan(Look),
    /// Steps that could not be undone, announced ones, and used overrides; the newest last.
    Log(Look),
    /// Stops Windlass from changing a cluster, and waits until it has let go.
    Pause(Pause),
    /// Lets Windlass go on, and shows what it does.
    Resume(Resume),
    /// Changes the number of members, and waits until the cluster has settled.
    Scale(Scale),
    /// Gives every member a new pod, one after the other, and waits until all serve again.
    Restart(Restart),
    /// Lets the primary hand over to another member, and waits until that one takes writes.
    Switchover(Switchover),
    /// Who looks after a cluster; with no cluster, who looks after which.
    Owner(Owner),
    /// Prints a completion script.
    ///
    /// For `kubectl windlass <TAB>`, put what `completion kubectl` prints into an executable file `kubectl_complete-windlass` on PATH.
    Completion(Completion),
    /// What kubectl asks for on <TAB>.
    #[command(name = "__complete", hide = true)]
    Complete(Complete),
}

/// Names one cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterName {
    /// The cluster, such as `rss/harbour`; also `rss harbour`.
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    pub(crate) cluster: Vec<String>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Form {
    /// The form of the answer.
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: OutputForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputForm {
    /// For people.
    Table,
    /// For people with wide terminals.
    Wide,
    /// For programs.
    Json,
    /// For programs.
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Only clusters with these labels, in kubectl's grammar: `release=canary,tier in (a,b),!old`.
    #[arg(short = 'l', long, default_value = "", hide_default_value = true)]
    pub(crate) selector: Selector,
    /// Goes on telling: redraws on a terminal, one line per change in a pipe.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Look {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    /// Goes on telling: redraws on a terminal, one line per new entry in a pipe.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    /// Goes on telling: redraws on a terminal, one line per change in a pipe.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Watches until a condition holds: `ready`, `available`, `stalled=false`, any type of condition; ends with 3 if it does not in time.
    #[arg(long = "for", value_name = "CONDITION[=STATUS]")]
    pub(crate) wanted: Option<Wanted>,
    /// How long to watch with --for: `30s`, `5m`, `1h30m`; 0 is for ever.
    #[arg(long, value_parser = parse_limit, default_value = "10m")]
    pub(crate) timeout: Limit,
    #[command(flatten)]
    pub(crate) form: Form,
}

/// A condition that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) type_: String,
    pub(crate) status: &'static str,
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // `kubectl wait` writes `condition=Ready`.
        let text = text.strip_prefix("condition=").unwrap_or(text);
        let (type_, status) = text.split_once('=').unwrap_or((text, "true"));
        if type_.is_empty() || !type_.chars().all(|it| it.is_ascii_alphanumeric()) {
            return Err(format!("{type_:?} is no type of a condition"));
        }
        let known = ["True", "False", "Unknown"].into_iter().find(|it| it.eq_ignore_ascii_case(status));
        let status = known.ok_or_else(|| format!("{status:?} is none of true, false and unknown"))?;
        Ok(Self { type_: type_.to_owned(), status })
    }
}

/// How a change is made.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Change {
    /// Ends as soon as the change is asked for.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long to wait: `30s`, `5m`, `1h30m`; 0 is for ever.
    #[arg(long, value_parser = parse_limit, default_value = "10m")]
    pub(crate) timeout: Limit,
    /// `server`: the API server judges the change and does not keep it.
    #[arg(long, value_enum, default_value = "none", default_missing_value = "server", num_args = 0..=1, require_equals = true)]
    pub(crate) dry_run: DryRun,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// The change is made.
    None,
    /// The change is only judged.
    Server,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    #[command(flatten)]
    pub(crate) lanes: Lanes,
    /// Why, for your colleagues.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    #[command(flatten)]
    pub(crate) lanes: Lanes,
    #[command(flatten)]
    pub(crate) change: Change,
}

/// Which lanes are meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct Lanes {
    /// Only this lane; both when absent.
    #[arg(long = "lane", value_enum, value_name = "LANE", value_delimiter = ',')]
    lanes: Vec<LaneName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LaneName {
    /// Objects of Kubernetes.
    Resources,
    /// Members of the database, and what they are to each other.
    Clustering,
}

impl Lanes {
    /// The lanes, each once; none means that no one was named.
    pub(crate) fn named(&self) -> Vec<Lane> {
        let lane = |name: &LaneName| match name {
            LaneName::Resources => Lane::Resources,
            LaneName::Clustering => Lane::Clustering,
        };
        let mut lanes: Vec<Lane> = self.lanes.iter().map(lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

#[derive(Debug, Args)]
pub(crate) struct Scale {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    /// How many members there shall be.
    #[arg(long, value_name = "N")]
    pub(crate) replicas: u16,
    /// How many members may leave at a time, from now on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) in_parallelism: Option<u16>,
    /// How many members may come at a time, from now on.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) out_parallelism: Option<u16>,
    /// Waits and shows how it goes. That is what happens anyway, unless --no-wait is given.
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct Switchover {
    #[command(flatten)]
    pub(crate) cluster: ClusterName,
    /// Waits and shows how it goes. That is what happens anyway, unless --no-wait is given.
    #[arg(short, long, conflicts_with = "no_wait")]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) change: Change,
}

#[derive(Debug, Args)]
pub(crate) struct Owner {
    /// The cluster, such as `rss/harbour`; also `rss harbour`.
    #[arg(value_name = "KIND/NAME", num_args = 0..=2)]
    pub(crate) cluster: Vec<String>,
    /// In all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "cluster"])]
    pub(crate) all_namespaces: bool,
    #[command(flatten)]
    pub(crate) form: Form,
}

#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell, or `kubectl` for the script that kubectl itself looks for.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Kubectl,
}

#[derive(Debug, Args)]
pub(crate) struct Complete {
    /// The words so far; the last one is being typed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// How long to wait; without end when absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<Duration>);

fn parse_limit(text: &str) -> Result<Limit, String> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let parsed = seconds.or_else(|| Duration::try_from(text.parse::<SignedDuration>().ok()?).ok());
    let limit = parsed.ok_or_else(|| format!("{text:?} is no time: write for example 30s, 5m or 1h30m"))?;
    Ok(Limit((!limit.is_zero()).then_some(limit)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[rstest]
    #[case("0", None)]
    #[case("0s", None)]
    #[case("90", Some(90))]
    #[case("5m", Some(300))]
    #[case("1h30m", Some(5400))]
    fn limits_are_read_as_people_write_them(#[case] text: &str, #[case] seconds: Option<u64>) {
        assert_eq!(parse_limit(text), Ok(Limit(seconds.map(Duration::from_secs))));
    }

    #[rstest]
    #[case("-5m")]
    #[case("soon")]
    fn what_is_no_time_is_refused(#[case] text: &str) {
        assert!(parse_limit(text).unwrap_err().contains("30s"));
    }

    #[rstest]
    #[case("ready", Some(("ready", "True")))]
    #[case("condition=Ready", Some(("Ready", "True")))]
    #[case("Stalled=false", Some(("Stalled", "False")))]
    #[case("ready=maybe", None)]
    #[case("=true", None)]
    fn a_condition_to_wait_for_is_read(#[case] text: &str, #[case] expected: Option<(&str, &'static str)>) {
        let wanted = expected.map(|(type_, status)| Wanted { type_: type_.to_owned(), status });
        assert_eq!(text.parse::<Wanted>().ok(), wanted);
    }

    #[rstest]
    #[case(&["list", "-l", "a in (b"])]
    #[case(&["list", "-A", "-n", "x"])]
    #[case(&["status"])]
    #[case(&["scale", "rss/a"])]
    #[case(&["scale", "rss/a", "--replicas", "many"])]
    #[case(&["pause", "rss/a", "--lane", "fast"])]
    #[case(&["pause", "rss/a", "--dry-run=client"])]
    #[case(&["switchover", "mysql/a", "--watch", "--no-wait"])]
    #[case(&["restart"])]
    fn mistakes_of_usage_end_with_2(#[case] words: &[&str]) {
        let error = Arguments::try_parse_from(std::iter::once(&"kubectl-windlass").chain(words)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
    }
}
