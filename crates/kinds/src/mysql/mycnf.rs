//! The my.cnf of the members of a `MySQLCluster`.
//!
//! Decides each line from what the user gave, what the cluster needs and how much memory there is; the same inputs always give
//! the same text. It does not judge the user's values, and it knows nothing of single members: what differs between them
//! (`server_id`, `admin_address`) is in files that the last line includes.
//!
//! What the cluster needs stands above what the user gave, and that stands above the defaults. An option counts as the same
//! under all names that the server knows it by: with dashes, with `loose_`, switched by `skip_` or `disable_`, or under its old
//! name. Else a second line under another name could undo the first one, depending on the order of the two.

mod memory;
mod names;
mod options;

use std::collections::BTreeMap;

use thiserror::Error;

pub use memory::memory_of;
use names::{is_name, normalised, root};
use options::{ANY_VERSION, CLIENT, DEFAULTS, ESTABLISHED, FORCED, MYSQL, OURS, STANDS_FOR};

/// The key of the user's ConfigMap whose value is taken over as it is.
pub const OPAQUE: &str = "_include";

const BUFFER_POOL_SIZE: &str = "innodb_buffer_pool_size";
const MEBIBYTE: u64 = 1 << 20;
const SMALLEST_BUFFER_POOL: u64 = 128 * MEBIBYTE;

/// Which servers must take the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// 8.0 and 8.4 only: letter by letter what clusters of the existing operator have. 9.7 does not start with it.
    Established,
    /// All from 8.0.28 to 9.7.
    AnyVersion,
}

/// A my.cnf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MyCnf {
    /// The file.
    pub text: String,
    /// What the user gave and what has no effect, in the order of its names.
    pub ignored: Vec<Ignored>,
}

impl MyCnf {
    /// Eight hex digits that stand for the text; the name of its ConfigMap ends with them. FNV-1a with 32 bits, as existing
    /// clusters have it.
    pub fn fingerprint(&self) -> String {
        let hash = self.text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        format!("{hash:08x}")
    }
}

/// An option of the user's that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its name, as the user wrote it.
    pub name: String,
    /// Why.
    pub because: Reason,
}

/// Why an option has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The cluster needs this value.
    Forced(&'static str),
    /// The cluster needs what the server does without this option.
    LeftOut,
    /// The user gave it under this name too.
    Repeated(String),
}

/// An option that cannot be a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the option {name:?} {problem}")]
pub struct InvalidOption {
    /// Its name, as the user wrote it.
    pub name: String,
    /// What is wrong and what is accepted.
    pub problem: &'static str,
}

/// Makes the my.cnf of a cluster from the data of the user's ConfigMap, and from the memory of a member in bytes, if it has a
/// request or a limit.
pub fn my_cnf(dialect: Dialect, given: &BTreeMap<String, String>, memory: Option<u64>) -> Result<MyCnf, InvalidOption> {
    let (chosen, ignored) = choose(given)?;
    let of_dialect = match dialect {
        Dialect::Established => ESTABLISHED,
        Dialect::AnyVersion => ANY_VERSION,
    };
    let pool_size = buffer_pool_size(memory).to_string();
    let defaults = DEFAULTS.iter().chain(of_dialect).copied().chain([(BUFFER_POOL_SIZE, pool_size.as_str())]);
    let mut settings: BTreeMap<&str, &str> = defaults.filter(|(name, _)| !is_replaced(name, &chosen)).collect();
    settings.extend(chosen.values().map(|option| (option.name.as_str(), option.value)));
    settings.extend(FORCED.iter().copied());

    let mut lines = vec!["[client]".to_owned()];
    lines.extend(written(CLIENT.iter().copied()));
    lines.push("[mysql]".to_owned());
    lines.extend(written(MYSQL.iter().copied()));
    lines.push("[mysqld]".to_owned());
    if let Some(opaque) = given.get(OPAQUE) {
        lines.push(opaque.clone());
        if has_sections(opaque) {
            // It ends in a section where the cluster's options would be lost.
            lines.push("[mysqld]".to_owned());
        }
    }
    lines.extend(written(settings.into_iter()));
    lines.push("!includedir /etc/mysql-conf.d\n".to_owned());
    Ok(MyCnf { text: lines.join("\n"), ignored })
}

/// Whether the user gave this option herself, under any of its names. Her opaque text is not looked into.
pub fn is_given(given: &BTreeMap<String, String>, name: &str) -> bool {
    let name = normalised(name);
    given.keys().any(|key| key != OPAQUE && root(&normalised(key)) == root(&name))
}

/// An option of the user's that counts.
struct Chosen<'a> {
    /// Its name, as the user wrote it.
    key: &'a str,
    /// Its name, as it is written to the file.
    name: String,
    value: &'a str,
}

/// The user's options by what they are about, and those that have no effect.
type Choice<'a> = (BTreeMap<String, Chosen<'a>>, Vec<Ignored>);

fn choose(given: &BTreeMap<String, String>) -> Result<Choice<'_>, InvalidOption> {
    let mut chosen: BTreeMap<String, Chosen<'_>> = BTreeMap::new();
    let mut ignored = Vec::new();
    for (key, value) in given.iter().filter(|(key, _)| *key != OPAQUE) {
        let invalid = |problem| InvalidOption { name: key.clone(), problem };
        if !is_name(key) {
            return Err(invalid("has no name that can be written: use letters, digits, \"-\", \"_\" and \".\""));
        }
        // A block of YAML ends with a line end.
        let value = value.trim_end_matches(['\r', '\n']);
        if value.contains(['\r', '\n']) {
            return Err(invalid("has a value of several lines: write one line, or put the text under \"_include\""));
        }
        let name = normalised(key);
        let about = root(&name);
        let forced = FORCED.iter().find(|(forced, _)| root(forced) == about);
        if let Some((_, value)) = forced {
            ignored.push(Ignored { name: key.clone(), because: Reason::Forced(value) });
        } else if OURS.contains(&about.as_str()) {
            ignored.push(Ignored { name: key.clone(), because: Reason::LeftOut });
        } else if let Some(earlier) = chosen.insert(about, Chosen { key, name, value }) {
            ignored.push(Ignored { name: earlier.key.to_owned(), because: Reason::Repeated(key.clone()) });
        }
    }
    ignored.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((chosen, ignored))
}

/// Whether a default gives way to what the user chose.
fn is_replaced(default: &str, chosen: &BTreeMap<String, Chosen<'_>>) -> bool {
    let about = root(default);
    chosen.contains_key(&about) || STANDS_FOR.iter().any(|(new, old)| *new == about && chosen.contains_key(*old))
}

/// Seven tenths of the memory, in whole MiB.
fn buffer_pool_size(memory: Option<u64>) -> u64 {
    let share = memory.unwrap_or(0) / 100 * 70;
    (share - share % MEBIBYTE).max(SMALLEST_BUFFER_POOL)
}

fn has_sections(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('['))
}

/// The lines of options, with an empty one after them.
fn written<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> impl Iterator<Item = String> {
    settings.map(|(name, value)| format!("{name} = {value}")).chain([String::new()])
}

#[cfg(test)]
#[path = "mycnf_tests.rs"]
mod tests;
