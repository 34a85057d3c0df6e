use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus};
use rstest::rstest;
use serde_json::{Value, json};
use windlass_core::ordinals::Ordinals;

use super::*;

/// When members asked last, and what time it is now.
const ASKED: Duration = Duration::from_secs(99);
const NOW: Duration = Duration::from_secs(100);

fn object() -> Value {
    json!({
        "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"pd": {"replicas": 3}, "tikv": {"replicas": "rubbish"}},
    })
}

fn cluster(change: impl FnOnce(&mut Value)) -> Cluster {
    let mut object = object();
    change(&mut object);
    Cluster::read(&object).unwrap()
}

fn asker(ordinal: u16) -> Asker {
    Asker::parse(&format!("a-pd-{ordinal}.a-pd-peer.shop.svc:2380"), "a", "shop").unwrap()
}

fn claim(ordinal: u16) -> Claim {
    let name = format!("pd-a-pd-{ordinal}");
    Claim { uid: name.clone(), ordinal: Some(Ordinal::new(ordinal)), cluster_id: None, is_bound: true, name }
}

fn claims() -> Vec<Claim> {
    vec![claim(0), claim(1), claim(2)]
}

/// These members asked a second ago, and wait.
fn heard(ordinals: &[u16]) -> Heard {
    let mut heard = Heard::default();
    for ordinal in ordinals.iter().copied().map(Ordinal::new) {
        heard.note(ordinal, Claim::of(&claims(), ordinal), ASKED, &wait(), ASKED);
    }
    heard
}

fn wait() -> Answer {
    Answer::Wait { why: String::new() }
}

fn member(id: u64, name: &str) -> PdMember {
    let client_url = if name.is_empty() { String::new() } else { format!("http://{name}.a-pd-peer.shop.svc:2379") };
    PdMember { id, name: name.into(), client_url }
}

fn told(names: &[&str]) -> Told {
    Told { cluster: Some(7), members: names.iter().zip(1..).map(|(name, id)| member(id, name)).collect() }
}

fn silence() -> Result<Told, String> {
    Err("nobody answers".into())
}

fn answer(asker: &Asker, cluster: &Cluster, claims: Vec<Claim>, told: &Result<Told, String>, heard: &Heard) -> Answer {
    Scene { asker, cluster, claims: &Ok(claims), told, heard, now: NOW }.answer()
}

fn why(answer: Answer) -> String {
    match answer {
        Answer::Wait { why } => why,
        other => panic!("{other:?}"),
    }
}

fn begins(answer: &Answer) -> bool {
    matches!(answer, Answer::Begin { .. })
}

#[test]
fn the_lowest_member_begins_when_all_others_have_nothing() {
    let cluster = cluster(|_| {});
    let first = answer(&asker(0), &cluster, claims(), &silence(), &heard(&[1, 2]));
    assert_eq!(first.argument().unwrap(), "--initial-cluster=a-pd-0=http://a-pd-0.a-pd-peer.shop.svc:2380");
    for ordinal in [1, 2] {
        let other = answer(&asker(ordinal), &cluster, claims(), &silence(), &heard(&[0, 1, 2]));
        assert_eq!(other.argument(), None);
        assert_eq!(why(other), "a-pd-0 begins the cluster, and does not answer yet");
    }
}

