//! Everything that a pass knows of one cluster, put together.
//!
//! What PD said counts while it is fresh, of the cluster that is on record, and asked for after the last task about whom it concerns.
//! Everything else is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube::Resource as _;
use windlass_api::logbook::tidb::TidbEntries;
use windlass_api::logbook::{Intent, LogbookSpec};
use windlass_api::tidb::Component;
use windlass_core::kind::Observed;
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{ClaimView, PodView, StatefulSetView};

use super::Tidb;
use super::answers::{PdMember, PdSeen, Said, Store, StoreState};
use super::build::Names;
use super::deeds::{Deed, Pd, Server};
use super::facts::{ServerFacts, after};
use super::membership::{Around, pod_at, pod_of};
use super::scaling::is_marked;
use super::standing::Own;
use super::validate::{Validated, validate};
use super::wishes::{Wish, wish};

/// For how long what was said is believed.
pub(super) const FRESH: Duration = Duration::from_secs(30);

/// A component as it is found.
pub(super) struct Group<'a> {
    pub(super) component: Component,
    pub(super) set: Option<&'a StatefulSetView>,
    pub(super) pods: BTreeMap<Ordinal, &'a PodView>,
    pub(super) claims: BTreeMap<Ordinal, Vec<&'a ClaimView>>,
    /// What the spec asks of it, or the last good one did; nothing where it does not name it.
    pub(super) wish: Option<Wish>,
    /// Members that are there in place of failed ones.
    pub(super) replacements: u16,
}

impl<'a> Group<'a> {
    /// How many members there are, by the set.
    pub(super) fn size(&self) -> u16 {
        self.set.map_or(0, |set| set.replicas)
    }

    /// How many members there are to be. One that the spec does not name stays as it is.
    pub(super) fn wanted(&self) -> u16 {
        self.wish.as_ref().map_or_else(|| self.size(), |wish| wish.replicas.saturating_add(self.replacements))
    }

    /// The set, unless it is about to go.
    pub(super) fn live_set(&self) -> Option<&'a StatefulSetView> {
        self.set.filter(|set| !set.object.meta.deleting)
    }

    pub(super) fn claims_of(&self, ordinal: Ordinal) -> &[&'a ClaimView] {
        self.claims.get(&ordinal).map_or(&[], Vec::as_slice)
    }

    /// Whether a member's volumes are there, and are of use.
    pub(super) fn has_volumes(&self, ordinal: Ordinal) -> bool {
        let claims = self.claims_of(ordinal);
        !claims.is_empty() && !claims.iter().any(|claim| is_marked(claim) || claim.meta.deleting)
    }

    /// The UIDs of a member's claims.
    pub(super) fn volumes(&self, ordinal: Ordinal) -> Vec<&'a str> {
        self.claims_of(ordinal).iter().map(|claim| claim.meta.uid.as_str()).collect()
    }

    /// What is known of a member beside its standing in PD, which was asked at this time.
    pub(super) fn around(&self, ordinal: Ordinal, asked: Option<Timestamp>) -> Around {
        // A mark tells those who come later what to do with a volume that stays. One that is being deleted does not stay: that cannot be
        // taken back, and Kubernetes lets it go with the pod. Neither proves that a store has left: `progress` asks PD for that.
        let marked = self.claims_of(ordinal).iter().all(|claim| is_marked(claim) || claim.meta.deleting);
        let is_unborn = |pod: &PodView| {
            // Times of Kubernetes are in whole seconds.
            let second = Duration::from_secs(1);
            let (made, ended) = (pod.meta.created.map(|it| after(it, second)), pod.ended.map(|it| after(it, second)));
            pod.process.is_none()
                && asked.zip(made).is_some_and(|(asked, made)| asked > made && ended.is_none_or(|it| asked > it))
        };
        let unborn = self.pods.get(&ordinal).map_or(self.claims_of(ordinal).is_empty(), |pod| is_unborn(pod));
        Around { leaves: ordinal.get() >= self.wanted(), marked, unborn }
    }

    /// Whether a process runs in a member's pod, and is not about to end.
    pub(super) fn runs(&self, ordinal: Ordinal) -> bool {
        self.pods.get(&ordinal).is_some_and(|pod| pod.process.is_some() && !pod.meta.deleting)
    }
}

/// What PD says, if that is known.
pub(super) struct Heard<'a> {
    pub(super) seen: &'a PdSeen,
    /// When it was asked.
    pub(super) asked: Timestamp,
}

/// Why nobody knows what PD says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unheard {
    pub(super) why: String,
    /// Whether a person has to look.
    pub(super) stalled: bool,
}

