//! What may come next on the command line, for kubectl's completion of plugins.
//!
//! kubectl runs `kubectl_complete-windlass WORDS…`, and `kubectl_complete-moco WORDS…`, the last word being typed, and reads candidates, each on a line with its
//! description after a tab, and a directive at the end. Asks the server for names, and gives up quickly: a shell waits.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{Arg, Command};
use kube::config::Kubeconfig;

use crate::arguments::Global;
use crate::connect::Session;
use crate::error::Error;
use crate::kinds::{SERVED, Target};
use crate::output::write_out;

/// kubectl must not offer files.
const NO_FILES: u8 = 4;
/// As above, and no blank after the word: a name follows the slash.
const NO_FILES_NO_SPACE: u8 = 6;
const PATIENCE: Duration = Duration::from_secs(2);

/// What is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// One of these words, with their descriptions.
    Words(Vec<(String, String)>),
    Namespace,
    Context,
    /// A file; the shell knows better.
    File,
    /// `KIND/NAME`, or the name after `KIND`.
    Cluster {
        kind: Option<String>,
    },
    Nothing,
}

/// Prints what may come next. A program that knows one kind `only` takes bare names.
pub(crate) async fn answer(program: &Command, words: &[String], only: Option<&str>) -> Result<(), Error> {
    let typed = words.last().cloned().unwrap_or_default();
    let wanted = match (wanted(program, words), only) {
        (Wanted::Cluster { kind: None }, Some(kind)) => Wanted::Cluster { kind: Some(kind.to_owned()) },
        (Wanted::Cluster { kind: Some(_) }, Some(_)) => Wanted::Nothing,
        (wanted, _) => wanted,
    };
    let global = global(words);
    let mut directive = NO_FILES;
    let found: Vec<(String, String)> = match wanted {
        Wanted::Words(words) => words,
        Wanted::Nothing => Vec::new(),
        Wanted::File => {
            directive = 0;
            Vec::new()
        }
        Wanted::Context => bare(contexts(&global)),
        Wanted::Namespace => bare(quickly(namespaces(&global)).await),
        Wanted::Cluster { kind: Some(kind) } => bare(quickly(names(&global, kind)).await),
        Wanted::Cluster { kind: None } if typed.contains('/') => bare(quickly(handles(&global)).await),
        Wanted::Cluster { kind: None } => {
            directive = NO_FILES_NO_SPACE;
            SERVED.iter().map(|kind| (format!("{}/", kind.short), (kind.resource)().kind)).collect()
        }
    };
    let mut text = String::new();
    for (word, about) in found.iter().filter(|(word, _)| word.starts_with(&typed)) {
        let about = if about.is_empty() { String::new() } else { format!("\t{about}") };
        let _ = writeln!(text, "{word}{about}");
    }
    write_out(&format!("{text}:{directive}\n"))
}

fn bare(words: Vec<String>) -> Vec<(String, String)> {
    words.into_iter().map(|word| (word, String::new())).collect()
}

/// Decides from the words what is being typed.
fn wanted(root: &Command, words: &[String]) -> Wanted {
    let Some((typed, before)) = words.split_last() else { return Wanted::Nothing };
    let mut command = root;
    let mut positional: Vec<&String> = Vec::new();
    let mut expects: Option<&Arg> = None;
    for word in before {
        if expects.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            let option = option(root, command, word).filter(|_| !word.contains('='));
            expects = option.filter(|option| option.get_action().takes_values() && !option.is_require_equals_set());
        } else if let Some(found) = command.find_subcommand(word).filter(|_| positional.is_empty()) {
            command = found;
        } else {
            positional.push(word);
        }
    }
    if let Some(option) = expects {
        return value_of(option);
    }
    if typed.starts_with('-') {
        return Wanted::Words(options(root, command));
    }
    if command.has_subcommands() {
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        return Wanted::Words(shown.map(|it| (it.get_name().to_owned(), about(it.get_about()))).collect());
    }
    let place = command.get_positionals().next();
    match (place, positional.as_slice()) {
        (Some(place), []) if place.get_id() == "cluster" => Wanted::Cluster { kind: None },
        (Some(place), [kind]) if place.get_id() == "cluster" && !kind.contains('/') => {
            Wanted::Cluster { kind: Some((*kind).clone()) }
        }
        (Some(place), []) => value_of(place),
        _ => Wanted::Nothing,
    }
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(|text| text.to_string().lines().next().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// The options of a command, and those of all commands.
fn all<'a>(root: &'a Command, command: &'a Command) -> impl Iterator<Item = &'a Arg> {
    let global = root.get_arguments().filter(|option| option.is_global_set());
    let own = command.get_arguments().filter(|option| !option.is_global_set());
    own.chain(global).filter(|option| !option.is_positional())
}

fn option<'a>(root: &'a Command, command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    all(root, command).find(|option| match name.strip_prefix("--") {
        Some(long) => option.get_long() == Some(long),
        None => name.strip_prefix('-').and_then(|rest| rest.chars().next()).is_some_and(|it| option.get_short() == Some(it)),
    })
}