#[rstest]
#[case::nobody(&[], "a-pd-1, a-pd-2 may have the data")]
#[case::one_is_missing(&[1], "a-pd-2 may have the data")]
fn it_waits_for_members_that_may_have_data(#[case] asked: &[u16], #[case] expected: &str) {
    let said = why(answer(&asker(0), &cluster(|_| {}), claims(), &silence(), &heard(asked)));
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_volume_that_was_never_bound_has_nothing() {
    let unbound = |ordinal| Claim { is_bound: false, ..claim(ordinal) };
    let cluster = cluster(|_| {});
    assert!(begins(&answer(&asker(0), &cluster, vec![claim(0), unbound(1), claim(2)], &silence(), &heard(&[2]))));
    // Pods that are made one after the other.
    assert!(begins(&answer(&asker(0), &cluster, vec![claim(0)], &silence(), &heard(&[]))));
    // A second volume of the same member counts as well.
    let log = Claim { name: "pd-log-a-pd-1".into(), uid: "log".into(), ..claim(1) };
    assert!(!begins(&answer(&asker(0), &cluster, vec![claim(0), unbound(1), log], &silence(), &heard(&[]))));
}

#[test]
fn a_volume_of_a_member_that_is_not_wanted_any_more_counts() {
    let said = why(answer(&asker(0), &cluster(|_| {}), vec![claim(0), claim(5)], &silence(), &heard(&[])));
    assert!(said.starts_with("a-pd-5 may have the data") && said.contains("claim be deleted"), "{said}");
}

#[rstest]
#[case::id(json!({"clusterID": "7"}), "cluster 7")]
#[case::strange_id(json!({"clusterID": 7}), "cluster 7")]
#[case::members(json!({"pd": {"members": {"a-pd-1": {}}}}), "member \"a-pd-1\"")]
fn a_cluster_that_was_there_is_not_begun_again(#[case] status: Value, #[case] expected: &str) {
    let cluster = cluster(|object| object["status"] = status);
    let said = why(answer(&asker(0), &cluster, claims(), &silence(), &heard(&[1, 2])));
    assert!(said.contains(expected) && said.contains("nobody answers") && said.contains("recover PD"), "{said}");
}

#[test]
fn a_claim_of_any_component_that_is_of_a_cluster_keeps_another_from_beginning() {
    let of_tikv =
        Claim { name: "tikv-a-tikv-0".into(), uid: "t".into(), ordinal: None, cluster_id: Some("7".into()), is_bound: true };
    let all = claims().into_iter().chain([of_tikv]).collect();
    let said = why(answer(&asker(0), &cluster(|_| {}), all, &silence(), &heard(&[1, 2])));
    assert!(said.starts_with("volume claim \"tikv-a-tikv-0\" is of cluster 7"), "{said}");
}

#[test]
fn what_is_not_known_is_no_reason_to_begin() {
    let (cluster, heard) = (cluster(|_| {}), heard(&[1, 2]));
    let unknown = Err("no answer within 1 s".to_owned());
    let scene = Scene { asker: &asker(0), cluster: &cluster, claims: &unknown, told: &silence(), heard: &heard, now: NOW };
    assert!(why(scene.answer()).contains("its volume claims could not be read: no answer within 1 s"));
    let said = why(answer(&asker(0), &cluster, vec![], &silence(), &heard));
    assert!(said.contains("volume claim \"pd-a-pd-0\" is not among those"), "{said}");
}

#[rstest]
#[case::deleting(|object: &mut Value| object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"), "being deleted")]
#[case::no_pd(|object: &mut Value| object["spec"]["pd"] = Value::Null, "no PD is wanted")]
#[case::none_wanted(|object: &mut Value| object["spec"]["pd"]["replicas"] = json!(0), "no PD is wanted")]
#[case::left_out(
    |object: &mut Value| object["metadata"]["annotations"] = json!({"pd.tidb.pingcap.com/delete-slots": "[0]"}),
    "a-pd-1 begins the cluster"
)]
#[case::elsewhere(|object: &mut Value| object["spec"]["cluster"] = json!({"name": "b"}), "\"b\" in namespace \"shop\"")]
fn a_cluster_that_is_not_to_begin_here_does_not(#[case] change: fn(&mut Value), #[case] expected: &str) {
    let said = why(answer(&asker(0), &cluster(change), claims(), &silence(), &heard(&[1, 2])));
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_member_joins_those_that_answer_but_not_itself() {
    let cluster = cluster(|_| {});
    let join = answer(&asker(1), &cluster, claims(), &Ok(told(&["a-pd-0", "a-pd-1", "", "a-pd-2"])), &heard(&[]));
    let expected = "--join=http://a-pd-0.a-pd-peer.shop.svc:2379,http://a-pd-2.a-pd-peer.shop.svc:2379";
    assert_eq!(join.argument().unwrap(), expected);
    let host = told(&["a-pd-1.a-pd-peer.shop.svc"]);
    for alone in [told(&["a-pd-1"]), told(&["a-pd-1", ""]), host] {
        let said = why(answer(&asker(1), &cluster, claims(), &Ok(alone), &heard(&[])));
        assert!(said.contains("no other member than a-pd-1"), "{said}");
    }
}

#[test]
fn nobody_joins_another_cluster_than_the_one_on_record() {
    let of = |id: Value| cluster(|object| object["status"] = json!({ "clusterID": id }));
    let all = Ok(told(&["a-pd-0"]));
    let said = why(answer(&asker(1), &of(json!("8")), claims(), &all, &heard(&[])));
    assert!(said.contains("answers as cluster 7") && said.contains("on record as 8"), "{said}");
    assert!(answer(&asker(1), &of(json!("7")), claims(), &all, &heard(&[])).argument().is_some());
    let labelled = |id: &str| vec![Claim { cluster_id: Some(id.into()), ..claim(0) }, claim(1)];
    assert!(answer(&asker(1), &cluster(|_| {}), labelled("8"), &all, &heard(&[])).argument().is_none());
    assert!(answer(&asker(1), &cluster(|_| {}), labelled("7"), &all, &heard(&[])).argument().is_some());
}

#[test]
fn a_pd_at_given_addresses_is_joined_though_it_does_not_answer_here() {
    let cluster = cluster(|object| object["spec"]["pdAddresses"] = json!(["http://x:2379", "http://y:2379"]));
    let join = answer(&asker(2), &cluster, claims(), &silence(), &heard(&[]));
    assert_eq!(join.argument().unwrap(), "--join=http://x:2379,http://y:2379");
}

#[test]
fn members_are_named_and_reached_as_their_scripts_say() {
    let across = cluster(|object| {
        object["spec"]["acrossK8s"] = json!(true);
        object["spec"]["tlsCluster"] = json!({ "enabled": true });
    });
    let first = answer(&asker(0), &across, vec![claim(0)], &silence(), &heard(&[]));
    let host = "a-pd-0.a-pd-peer.shop.svc";
    assert_eq!(first.argument().unwrap(), format!("--initial-cluster={host}=https://{host}:2380"));
}

#[test]
fn asking_proves_something_for_a_while_and_until_one_is_told_how_to_begin() {
    let (one, of) = (Ordinal::new(1), |uid: &str| BTreeSet::from([uid.to_owned()]));
    let second = Duration::from_secs(1);
    let mut heard = Heard::default();
    heard.note(one, of("u"), NOW, &wait(), NOW + second);
    assert!(heard.has_nothing(one, &of("u"), NOW + second * 20));
    assert!(!heard.has_nothing(one, &of("u"), NOW + second * 21), "too long ago");
    assert!(!heard.has_nothing(one, &of("v"), NOW + second), "another volume");
    assert!(!heard.has_nothing(one, &BTreeSet::new(), NOW + second), "no claim");
    assert!(!heard.has_nothing(Ordinal::new(2), &of("u"), NOW + second), "another member");
    heard.note(one, of("u"), NOW + second * 2, &Answer::Join(vec![]), NOW + second * 4);
    assert!(!heard.has_nothing(one, &of("u"), NOW + second * 4), "it may have begun");
    // A question from before, which was answered late.
    heard.note(one, of("u"), NOW + second * 3, &wait(), NOW + second * 5);
    assert!(!heard.has_nothing(one, &of("u"), NOW + second * 5), "it may have begun since");
    heard.note(one, of("u"), NOW + second * 6, &wait(), NOW + second * 6);
    assert!(heard.has_nothing(one, &of("u"), NOW + second * 6));
}

#[test]
fn only_members_of_this_cluster_ask() {
    assert_eq!(asker(0).host, "a-pd-0.a-pd-peer.shop.svc");
    let with_domain = Asker::parse("a-pd-12.a-pd-peer.shop.svc.cluster.local:2380\n", "a", "shop").unwrap();
    assert_eq!((with_domain.pod.as_str(), with_domain.ordinal), ("a-pd-12", Ordinal::new(12)));
    for other in [
        "",
        "a-pd-0.a-pd-peer.shop.svc",
        "a-pd-0.a-pd-peer.shop.svc:2379",
        "b-pd-0.b-pd-peer.shop.svc:2380",
        "a-pd-0.a-pd-peer.bar.svc:2380",
        "a-pd-0.b-pd-peer.shop.svc:2380",
        "a-pd-00.a-pd-peer.shop.svc:2380",
        "a-pd-0.a-pd-peer.shop.svc.x y:2380",
        "a-pd-0.a-pd-peer.shop.svc.:2380",
        "a-pd-0.a-pd-peer:2380",
    ] {
        let error = Asker::parse(other, "a", "shop").unwrap_err().to_string();
        assert!(error.contains("expected a-pd-NUMBER.a-pd-peer.shop.svc:2380"), "{error}");
    }
}

#[test]
fn members_that_stand_in_for_others_are_wanted() {
    let with = |status: Value| {
        cluster(|object| {
            object["metadata"]["annotations"] = json!({"pd.tidb.pingcap.com/delete-slots": "[1]"});
            object["status"] = status;
        })
        .members_wanted
    };
    assert_eq!(with(Value::Null), Ordinals::from([0, 2, 3]));
    let failed = json!({"pd": {"failureMembers": {"a-pd-2": {"memberDeleted": true}, "a-pd-3": {"memberDeleted": false}}}});
    assert_eq!(with(failed), Ordinals::from([0, 2, 3, 4]));
}

#[rstest]
#[case(|object: &mut Value| object["spec"]["pd"]["replicas"] = json!("3"), "spec.pd.replicas")]
#[case(|object: &mut Value| object["spec"]["cluster"] = json!({}), "spec.cluster")]
#[case(|object: &mut Value| object["spec"]["pdAddresses"] = json!("x"), "spec.pdAddresses")]
#[case(|object: &mut Value| object["spec"]["pdAddresses"] = json!([1]), "spec.pdAddresses")]
#[case(
    |object: &mut Value| object["metadata"]["annotations"] = json!({"pd.tidb.pingcap.com/delete-slots": "0"}),
    "delete-slots"
)]
fn what_cannot_be_read_is_named(#[case] change: fn(&mut Value), #[case] field: &str) {
    let mut object = object();
    change(&mut object);
    let error = Cluster::read(&object).unwrap_err().to_string();
    assert!(error.contains(field) && error.contains("TidbCluster \"a\""), "{error}");
}

