//! Everything that a pass knows of the instances of one cluster, put together.
//!
//! It rests on what exists (the StatefulSet, pods, what servers said) and on what is remembered, not on the spec: a spec that is refused
//! must not stop anybody from looking after the servers that run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::Resource as _;
use windlass_api::logbook::mysql::{CouncilEntry, MySqlEntries, VoterEntry};
use windlass_api::mysql::conditions::State;
use windlass_api::mysql::{DEFAULT_REPLICAS, keys};

use windlass_core::kind::{Kind as _, Observed};
use windlass_core::ordinals::Ordinal;
use windlass_core::views::{PodView, StatefulSetView};

use super::MySql;
use super::acknowledging::{Council, Next, Record, Settings, Voter, next};
use super::build::Names;
use super::deeds::{Deed, Outside, Place, Source, Task};
use super::facts::{Failed, Silence, after};
use super::gtid::GtidSet;
use super::instance::{Instance, Known, Replication};
use super::outside::is_announced;
use super::state::{Cluster, state};

/// Where clients and replicas connect.
pub(super) const PORT: u16 = 3306;
/// Where nobody is kept out by too many connections.
pub(super) const ADMIN_PORT: u16 = 33062;

/// For how long a server that takes connections and says nothing may do so.
const HANGS: Duration = Duration::from_secs(4);
/// For how long nothing may come back from an instance at all. What was lost on the way is sent again after 0.2, 0.4, 0.8, 1.6, 3.2 and
/// 6.4 seconds: ten bad seconds, in which all of these but the last are lost, are over by then.
const UNREACHABLE: Duration = Duration::from_secs(13);

/// The least time between two times that the same is done to an instance.
const REPEATED: Duration = Duration::from_secs(1);

/// The highest number that the first server id may have, so that those of all instances fit.
pub(super) const SERVER_IDS: u32 = 1 << 30;

/// The instances of a cluster.
pub(super) struct Scene<'a> {
    pub(super) observed: &'a Observed<'a, MySql>,
    pub(super) names: Names<'a>,
    pub(super) namespace: &'a str,
    pub(super) set: Option<&'a StatefulSetView>,
    /// How many instances there are to be, by what exists.
    pub(super) size: u16,
    pub(super) offline: bool,
    pub(super) instances: Vec<Instance>,
    pub(super) entries: MySqlEntries,
    /// Whether it is announced that an instance takes writes, where a source is named.
    pub(super) announced: bool,
    errant: BTreeSet<Ordinal>,
    host: String,
}

impl<'a> Scene<'a> {
    pub(super) fn of(observed: &'a Observed<'a, MySql>, entries: MySqlEntries) -> Self {
        let metadata = observed.resource.meta();
        let namespace = metadata.namespace.as_deref().unwrap_or_default();
        let names = Names::new(metadata.name.as_deref().unwrap_or_default(), namespace);
        let set = observed.children.stateful_sets.get(&names.set());
        let spec = &observed.resource.spec;
        let size = set.map(|set| set.replicas).filter(|size| *size > 0).unwrap_or(spec.replicas.unwrap_or(DEFAULT_REPLICAS));
        let instances = (0..size).map(|number| instance(observed, &names, Ordinal::new(number))).collect();
        let errant = entries.errant.iter().copied().map(Ordinal::new).collect();
        let host = names.host(Ordinal::new(entries.primary));
        let announced = is_announced(observed, &entries);
        Self { observed, names, namespace, set, size, offline: spec.offline, instances, entries, announced, errant, host }
    }

    pub(super) fn primary(&self) -> Ordinal {
        Ordinal::new(self.entries.primary)
    }

