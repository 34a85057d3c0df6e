use rstest::rstest;

use super::super::gtid::{GtidSet, Uuid};
use super::super::instance::{CloneState, Replication};
use super::*;

const PRIMARY_HOST: &str = "moco-harbour-0.moco-harbour.shop.svc";
const FIRST_ID: u32 = 1000;

fn set(text: &str) -> GtidSet {
    text.parse().unwrap()
}

fn server(ordinal: u16) -> Uuid {
    Uuid::new(u128::from(ordinal) + 1)
}

/// The transactions of the first instance, up to this one.
fn up_to(number: u64) -> GtidSet {
    GtidSet::of_range(server(0).into(), 1..=number)
}

/// As a replica does that has received everything.
fn follows(host: &str) -> Replication {
    let (source_host, received) = (host.to_owned(), up_to(9));
    Replication {
        source_host,
        received,
        connects: true,
        receives: true,
        quiet: None,
        applies: true,
        behind: Some(0),
        error: None,
    }
}

/// A cluster of which everything can be changed.
#[derive(Clone)]
struct Harbour {
    size: usize,
    offline: bool,
    upstream: Option<Upstream>,
    restoring: bool,
    instances: Vec<Instance>,
    errant: BTreeSet<Ordinal>,
}

impl Harbour {
    /// All is well.
    fn healthy(size: u16) -> Self {
        let instances = (0..size)
            .map(|ordinal| {
                let replication = follows(PRIMARY_HOST);
                let known = Known {
                    server: server(ordinal),
                    executed: up_to(9),
                    read_only: ordinal != 0,
                    super_read_only: ordinal != 0,
                    replication: (ordinal != 0).then_some(replication),
                    followers: if ordinal == 0 { (1..size).map(|it| FIRST_ID + u32::from(it)).collect() } else { Vec::new() },
                    clone: None,
                    purged: GtidSet::default(),
                    awaits: None,
                    acknowledges: ordinal != 0,
                    waiting_commits: 0,
                };
                Instance { ordinal: Ordinal::new(ordinal), ready: true, leaving: false, known: Some(known) }
            })
            .collect();
        let errant = BTreeSet::new();
        Self { size: size.into(), offline: false, upstream: None, restoring: false, instances, errant }
    }

    fn known(&mut self, ordinal: usize) -> &mut Known {
        self.instances[ordinal].known.as_mut().unwrap()
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn silent(self, ordinals: &[usize]) -> Self {
        self.with(|it| ordinals.iter().for_each(|ordinal| it.instances[*ordinal].known = None))
    }

    fn cluster(&self) -> Cluster<'_> {
        Cluster {
            size: self.size,
            offline: self.offline,
            upstream: self.upstream,
            is_copy: self.upstream == Some(Upstream::Cloned),
            restoring: self.restoring,
            primary: Ordinal::new(0),
            primary_server: Some(server(0)),
            primary_host: PRIMARY_HOST,
            first_server_id: FIRST_ID,
            instances: &self.instances,
            remembered_errant: &self.errant,
        }
    }

    fn state(&self) -> State {
        state(&self.cluster())
    }
}

/// In a copy of another server, only what an instance made itself is errant; of the rest somebody may be ahead.
#[rstest]
#[case::ahead(99, false)]
#[case::its_own(2, true)]
#[case::of_another_instance(3, true)]
fn in_a_copy_who_is_ahead_is_not_errant(#[case] maker: u128, #[case] errant: bool) {
    let surplus = GtidSet::of_range(Uuid::new(maker).into(), 1..=1);
    let ahead = Harbour::healthy(3).with(|it| {
        it.upstream = Some(Upstream::Cloned);
        let known = it.known(1);
        known.executed = known.executed.joined_with(&surplus);
    });
    assert_eq!(ahead.cluster().errant().contains(&Ordinal::new(1)), errant);
    let own = ahead.with(|it| it.upstream = None);
    assert!(own.cluster().errant().contains(&Ordinal::new(1)));
}

#[rstest]
#[case(1)]
#[case(3)]
#[case(5)]
fn a_whole_cluster_is_healthy(#[case] size: u16) {
    assert_eq!(Harbour::healthy(size).state(), State::Healthy);
}