#[test]
fn claims_tell_whose_they_are_and_whether_there_is_a_volume() {
    let labels = |component: &str, id: &str| {
        let all = [("app.kubernetes.io/component", component), ("tidb.pingcap.com/cluster-id", id)];
        Some(all.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    };
    let claim = |name: &str, component: &str, id: &str, volume: Option<&str>, phase: Option<&str>| {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.uid) = (Some(name.into()), Some("u".into()));
        claim.metadata.labels = labels(component, id);
        claim.spec =
            Some(PersistentVolumeClaimSpec { volume_name: volume.map(str::to_owned), ..PersistentVolumeClaimSpec::default() });
        claim.status = phase.map(|phase| PersistentVolumeClaimStatus {
            phase: Some(phase.to_owned()),
            ..PersistentVolumeClaimStatus::default()
        });
        let read = Claim::read(&claim, "a");
        (read.ordinal.map(Ordinal::get), read.cluster_id, read.is_bound)
    };
    assert_eq!(claim("pd-a-pd-2", "pd", "", None, Some("Pending")), (Some(2), None, false));
    assert_eq!(claim("pd-a-pd-2", "pd", "", None, None), (Some(2), None, false));
    assert_eq!(claim("pd-log-a-pd-2", "pd", "7", Some("v"), Some("Pending")), (Some(2), Some("7".into()), true));
    assert_eq!(claim("pd-a-pd-2", "pd", "", None, Some("Lost")), (Some(2), None, true));
    assert_eq!(claim("tikv-a-tikv-2", "tikv", "7", Some("v"), Some("Bound")), (None, Some("7".into()), true));
    assert_eq!(claim("pd-a-pd-x", "pd", "", Some("v"), Some("Bound")), (None, None, true));
}

