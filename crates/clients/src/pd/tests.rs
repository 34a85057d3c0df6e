//! Calls beside a server that answers as it is told. The real one is in `tests/pd`.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_kinds::tidb::answers::{StoreState, Stores};

use super::*;
use crate::guard::Guard;
use crate::script::Script;

/// What is answered in turn, whether it is done then, and how often it was sent.
type Case<'a> = (&'a [(u16, String)], bool, usize);

const ADDRESS: &str = "a-tikv-0:20160";

fn store(state: &str, labels: &[(&str, &str)]) -> String {
    let labels: Vec<_> = labels.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    json!({
        "store": {"id": 4, "address": ADDRESS, "state_name": state, "labels": labels},
        "status": {"leader_count": 1, "region_count": 1},
    })
    .to_string()
}

fn members(names: &[&str], leader: u64) -> String {
    let members: Vec<_> = names.iter().zip(1..).map(|(name, id)| json!({"name": name, "member_id": id})).collect();
    json!({"members": members, "leader": {"member_id": leader}}).to_string()
}

fn no(why: &str) -> (u16, String) {
    (500, json!(why).to_string())
}

/// Answers in this order, whatever is asked; the last one again and again.
async fn in_order(answers: Vec<(u16, String)>) -> Script {
    let mut answers = answers.into_iter().peekable();
    let mut last = (500, String::new());
    Script::new(move |_| {
        last = answers.next().unwrap_or_else(|| last.clone());
        last.clone()
    })
    .await
}

fn ok(body: impl Into<String>) -> (u16, String) {
    (200, body.into())
}

#[tokio::test]
async fn before_the_first_store_there_is_nothing_to_know_and_that_is_known() {
    let script =
        in_order(vec![no("[PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first")]).await;
    let (http, peer) = (Http::default(), script.peer());
    let pd = Pd::new(&http, &peer);
    assert_eq!(pd.stores().await.unwrap(), Stores::NotBootstrapped);
    assert_eq!(pd.tiflash_copies().await.unwrap(), 0);
    assert_eq!(pd.evicting().await.unwrap(), [].into());
    assert!(pd.config().await.is_err());
}

#[tokio::test]
async fn other_refusals_are_no_answers() {
    let script = in_order(vec![(503, "no leader\n".to_owned())]).await;
    let (http, peer) = (Http::default(), script.peer());
    let pd = Pd::new(&http, &peer);
    let why = pd.stores().await.unwrap_err().to_string();
    assert_eq!(why, format!("asking PD for the stores: http://a-pd-0:{} answers with status 503: no leader", script.port()));
    assert!(pd.tiflash_copies().await.is_err());
    assert!(pd.evicting().await.is_err());
    assert!(pd.members().await.is_err());
    assert!(pd.cluster().await.is_err());
}

