//! The objects of every component, as they should be: which of them are made now, how large a new set is, and where its partition
//! stands. What is in them is decided in `build`.

use windlass_api::tidb::{Component, keys};
use windlass_core::labels::TEMPLATE_INPUTS;
use windlass_core::likeness::{Answered, contains};
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::step::{Manifest, ObjectKind};
use windlass_core::views::ObjectView;

use super::build::{Claims, Inputs, Objects};
use super::deeds::{Deed, Task};
use super::order;
use super::plan::{Builder, Planner};
use super::scene::Scene;
use super::status::is_member_well;
use super::suspend;
use super::validate::Validated;
use super::walk::Walk;

/// What a component waits for before its first pod is made, if for anything.
fn is_awaited(scene: &Scene<'_>, component: Component) -> Option<String> {
    let spec = &scene.observed.resource.spec;
    let annotations = scene.observed.resource.metadata.annotations.as_ref();
    let volumes_ready = annotations.is_some_and(|all| all.contains_key(keys::TIKV_VOLUMES_READY));
    if spec.recovery_mode && component == Component::Tikv && !volumes_ready {
        return Some(format!(
            "the annotation {} says that its volumes are there, as recoveryMode is on",
            keys::TIKV_VOLUMES_READY
        ));
    }
    if spec.recovery_mode && component == Component::Tidb {
        return Some("recoveryMode is off".to_owned());
    }
    let serves = |other: Component| {
        let group = scene.group(other);
        match other {
            Component::Pd => scene.pd_serves(),
            _ => group.wanted() == 0 || group.pods.keys().any(|ordinal| is_member_well(scene, group, *ordinal)),
        }
    };
    let asked_for = |other: &Component| scene.group(*other).wish.is_some();
    let missing = order::made_after(component).iter().copied().filter(asked_for).find(|other| !serves(*other))?;
    Some(format!("{} serves", missing.title()))
}

/// How large a set is that is made: as the spec asks for, and with every member that is still on record. PD cannot be asked for members
/// that were not seen before it was stopped, and without them may have no majority: so every volume of its that is of use counts.
fn size_at_birth(scene: &Scene<'_>, component: Component) -> u16 {
    let (set, group) = (scene.names.set(component), scene.group(component));
    let members = scene.entries.members.iter().filter(|(_, entry)| !entry.left);
    let recorded = members.filter_map(|(pod, _)| Ordinal::of_pod(&set, pod));
    let of_use = group.claims.keys().copied().filter(|ordinal| component == Component::Pd && group.has_volumes(*ordinal));
    let least = recorded.chain(of_use).map(|ordinal| ordinal.get().saturating_add(1)).max();
    group.wanted().max(least.unwrap_or(0))
}

/// Whether a set would get another template. The server may write a template in another form, so one that is still as the server made it of
/// the same wishes is the same, whatever a comparison says.
fn changes_template(live: &ObjectView, wanted: &Manifest, answered: Option<&Answered>) -> bool {
    let wished = wanted.annotations.get(TEMPLATE_INPUTS).map(String::as_str);
    let same_wishes = live.meta.annotations.get(TEMPLATE_INPUTS) == wished;
    let untouched = answered.is_some_and(|answered| answered.is_of(live));
    !(same_wishes && (untouched || contains(&live.spec.value()["template"], &wanted.spec["template"])))
}