#[rstest]
#[case::offline_stands_above_all(|it: Harbour| it.with(|it| it.offline = true).silent(&[0, 1, 2]), State::Offline)]
#[case::restoring(|it: Harbour| it.with(|it| it.restoring = true), State::Restoring)]
#[case::a_replica_is_not_ready(|it: Harbour| it.with(|it| it.instances[1].ready = false), State::Degraded)]
#[case::a_replica_is_silent(|it: Harbour| it.silent(&[1]), State::Degraded)]
#[case::a_replica_follows_another(|it: Harbour| it.with(|it| it.known(1).replication.as_mut().unwrap().source_host = "elsewhere".into()), State::Degraded)]
#[case::a_replica_takes_writes(|it: Harbour| it.with(|it| it.known(2).super_read_only = false), State::Degraded)]
#[case::a_replica_is_errant(|it: Harbour| it.with(|it| it.known(2).executed = up_to(9).joined_with(&GtidSet::of_range(server(2).into(), 1..=1))), State::Degraded)]
#[case::a_pod_is_missing(|it: Harbour| it.with(|it| drop(it.instances.pop())), State::Degraded)]
#[case::both_replicas_are_silent(|it: Harbour| it.silent(&[1, 2]), State::Incomplete)]
#[case::the_primary_takes_no_writes(|it: Harbour| it.with(|it| it.known(0).read_only = true), State::Incomplete)]
#[case::the_primary_is_not_ready(|it: Harbour| it.with(|it| it.instances[0].ready = false), State::Incomplete)]
#[case::nobody_is_registered(|it: Harbour| it.with(|it| it.known(0).followers.clear()), State::Incomplete)]
#[case::the_primary_is_silent(|it: Harbour| it.silent(&[0]), State::Failed)]
#[case::the_primary_lost_its_data(|it: Harbour| it.with(|it| (it.known(0).server, it.known(0).executed) = (server(7), set(""))), State::Failed)]
#[case::the_primary_and_a_replica_are_silent(|it: Harbour| it.silent(&[0, 1]), State::Lost)]
#[case::nobody_says_anything(|it: Harbour| it.silent(&[0, 1, 2]), State::Lost)]
#[case::a_lost_primary_and_a_replica_that_was_errant(|it: Harbour| it.silent(&[0]).with(|it| it.errant.extend([Ordinal::new(1)])), State::Lost)]
fn the_first_rule_that_matches_decides(#[case] change: fn(Harbour) -> Harbour, #[case] expected: State) {
    assert_eq!(change(Harbour::healthy(3)).state(), expected);
}

#[test]
fn a_stranger_that_follows_does_not_stand_for_a_replica() {
    let harbour = Harbour::healthy(3).with(|it| it.known(0).followers = vec![FIRST_ID + 1, 77]);
    assert_eq!(harbour.state(), State::Incomplete);
}

#[test]
fn one_instance_is_never_degraded_and_never_failed() {
    assert_eq!(Harbour::healthy(1).silent(&[0]).state(), State::Lost);
    assert_eq!(Harbour::healthy(1).with(|it| it.known(0).read_only = true).state(), State::Incomplete);
}

#[test]
fn who_is_ahead_by_the_primarys_own_transactions_is_not_errant() {
    // It received them after the primary was asked.
    let harbour = Harbour::healthy(3).with(|it| it.known(1).executed = up_to(12));
    assert_eq!(harbour.cluster().errant(), BTreeSet::new());
    assert_eq!(harbour.state(), State::Healthy);
}

#[rstest]
#[case::nothing_was_copied(None, "", State::Cloning)]
#[case::it_is_copied(Some(CloneState::Unfinished), "", State::Cloning)]
#[case::it_failed(Some(CloneState::Failed), "", State::Cloning)]
#[case::it_is_there(Some(CloneState::Completed), "00000000-0000-0000-0000-000000000063:1-5", State::Incomplete)]
fn data_from_elsewhere_comes_first(#[case] clone: Option<CloneState>, #[case] executed: &str, #[case] expected: State) {
    let harbour = Harbour::healthy(1).with(|it| {
        it.upstream = Some(Upstream::ToBeCloned);
        it.known(0).clone = clone;
        it.known(0).executed = set(executed);
    });
    assert_eq!(harbour.state(), expected);
    let followed = harbour.clone().with(|it| {
        it.upstream = Some(Upstream::Cloned);
        it.known(0).super_read_only = true;
    });
    assert_eq!(followed.state(), State::Healthy);
    assert_eq!(harbour.silent(&[0]).state(), State::Cloning);
}

#[test]
fn what_was_received_and_not_executed_yet_counts_as_had() {
    let mut harbour = Harbour::healthy(3);
    harbour.known(1).replication.as_mut().unwrap().received = up_to(11);
    assert_eq!(harbour.known(1).has(), up_to(11));
    assert_eq!(harbour.known(0).has(), up_to(9));
}
