//! Members that ask, start, crash, lose their volumes and come back, in any order; a discovery that is started anew now and then; and an
//! operator that records what it sees late, or never. Whatever happens, nobody begins a cluster while data of another one is anywhere,
//! or is about to be, nor once one is on record.

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_core::ordinals::{Ordinal, Ordinals};
use windlass_dice::Dice;

use super::*;

/// What a member is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Doing {
    /// It has no data, and asks.
    Asks,
    /// It was told how to begin, and has not written anything yet.
    Obeys(Answer),
    /// It runs, with the data that it has.
    Runs,
    /// Nothing.
    Nothing,
}

struct Member {
    claim: u64,
    bound: bool,
    /// The cluster whose data it has.
    data: Option<u64>,
    doing: Doing,
}

struct World {
    dice: Dice,
    now: Duration,
    members: BTreeMap<Ordinal, Member>,
    /// Who is a member of each cluster that was begun.
    clusters: BTreeMap<u64, Ordinals>,
    heard: Heard,
    slots: Ordinals,
    recorded: Option<u64>,
    labelled: Option<(Ordinal, u64)>,
    claims_made: u64,
    begun: Vec<Ordinal>,
}

impl World {
    fn new(seed: u64, replicas: u16) -> Self {
        let mut dice = Dice::new(seed);
        let members = (0..replicas)
            .map(|ordinal| {
                let member = Member { claim: ordinal.into(), bound: !dice.chance(20), data: None, doing: Doing::Nothing };
                (Ordinal::new(ordinal), member)
            })
            .collect();
        Self {
            dice,
            now: Duration::from_secs(1000),
            members,
            clusters: BTreeMap::new(),
            heard: Heard::default(),
            slots: Ordinals::new(),
            recorded: None,
            labelled: None,
            claims_made: 1000,
            begun: Vec::new(),
        }
    }

    /// The cluster that answers: most of its members run.
    fn answering(&self) -> Option<u64> {
        let runs = |ordinal: Ordinal, id: u64| {
            self.members.get(&ordinal).is_some_and(|it| it.data == Some(id) && it.doing == Doing::Runs)
        };
        let has_quorum = |(id, of): &(&u64, &Ordinals)| of.iter().filter(|it| runs(*it, **id)).count() * 2 > of.len();
        self.clusters.iter().find(has_quorum).map(|(id, _)| *id)
    }

    fn told(&self) -> Result<Told, String> {
        let id = self.answering().ok_or("nobody answers")?;
        let member = |ordinal: Ordinal| PdMember {
            id: ordinal.get().into(),
            name: format!("a-pd-{ordinal}"),
            client_url: format!("http://{ordinal}"),
        };
        Ok(Told { cluster: Some(id), members: self.clusters[&id].iter().map(member).collect() })
    }

    fn claims(&self) -> Vec<Claim> {
        let claim = |(ordinal, member): (&Ordinal, &Member)| Claim {
            name: format!("pd-a-pd-{ordinal}"),
            uid: member.claim.to_string(),
            ordinal: Some(*ordinal),
            cluster_id: self.labelled.filter(|(of, _)| of == ordinal).map(|(_, id)| id.to_string()),
            is_bound: member.bound,
        };
        self.members.iter().map(claim).collect()
    }

    fn cluster(&self) -> Cluster {
        let slots = self.slots.to_string();
        let object = serde_json::json!({
            "metadata": {"name": "a", "namespace": "n", "annotations": {"pd.tidb.pingcap.com/delete-slots": slots}},
            "spec": {"pd": {"replicas": self.members.len() - self.slots.len()}},
            "status": {"clusterID": self.recorded.map(|id| id.to_string())},
        });
        Cluster::read(&object).unwrap()
    }

    fn ask(&mut self, ordinal: Ordinal) {
        let asker = Asker { pod: format!("a-pd-{ordinal}"), ordinal, host: format!("a-pd-{ordinal}.a-pd-peer.n.svc") };
        let (came, claims) = (self.now, self.claims());
        let uids = Claim::of(&claims, ordinal);
        // Others may do something between the question and the answer.
        self.now += Duration::from_millis(self.dice.below(2500).into());
        let seen = if self.dice.chance(5) { Err("a time-out".to_owned()) } else { Ok(claims) };
        let told = if self.dice.chance(10) { Err("a time-out".to_owned()) } else { self.told() };
        let cluster = self.cluster();
        let scene = Scene { asker: &asker, cluster: &cluster, claims: &seen, told: &told, heard: &self.heard, now: self.now };
        let answer = scene.answer();
        self.heard.note(ordinal, uids, came, &answer, self.now);
        if matches!(answer, Answer::Begin { .. }) {
            self.check_that_nothing_is_there(ordinal);
            self.begun.push(ordinal);
        }
        // It may be lost on the way.
        if answer.argument().is_some()
            && !self.dice.chance(20)
            && let Some(member) = self.members.get_mut(&ordinal)
        {
            member.doing = Doing::Obeys(answer);
        }
    }

