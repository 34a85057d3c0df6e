use super::*;
use crate::tidb::answers::Store;
use crate::tidb::component::Component;
use crate::tidb::deeds::{At, Pd};
use std::collections::BTreeSet;
use windlass_core::views::Meta;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn server(process: &str) -> Server {
    Server {
        component: Component::Pd,
        namespace: "shop".into(),
        certificate: None,
        pod: "a-pd-0".into(),
        pod_uid: "uid".into(),
        process: process.into(),
        host: "a-pd-0.a-pd-peer.shop.svc".into(),
        address: "10.0.0.1".into(),
    }
}

fn seen(state: StoreState) -> PdSeen {
    let store = Store {
        id: 4,
        address: "a-tikv-0.a-tikv-peer.shop.svc:20160".into(),
        state,
        labels: BTreeMap::new(),
        leaders: 1,
        regions: 1,
        started: None,
        heard: None,
    };
    PdSeen {
        cluster: 7,
        health: Ok([(1, true)].into()),
        members: Ok(vec![]),
        leader: Ok(Some(1)),
        config: Err("lost".into()),
        tiflash_copies: Ok(0),
        stores: Ok(Stores::Listed([(4, store)].into())),
        evicting: Ok(BTreeSet::new()),
    }
}

fn heard(facts: &mut Facts, second: i64, state: StoreState) {
    let answer = Ok(Box::new((server("p1"), seen(state))));
    facts.learn(Fact::Pd { asked: at(second), answer }, at(second + 1));
}

fn children(process: &str) -> Children {
    let meta = Meta { name: "a-pd-0".into(), uid: "uid".into(), ..Meta::default() };
    let pod = PodView { meta, process: Some(process.into()), ..PodView::default() };
    Children { pods: [("a-pd-0".to_owned(), pod)].into(), ..Children::default() }
}

fn since_of(facts: &Facts) -> Timestamp {
    facts.pd.as_ref().unwrap().since[&Of::Store(4)].1
}

#[test]
fn a_state_lasts_while_it_is_seen_again_and_again() {
    let mut facts = Facts::default();
    heard(&mut facts, 10, StoreState::Down);
    heard(&mut facts, 20, StoreState::Down);
    assert_eq!(since_of(&facts), at(11));
    heard(&mut facts, 30, StoreState::Up);
    assert_eq!(since_of(&facts), at(31));
}

#[test]
fn nobody_knows_what_lasted_through_a_long_silence() {
    let mut facts = Facts::default();
    heard(&mut facts, 10, StoreState::Down);
    heard(&mut facts, 100, StoreState::Down);
    assert_eq!(since_of(&facts), at(101));
}

#[test]
fn silence_keeps_what_was_heard_with_its_age_and_says_that_it_is_silent() {
    let mut facts = Facts::default();
    heard(&mut facts, 10, StoreState::Up);
    facts.learn(Fact::Pd { asked: at(20), answer: Err("refused".into()) }, at(21));
    facts.learn(Fact::Pd { asked: at(22), answer: Err("refused".into()) }, at(23));
    let pd = facts.pd.unwrap();
    assert_eq!((pd.asked, pd.tried, pd.silent), (at(10), at(22), Some(("refused".to_owned(), 2))));
    assert!(pd.seen.is_some());
}

#[test]
fn an_answer_goes_with_the_process_that_gave_it() {
    let mut facts = Facts::default();
    heard(&mut facts, 10, StoreState::Up);
    facts.forget(&children("p1"));
    assert!(facts.pd.as_ref().unwrap().seen.is_some());
    facts.forget(&children("p2"));
    assert!(facts.pd.as_ref().unwrap().seen.is_none());
}

#[test]
fn what_was_asked_before_a_task_ended_does_not_tell_of_its_member() {
    let mut facts = Facts::default();
    let pd = Pd { servers: vec![server("p1")], cluster: Some(7) };
    let task = Task::EvictLeaders { store: 4 };
    let deed = Deed { at: At::Pd(pd), task: task.clone(), about: "a-tikv-0".into(), identity: "7/4".into() };
    assert!(facts.is_settled("a-tikv-0", at(10)));
    facts.learn(Fact::Ended { deed: Box::new(deed.clone()), end: End::Done }, at(10));
    assert!(!facts.is_settled("a-tikv-0", at(10)));
    assert!(facts.is_settled("a-tikv-0", at(11)) && facts.is_settled("a-tikv-1", at(9)));
    assert_eq!(facts.done("a-tikv-0").map(|it| &it.task), Some(&task));
    for second in [12, 13] {
        facts.learn(Fact::Ended { deed: Box::new(deed.clone()), end: End::Failed { why: "no".into() } }, at(second));
    }
    assert_eq!(facts.failed("a-tikv-0").map(|it| (it.times, it.again())), Some((2, at(15))));
    facts.learn(Fact::Ended { deed: Box::new(deed), end: End::Done }, at(16));
    assert_eq!(facts.failed("a-tikv-0"), None);
}

#[test]
fn of_a_pod_that_is_gone_pd_knows_when_it_was_asked_since() {
    let mut facts = Facts::default();
    facts.forget(&children("p1"));
    facts.forget(&Children::default());
    let pod = children("p1").pods.keys().next().unwrap().clone();
    assert!(facts.is_just_gone(&pod));
    // The first answer may have been under way.
    heard(&mut facts, 10, StoreState::Up);
    assert!(facts.is_just_gone(&pod));
    heard(&mut facts, 11, StoreState::Up);
    assert!(!facts.is_just_gone(&pod));
}
