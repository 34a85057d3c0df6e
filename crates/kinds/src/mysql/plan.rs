//! What to do next: objects, their size, the servers, and outdated pods. Each part by itself, so that one which waits does not stop
//! another: a spec that is refused, or a ConfigMap that is missing, never leaves servers without their operator.

use std::collections::BTreeMap;

use windlass_core::conditions::Reason;
use windlass_core::kind::{Observed, Options};
use windlass_core::ordinals::Ordinal;
use windlass_core::plan::{Plan, Waiting};
use windlass_core::reason;
use windlass_core::step::{Act, Manifest, ObjectKind, ObjectRef, Step};

use super::MySql;
use super::build::{self, Claims, DATA, Inputs, Objects, Renewal};
use super::deeds::Deed;
use super::remember::entries;
use super::removals;
use super::scene::Scene;
use super::validate::{Validated, validate};

/// A plan in the making.
pub(super) struct Planner<'a> {
    pub(super) scene: Scene<'a>,
    pub(super) plan: Plan<Deed>,
    /// Whether a task is to be done and is not in the plan: it was tried just now, and is tried again later.
    pub(super) put_off: bool,
}

pub(super) fn plan(observed: &Observed<'_, MySql>) -> Plan<Deed> {
    let remembered = observed.memory.entries();
    let scene = Scene::of(observed, entries(&remembered));
    let mut planner = Planner { scene, plan: Plan::default(), put_off: false };
    let trusted = planner.memory();
    planner.plan.settled = observed.settled || planner.settle();
    planner.servers(trusted);
    planner.protect();
    planner.roll();
    planner.plan
}