/// One cluster.
pub(super) struct Scene<'a> {
    pub(super) observed: &'a Observed<'a, Tidb>,
    pub(super) names: Names<'a>,
    pub(super) namespace: &'a str,
    pub(super) entries: TidbEntries,
    pub(super) intents: Vec<Intent>,
    /// The cluster's id, if it is on record.
    pub(super) cluster_id: Option<u64>,
    pub(super) pd: Result<Heard<'a>, Unheard>,
    /// Whether the spec is refused: what counts then is what the last good one asked for, and nobody begins to leave.
    pub(super) refused: bool,
    groups: BTreeMap<Component, Group<'a>>,
    pub(super) own: Own<'a>,
}

impl<'a> Scene<'a> {
    pub(super) fn of(observed: &'a Observed<'a, Tidb>, logbook: &LogbookSpec) -> Self {
        let metadata = observed.resource.meta();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let domain = observed.resource.spec.cluster_domain.as_deref().filter(|domain| !domain.is_empty());
        let names = Names::new(metadata.name.as_deref().unwrap_or_default(), namespace, domain);
        let cluster = validate(observed.resource).ok();
        let entries = logbook.tidb.clone().unwrap_or_default();
        let cluster_id = logbook.histories.last().and_then(|id| id.parse().ok());
        let groups =
            Component::ALL.map(|component| (component, group(observed, &names, &entries, cluster.as_ref(), component)));
        let mut scene = Self {
            names,
            namespace,
            intents: logbook.intents.clone(),
            cluster_id,
            pd: hear(observed, cluster_id),
            refused: cluster.is_none(),
            groups: groups.into(),
            own: Own::default(),
            entries,
            observed,
        };
        scene.own = Own::of(&scene);
        scene
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = &Group<'a>> {
        self.groups.values()
    }

    pub(super) fn group(&self, component: Component) -> &Group<'a> {
        // Every component has one.
        &self.groups[&component]
    }

    /// Whether this was asked for after the last task about somebody ended, and none runs.
    pub(super) fn is_settled(&self, about: &str, asked: Timestamp) -> bool {
        self.observed.facts.is_settled(about, asked) && self.running(about).is_none()
    }

    /// What runs now that is about somebody.
    pub(super) fn running(&self, about: &str) -> Option<&'a Deed> {
        self.observed.running.iter().find(|deed| deed.about == about)
    }

    /// When PD was asked for what is known of it.
    pub(super) fn asked(&self) -> Option<Timestamp> {
        self.pd.as_ref().ok().map(|heard| heard.asked)
    }

    /// Whether the pod of an ordinal is there, or was when PD was asked.
    pub(super) fn is_just_gone(&self, component: Component, ordinal: Ordinal) -> bool {
        let pod = self.names.pod(component, ordinal);
        self.group(component).pods.contains_key(&ordinal) || self.observed.facts.is_just_gone(&pod)
    }

    /// Whether a member of PD is healthy.
    pub(super) fn is_healthy(&self, member: &PdMember) -> bool {
        let health = self.pd.as_ref().ok().and_then(|heard| heard.seen.health.as_ref().ok());
        health.is_some_and(|health| health.get(&member.id) == Some(&true))
    }

    /// Whether a member of PD is healthy by PD's word, and nothing that is seen of its pod says otherwise.
    pub(super) fn is_sound(&self, member: &PdMember) -> bool {
        let runs = pod_of(&self.names, member).is_none_or(|ordinal| self.group(Component::Pd).runs(ordinal));
        runs && self.is_healthy(member)
    }

    /// Whether a store is up by PD's word, which is some seconds old, and nothing that is seen of its pod says otherwise.
    pub(super) fn is_up(&self, component: Component, store: &Store) -> bool {
        let runs = pod_at(&self.names, component, &store.address).is_none_or(|ordinal| self.group(component).runs(ordinal));
        runs && store.state == StoreState::Up
    }

    /// Whether a majority of PD's members is healthy, so that it serves.
    pub(super) fn pd_serves(&self) -> bool {
        let members = self.members().unwrap_or_default();
        let healthy = members.iter().filter(|member| self.is_healthy(member)).count();
        !members.is_empty() && healthy > members.len() / 2
    }

    /// What a member said of itself, if that is fresh and of its very process.
    pub(super) fn said(&self, component: Component, ordinal: Ordinal) -> Option<&'a Said> {
        let facts = self.server_facts(component, ordinal)?;
        let pod = self.names.pod(component, ordinal);
        let counts = after(facts.asked, FRESH) >= self.observed.now && self.is_settled(&pod, facts.asked);
        facts.said.as_ref().filter(|_| counts)
    }

    /// What a member said of itself last, unless it was silent since: for what is told, not for what is done.
    pub(super) fn last_said(&self, component: Component, ordinal: Ordinal) -> Option<&'a Said> {
        self.server_facts(component, ordinal)?.said.as_ref()
    }

    pub(super) fn server_facts(&self, component: Component, ordinal: Ordinal) -> Option<&'a ServerFacts> {
        self.observed.facts.of(self.group(component).pods.get(&ordinal)?)
    }

    /// What an intent is bound to.
    pub(super) fn identity(&self, id: u64) -> String {
        format!("{}/{id}", self.cluster_id.unwrap_or_default())
    }

    /// What was announced for a store or a member, if anything was.
    pub(super) fn announced(&self, act: &str, id: u64) -> Option<&Intent> {
        let identity = self.identity(id);
        self.intents.iter().find(|intent| intent.act == act && intent.uid == identity)
    }

    pub(super) fn is_announced(&self, act: &str, id: u64) -> bool {
        self.announced(act, id).is_some()
    }

    /// Where a server is reached, while its process runs.
    pub(super) fn server(&self, component: Component, ordinal: Ordinal) -> Option<Server> {
        let pod = self.group(component).pods.get(&ordinal)?;
        Some(Server {
            component,
            namespace: self.namespace.to_owned(),
            certificate: self.certificate(),
            pod: pod.meta.name.clone(),
            pod_uid: pod.meta.uid.clone(),
            process: pod.process.clone()?,
            host: self.names.host(component, ordinal),
            address: pod.address.clone()?,
        })
    }

    fn certificate(&self) -> Option<String> {
        let tls = self.observed.resource.spec.tls_cluster.as_ref().is_some_and(|tls| tls.enabled);
        tls.then(|| self.names.cluster_client_secret())
    }

    /// PD, if any member of it runs. Those that are ready come first.
    pub(super) fn pd_place(&self) -> Option<Pd> {
        let group = self.group(Component::Pd);
        let mut ordinals: Vec<(&Ordinal, &&PodView)> = group.pods.iter().collect();
        ordinals.sort_by_key(|(ordinal, pod)| (pod.meta.deleting, !pod.ready, **ordinal));
        let servers: Vec<Server> =
            ordinals.into_iter().filter_map(|(ordinal, _)| self.server(Component::Pd, *ordinal)).collect();
        (!servers.is_empty()).then_some(Pd { servers, cluster: self.cluster_id })
    }

    /// The stores whose leaders PD evicts.
    pub(super) fn evicting(&self) -> Option<&'a BTreeSet<u64>> {
        self.pd.as_ref().ok()?.seen.evicting.as_ref().ok()
    }
}

