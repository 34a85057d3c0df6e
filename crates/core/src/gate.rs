//! The gate: which steps go, which are held, and who may act.
//!
//! Pausing is not an `if` in the code that acts: a closed lane turns steps into held steps, and code that acts needs a
//! [`Permit`], which only this module can make.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde::Serialize;
use windlass_api::logbook::Pauses;

use crate::lane::{Lane, LaneType, Resources};
use crate::plan::Plan;
use crate::step::{Act, Action, Manifest, ObjectKind, Step};

/// What a pause waits for that is not on record yet.
const RECORD: &str = "the write of the logbook";

/// What the user asks of one lane, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseRequest {
    /// Whether it shall be closed.
    pub paused: bool,
    /// Why, in the user's words; may be empty.
    pub reason: String,
}

/// What the user asks of both lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseRequests {
    /// Kubernetes objects.
    pub resources: PauseRequest,
    /// Database clustering.
    pub clustering: PauseRequest,
}

impl PauseRequests {
    /// The request for a lane.
    pub fn lane(&self, lane: Lane) -> &PauseRequest {
        match lane {
            Lane::Resources => &self.resources,
            Lane::Clustering => &self.clustering,
        }
    }
}

/// The state of one lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Door {
    /// Steps go.
    Open,
    /// The pause is not acknowledged yet: no step starts, and what runs is on its way to its safe point.
    Closing {
        /// What is awaited.
        awaiting: Vec<String>,
    },
    /// The pause is acknowledged: nothing is written.
    Closed,
    /// The user resumed; the acknowledgement has to be withdrawn in the status before the first step goes.
    Opening,
}

impl Door {
    /// Decides the state of a lane from what is asked, what was acknowledged, and what still runs in it.
    pub fn decide(paused: bool, acknowledged: bool, running: Vec<String>) -> Self {
        match (paused, acknowledged) {
            (false, false) => Self::Open,
            (false, true) => Self::Opening,
            (true, _) if running.is_empty() => Self::Closed,
            (true, _) => Self::Closing { awaiting: running },
        }
    }
}

/// Both lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gate {
    resources: Door,
    clustering: Door,
    epoch: u64,
    /// The `StatefulSets` that were deleted to be made again.
    halfway: BTreeSet<String>,
    /// Whether a pause of the clustering waits for something that only steps can finish.
    finishes: bool,
}

impl Gate {
    /// A gate with these doors.
    pub fn new(resources: Door, clustering: Door) -> Self {
        Self { resources, clustering, epoch: 0, halfway: BTreeSet::new(), finishes: false }
    }

    /// The gate of this epoch of the claim.
    pub fn in_epoch(self, epoch: u64) -> Self {
        Self { epoch, ..self }
    }

    /// The gate while these `StatefulSets` are halfway: a pause waits until they are there again.
    pub fn halfway_with(self, halfway: BTreeSet<String>) -> Self {
        Self { halfway, ..self }
    }

    /// The gate while something of the clustering is halfway: a pause lets through what finishes or undoes it.
    pub fn finishing(self, finishes: bool) -> Self {
        Self { finishes, ..self }
    }

    /// The state of a lane.
    pub fn door(&self, lane: Lane) -> &Door {
        match lane {
            Lane::Resources => &self.resources,
            Lane::Clustering => &self.clustering,
        }
    }

    /// Whether no pause concerns any step.
    pub fn is_open(&self) -> bool {
        self.resources == Door::Open && self.clustering == Door::Open
    }

    /// Whether everything is paused, and that was acknowledged.
    pub fn is_shut(&self) -> bool {
        [&self.resources, &self.clustering].into_iter().all(|door| matches!(door, Door::Closed | Door::Opening))
    }

    /// The gate as it may be told when nothing could be recorded in this pass: a pause that is not on record is not acknowledged.
    pub fn as_recorded(&self, pauses: &Pauses) -> Self {
        let told = |door: &Door, on_record: bool| match door {
            Door::Closed if !on_record => Door::Closing { awaiting: vec![RECORD.to_owned()] },
            door => door.clone(),
        };
        let (resources, clustering) = (pauses.resources.is_some(), pauses.clustering.is_some());
        Self { resources: told(&self.resources, resources), clustering: told(&self.clustering, clustering), ..self.clone() }
    }

    /// The permit to act in a lane, if it is open.
    pub fn permit<L: LaneType>(&self) -> Option<Permit<L>> {
        L::LANE.is_none_or(|lane| self.lets_through(lane)).then_some(Permit { lane: PhantomData, epoch: self.epoch })
    }

    fn lets_through(&self, lane: Lane) -> bool {
        match self.door(lane) {
            Door::Open => true,
            Door::Closing { .. } => lane == Lane::Clustering && self.finishes,
            Door::Closed | Door::Opening => false,
        }
    }

    /// The permit to make an object, if its lane is open, if no pause holds it back, or if it ends what a pause waits for.
    pub fn permit_to_make(&self, manifest: &Manifest) -> Option<Permit<Resources>> {
        let finishes = matches!(self.resources, Door::Closing { .. }) && self.finishes(manifest);
        let goes = finishes || manifest.never_held;
        self.permit().or_else(|| goes.then_some(Permit { lane: PhantomData, epoch: self.epoch }))
    }

