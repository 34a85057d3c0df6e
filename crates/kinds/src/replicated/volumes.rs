//! On which volumes members keep their data, and what of it is lost.
//!
//! A member that served is remembered with the UIDs of its claims, or of its pod when it has none. If it comes back on another
//! volume, what it held is lost, whatever it says now: an empty volume must not pass for a member that never had anything. Only the
//! user can say that such data, or that of a member which cannot answer any more, is not awaited: for one member, bound to the
//! volume, once.

use jiff::Timestamp;
use windlass_api::ReplicatedStatefulSet;
use windlass_api::logbook::{LogbookSpec, Override};
use windlass_core::labels::OVERRIDE_PREFIX;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{Children, Meta};

use super::facts::Position;
use super::members::{Member, Members};
use super::validate::Validated;

/// What the user writes before the `@`.
const LOST: &str = "lost";
/// Stands for a volume of which nothing is known.
const NO_VOLUME: &str = "none";

/// What became of the volume of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Volume {
    /// It is another one than the member had when it served.
    pub(super) replaced: bool,
    /// The user said that the data is not awaited.
    pub(super) given_up: bool,
    /// The volume that the data was on.
    uid: String,
}

/// The claims of a member. The name of a claim is that of its template, and that of the pod.
pub(super) fn claims<'a>(
    children: &'a Children,
    cluster: &Validated,
    ordinal: Ordinal,
) -> impl Iterator<Item = &'a Meta> + use<'a> {
    let end = format!("-{}", ordinal.pod_name(&cluster.names.stateful_set()));
    children.claims.iter().filter(move |(name, _)| name.ends_with(&end)).map(|(_, claim)| &claim.meta)
}

/// The volume that a member has now: none when it is not there yet.
pub(super) fn present(children: &Children, cluster: &Validated, member: &Member<'_>) -> Option<String> {
    let claims: Vec<&Meta> = claims(children, cluster, member.ordinal).collect();
    // A pod is made after its claims. An older one has others, which are gone: so is it, and that is not known here yet.
    let made = member.pod.and_then(|pod| pod.meta.created);
    if made.is_some_and(|made| claims.iter().any(|claim| claim.created.is_some_and(|created| created > made))) {
        return None;
    }
    if claims.is_empty() {
        return member.pod.filter(|_| !cluster.has_claims()).map(|pod| pod.meta.uid.clone());
    }
    let uids: Vec<&str> = claims.iter().map(|claim| claim.uid.as_str()).collect();
    Some(uids.join(","))
}

/// The name of the entry that is about a member.
fn entry(ordinal: Ordinal) -> String {
    format!("member-{ordinal}")
}

impl Volume {
    pub(super) fn of(children: &Children, cluster: &Validated, remembered: &LogbookSpec, member: &Member<'_>) -> Self {
        let had = remembered.volumes.get(&member.ordinal.pod_name(&cluster.names.stateful_set()));
        let has = present(children, cluster, member);
        // Without claims the data may be anywhere, and another pod may find it again; an empty one did not.
        let telling = cluster.has_claims() || member.position() == Some(&Position::Empty);
        let replaced = telling && had.is_some() && has.is_some() && had != has.as_ref();
        let uid = had.cloned().or(has).unwrap_or_else(|| NO_VOLUME.to_owned());
        let about = |it: &&Override| it.entry == entry(member.ordinal) && it.uid == uid;
        let given_up = remembered.overrides.iter().filter(about).any(|it| !it.spent);
        Self { replaced, given_up, uid }
    }

    /// What a person types who knows that the data will not come back.
    pub(super) fn way_out(&self, ordinal: Ordinal) -> String {
        format!("{OVERRIDE_PREFIX}{}={LOST}@{}", entry(ordinal), self.uid)
    }
}

/// Remembers the volumes of all who serve, and forgets those of members that left for good. Nobody is forgotten because he joins a
/// cluster that is believed to run: it may have ended since it was last asked.
pub(super) fn remember(
    children: &Children,
    cluster: &Validated,
    members: &Members<'_>,
    settled: bool,
    logbook: &mut LogbookSpec,
) {
    let set = cluster.names.stateful_set();
    for member in members.all.iter().filter(|member| member.serves()) {
        if let Some(volume) = present(children, cluster, member) {
            logbook.volumes.insert(member.ordinal.pod_name(&set), volume);
        }
        for used in logbook.overrides.iter_mut().filter(|it| it.entry == entry(member.ordinal)) {
            used.spent = true;
        }
    }
    if settled {
        let stays = |pod: &String| members.all.iter().any(|member| member.ordinal.pod_name(&set) == *pod);
        logbook.volumes.retain(|pod, _| stays(pod));
    }
}

/// Takes in what the user said of members whose data is lost. Each is bound to the volume, and taken once.
pub(super) fn give_up(
    resource: &ReplicatedStatefulSet,
    children: &Children,
    cluster: &Validated,
    members: &Members<'_>,
    logbook: &mut LogbookSpec,
    now: Timestamp,
) {
    let annotations = resource.metadata.annotations.as_ref();
    for member in members.all.iter().filter(|member| !member.serves()) {
        let name = entry(member.ordinal);
        let said = annotations.and_then(|all| all.get(&format!("{OVERRIDE_PREFIX}{name}")));
        let Some((LOST, uid)) = said.and_then(|said| said.rsplit_once('@')) else { continue };
        let used = logbook.overrides.iter().any(|it| it.entry == name && it.uid == uid);
        if !used && uid == Volume::of(children, cluster, logbook, member).uid {
            let (value, uid) = (LOST.to_owned(), uid.to_owned());
            logbook.overrides.push(Override { entry: name, value, uid, used: now, ..Override::default() });
        }
    }
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