impl Planner<'_> {
    pub(super) fn wait(&mut self, reason: Reason, message: impl Into<String>, stalled: bool) {
        self.plan.waiting.push(Waiting { reason, message: message.into(), stalled });
    }

    pub(super) fn step(&mut self, act: Act<Deed>, why: impl Into<String>) {
        self.plan.steps.push(Step::new(act, why));
    }

    /// Whether what is remembered can carry a change of the primary.
    fn memory(&mut self) -> bool {
        let Some(why) = self.scene.observed.memory.lost().map(str::to_owned) else { return true };
        let message = format!(
            "{why}; no primary is chosen and none is opened to writes until every instance answered and exactly one of them takes writes, \
             or follows the server of spec.replicationSourceSecretName"
        );
        self.wait(reason!("LogbookLost"), message, true);
        false
    }

    /// Plans what the objects are to be, and how many instances. Returns whether all of that is so.
    fn settle(&mut self) -> bool {
        let before = self.plan.len();
        match validate(self.scene.observed.resource) {
            Ok(cluster) => {
                self.take_over(&cluster);
                self.grow(&cluster);
                self.objects(&cluster);
                self.size(&cluster);
            }
            Err(invalid) => self.wait(reason!("InvalidSpec"), invalid.to_string(), true),
        }
        // The certificate of one that follows a server elsewhere depends on what is heard of that.
        self.plan.len() == before && self.scene.observed.facts.outside.source.is_none()
    }

    fn objects(&mut self, cluster: &Validated) {
        if !self.scene.entries.has_credentials && self.scene.observed.children.tell_of_a_past() {
            let message = format!(
                "Secret {} is missing beside instances or volumes that know its passwords; restore it",
                self.scene.names.credentials()
            );
            if !self.scene.observed.children.secrets.contains_key(&self.scene.names.credentials()) {
                return self.wait(reason!("CredentialsLost"), message, true);
            }
        }
        if self.scene.observed.settings.agent_image.is_empty() {
            let message = "the operator was started without --agent-image, and so cannot say which program runs beside mysqld";
            return self.wait(reason!("AgentImageUnknown"), message, true);
        }
        // A set that somebody deleted comes back with every instance that may have data.
        let whole = if cluster.offline { 0 } else { cluster.replicas.max(self.instances_that_were()) };
        let size = self.scene.set.map_or(whole, |set| set.replicas);
        let observed = self.scene.observed;
        let none = BTreeMap::new();
        let options = match observed.options {
            Options::None => &none,
            Options::Read(options) => options,
            Options::Missing => {
                let name = observed.resource.spec.mysql_config_map_name.as_deref().unwrap_or_default();
                let message =
                    format!("ConfigMap {name} of spec.mysqlConfigMapName does not exist; the objects stay as they are");
                return self.wait(reason!("ConfigMapMissing"), message, true);
            }
            Options::Unknown(why) => return self.wait(reason!("ConfigMapUnknown"), why.clone(), false),
        };
        let inputs = Inputs {
            agent_image: &observed.settings.agent_image,
            server_id_base: self.scene.server_id_base(),
            size,
            options,
            credentials: observed.children.secrets.get(&self.scene.names.credentials()),
            remembered_credentials: self.scene.entries.has_credentials,
            certificate: observed.settings.signs_certificates.then(|| Renewal {
                now: observed.now,
                live: observed.children.secrets.get(&self.scene.names.certificate()),
                authority: observed.facts.outside.source.as_ref().and_then(|(it, _)| it.authority.as_deref()),
            }),
        };
        if let Err(error) = build::my_cnf(cluster, options) {
            self.wait(reason!("InvalidSettings"), error.to_string(), true);
        }
        let Objects { mut applied, removals, claims } = build::objects(cluster, &inputs, observed.children);
        self.plan.steps.extend(removals);
        self.plan.steps.extend(removals::of_no_use(&cluster.owner, &applied, observed.children));
        if self.scene.set.is_some_and(|set| set.object.meta.deleting) {
            applied.retain(|it| it.object.kind != ObjectKind::StatefulSet);
            let message = format!("StatefulSet {} is being deleted, and is made again when it is gone", self.scene.names.set());
            self.wait(reason!("Recreating"), message, false);
        }
        let credentials = self.scene.names.credentials();
        let makes_credentials = |it: &Manifest| it.object.kind == ObjectKind::Secret && it.object.name == credentials;
        if self.scene.set.is_none() && inputs.credentials.is_none() && applied.iter().any(makes_credentials) {
            // They are made once, before there is anything that knows them: a set whose passwords could not be written would wait for
            // them for ever.
            applied.retain(|it| it.object.kind != ObjectKind::StatefulSet);
        }
        self.plan.apply(applied, observed.children, observed.answered);
        match claims {
            Claims::AsAsked => {}
            Claims::Differ => self.recreate(cluster),
            Claims::Smaller(message) => self.wait(reason!("VolumeShrinkRefused"), message, true),
            Claims::Others(message) => self.wait(reason!("VolumesFixed"), message, true),
        }
    }

    /// Instances are added at once; they copy their data by themselves. None is taken away, except all of them: and those come back
    /// with everybody who has data.
    fn size(&mut self, cluster: &Validated) {
        let Some(set) = self.scene.set.filter(|set| !set.object.meta.deleting) else { return };
        let wanted = if cluster.offline { 0 } else { cluster.replicas };
        if wanted == set.replicas {
            return;
        }
        let there = self.instances_that_were();
        if wanted > 0 && wanted < there {
            let message = format!(
                "spec.replicas is {wanted}, and there are {there} instances with data; instances are not taken away: set it to {there} \
                 again"
            );
            return self.wait(reason!("ScaleInRefused"), message, true);
        }
        let object = self.object(ObjectKind::StatefulSet, &set.object.meta.name);
        let act = Act::SetReplicas { object, over: set.object.meta.as_judged(), from: set.replicas, to: wanted };
        self.step(
            act,
            if wanted == 0 { "spec.offline is true".to_owned() } else { format!("the spec asks for {wanted} instances") },
        );
    }

    /// How many instances there were, and may have data: by the set, by what is remembered, and by their claims.
    fn instances_that_were(&self) -> u16 {
        let (set, observed) = (self.scene.names.set(), self.scene.observed);
        let of_claim = |claim: &String| Ordinal::of_pod(&set, claim.strip_prefix(DATA)?.strip_prefix('-')?);
        let by_claims = observed.children.claims.keys().filter_map(of_claim).map(|it| it.get().saturating_add(1)).max();
        let by_set = self.scene.set.map(|set| set.replicas);
        let remembered = observed.memory.entries().counts.restore;
        remembered.max(by_claims.unwrap_or(0)).max(by_set.unwrap_or(0))
    }

    pub(super) fn object(&self, kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: self.scene.namespace.to_owned(), name: name.to_owned() }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