    /// The cluster as its state is decided from.
    pub(super) fn cluster(&self) -> Cluster<'_> {
        let spec = &self.observed.resource.spec;
        let status = self.observed.resource.status.as_ref();
        Cluster {
            size: self.size.into(),
            offline: self.offline,
            upstream: self.upstream(),
            is_copy: self.is_copy(),
            // What was opened to writes is in use, whatever became of the status.
            restoring: spec.restore.is_some() && status.is_none_or(|it| it.restored_time.is_none()) && !self.entries.opened,
            primary: self.primary(),
            primary_server: self.entries.server.as_ref().and_then(|text| text.parse().ok()),
            primary_host: &self.host,
            first_server_id: self.server_id_base(),
            instances: &self.instances,
            remembered_errant: &self.errant,
        }
    }

    pub(super) fn state(&self) -> State {
        match state(&self.cluster()) {
            // Nothing can be lost of a cluster that never took a write, nor a copy.
            State::Failed | State::Lost if !self.has_history() => State::Incomplete,
            state => state,
        }
    }

    pub(super) fn server_id_base(&self) -> u32 {
        let given = self.observed.resource.spec.server_id_base.and_then(|base| u32::try_from(base).ok());
        let remembered = Some(self.entries.server_id_base);
        // In the first pass there is nothing to remember yet, and servers are made in it.
        let made = || server_id_base(self.observed.resource.meta().uid.as_deref().unwrap_or_default());
        given.filter(|base| *base > 0).or(remembered.filter(|base| *base > 0)).unwrap_or_else(made)
    }

    pub(super) fn instance(&self, ordinal: Ordinal) -> Option<&Instance> {
        self.instances.iter().find(|it| it.ordinal == ordinal)
    }

    pub(super) fn known(&self, ordinal: Ordinal) -> Option<&Known> {
        self.instance(ordinal)?.known.as_ref()
    }

    pub(super) fn replicas(&self) -> impl Iterator<Item = &Instance> {
        self.instances.iter().filter(|it| it.ordinal != self.primary())
    }

    pub(super) fn pod(&self, ordinal: Ordinal) -> Option<&'a PodView> {
        self.observed.children.pods.get(&ordinal.pod_name(&self.names.set()))
    }

    /// How an instance is silent, and for how long that has to be so before it counts as lost.
    pub(super) fn silence(&self, ordinal: Ordinal) -> Option<(Silence, Duration)> {
        let Some(pod) = self.pod(ordinal).filter(|pod| pod.process.is_some()) else {
            return Some((Silence::Closed, self.restart_grace()));
        };
        let how = self.observed.facts.of(pod)?.silent?;
        let patience = match how {
            Silence::Closed => self.restart_grace(),
            Silence::Hangs => HANGS,
            Silence::Unreachable => UNREACHABLE,
            // It is there, whatever it says.
            Silence::Refused => return None,
        };
        Some((how, patience))
    }

    /// When a silent instance counts as lost.
    pub(super) fn lost_at(&self, ordinal: Ordinal) -> Option<Timestamp> {
        let (_, patience) = self.silence(ordinal)?;
        let heard = self.observed.facts.heard(&ordinal.pod_name(&self.names.set()));
        Some(heard.filter(|_| !patience.is_zero()).map_or(Timestamp::MIN, |heard| after(heard, patience)))
    }

    /// How long a server that ended is given to come back. What cannot be read is none, and [`Self::bad_grace`] tells of it.
    fn restart_grace(&self) -> Duration {
        self.given_grace().and_then(Result::ok).unwrap_or_default()
    }

    fn given_grace(&self) -> Option<Result<Duration, String>> {
        let text = self.observed.resource.meta().annotations.as_ref()?.get(keys::PRIMARY_RESTART_GRACE)?;
        let read = text.parse::<SignedDuration>().ok().and_then(|grace| Duration::try_from(grace).ok());
        let message = || format!("annotation {} says {text:?}, which is no duration such as 10s", keys::PRIMARY_RESTART_GRACE);
        Some(read.ok_or_else(message))
    }

    /// What is wrong with the grace that somebody gave, if anything is.
    pub(super) fn bad_grace(&self) -> Option<String> {
        self.given_grace()?.err()
    }

    /// Whether an instance is gone, or was silent for so long that a burst of lost packets does not explain it.
    pub(super) fn is_lost(&self, ordinal: Ordinal) -> bool {
        self.lost_at(ordinal).is_some_and(|at| at <= self.observed.now)
    }

    /// Whether a replica still hears the primary, by what it says itself. One whose pod was removed lives on for seconds: who receives
    /// from it goes on to, for a server that stops tells clients of what nobody acknowledged.
    pub(super) fn hears_the_primary(&self, ordinal: Ordinal) -> bool {
        let patience = match self.silence(self.primary()) {
            Some((Silence::Unreachable, patience)) => patience,
            _ => HANGS,
        };
        // Signs come once a second, so one of them is on its way even while the last one is older.
        let enough = patience.saturating_sub(Duration::from_secs(1));
        let quiet = self.known(ordinal).and_then(|known| known.replication.as_ref()?.quiet);
        self.is_following(ordinal) && quiet.is_none_or(|quiet| quiet < enough)
    }

    /// What servers were read to be set to. Who cannot be heard counts as set to what was recorded: it may be.
    pub(super) fn settings(&self, primary: &Known) -> Settings {
        let recorded = self.record().councils.into_iter().flat_map(|it| it.voters);
        let heard = self.replicas().filter_map(|it| Some((it.ordinal, it.known.as_ref()?)));
        let enabled = heard.filter(|(_, known)| known.acknowledges);
        let enabled = enabled.map(|(ordinal, known)| Voter { ordinal, server: known.server, generation: 0 });
        let unheard = recorded.filter(|voter| voter.ordinal != self.primary() && self.known(voter.ordinal).is_none());
        Settings { enabled: enabled.chain(unheard).collect(), count: primary.awaits.unwrap_or(0).into() }
    }

    /// Where an instance is reached, while its server runs.
    pub(super) fn place(&self, ordinal: Ordinal) -> Option<Place> {
        let pod = self.pod(ordinal)?;
        Some(Place {
            namespace: self.namespace.to_owned(),
            credentials: self.names.credentials(),
            pod: pod.meta.name.clone(),
            pod_uid: pod.meta.uid.clone(),
            process: pod.process.clone()?,
            address: pod.address.clone()?,
            ordinal,
        })
    }

    /// What failed on an instance last.
    pub(super) fn failed(&self, ordinal: Ordinal) -> Option<&'a Failed> {
        self.observed.facts.of(self.pod(ordinal)?)?.failure.as_ref()
    }

    /// Whether a copy was begun on an instance, and its end was not heard of. Until the server shows it, nothing else does.
    pub(super) fn is_copying(&self, ordinal: Ordinal) -> bool {
        self.pod(ordinal).and_then(|pod| self.observed.facts.of(pod)).is_some_and(|facts| facts.copying)
    }

    /// From when on a task may be done again that was done to an instance last.
    pub(super) fn repeats_at(&self, ordinal: Ordinal, task: &Task) -> Option<Timestamp> {
        let (done, at) = self.last_done(ordinal)?;
        (done == task).then(|| after(at, REPEATED))
    }

    /// When something else than what was done to an instance last is not awaited any longer.
    pub(super) fn repeats(&self, ordinal: Ordinal) -> Option<Timestamp> {
        self.last_done(ordinal).map(|(_, at)| after(at, REPEATED))
    }

    fn last_done(&self, ordinal: Ordinal) -> Option<(&'a Task, Timestamp)> {
        let (task, at) = self.observed.facts.of(self.pod(ordinal)?)?.done.as_ref()?;
        Some((task, *at))
    }

    /// Whether an instance is there, and was not asked since something was done to it.
    pub(super) fn is_to_be_asked(&self, ordinal: Ordinal) -> bool {
        let Some(pod) = self.pod(ordinal).filter(|pod| pod.process.is_some()) else { return false };
        self.observed.facts.of(pod).is_none_or(|facts| facts.known.is_none() && facts.silent.is_none())
    }

    /// Whether an instance is there, and lets us not in.
    pub(super) fn is_refused(&self, ordinal: Ordinal) -> bool {
        let facts = self.pod(ordinal).and_then(|pod| self.observed.facts.of(pod));
        facts.is_some_and(|facts| facts.silent == Some(Silence::Refused))
    }

    /// Whether an instance was told to follow the server elsewhere as its Secret says now.
    pub(super) fn is_told(&self, ordinal: Ordinal, outside: &Outside) -> bool {
        let told = self.observed.facts.outside.told.as_ref();
        told.is_some_and(|(pod, version)| *pod == ordinal.pod_name(&self.names.set()) && *version == outside.version)
    }

    /// What runs on an instance now.
    pub(super) fn running(&self, ordinal: Ordinal) -> Option<&'a Deed> {
        let pod = ordinal.pod_name(&self.names.set());
        self.observed.running.iter().find(|deed| deed.place.pod == pod)
    }

    /// Whether an instance whose server runs was not asked since something was done to it, or since it started.
    pub(super) fn is_about_to_answer(&self, ordinal: Ordinal) -> bool {
        let pod = self.pod(ordinal).filter(|pod| pod.process.is_some() && pod.address.is_some());
        let unasked = |pod| self.observed.facts.of(pod).is_none_or(|facts| facts.known.is_none() && facts.silent.is_none());
        pod.is_some_and(unasked)
    }

    /// The primary as a source of replication.
    pub(super) fn source(&self) -> Source {
        Source { host: self.host.clone(), port: PORT }
    }

    pub(super) fn is_following(&self, ordinal: Ordinal) -> bool {
        let follows = |known: &Known| known.replication.as_ref().is_some_and(|it| it.source_host == self.host && it.receives);
        self.known(ordinal).is_some_and(follows)
    }

    /// The recorded acknowledgers.
    pub(super) fn record(&self) -> Record<GtidSet> {
        let voter =
            |it: &VoterEntry| Some(Voter { ordinal: Ordinal::new(it.ordinal), server: it.server.parse().ok()?, generation: 0 });
        let council = |it: &CouncilEntry| Council {
            // A voter that cannot be read is one that can never be heard.
            voters: it.voters.iter().map(|entry| voter(entry).unwrap_or_else(|| unreadable(entry))).collect(),
            count: it.count.into(),
        };
        Record {
            councils: self.entries.councils.iter().map(council).collect(),
            floor: self.entries.floor.as_ref().and_then(|text| text.parse().ok()),
        }
    }

    /// Everybody who should acknowledge, and how many of them must: the replicas that follow, and half of all instances.
    ///
    /// Those who were recorded before stay while they are only silent: whether they are gone for good is not ours to guess.
    pub(super) fn wanted_council(&self) -> Council {
        let errant = self.cluster().errant();
        let current = self.record().councils.last().cloned().unwrap_or(Council { voters: BTreeSet::new(), count: 0 });
        let voters = self.replicas().filter(|it| !errant.contains(&it.ordinal)).filter_map(|it| match &it.known {
            Some(known) if self.is_following(it.ordinal) => {
                Some(Voter { ordinal: it.ordinal, server: known.server, generation: 0 })
            }
            Some(known) => {
                current.voters.iter().find(|voter| voter.ordinal == it.ordinal && voter.server == known.server).cloned()
            }
            None => current.voters.iter().find(|voter| voter.ordinal == it.ordinal).cloned(),
        });
        let voters: BTreeSet<Voter> = voters.collect();
        let needed = usize::from(self.size / 2);
        // More acknowledgements are asked for when there is somebody to give them; fewer never by themselves.
        let count = if voters.len() >= needed { needed } else { current.count.min(needed) };
        Council { voters, count }
    }

    /// Whether those who acknowledge are those who should, and nobody else may have what clients were told of. Until then a former primary
    /// that was handed the office may be needed to replace the one that has it.
    pub(super) fn is_council_settled(&self) -> bool {
        let settled = |primary: &Known| next(&self.record(), &self.settings(primary), &self.wanted_council()) == Next::Nothing;
        self.outside().is_some() || self.known(self.primary()).is_some_and(settled)
    }

    /// What an instance has and the primary never had, if nobody was told of it: transactions of former primaries, beyond what the
    /// one that replaced each of them had. Nothing when that is not so, or when somebody wants it to stay.
    pub(super) fn surplus(&self, known: &Known, primary: &Known) -> Option<GtidSet> {
        let annotations = self.observed.resource.meta().annotations.as_ref();
        if annotations.is_some_and(|all| all.get(keys::KEEP_SURPLUS).is_some_and(|value| value == "true")) {
            return None;
        }
        let surplus = known.has().without(&primary.has());
        let untold = self.entries.promotions.iter().fold(surplus.clone(), |rest, it| {
            let (Ok(former), Ok(set)) = (it.former.parse(), it.set.parse::<GtidSet>()) else { return rest };
            rest.without(&rest.of_uuid(former).without(&set))
        });
        (!surplus.is_empty() && untold.is_empty()).then_some(surplus)
    }

    /// Whether it is on record that this was saved.
    pub(super) fn is_saved(&self, known: &Known, surplus: &GtidSet) -> bool {
        let server = known.server.to_string();
        let holds = |set: &str| set.parse::<GtidSet>().is_ok_and(|set| surplus.is_within(&set));
        self.entries.saved.iter().any(|it| it.server == server && holds(&it.set))
    }

    /// Whether somebody asks to let the servers alone.
    pub(super) fn is_to_be_let_alone(&self) -> bool {
        MySql::pause(self.observed.resource).clustering.paused
    }

    /// Whether another server answers in the primary's place: it has lost the cluster's data, and is nobody's source.
    pub(super) fn has_lost_its_primary(&self) -> bool {
        self.known(self.primary()).is_some_and(|known| self.cluster().lost_its_data(known))
    }

    /// Whether the primary does what its office asks for, as far as it can be heard, and nobody who should receive was told not to. From one that has
    /// lost its data nobody should.
    pub(super) fn is_at_rest(&self) -> bool {
        // What somebody said before something was done to it, or while that is being done, counts for nothing.
        let is_unheard = |ordinal| self.running(ordinal).is_some() || self.is_to_be_asked(ordinal);
        if self.instances.iter().any(|it| is_unheard(it.ordinal)) {
            return false;
        }
        if self.has_lost_its_primary() {
            return true;
        }
        let errant = self.cluster().errant();
        let was_stopped = |known: &Known| {
            let stopped = |it: &Replication| it.source_host == self.host && !it.connects && it.error.is_none();
            known.replication.as_ref().is_some_and(stopped)
        };
        let waits = |it: &Instance| !errant.contains(&it.ordinal) && it.known.as_ref().is_some_and(was_stopped);
        // One that is to follow a server elsewhere, which nobody can tell now, does what it can.
        let lacks_source =
            self.outside().is_some() && self.observed.facts.outside.source.as_ref().is_none_or(|(it, _)| it.read.is_err());
        let serves = |primary: &Known| self.serves(primary) || lacks_source;
        self.known(self.primary()).is_none_or(serves) && !self.replicas().any(waits)
    }

    /// Whether the primary shall hand over now. While replicas are far behind it does not begin to: clients would wait for them. One
    /// that is closed to writes already goes on, for then they wait anyway.
    pub(super) fn is_to_hand_over(&self) -> bool {
        let closed = || self.known(self.primary()).is_some_and(|known| known.super_read_only);
        self.is_asked_to_hand_over() && (self.too_far_behind().is_none() || closed())
    }

    /// Whether the primary's pod is about to go, or somebody asked that it hand over.
    pub(super) fn is_asked_to_hand_over(&self) -> bool {
        self.pod(self.primary())
            .is_some_and(|pod| pod.meta.deleting || pod.meta.annotations.get(keys::DEMOTE).is_some_and(|value| value == "true"))
    }

    pub(super) fn by_pod(&self) -> BTreeMap<Ordinal, &'a PodView> {
        self.instances.iter().filter_map(|it| Some((it.ordinal, self.pod(it.ordinal)?))).collect()
    }
}

/// A number that no other cluster is likely to have.
pub(super) fn server_id_base(uid: &str) -> u32 {
    let mixed = uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    mixed % SERVER_IDS + 1
}

fn unreadable(entry: &VoterEntry) -> Voter {
    Voter { ordinal: Ordinal::new(entry.ordinal), server: super::gtid::Uuid::new(0), generation: u32::MAX }
}

fn instance(observed: &Observed<'_, MySql>, names: &Names<'_>, ordinal: Ordinal) -> Instance {
    let pod = observed.children.pods.get(&ordinal.pod_name(&names.set()));
    let facts = pod.and_then(|pod| observed.facts.of(pod));
    Instance {
        ordinal,
        ready: pod.is_some_and(|pod| pod.ready),
        leaving: pod.is_some_and(|pod| pod.meta.deleting),
        known: facts.and_then(|facts| facts.known.clone()),
    }
}