impl Planner<'_> {
    /// Makes the objects of a component so. Tells whether they are, and stay so until the custom resource, a child or the logbook changes.
    pub(super) fn objects(&mut self, cluster: &Validated, component: Component, build: Builder<'_>) -> bool {
        let suspended = suspend::is_asked(&self.scene, component);
        // What PD and servers say decides about objects only while pods are replaced, and before there is a set.
        let rests =
            !suspended && self.scene.group(component).live_set().is_some() && Walk::of(&self.scene, component) == Walk::Done;
        if rests && self.scene.observed.settled {
            return true;
        }
        let before = self.plan.len();
        let group = self.scene.group(component);
        let (set, birth) = (group.set, size_at_birth(&self.scene, component));
        let replicas = set.map_or(birth, |set| set.replicas);
        let partition = if suspended { replicas } else { self.roll(component) };
        let children = self.scene.observed.children;
        let inputs = Inputs { replicas, partition, children };
        let Some(mut objects) = build(cluster, component, &inputs) else { return false };
        let resting = replicas.max(self.scene.group(component).wanted());
        let is_newer = |objects: &Objects<Deed>| {
            let wanted = objects.applied.iter().find(|it| it.object.kind == ObjectKind::StatefulSet);
            let answered = wanted.and_then(|wanted| self.scene.observed.answered.get(&wanted.object));
            set.zip(wanted).is_some_and(|(set, wanted)| changes_template(&set.object, wanted, answered))
        };
        if partition < resting && is_newer(&objects) {
            // A newer template begins at the top: nothing of it may reach a pod before what that pod does was handed over.
            objects = build(cluster, component, &Inputs { partition: resting, ..inputs }).unwrap_or(objects);
            let message = format!("the pods of {} are replaced when their StatefulSet has their template", component.title());
            self.wait(reason!("RollingOut"), message, false);
        }
        let Objects { mut applied, removals, claims } = objects;
        self.plan.steps.extend(removals);
        if !self.makes_set(component, suspended) {
            applied.retain(|it| it.object.kind != ObjectKind::StatefulSet);
        }
        self.plan.apply(applied, children, self.scene.observed.answered);
        match claims {
            _ if suspended => {}
            Claims::AsAsked => {}
            Claims::Differ => self.recreate(component),
            Claims::Smaller(message) => self.wait(reason!("VolumeShrinkRefused"), message, true),
            Claims::Others(message) => self.wait(reason!("VolumesFixed"), message, true),
        }
        rests && self.plan.len() == before
    }

    /// Whether the set of a component is made, or kept as it should be.
    fn makes_set(&mut self, component: Component, suspended: bool) -> bool {
        let (title, set) = (component.title(), self.scene.group(component).set);
        match set {
            _ if suspended => {
                self.suspend(component);
                false
            }
            Some(set) if set.object.meta.deleting => {
                self.wait(reason!("Recreating"), format!("the StatefulSet of {title} is made again when it is gone"), false);
                false
            }
            Some(_) => true,
            None => match is_awaited(&self.scene, component) {
                Some(what) => {
                    self.wait(reason!("Starting"), format!("{title} is made when {what}"), false);
                    false
                }
                None => component != Component::Tiflash || self.has_placement_rules(),
            },
        }
    }

    /// TiFlash gets copies by rules, and by nothing else.
    fn has_placement_rules(&mut self) -> bool {
        let config = self.scene.pd.as_ref().ok().and_then(|heard| heard.seen.config.as_ref().ok());
        let Some(config) = config else {
            self.wait(reason!("Starting"), "TiFlash is made when PD told its settings", false);
            return false;
        };
        if !config.placement_rules && self.scene.group(Component::Tiflash).wanted() > 0 {
            self.pd_task("PD", None, Task::EnablePlacementRules, "TiFlash gets copies by rules only");
        }
        config.placement_rules
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_core::step::{ObjectRef, Owner};
    use windlass_core::views::{Compact, Meta};

    use super::*;

    fn template(value: Option<&str>) -> Value {
        json!({ "template": { "env": [{ "name": "SLOW_LOG_FILE", "value": value }] } })
    }

    #[rstest]
    #[case::as_it_was_written(Some("a"), "w1", None, false)]
    #[case::in_another_form_and_untouched(None, "w1", Some(7), false)]
    #[case::in_another_form_and_perhaps_touched(None, "w1", Some(6), true)]
    #[case::in_another_form_and_nobody_knows(None, "w1", None, true)]
    #[case::of_other_wishes(Some("a"), "w0", Some(7), true)]
    fn a_template_is_the_same_when_the_server_made_it_of_the_same_wishes(
        #[case] live: Option<&str>,
        #[case] wishes: &str,
        #[case] answered: Option<i64>,
        #[case] changes: bool,
    ) {
        let noted = |wishes: &str| BTreeMap::from([(TEMPLATE_INPUTS.to_owned(), wishes.to_owned())]);
        let meta = |generation| Meta { generation: Some(generation), annotations: noted(wishes).into(), ..Meta::default() };
        let view = |generation| ObjectView { meta: meta(generation), spec: Compact::of(&template(live)) };
        let wanted = Manifest {
            object: ObjectRef { kind: ObjectKind::StatefulSet, namespace: "shop".into(), name: "a-tidb".into() },
            labels: BTreeMap::new(),
            annotations: noted("w1"),
            owner: Owner { api_version: "v1".into(), kind: "A".into(), name: "a".into(), uid: "u".into() },
            spec: template(Some("a")),
            over: None,
            never_held: false,
        };
        let answered = answered.map(|generation| Answered::new(&wanted, &view(generation)));
        assert_eq!(changes_template(&view(7), &wanted, answered.as_ref()), changes);
    }
}
