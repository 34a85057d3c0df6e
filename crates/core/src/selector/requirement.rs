//! What a selector demands, how labels meet it, and how it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use super::parse::{InvalidSelector, parse};

/// A list of requirements that must all be met. The empty one selects everything.
///
/// Requirements are kept sorted and without repetition, so that two selectors that demand the
/// same in another order are equal and print the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// The selector that selects everything.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new() }
    }

    /// Puts requirements in their order.
    pub(super) fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort();
        requirements.dedup();
        Self { requirements }
    }

    /// Whether it selects everything, whatever the labels.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// What it demands.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl FromStr for Selector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self::of)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// One demand on one label. Made by parsing only, so that its words are valid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Requirement {
    pub(super) key: String,
    pub(super) test: Test,
}

/// What is asked of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// It is there (`key`).
    Exists,
    /// It is not there (`!key`).
    Absent,
    /// It has this value (`=` or `==`).
    Equals(String),
    /// It is not there, or it has another value (`!=`).
    Differs(String),
    /// It has one of these values (`in`).
    In(BTreeSet<String>),
    /// It is not there, or it has none of these values (`notin`).
    NotIn(BTreeSet<String>),
    /// It is a whole number above this one (`>`).
    Above(i64),
    /// It is a whole number below this one (`<`).
    Below(i64),
}

impl Requirement {
    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is asked of it.
    pub fn test(&self) -> &Test {
        &self.test
    }

    /// Whether these labels meet it.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|text| text.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Equals(wanted) => value == Some(wanted),
            Test::Differs(unwanted) => value != Some(unwanted),
            Test::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Test::NotIn(unwanted) => !value.is_some_and(|value| unwanted.contains(value)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::Exists => f.write_str(key),
            Test::Absent => write!(f, "!{key}"),
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::Differs(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", list(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", list(values)),
            Test::Above(bound) => write!(f, "{key}>{bound}"),
            Test::Below(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// Values between commas. The empty value alone gives `()`, which reads back as just that.
fn list(values: &BTreeSet<String>) -> String {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    values.join(",")
}
