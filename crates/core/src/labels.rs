//! The words that Windlass writes on objects, and the rules for label keys and values.
//!
//! Decides nothing about clusters. Every label, annotation and field manager lives here, so that
//! no other module spells one out.

#[cfg(test)]
mod tests;

/// Who made the object: [`MANAGED_BY_WINDLASS`], or what a kind's users know. The operator finds its objects by
/// [`KIND_LABEL`](crate::kind::KIND_LABEL).
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`].
pub const MANAGED_BY_WINDLASS: &str = "windlass";
/// The name of the custom resource that the object belongs to.
pub const INSTANCE: &str = "app.kubernetes.io/instance";
/// What the object is a part of. Selectors of some kinds rest on it.
pub const NAME: &str = "app.kubernetes.io/name";
/// The part of the cluster that the object serves.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// The name of a `ReplicatedStatefulSet`, on its pods; existing client Services select on it.
pub const APP: &str = "app";
/// `"true"` on everything of a `ReplicatedStatefulSet`; existing scripts select on it.
pub const RSS_OPERATOR_MANAGED: &str = "rss-operator-managed";
/// `"true"` on the pod of a member that serves, `"false"` on one that does not.
pub const RSS_ACTIVE_MEMBER: &str = "rss-active-member";

/// Closes the Resources lane while it is `"true"`.
pub const RESOURCES_PAUSED: &str = "windlass.dev/resources-paused";
/// Closes the Clustering lane while it is `"true"`.
pub const CLUSTERING_PAUSED: &str = "windlass.dev/clustering-paused";
/// Why somebody paused the cluster, in her own words.
pub const PAUSE_REASON: &str = "windlass.dev/pause-reason";
/// On a pod that was to be deleted and is not any more: when that had been announced. The note gives the pod another version, so that
/// a deletion that is still on its way is refused.
pub const SPARED: &str = "windlass.dev/spared";
/// `"true"` lets Windlass take over objects that another operator wrote.
pub const ADOPT: &str = "windlass.dev/adopt";
/// On an object that was taken over from somebody else.
pub const ADOPTED: &str = "windlass.dev/adopted";
/// On a `StatefulSet` that was taken over: the revision of its pods at that time. They need not be replaced for our labels' sake.
pub const AS_GOOD_AS: &str = "windlass.dev/as-good-as";
/// Says what an unproven entry of a logbook was, once: `windlass.dev/override.ENTRY: VALUE@LOGBOOK-UID`.
pub const OVERRIDE_PREFIX: &str = "windlass.dev/override.";
/// The hash of what of the custom resource reaches the pod template.
pub const TEMPLATE_INPUTS: &str = "windlass.dev/template-inputs";
/// The hash of what of the custom resource reaches the claim templates of a `StatefulSet`.
pub const CLAIM_INPUTS: &str = "windlass.dev/claim-inputs";
/// What a `ControllerRevision` of Windlass keeps; the value is [`KEEPS_TEMPLATE`].
pub const KEEPS: &str = "windlass.dev/keeps";
/// A rendered pod template.
pub const KEEPS_TEMPLATE: &str = "pod-template";
/// The `StatefulSet` whose template is kept.
pub const KEPT_FOR: &str = "windlass.dev/kept-for";
/// The newest edition of the logbook, noted on `StatefulSet`s so that an older copy is known for what it is.
pub const LOGBOOK_EDITION: &str = "windlass.dev/logbook-edition";
/// The hash of the labels that were copied from the custom resource.
pub const SYNCED_LABELS: &str = "windlass.dev/synced-labels";
/// The release that looks after a cluster, on its logbook: `NAMESPACE.NAME`.
pub const RELEASE: &str = "windlass.dev/release";
/// The hash of what was last applied; equal means that there is nothing to write.
pub const DESIRED_HASH: &str = "windlass.dev/desired-hash";
/// On a claim: what becomes of its volume when it is gone, as it was said to the volume ([`reclaim`](crate::reclaim)).
pub const RECLAIM_POLICY: &str = "windlass.dev/reclaim-policy";

/// Owns what Windlass wants of an object. The same for all releases, so that ownership passes
/// over when one release hands a cluster to another.
pub const FIELD_MANAGER: &str = "windlass";
/// Owns the labels that are copied from the custom resource to its `StatefulSet`s.
pub const FIELD_MANAGER_LABELS: &str = "windlass-labels";
/// Owns the status of the custom resource.
pub const FIELD_MANAGER_STATUS: &str = "windlass-status";

/// Whether a label of the custom resource is never copied to its objects, because selectors of
/// Windlass or of its users rest on it.
pub fn is_reserved(key: &str) -> bool {
    matches!(key, MANAGED_BY | INSTANCE | NAME | COMPONENT | APP) || key.starts_with("rss") || key.starts_with("windlass.dev/")
}

/// The longest name part of a label key, and the longest label value.
const LONGEST_NAME: usize = 63;
/// The longest prefix of a label key.
const LONGEST_PREFIX: usize = 253;

/// What is wrong with a label key or value, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at character {}", offset + 1)]
pub struct Flaw {
    /// How many characters come before the mistake.
    pub offset: usize,
    /// What should have been there.
    pub expected: &'static str,
}

/// Checks a label key: a name, or a DNS name, a slash and a name.
pub fn check_key(key: &str) -> Result<(), Flaw> {
    let Some((prefix, name)) = key.split_once('/') else {
        return check_name(key, 0);
    };
    check_prefix(prefix)?;
    check_name(name, prefix.chars().count() + 1)
}

/// Checks a label value: empty, or a name.
pub fn check_value(value: &str) -> Result<(), Flaw> {
    if value.is_empty() { Ok(()) } else { check_name(value, 0) }
}

fn check_name(name: &str, start: usize) -> Result<(), Flaw> {
    let flaw = |offset, expected| Err(Flaw { offset: start + offset, expected });
    let mut last = None;
    for (offset, character) in name.chars().enumerate() {
        if offset == 0 && !character.is_ascii_alphanumeric() {
            return flaw(0, "a letter or a digit");
        }
        if !character.is_ascii_alphanumeric() && !"-_.".contains(character) {
            return flaw(offset, "a letter, a digit, \"-\", \"_\" or \".\"");
        }
        if offset == LONGEST_NAME {
            return flaw(offset, "an end after at most 63 characters");
        }
        last = Some((offset, character));
    }
    match last {
        None => flaw(0, "a name of at least one character"),
        Some((offset, character)) if !character.is_ascii_alphanumeric() => {
            flaw(offset, "a letter or a digit as the last character")
        }
        Some(_) => Ok(()),
    }
}

fn check_prefix(prefix: &str) -> Result<(), Flaw> {
    let flaw = |offset, expected| Err(Flaw { offset, expected });
    let small = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let mut before = '.';
    for (offset, character) in prefix.chars().enumerate() {
        if !small(character) && !"-.".contains(character) {
            return flaw(offset, "a lower-case letter, a digit, \"-\" or \".\" before the \"/\"");
        }
        if !small(character) && before == '.' || character == '.' && before == '-' {
            return flaw(offset, "a lower-case letter or a digit");
        }
        if offset == LONGEST_PREFIX {
            return flaw(offset, "at most 253 characters before the \"/\"");
        }
        before = character;
    }
    if prefix.is_empty() {
        flaw(0, "a DNS name before the \"/\"")
    } else if small(before) {
        Ok(())
    } else {
        flaw(prefix.chars().count() - 1, "a lower-case letter or a digit before the \"/\"")
    }
}
