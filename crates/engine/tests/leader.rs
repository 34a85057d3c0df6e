//! The Lease and the fence: one process of a release acts, and one that lost its Lease sends nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what went wrong by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;
use tower::Layer as _;
use windlass_engine::{Clock, Election, Fence};
use windlass_testkit::{CallMatch, Effect, FakeApiServer};

struct Candidate {
    election: Arc<Election>,
    fence: Fence,
    fenced: Client,
    leads: Arc<AtomicBool>,
    stop: CancellationToken,
    frozen: tokio::sync::watch::Sender<bool>,
}

impl Candidate {
    fn new(server: &FakeApiServer, name: &str, clock: Clock) -> Self {
        let fence = Fence::closed(clock);
        let election = Arc::new(Election::new(server.client(), "default", "windlass", name, fence.clone(), clock));
        let fenced = Client::new(fence.layer(server.clone()), "default");
        let (leads, stop) = (Arc::new(AtomicBool::new(false)), CancellationToken::new());
        let frozen = tokio::sync::watch::Sender::new(false);
        let (theirs, told, stopped) = (Arc::clone(&election), Arc::clone(&leads), stop.clone());
        let work = async move {
            while !stopped.is_cancelled() {
                theirs.win(|| {}).await;
                told.store(true, Ordering::SeqCst);
                theirs.hold(&stopped).await;
                told.store(false, Ordering::SeqCst);
            }
            theirs.release().await;
        };
        tokio::spawn(freezable(work, frozen.subscribe()));
        Self { election, fence, fenced, leads, stop, frozen }
    }

    fn leads(&self) -> bool {
        self.leads.load(Ordering::SeqCst)
    }

    async fn write(&self, name: &str) -> Result<(), kube::Error> {
        let api: Api<ConfigMap> = Api::namespaced(self.fenced.clone(), "default");
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        api.create(&PostParams::default(), &map).await.map(drop)
    }
}

/// Runs a future that can be stopped as a process is by SIGSTOP: it is not polled meanwhile.
async fn freezable(work: impl Future<Output = ()>, mut frozen: tokio::sync::watch::Receiver<bool>) {
    tokio::pin!(work);
    loop {
        drop(frozen.wait_for(|frozen| !frozen).await);
        tokio::select! {
            biased;
            _ = frozen.wait_for(|frozen| *frozen) => {}
            () = &mut work => return,
        }
    }
}

fn clock() -> Clock {
    Clock::Counted { start: Timestamp::now(), since: tokio::time::Instant::now() }
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited in vain until {what}");
}

fn holder(server: &FakeApiServer) -> String {
    let lease = server.store().get("leases", "default", "windlass").unwrap_or_default();
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_a_released_lease_is_taken_at_once() {
    let (server, clock) = (FakeApiServer::new(), clock());
    let first = Candidate::new(&server, "first", clock);
    until("the first leads", || first.leads()).await;
    first.write("a").await.unwrap();
    let second = Candidate::new(&server, "second", clock);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(first.leads() && !second.leads());
    assert!(second.write("b").await.unwrap_err().to_string().contains("Lease"));
    let told = tokio::time::Instant::now();
    first.stop.cancel();
    until("the second leads", || second.leads()).await;
    assert!(told.elapsed() < Duration::from_secs(1), "{:?}", told.elapsed());
    assert!(first.write("c").await.is_err());
    second.write("d").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_killed_holder_is_followed_after_its_period_and_one_call() {
    let (server, clock) = (FakeApiServer::new(), clock());
    let first = Candidate::new(&server, "first", clock);
    until("the first leads", || first.leads()).await;
    let second = Candidate::new(&server, "second", clock);
    tokio::time::sleep(Duration::from_secs(7)).await;
    first.frozen.send_replace(true);
    let killed = tokio::time::Instant::now();
    until("the second leads", || second.leads()).await;
    let took = killed.elapsed();
    assert!(took >= Duration::from_secs(7) && took <= Duration::from_secs(10), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_past_its_lease_sends_nothing_and_stands_by() {
    let (server, clock) = (FakeApiServer::new(), clock());
    let first = Candidate::new(&server, "first", clock);
    until("the first leads", || first.leads()).await;
    let second = Candidate::new(&server, "second", clock);
    for round in 0..10 {
        let (old, new) = if first.leads() { (&first, &second) } else { (&second, &first) };
        old.frozen.send_replace(true);
        until("the other leads", || new.leads()).await;
        // It still believes that it leads, and its fence refuses.
        assert!(old.leads());
        assert!(old.write(&format!("late-{round}")).await.is_err());
        old.frozen.send_replace(false);
        until("it stands by", || !old.leads()).await;
        assert!(old.fence.check().is_err());
        new.write(&format!("good-{round}")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_ends_the_term_in_time() {
    let (server, clock) = (FakeApiServer::new(), clock());
    let only = Candidate::new(&server, "only", clock);
    until("it leads", || only.leads()).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.faults().on(CallMatch::writes().resource("leases").always(), Effect::Hang);
    let began = tokio::time::Instant::now();
    until("its fence is closed", || only.fence.check().is_err()).await;
    assert!(began.elapsed() <= Duration::from_secs(6));
    server.faults().clear();
    until("it leads again", || only.leads() && only.fence.check().is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn a_label_on_the_lease_is_no_reason_to_lose_it() {
    let (server, clock) = (FakeApiServer::new(), clock());
    let only = Candidate::new(&server, "only", clock);
    until("it leads", || only.leads()).await;
    let api: Api<Lease> = Api::namespaced(server.client(), "default");
    let patch = serde_json::json!({ "metadata": { "labels": { "note": "mine" } } });
    api.patch("windlass", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(patch)).await.unwrap();
    only.election.overlaps().lock().unwrap().insert("rss/a/b".into(), "ops/other".into());
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(only.leads() && holder(&server) == "only");
    let lease = server.store().get("leases", "default", "windlass").unwrap();
    assert_eq!(lease["metadata"]["labels"]["note"], "mine");
    assert_eq!(lease["metadata"]["annotations"]["windlass.dev/overlaps"], "rss/a/b is held by ops/other");
}