fn group<'a>(
    observed: &'a Observed<'a, Tidb>,
    names: &Names<'a>,
    entries: &TidbEntries,
    cluster: Option<&Validated>,
    component: Component,
) -> Group<'a> {
    let (children, set) = (observed.children, names.set(component));
    let pods = children.pods.values().filter_map(|pod| Some((Ordinal::of_pod(&set, &pod.meta.name)?, pod)));
    let mut claims: BTreeMap<Ordinal, Vec<&ClaimView>> = BTreeMap::new();
    // The name of a claim is that of its template, and that of the pod.
    let of_set = format!("-{set}");
    for claim in children.claims.values() {
        let ordinal = Ordinal::split_pod_name(&claim.meta.name).filter(|(rest, _)| rest.ends_with(&of_set));
        if let Some((_, ordinal)) = ordinal {
            claims.entry(ordinal).or_default().push(claim);
        }
    }
    for claims in claims.values_mut() {
        claims.sort_by_key(|claim| &claim.meta.uid);
    }
    let failed = entries.failures.values().filter(|it| it.component == component.as_str());
    // A failed member of PD is removed first, so that those who come in its place make no majority harder to reach.
    let replacements = failed.filter(|it| component != Component::Pd || it.removed).count();
    Group {
        component,
        set: children.stateful_sets.get(&set),
        pods: pods.collect(),
        claims,
        wish: match cluster {
            Some(cluster) => wish(cluster, component),
            None => entries.asked.get(component.as_str()).map(Wish::of_before),
        },
        replacements: u16::try_from(replacements).unwrap_or(u16::MAX),
    }
}

/// What PD says, if it can be relied on.
fn hear<'a>(observed: &'a Observed<'a, Tidb>, cluster_id: Option<u64>) -> Result<Heard<'a>, Unheard> {
    let unheard = |why: String| Unheard { why, stalled: false };
    let Some(pd) = &observed.facts.pd else { return Err(unheard("PD was not asked yet".to_owned())) };
    if let Some((why, _)) = &pd.silent {
        return Err(unheard(format!("PD does not answer: {why}")));
    }
    let Some(seen) = &pd.seen else { return Err(unheard("PD was not asked since it changed".to_owned())) };
    if after(pd.asked, FRESH) < observed.now {
        return Err(unheard("PD was not asked for a while".to_owned()));
    }
    match cluster_id {
        Some(id) if id != seen.cluster => {
            let why = format!(
                "PD says that it is of cluster {}, and this cluster is on record as {id}; nothing is done to it: find out where that PD \
                 comes from, and give it back the volumes of cluster {id}",
                seen.cluster
            );
            Err(Unheard { why, stalled: true })
        }
        _ => Ok(Heard { seen, asked: pd.asked }),
    }
}