fn options(root: &Command, command: &Command) -> Vec<(String, String)> {
    let long = all(root, command).filter_map(|option| Some((format!("--{}", option.get_long()?), about(option.get_help()))));
    long.chain([("--help".to_owned(), "Print help".to_owned())]).collect()
}

fn value_of(option: &Arg) -> Wanted {
    match option.get_id().as_str() {
        "namespace" => Wanted::Namespace,
        "context" => Wanted::Context,
        "kubeconfig" => Wanted::File,
        _ => {
            let values = option.get_possible_values();
            let words = values.iter().map(|value| (value.get_name().to_owned(), about(value.get_help())));
            if values.is_empty() { Wanted::Nothing } else { Wanted::Words(words.collect()) }
        }
    }
}

/// What the words so far say about where to look.
fn global(words: &[String]) -> Global {
    let said = |long: &str, short: Option<&str>| {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == long || short == Some(word.as_str()) {
                return words.next().cloned();
            }
            if let Some(value) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value.to_owned());
            }
        }
        None
    };
    Global {
        namespace: said("--namespace", Some("-n")),
        context: said("--context", None),
        kubeconfig: said("--kubeconfig", None).map(Into::into),
        no_color: true,
    }
}

/// Nothing, when it cannot be known soon: a completion never complains.
async fn quickly(words: impl Future<Output = Option<Vec<String>>>) -> Vec<String> {
    tokio::time::timeout(PATIENCE, words).await.ok().flatten().unwrap_or_default()
}

fn contexts(global: &Global) -> Vec<String> {
    let file = match &global.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    file.map(|file| file.contexts.into_iter().map(|context| context.name).collect()).unwrap_or_default()
}

async fn namespaces(global: &Global) -> Option<Vec<String>> {
    Session::open(global).await.ok()?.namespaces().await.ok()
}

async fn handles(global: &Global) -> Option<Vec<String>> {
    let session = Session::open(global).await.ok()?;
    let clusters = session.list(Some(&session.namespace), "").await.ok()?;
    Some(clusters.iter().map(crate::cluster::Cluster::handle).collect())
}

async fn names(global: &Global, kind: String) -> Option<Vec<String>> {
    let meant = Target::parse(&[kind, "name".to_owned()]).ok()?.kind;
    let session = Session::open(global).await.ok()?;
    let clusters = session.list(Some(&session.namespace), "").await.ok()?;
    Some(clusters.iter().filter(|cluster| cluster.kind.short == meant.short).map(crate::cluster::Cluster::name).collect())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use rstest::rstest;

    use super::*;
    use crate::arguments::Arguments;

    fn at(line: &str) -> Wanted {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        wanted(&Arguments::command(), &words)
    }

    fn words(wanted: Wanted) -> Vec<String> {
        match wanted {
            Wanted::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn verbs_come_first_and_hidden_ones_never() {
        let verbs = words(at(""));
        assert!(verbs.contains(&"pause".to_owned()) && !verbs.contains(&"__complete".to_owned()), "{verbs:?}");
        assert_eq!(verbs, words(at("-n shop ")));
    }

    #[rstest]
    #[case("pause ", Wanted::Cluster { kind: None })]
    #[case("pause rss/h", Wanted::Cluster { kind: None })]
    #[case("pause rss ", Wanted::Cluster { kind: Some("rss".to_owned()) })]
    #[case("pause rss/harbour ", Wanted::Nothing)]
    #[case("pause -n shop ", Wanted::Cluster { kind: None })]
    #[case("pause --dry-run rss ", Wanted::Cluster { kind: Some("rss".to_owned()) })]
    #[case("status -n ", Wanted::Namespace)]
    #[case("status --context ", Wanted::Context)]
    #[case("--kubeconfig ", Wanted::File)]
    #[case("scale rss/a --replicas ", Wanted::Nothing)]
    fn the_place_decides_what_is_completed(#[case] line: &str, #[case] expected: Wanted) {
        assert_eq!(at(line), expected);
    }

    #[test]
    fn options_and_their_values_are_those_of_the_verb() {
        assert_eq!(words(at("pause rss/a --lane ")), ["resources", "clustering"]);
        assert_eq!(words(at("list -o ")), ["table", "wide", "json", "yaml"]);
        assert_eq!(words(at("completion ")), ["bash", "zsh", "fish", "kubectl"]);
        let options = words(at("pause -"));
        assert!(options.contains(&"--reason".to_owned()) && options.contains(&"--namespace".to_owned()), "{options:?}");
        assert!(!options.contains(&"--replicas".to_owned()), "{options:?}");
    }
}