#[test]
fn pd_is_looked_for_everywhere_but_at_the_one_who_asks() {
    let hosts = |all: Vec<Endpoint>| all.into_iter().map(|it| format!("{}:{}", it.host, it.port)).collect::<Vec<_>>();
    let cluster = cluster(|object| {
        object["spec"]["cluster"] = json!({"name": "b", "namespace": "bar", "clusterDomain": "east.local"});
        object["spec"]["pdAddresses"] = json!(["http://x:2381"]);
        object["status"] = json!({"pd": {"peerMembers": {"p": {"clientURL": "https://p:2379", "health": true}}}});
    });
    let own = hosts(cluster.own_endpoints(&[claim(0), claim(7)], &asker(0)));
    let member = |ordinal: u16| format!("a-pd-{ordinal}.a-pd-peer.shop.svc:2379");
    assert_eq!(own, ["a-pd.shop.svc:2379".to_owned(), member(1), member(2), member(7)]);
    assert_eq!(hosts(cluster.other_endpoints()), ["b-pd.bar.svc.east.local:2379", "x:2381", "p:2379"]);
}

#[test]
fn those_who_know_one_pd_are_told_of_healthy_ones_elsewhere() {
    let peers = json!({"pd": {"peerMembers": {
        "p": {"clientURL": "http://p:2379", "health": true}, "q": {"clientURL": "http://q:2379", "health": false},
    }}});
    let with = cluster(|object| object["status"] = peers);
    assert_eq!(verify("http://a-pd:2379\n", &with), "http://a-pd:2379,http://p:2379");
    assert_eq!(verify("a-pd:2379", &with), "a-pd:2379,p:2379");
    assert_eq!(verify("a-pd:2379", &cluster(|_| {})), "a-pd:2379");
}