    /// A delete is followed by its create.
    fn finishes(&self, manifest: &Manifest) -> bool {
        let object = &manifest.object;
        object.kind == ObjectKind::StatefulSet && manifest.over.is_none() && self.halfway.contains(&object.name)
    }

    fn lets_go<A: Action>(&self, step: &Step<A>) -> bool {
        match (step.lane(), &step.act) {
            (None, _) => true,
            (Some(_), Act::Apply(manifest)) => self.permit_to_make(manifest).is_some(),
            (Some(lane), _) => self.lets_through(lane),
        }
    }

    /// Parts a plan into what goes and what is held.
    pub fn part<A: Action>(&self, plan: &Plan<A>) -> Parted<A> {
        let (go, held) = plan.steps.iter().cloned().partition(|step| self.lets_go(step));
        Parted { go, held }
    }
}

/// A plan after the gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Parted<A> {
    /// Steps to take now.
    pub go: Vec<Step<A>>,
    /// Steps that a pause holds back.
    pub held: Vec<Step<A>>,
}

/// The proof that a lane was open. Whoever writes to a cluster asks for one; it cannot be made, copied or kept outside.
#[derive(Debug)]
pub struct Permit<L: LaneType> {
    lane: PhantomData<L>,
    epoch: u64,
}

impl<L: LaneType> Permit<L> {
    /// The epoch of the claim in which it was given. A member that has seen a higher one refuses what comes with it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::Clustering;
    use crate::step::{ObjectRef, Owner};
    use rstest::rstest;
    use serde_json::Value;
    use std::collections::BTreeMap;
    use windlass_api::logbook::PauseRecord;

    #[rstest]
    #[case(false, false, &[], Door::Open)]
    #[case(false, false, &["hook"], Door::Open)]
    #[case(false, true, &[], Door::Opening)]
    #[case(false, true, &["hook"], Door::Opening)]
    #[case(true, false, &[], Door::Closed)]
    #[case(true, false, &["hook"], Door::Closing { awaiting: vec!["hook".into()] })]
    #[case(true, true, &[], Door::Closed)]
    #[case(true, true, &["hook"], Door::Closing { awaiting: vec!["hook".into()] })]
    fn a_door_follows_request_acknowledgement_and_work(
        #[case] paused: bool,
        #[case] acknowledged: bool,
        #[case] running: &[&str],
        #[case] expected: Door,
    ) {
        let running = running.iter().map(ToString::to_string).collect();
        assert_eq!(Door::decide(paused, acknowledged, running), expected);
    }

    #[test]
    fn a_pause_that_is_not_on_record_is_not_acknowledged() {
        let recorded = Pauses { resources: Some(PauseRecord::default()), ..Pauses::default() };
        let told = Gate::new(Door::Closed, Door::Closed).as_recorded(&recorded);
        assert_eq!(*told.door(Lane::Resources), Door::Closed);
        assert_eq!(*told.door(Lane::Clustering), Door::Closing { awaiting: vec![RECORD.into()] });
        for door in [Door::Open, Door::Opening] {
            assert_eq!(Gate::new(door.clone(), door.clone()).as_recorded(&Pauses::default()), Gate::new(door.clone(), door));
        }
    }

    #[test]
    fn a_pause_lets_through_what_it_waits_for_until_it_is_acknowledged() {
        let closing = Door::Closing { awaiting: vec!["a change of the primary".into()] };
        let gate = Gate::new(closing.clone(), closing).finishing(true);
        assert!(gate.permit::<Clustering>().is_some() && gate.permit::<Resources>().is_none());
        assert!(Gate::new(Door::Open, Door::Closed).finishing(true).permit::<Clustering>().is_none());
    }

    #[test]
    fn what_is_never_held_goes_through_a_closed_lane() {
        let object = ObjectRef { kind: ObjectKind::Service, namespace: "a".into(), name: "a-discovery".into() };
        let owner = Owner { api_version: "v1".into(), kind: "A".into(), name: "a".into(), uid: "u".into() };
        let (labels, annotations) = (BTreeMap::new(), BTreeMap::new());
        let held = Manifest { object, labels, annotations, owner, spec: Value::Null, over: None, never_held: false };
        let free = Manifest { never_held: true, ..held.clone() };
        let gate = Gate::new(Door::Closed, Door::Closed);
        assert!(gate.permit_to_make(&held).is_none() && gate.permit_to_make(&free).is_some());
    }

    #[test]
    fn only_an_open_lane_gives_a_permit() {
        for door in [Door::Closed, Door::Opening, Door::Closing { awaiting: vec![] }] {
            let gate = Gate::new(door.clone(), Door::Open);
            assert!(gate.permit::<Resources>().is_none(), "{door:?}");
            assert!(gate.permit::<Clustering>().is_some());
            let gate = Gate::new(Door::Open, door.clone());
            assert!(gate.permit::<Clustering>().is_none(), "{door:?}");
            assert!(gate.permit::<Resources>().is_some());
        }
    }
}
