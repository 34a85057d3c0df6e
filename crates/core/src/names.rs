//! The names of the objects of a cluster.
//!
//! Decides what each object is called and whether the cluster's name leaves room for it. Existing
//! scripts know these names, so they never change.

#[cfg(test)]
mod tests;

/// The longest DNS label: pod host names, Services and label values end here.
pub const LONGEST_DNS_LABEL: usize = 63;

/// What the `StatefulSet` controller appends to the set's name in the label
/// `controller-revision-hash`: a dash and up to ten characters.
const REVISION_SUFFIX: usize = 11;

/// The longest name of a `StatefulSet` whose pods can be created. A dash and the longest ordinal
/// need less than the revision hash does.
pub const LONGEST_STATEFUL_SET: usize = LONGEST_DNS_LABEL - REVISION_SUFFIX;

const STATEFUL_SET_PREFIX: &str = "rss-";
const HEADLESS_SUFFIX: &str = "-svc";
const CLIENT_SUFFIX: &str = "-client";

/// The longest name of a `ReplicatedStatefulSet`.
pub const LONGEST_REPLICATED: usize = LONGEST_STATEFUL_SET - STATEFUL_SET_PREFIX.len();

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It is too long for an object derived from it.
    #[error(
        "the name {name:?} has {length} characters and may have at most {longest}: its StatefulSet {set:?} would get pods whose label \"controller-revision-hash\" is longer than 63; create the cluster under a shorter name"
    )]
    TooLong {
        /// The name of the cluster.
        name: String,
        /// How long it is.
        length: usize,
        /// How long it may be.
        longest: usize,
        /// The `StatefulSet` it would have.
        set: String,
    },
    /// It cannot be the name of a Service.
    #[error(
        "the name {name:?} cannot be part of a Service's name: it must begin with a lower-case letter and have only lower-case letters, digits and \"-\", not \"-\" at its end; create the cluster under such a name"
    )]
    NotAServiceName {
        /// The name of the cluster.
        name: String,
    },
}

/// The names of the objects of one `ReplicatedStatefulSet`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplicatedNames {
    cluster: String,
}

impl ReplicatedNames {
    /// Takes the name of the custom resource, if all its objects can be named after it.
    pub fn new(cluster: &str) -> Result<Self, InvalidName> {
        if !is_service_name(cluster) {
            return Err(InvalidName::NotAServiceName { name: cluster.to_owned() });
        }
        let names = Self { cluster: cluster.to_owned() };
        // The set has the tightest bound: both Services are shorter than 63 whenever it fits.
        if cluster.len() > LONGEST_REPLICATED {
            return Err(InvalidName::TooLong {
                name: cluster.to_owned(),
                length: cluster.len(),
                longest: LONGEST_REPLICATED,
                set: names.stateful_set(),
            });
        }
        Ok(names)
    }

    /// The name of the custom resource.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The `StatefulSet`.
    pub fn stateful_set(&self) -> String {
        format!("{STATEFUL_SET_PREFIX}{}", self.cluster)
    }

    /// The pod of one member.
    pub fn pod(&self, ordinal: crate::ordinals::Ordinal) -> String {
        ordinal.pod_name(&self.stateful_set())
    }

    /// The Service that gives every member a host name, whether it serves or not.
    pub fn headless_service(&self) -> String {
        format!("{}{HEADLESS_SUFFIX}", self.cluster)
    }

    /// The Service that leads clients to the members that serve.
    pub fn client_service(&self) -> String {
        format!("{}{CLIENT_SUFFIX}", self.cluster)
    }

    /// The `PodDisruptionBudget`.
    pub fn disruption_budget(&self) -> String {
        self.stateful_set()
    }

    /// The host name of a member inside its namespace, as hooks get it.
    pub fn host(&self, ordinal: crate::ordinals::Ordinal) -> String {
        format!("{}.{}", self.pod(ordinal), self.headless_service())
    }
}

/// Whether a Service's name may begin with this text.
fn is_service_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}