#[tokio::test]
async fn rules_that_are_off_hold_nothing() {
    let table = [
        ((412, json!("placement rules feature is disabled").to_string()), 0),
        ((404, "404 page not found".to_owned()), 0),
        (ok("null"), 0),
        (ok("[]"), 0),
        (ok(r#"[{"group_id":"tiflash","id":"table-1-r","role":"learner","count":2},{"count":1}]"#), 2),
    ];
    for (answer, copies) in table {
        let script = in_order(vec![answer.clone()]).await;
        let (http, peer) = (Http::default(), script.peer());
        assert_eq!(Pd::new(&http, &peer).tiflash_copies().await.unwrap(), copies, "{answer:?}");
    }
    let script = in_order(vec![ok(r#"[{"id":"x"}]"#)]).await;
    let (http, peer) = (Http::default(), script.peer());
    assert!(Pd::new(&http, &peer).tiflash_copies().await.is_err());
}

#[tokio::test]
async fn older_members_are_ready_and_later_ones_say_so() {
    for (status, ready) in [(200, Some(true)), (404, Some(true)), (500, Some(false)), (503, Some(false)), (403, None)] {
        let script = in_order(vec![(status, String::new())]).await;
        let (http, peer) = (Http::default(), script.peer());
        assert_eq!(Pd::new(&http, &peer).ready().await.ok(), ready, "{status}");
        assert_eq!(script.heard(), ["GET /pd/api/v2/ready"]);
    }
}

#[tokio::test]
async fn a_store_is_deleted_once_and_only_where_it_was_meant_to_be() {
    let table: &[Case] = &[
        // It was Up, and it is said that it leaves.
        (&[ok(store("Up", &[])), ok("\"The store is set as Offline.\"")], true, 1),
        // It leaves already, or has left.
        (&[ok(store("Offline", &[]))], true, 0),
        (&[ok(store("Tombstone", &[]))], true, 0),
        (&[(404, json!("store 4 not found").to_string())], true, 0),
        // No, and it is as it was; no, and it left all the same.
        (&[ok(store("Up", &[])), no("not enough stores"), ok(store("Up", &[]))], false, 1),
        (&[ok(store("Down", &[])), (410, "gone".into()), ok(store("Tombstone", &[]))], true, 1),
        // How it is now is not known.
        (&[ok(store("Up", &[])), no("hm"), (503, "no leader".into())], false, 1),
        (&[(503, "no leader".into())], false, 0),
    ];
    for (answers, done, sent) in table {
        let script = in_order(answers.to_vec()).await;
        let (http, peer) = (Http::default(), script.peer());
        let end = Pd::new(&http, &peer).delete_store(4, ADDRESS).await;
        assert_eq!(end.is_ok(), *done, "{answers:?}: {end:?}");
        assert_eq!(script.changes(), vec!["DELETE /pd/api/v1/store/4"; *sent], "{answers:?}");
    }
    let script = in_order(vec![ok(store("Up", &[]))]).await;
    let (http, peer) = (Http::default(), script.peer());
    let why = Pd::new(&http, &peer).delete_store(4, "b-tikv-0:20160").await.unwrap_err().to_string();
    assert!(why.contains("\"a-tikv-0:20160\", and not at \"b-tikv-0:20160\""), "{why}");
    assert!(script.changes().is_empty());
}

#[tokio::test]
async fn a_store_is_called_back_until_it_has_left() {
    let table: &[Case] = &[
        (&[ok(store("Offline", &[])), ok("\"The store's state is updated.\"")], true, 1),
        (&[ok(store("Up", &[]))], true, 0),
        (&[ok(store("Disconnected", &[]))], true, 0),
        (&[ok(store("Tombstone", &[]))], false, 0),
        (&[(404, "none".into())], false, 0),
        (&[ok(store("Offline", &[])), (410, "gone".into()), ok(store("Tombstone", &[]))], false, 1),
        (&[ok(store("Offline", &[])), no("hm"), ok(store("Down", &[]))], true, 1),
    ];
    for (answers, done, sent) in table {
        let script = in_order(answers.to_vec()).await;
        let (http, peer) = (Http::default(), script.peer());
        let end = Pd::new(&http, &peer).restore_store(4, ADDRESS).await;
        assert_eq!(end.is_ok(), *done, "{answers:?}: {end:?}");
        assert_eq!(script.changes(), vec!["POST /pd/api/v1/store/4/state?state=Up"; *sent], "{answers:?}");
    }
}

#[tokio::test]
async fn labels_that_are_there_are_not_set() {
    let wanted: BTreeMap<String, String> = [("zone".to_owned(), "a".to_owned())].into();
    let script =
        in_order(vec![ok(store("Up", &[("zone", "a"), ("x", "y")])), ok(store("Up", &[("zone", "b")])), ok("\"ok\"")]).await;
    let (http, peer) = (Http::default(), script.peer());
    let pd = Pd::new(&http, &peer);
    pd.label_store(4, ADDRESS, &wanted).await.unwrap();
    assert!(script.changes().is_empty());
    pd.label_store(4, ADDRESS, &wanted).await.unwrap();
    assert_eq!(script.changes(), [r#"POST /pd/api/v1/store/4/label {"zone":"a"}"#]);
}

#[tokio::test]
async fn eviction_begins_and_ends_also_where_it_had_before() {
    let listed = r#"["balance-region-scheduler","evict-leader-scheduler"]"#;
    let ranges = r#"{"store-id-ranges":{"4":[{"start-key":"","end-key":""}]}}"#;
    let script = in_order(vec![no("the scheduler has existed"), ok(listed), ok(ranges)]).await;
    let (http, peer) = (Http::default(), script.peer());
    Pd::new(&http, &peer).evict_leaders(4).await.unwrap();
    assert_eq!(script.changes(), [r#"POST /pd/api/v1/schedulers {"name":"evict-leader-scheduler","store_id":4}"#]);

    // Another store was first, and is in it alone.
    let existed = no("[PD:scheduler:ErrSchedulerExisted]scheduler existed");
    let script = in_order(vec![existed, ok(r#"["evict-leader-scheduler-5"]"#), ok("")]).await;
    let peer = script.peer();
    Pd::new(&http, &peer).evict_leaders(4).await.unwrap();
    assert_eq!(script.changes().len(), 2);

    let script = in_order(vec![no("oh"), ok(r#"["evict-leader-scheduler-5"]"#)]).await;
    let (http, peer) = (Http::default(), script.peer());
    assert!(Pd::new(&http, &peer).evict_leaders(4).await.is_err());

    let script = in_order(vec![(404, "\"not found\"".into()), ok("[]")]).await;
    let (http, peer) = (Http::default(), script.peer());
    Pd::new(&http, &peer).stop_evicting(4).await.unwrap();
    assert_eq!(script.changes(), ["DELETE /pd/api/v1/schedulers/evict-leader-scheduler-4"]);
}

#[tokio::test]
async fn a_scheduler_that_goes_between_two_questions_evicts_nothing() {
    let listed = || ok(r#"["evict-leader-scheduler"]"#);
    let gone = || (404, "\"scheduler not found\"".to_owned());
    let script = in_order(vec![listed(), gone(), ok("[]")]).await;
    let (http, peer) = (Http::default(), script.peer());
    assert_eq!(Pd::new(&http, &peer).evicting().await.unwrap(), [].into());
    let script = in_order(vec![listed(), gone(), listed(), gone(), listed(), gone()]).await;
    let (http, peer) = (Http::default(), script.peer());
    assert!(Pd::new(&http, &peer).evicting().await.is_err(), "what contradicts itself is not known");
}

#[tokio::test]
async fn a_member_leaves_under_its_name_and_another_one_leads() {
    let pds = ["a-pd-0", "a-pd-1", "a-pd-2"];
    let script = in_order(vec![ok(members(&pds, 1)), ok("\"removed, pd: 2\"")]).await;
    let (http, peer) = (Http::default(), script.peer());
    let pd = Pd::new(&http, &peer);
    pd.delete_member(2, "a-pd-1").await.unwrap();
    assert_eq!(script.changes(), ["DELETE /pd/api/v1/members/id/2"]);

    let script = in_order(vec![ok(members(&pds, 1))]).await;
    let peer = script.peer();
    let pd = Pd::new(&http, &peer);
    assert!(pd.delete_member(2, "a-pd-2").await.is_err(), "another one has this id");
    pd.delete_member(9, "a-pd-9").await.unwrap();
    pd.transfer_leader("a-pd-0").await.unwrap();
    assert!(script.changes().is_empty());

    let script = in_order(vec![ok(members(&pds, 1)), ok("\"The transfer command is submitted.\"")]).await;
    let peer = script.peer();
    Pd::new(&http, &peer).transfer_leader("a-pd-2").await.unwrap();
    assert_eq!(script.changes(), ["POST /pd/api/v1/leader/transfer/a-pd-2"]);
}

#[tokio::test]
async fn rules_are_enabled() {
    let script = in_order(vec![ok("\"The config is updated.\"")]).await;
    let (http, peer) = (Http::default(), script.peer());
    Pd::new(&http, &peer).enable_placement_rules().await.unwrap();
    assert_eq!(script.changes(), [r#"POST /pd/api/v1/config/replicate {"enable-placement-rules":"true"}"#]);
}

#[tokio::test]
async fn a_former_leader_changes_nothing_and_may_look() {
    let script = in_order(vec![ok(store("Up", &[]))]).await;
    let http = Http::default().guarded(Guard::new(|| Err("the Lease is gone".into())));
    let peer = script.peer();
    let pd = Pd::new(&http, &peer);
    let why = pd.delete_store(4, ADDRESS).await.unwrap_err().to_string();
    assert!(why.ends_with("the Lease is gone"), "{why}");
    assert!(script.changes().is_empty());
    assert_eq!(pd.store(4).await.unwrap().unwrap().state, StoreState::Up);
}
