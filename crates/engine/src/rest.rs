//! Whether the objects of a cluster have to be looked at again.
//!
//! Members answer all the time, and each answer is followed by a pass. Rendering every object and comparing it with what is there is most
//! of what a pass costs, and for nothing while none of what decides about it has changed. This only says whether something has: what the
//! objects should be, and whether they are, is for the kind to say.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use windlass_api::Logbook;
use windlass_core::kind::{Kind, Options};
use windlass_core::views::Children;

/// How long objects count as settled. Some of them depend on the time: certificates are renewed.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What decides about objects, as it was at one time. As long as these are held here nobody changes them in place, so the same address
/// is the same content.
pub(crate) struct Rest<K: Kind> {
    pub(crate) resource: Arc<K::Resource>,
    pub(crate) children: Arc<Children>,
    pub(crate) logbook: Option<Arc<Logbook>>,
    pub(crate) options: Options,
    pub(crate) since: Timestamp,
}

impl<K: Kind> Rest<K> {
    /// Whether nothing has changed until now.
    pub(crate) fn holds(&self, now: &Self) -> bool {
        Arc::ptr_eq(&self.resource, &now.resource)
            && Arc::ptr_eq(&self.children, &now.children)
            && self.logbook.as_ref().map(Arc::as_ptr) == now.logbook.as_ref().map(Arc::as_ptr)
            && self.options == now.options
            && (SignedDuration::ZERO..AGAIN).contains(&now.since.duration_since(self.since))
    }
}
