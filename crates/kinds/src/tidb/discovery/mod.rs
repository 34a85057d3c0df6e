//! Tells a member of PD that has no data how to begin: whom it joins, or that it is the first one. This is what `windlass discovery`
//! answers, one process for each cluster; it goes on while the operator is down, and while the cluster is paused.
//!
//! Only a member whose volume is empty asks: with data, or when it was in the middle of joining, it needs nobody. To begin a cluster is
//! irreversible, and to begin a second one beside the first splits its data. So nobody begins unless
//!
//! - nothing says that the cluster was ever there: no id in its status, no member in its status, no id on a claim of it, no PD that
//!   answers;
//! - it is the lowest member that is wanted. That needs no memory: however often, in whichever order and of whichever process members
//!   ask, no two of them are told to begin;
//! - every other member of PD has nothing either. Each shows it by asking itself, not long ago and with the volume that it has now, and by
//!   not having been told to join or begin since; or its volume was never bound. This is remembered by this process alone: after a restart
//!   the members ask again within seconds. It is what keeps a lowest member that lost its volume from beginning anew, while the others,
//!   which have the data, are down, and before anybody recorded an id.
//!
//! What is not known is no reason to begin: a claim that cannot be seen, a cluster that cannot be read, a list without the asker's own
//! claim. Then it waits, and is told what for. Waiting costs a restart some seconds; a second cluster costs the data.

mod cluster;
mod endpoints;
mod heard;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;

use std::time::Duration;

use windlass_core::ordinals::Ordinal;

use super::answers::PdMember;
pub use cluster::{Claim, Cluster, Elsewhere, Peer, Tls, Unreadable};
pub use endpoints::{Endpoint, verify};
pub use heard::Heard;

/// The port on which members of PD talk to each other. It is part of what they ask with.
const PEER_PORT: &str = "2380";

/// A member of PD that asks how to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its pod.
    pub pod: String,
    /// Its number.
    pub ordinal: Ordinal,
    /// Its host name.
    pub host: String,
}

/// Something that does not ask as a member of PD of this cluster does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no member of PD of TidbCluster {cluster:?}: expected {cluster}-pd-NUMBER.{cluster}-pd-peer.{namespace}.svc:2380"
)]
pub struct NotAMember {
    text: String,
    cluster: String,
    namespace: String,
}

impl Asker {
    /// Reads `HOST:2380`. A newline at its end belongs to the shell that sent it.
    pub fn parse(text: &str, cluster: &str, namespace: &str) -> Result<Self, NotAMember> {
        let whole = text.trim_end();
        let not_a_member = || NotAMember { text: whole.into(), cluster: cluster.into(), namespace: namespace.into() };
        let (host, port) = whole.rsplit_once(':').ok_or_else(not_a_member)?;
        let mut labels = host.split('.');
        let pod = labels.next().unwrap_or_default();
        let ordinal = Ordinal::of_pod(&format!("{cluster}-pd"), pod).ok_or_else(not_a_member)?;
        let service = format!("{cluster}-pd-peer");
        let is_named = [labels.next(), labels.next(), labels.next()] == [Some(service.as_str()), Some(namespace), Some("svc")];
        // What is answered becomes arguments of a command.
        let is_plain = |label: &str| {
            !label.is_empty() && label.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-')
        };
        if port != PEER_PORT || !is_named || !labels.all(is_plain) {
            return Err(not_a_member());
        }
        Ok(Self { pod: pod.to_owned(), ordinal, host: host.to_owned() })
    }
}

/// What PD says, where one answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The id of its cluster, where it tells it.
    pub cluster: Option<u64>,
    /// Its members.
    pub members: Vec<PdMember>,
}

/// How a member begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With what those have that are reached there.
    Join(Vec<String>),
    /// As the first one.
    Begin {
        /// The name of the member.
        name: String,
        /// Where other members will reach it.
        url: String,
    },
    /// Not now. It asks again in a moment.
    Wait {
        /// What for.
        why: String,
    },
}

impl Answer {
    /// The argument of pd-server.
    pub fn argument(&self) -> Option<String> {
        match self {
            Self::Join(urls) => Some(format!("--join={}", urls.join(","))),
            Self::Begin { name, url } => Some(format!("--initial-cluster={name}={url}")),
            Self::Wait { .. } => None,
        }
    }
}

/// Everything that an answer rests on. What could not be had says why.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// Who asks.
    pub asker: &'a Asker,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// All claims of the cluster, those of other components included.
    pub claims: &'a Result<Vec<Claim>, String>,
    /// What PD says.
    pub told: &'a Result<Told, String>,
    /// Who has asked.
    pub heard: &'a Heard,
    /// The time since some moment, the same that `heard` counts from.
    pub now: Duration,
}

