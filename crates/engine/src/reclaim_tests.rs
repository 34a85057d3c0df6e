use serde_json::Value;
use windlass_api::logbook::LogbookSpec;
use windlass_api::tidb::TidbCluster;
use windlass_core::bookkeeping::gate;
use windlass_core::step::ObjectKind;
use windlass_kinds::tidb::Tidb;
use windlass_testkit::{CallMatch, Effect, FakeApiServer, Verb};

use super::*;
use crate::caches::Caches;
use crate::calls::Calls;

const CLAIMS: [&str; 2] = ["pd-a-pd-0", "pd-a-pd-1"];
/// What is looked at before anything is written.
const LOOK: [&str; 2] = ["get persistentvolumeclaims", "get persistentvolumes"];

/// A server with two claims and their volumes, which are as a storage class makes them.
struct Bench {
    server: FakeApiServer,
    calls: Calls,
    caches: Caches,
    refusals: Refusals,
}

impl Bench {
    fn new() -> Self {
        let server = FakeApiServer::new();
        for name in CLAIMS {
            let metadata = json!({ "name": name, "namespace": "default", "uid": format!("uid-of-{name}") });
            let spec = json!({ "volumeName": format!("volume-of-{name}") });
            server
                .store()
                .put_raw(json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec }));
            let spec = json!({ "persistentVolumeReclaimPolicy": "Delete", "claimRef": { "uid": format!("uid-of-{name}") } });
            let metadata = json!({ "name": format!("volume-of-{name}") });
            server
                .store()
                .put_raw(json!({ "apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec }));
        }
        let calls = Calls::new(server.client());
        Self { server, calls, caches: Caches::default(), refusals: Refusals::default() }
    }

    fn claim(&self, name: &str) -> Value {
        self.server.store().get("persistentvolumeclaims", "default", name).unwrap()
    }

    fn policy(&self, name: &str) -> Value {
        let volume = self.server.store().get("persistentvolumes", "", &format!("volume-of-{name}")).unwrap();
        volume["spec"]["persistentVolumeReclaimPolicy"].clone()
    }

    fn over(&self, name: &str) -> Over {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let metadata = &self.claim(name)["metadata"];
        Over { uid: text(&metadata["uid"]), resource_version: text(&metadata["resourceVersion"]) }
    }

    /// Tells the volume of a claim, as that is now, to be retained.
    async fn tell(&self, name: &str) -> Outcome {
        Box::pin(self.tell_over(name, self.over(name))).await
    }

    async fn tell_over(&self, name: &str, over: Over) -> Outcome {
        let object = ObjectRef { kind: ObjectKind::PersistentVolumeClaim, namespace: "default".into(), name: name.into() };
        let cluster = json!({ "apiVersion": "pingcap.com/v1alpha1", "kind": "TidbCluster", "metadata": {}, "spec": {} });
        let cluster: TidbCluster = serde_json::from_value(cluster).unwrap();
        let permit = gate::<Tidb>(&cluster, &[], &LogbookSpec::default()).permit().unwrap();
        let Self { calls, caches, refusals, .. } = self;
        let executor = Executor { calls, caches, adopts: false, authority: None, refusals };
        executor.set_reclaim(&permit, (&object, &over), &format!("volume-of-{name}"), "Retain").await
    }

    /// The requests since the last look.
    fn requests(&self) -> Vec<String> {
        let calls = self.server.calls().into_iter().map(|call| format!("{} {}", call.verb.as_str(), call.resource)).collect();
        self.server.clear_calls();
        calls
    }

    fn refuse(&self, verb: Verb, code: u16) {
        self.server.faults().on(CallMatch::any().verb(verb).resource("persistentvolumes").always(), Effect::code(code));
    }
}

#[tokio::test]
async fn a_volume_is_told_and_its_claim_remembers() {
    let bench = Bench::new();
    assert_eq!(bench.tell(CLAIMS[0]).await, Outcome::Done { changed: true });
    assert_eq!((bench.policy(CLAIMS[0]), bench.policy(CLAIMS[1])), (json!("Retain"), json!("Delete")));
    assert_eq!(bench.claim(CLAIMS[0])["metadata"]["annotations"][RECLAIM_POLICY], "Retain@uid-of-pd-a-pd-0");
    for call in bench.server.mutations() {
        let metadata = &call.body["metadata"];
        assert!(metadata["uid"].is_string() && metadata["resourceVersion"].is_string(), "{call:?}");
    }
    let writes = ["patch persistentvolumes", "patch persistentvolumeclaims"];
    assert_eq!(bench.requests(), [LOOK[0], LOOK[1], writes[0], writes[1]]);
}

#[tokio::test]
async fn whoever_is_interrupted_after_the_volume_was_told_tells_the_claim() {
    let bench = Bench::new();
    bench.server.faults().on(CallMatch::any().verb(Verb::Patch).resource("persistentvolumeclaims"), Effect::code(500));
    assert!(matches!(bench.tell(CLAIMS[0]).await, Outcome::Retry { .. }));
    bench.requests();
    assert_eq!(bench.tell(CLAIMS[0]).await, Outcome::Done { changed: false });
    assert_eq!(bench.requests(), [LOOK[0], LOOK[1], "patch persistentvolumeclaims"]);
}

/// Its note may say something else by now, and would not be true any more.
#[tokio::test]
async fn nothing_is_told_that_was_decided_from_an_old_state_of_the_claim() {
    let bench = Bench::new();
    let over = bench.over(CLAIMS[0]);
    bench
        .server
        .store()
        .edit("persistentvolumeclaims", "default", CLAIMS[0], |it| it["metadata"]["labels"] = json!({ "a": "b" }));
    assert_eq!(bench.tell_over(CLAIMS[0], over).await, Outcome::Outrun);
    assert_eq!((bench.policy(CLAIMS[0]), bench.server.mutations().len()), (json!("Delete"), 0));
}

#[tokio::test]
async fn a_volume_that_changed_meanwhile_is_read_again() {
    let bench = Bench::new();
    bench.refuse(Verb::Patch, 409);
    assert!(matches!(bench.tell(CLAIMS[0]).await, Outcome::Retry { .. }));
    bench.server.faults().clear();
    assert_eq!(bench.tell(CLAIMS[0]).await, Outcome::Done { changed: true });
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_volume_is_never_changed() {
    let bench = Bench::new();
    bench
        .server
        .store()
        .edit("persistentvolumes", "", "volume-of-pd-a-pd-0", |it| it["spec"]["claimRef"]["uid"] = json!("other"));
    assert!(matches!(bench.tell(CLAIMS[0]).await, Outcome::Waiting { .. }));
    assert_eq!(bench.requests(), LOOK);
    assert_eq!(bench.policy(CLAIMS[0]), "Delete");
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_not_there_is_looked_for_once_a_minute() {
    let bench = Bench::new();
    bench.server.store().remove("persistentvolumes", "", "volume-of-pd-a-pd-0");
    for _ in 0..20 {
        assert!(matches!(bench.tell(CLAIMS[0]).await, Outcome::Waiting { .. }));
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(bench.requests(), LOOK);
    // It is in nobody's way.
    assert_eq!(bench.tell(CLAIMS[1]).await, Outcome::Done { changed: true });
    bench.requests();
    tokio::time::sleep(AGAIN).await;
    bench.tell(CLAIMS[0]).await;
    assert_eq!(bench.requests(), LOOK);
}

#[tokio::test(start_paused = true)]
async fn without_the_right_to_look_nobody_asks_again_and_again_and_it_is_told_which_one_is_missing() {
    let bench = Bench::new();
    bench.refuse(Verb::Get, 403);
    for _ in 0..10 {
        for name in CLAIMS {
            let Outcome::Failed { why } = bench.tell(name).await else { panic!("not refused") };
            assert!(
                why.contains("get persistentvolumes") && why.contains("ClusterRole") && !why.contains("volume-of"),
                "{why}"
            );
        }
    }
    assert_eq!(bench.requests(), LOOK);
    bench.server.faults().clear();
    tokio::time::sleep(AGAIN).await;
    assert_eq!(bench.tell(CLAIMS[1]).await, Outcome::Done { changed: true });
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_refused_is_told_of_its_volume_alone() {
    let bench = Bench::new();
    bench.refuse(Verb::Patch, 403);
    for _ in 0..10 {
        for name in CLAIMS {
            let Outcome::Failed { why } = bench.tell(name).await else { panic!("not refused") };
            assert!(why.contains(&format!("volume-of-{name}")) && why.contains("patch persistentvolumes"), "{why}");
        }
    }
    assert_eq!(bench.requests().len(), 6);
}
