//! Whether the objects of a cluster have to be looked at again.
//!
//! Members answer all the time, and each answer is followed by a pass. Rendering every object and comparing it with what is there is most
//! of what a pass costs, and for nothing while none of what decides about it has changed. This only says whether something has: what the
//! objects should be, and whether they are, is for the kind to say.

use jiff::{SignedDuration, Timestamp};
use kube::core::ObjectMeta;
use windlass_core::kind::Options;

/// How long objects count as settled. Some of them depend on the time: certificates are renewed.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// Which state of which object it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Version {
    pub(crate) fn of(metadata: &ObjectMeta) -> Self {
        Self { uid: metadata.uid.clone(), resource_version: metadata.resource_version.clone() }
    }
}

/// What decides about objects, as it was at one time, by its versions: what is held is not packed.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) resource: Version,
    /// Of the children.
    pub(crate) edition: u64,
    pub(crate) logbook: Option<Version>,
    pub(crate) options: Options,
    pub(crate) since: Timestamp,
}

impl Rest {
    /// Whether nothing has changed until now.
    pub(crate) fn holds(&self, now: &Self) -> bool {
        self.resource == now.resource
            && self.edition == now.edition
            && self.logbook == now.logbook
            && self.options == now.options
            && (SignedDuration::ZERO..AGAIN).contains(&now.since.duration_since(self.since))
    }
}