impl Scene<'_> {
    /// How the one who asks begins.
    pub fn answer(&self) -> Answer {
        match self.told {
            Ok(told) => self.join(told),
            Err(silence) => self.begin(silence).unwrap_or_else(|why| Answer::Wait { why }),
        }
    }

    /// The ids by which the cluster is on record.
    fn recorded(&self) -> Vec<String> {
        let claims = self.claims.iter().flatten().filter_map(|claim| claim.cluster_id.clone());
        let mut ids: Vec<String> = self.cluster.recorded.clone().into_iter().chain(claims).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn join(&self, told: &Told) -> Answer {
        let Asker { pod, host, .. } = self.asker;
        let recorded = self.recorded();
        if let Some(id) = told.cluster
            && !recorded.is_empty()
            && !recorded.contains(&id.to_string())
        {
            let recorded = recorded.join(", ");
            let why = format!(
                "PD answers as cluster {id}, and this cluster is on record as {recorded}: nobody joins before a person has looked"
            );
            return Answer::Wait { why };
        }
        let others = told.members.iter().filter(|it| it.name != *pod && it.name != *host && !it.client_url.is_empty());
        let urls: Vec<String> = others.map(|it| it.client_url.clone()).collect();
        if urls.is_empty() {
            // Without anybody to join, pd-server would begin a cluster by itself.
            let why = format!("PD has no other member than {pod} that was started, so there is nobody whom it can join");
            return Answer::Wait { why };
        }
        Answer::Join(urls)
    }

    fn begin(&self, silence: &str) -> Result<Answer, String> {
        let cluster = self.cluster;
        if let Some(Elsewhere { name, namespace, .. }) = &cluster.elsewhere {
            return Err(format!("{name:?} in namespace {namespace:?} is to be joined, and its PD does not answer: {silence}"));
        }
        if !cluster.addresses.is_empty() {
            return Ok(Answer::Join(cluster.addresses.clone()));
        }
        self.never_was().map_err(|found| {
            format!(
                "{found}, so nothing is begun anew, and PD does not answer ({silence}): its other members must come back; if all \
                 of them are lost, recover PD with that id"
            )
        })?;
        if cluster.deleting {
            return Err("the TidbCluster is being deleted".to_owned());
        }
        self.is_first()?;
        self.nobody_has_data()?;
        let Asker { pod, host, .. } = self.asker;
        let name = if cluster.names_are_hosts { host } else { pod };
        Ok(Answer::Begin { name: name.clone(), url: format!("{}://{host}:{PEER_PORT}", cluster.scheme()) })
    }

    /// That nothing says that the cluster was ever there; else what does.
    fn never_was(&self) -> Result<(), String> {
        if let Some(id) = &self.cluster.recorded {
            return Err(format!("the status of the TidbCluster says that it is cluster {id}"));
        }
        if let Some(member) = self.cluster.members.first() {
            return Err(format!("the status of the TidbCluster says that PD has member {member:?}"));
        }
        let claims = self.claims.as_ref().map_err(|why| format!("its volume claims could not be read: {why}"))?;
        match claims.iter().find_map(|claim| Some((claim, claim.cluster_id.as_ref()?))) {
            Some((claim, id)) => Err(format!("volume claim {:?} is of cluster {id}", claim.name)),
            None => Ok(()),
        }
    }

    fn is_first(&self) -> Result<(), String> {
        let Some(first) = self.cluster.members_wanted.lowest() else {
            return Err("no PD is wanted: set spec.pd.replicas".to_owned());
        };
        if first != self.asker.ordinal {
            let first = first.pod_name(&format!("{}-pd", self.cluster.name));
            return Err(format!("{first} begins the cluster, and does not answer yet"));
        }
        Ok(())
    }

    fn nobody_has_data(&self) -> Result<(), String> {
        let claims = self.claims.as_ref().map_err(String::clone)?;
        let own = format!("pd-{}", self.asker.pod);
        if !claims.iter().any(|claim| claim.name == own) {
            return Err(format!("volume claim {own:?} is not among those of the cluster: what else is there cannot be known"));
        }
        let of_pd = claims.iter().filter_map(|claim| Some((claim.ordinal?, claim)));
        let others = of_pd.filter(|(ordinal, claim)| *ordinal != self.asker.ordinal && claim.is_bound);
        let may_have: std::collections::BTreeSet<String> = others
            .filter(|(ordinal, _)| !self.heard.has_nothing(*ordinal, &Claim::of(claims, *ordinal), self.now))
            .map(|(ordinal, _)| ordinal.pod_name(&format!("{}-pd", self.cluster.name)))
            .collect();
        if may_have.is_empty() {
            return Ok(());
        }
        let may_have = may_have.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!(
            "{may_have} may have the data of a cluster: a volume is bound, and nobody asked with it lately; it must start, or its \
             claim be deleted if nobody needs it"
        ))
    }
}