    fn check_that_nothing_is_there(&self, beginner: Ordinal) {
        assert_eq!((self.recorded, self.labelled), (None, None), "the cluster is on record, and {beginner} begins");
        for (ordinal, member) in self.members.iter().filter(|(ordinal, _)| **ordinal != beginner) {
            assert_eq!(member.data, None, "{ordinal} has data, and {beginner} begins");
            assert!(!matches!(member.doing, Doing::Obeys(_)), "{ordinal} is about to have data, and {beginner} begins");
        }
    }

    /// A member does what it does next.
    fn go_on(&mut self, ordinal: Ordinal) {
        let Some(member) = self.members.get_mut(&ordinal) else { return };
        match member.doing.clone() {
            Doing::Asks => self.ask(ordinal),
            Doing::Obeys(Answer::Begin { .. }) => {
                let id = 1 + u64::try_from(self.clusters.len()).unwrap();
                (member.data, member.doing) = (Some(id), Doing::Runs);
                self.clusters.insert(id, [ordinal].into_iter().collect());
            }
            Doing::Obeys(_) => match self.answering() {
                // A member that is on the list already, without data, is turned away.
                Some(id) if !self.clusters[&id].contains(ordinal) => {
                    if let (Some(member), Some(of)) = (self.members.get_mut(&ordinal), self.clusters.get_mut(&id)) {
                        (member.data, member.doing) = (Some(id), Doing::Runs);
                        of.insert(ordinal);
                    }
                }
                _ => self.with(ordinal, |member| member.doing = Doing::Asks),
            },
            Doing::Runs => {}
            Doing::Nothing => {
                member.bound = true;
                member.doing = if member.data.is_some() { Doing::Runs } else { Doing::Asks };
            }
        }
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(self.dice.below(4000).into());
        let ordinals: Vec<Ordinal> = self.members.keys().copied().collect();
        let ordinal = ordinals[self.dice.index(ordinals.len())];
        match self.dice.below(100) {
            0..70 => self.go_on(ordinal),
            70..80 => self.with(ordinal, |member| member.doing = Doing::Nothing),
            80..85 => {
                self.claims_made += 1;
                let claim = self.claims_made;
                self.labelled = self.labelled.filter(|(of, _)| *of != ordinal);
                self.with(ordinal, |member| *member = Member { claim, bound: false, data: None, doing: Doing::Nothing });
            }
            85..90 => self.heard = Heard::default(),
            90..92 => self.now += Duration::from_mins(1),
            92..94 => self.recorded = self.recorded.or(self.answering()),
            94..96 => self.labelled = self.labelled.or(self.answering().map(|id| (ordinal, id))),
            96..98 if self.members.len() > 1 => {
                self.slots = if self.slots.is_empty() { [ordinal].into_iter().collect() } else { Ordinals::new() };
            }
            // Everything is off at once.
            98 => self.members.values_mut().for_each(|member| member.doing = Doing::Nothing),
            _ => {}
        }
    }

    fn with(&mut self, ordinal: Ordinal, change: impl FnOnce(&mut Member)) {
        if let Some(member) = self.members.get_mut(&ordinal) {
            change(member);
        }
    }
}

#[test]
fn nobody_begins_while_there_is_data_or_about_to_be() {
    let rounds = windlass_dice::number("WINDLASS_ROUNDS").unwrap_or(3000);
    let mut begun = 0;
    for seed in 0..rounds {
        let mut world = World::new(seed, 1 + u16::try_from(seed % 5).unwrap());
        for _ in 0..120 {
            world.step();
        }
        begun += world.begun.len();
    }
    assert!(begun > usize::try_from(rounds).unwrap() / 2, "hardly anybody ever began: {begun} in {rounds} histories");
}

#[test]
fn with_the_same_members_wanted_no_two_of_them_ever_begin() {
    for seed in 0..1000 {
        let mut world = World::new(seed, 5);
        for _ in 0..200 {
            world.step();
            world.slots = Ordinals::new();
        }
        assert!(world.begun.iter().all(|it| *it == Ordinal::new(0)), "{:?}", world.begun);
    }
}

#[test]
fn a_new_cluster_comes_up_by_itself_whatever_happened_on_the_way() {
    for seed in 0..500 {
        let replicas = 1 + u16::try_from(seed % 5).unwrap();
        let mut world = World::new(seed, replicas);
        // Restarts and lost answers, but no lost volumes.
        for _ in 0..400 {
            world.now += Duration::from_millis(world.dice.below(3000).into());
            let ordinal = Ordinal::new(world.dice.below(replicas));
            match world.dice.below(100) {
                0..90 => world.go_on(ordinal),
                90..95 => world.with(ordinal, |member| member.doing = Doing::Nothing),
                _ => world.heard = Heard::default(),
            }
        }
        for _ in 0..40 {
            for ordinal in 0..replicas {
                world.go_on(Ordinal::new(ordinal));
            }
        }
        let all = world.members.values().all(|member| member.data == Some(1) && member.doing == Doing::Runs);
        assert!(all, "seed {seed}: {:?}", world.members.values().map(|it| (it.data, it.doing.clone())).collect::<Vec<_>>());
        assert_eq!(world.clusters.len(), 1, "seed {seed}");
    }
}
