//! The conformance cases on the fake server.

use windlass_testkit::{FakeApiServer, conformance};

#[tokio::test(start_paused = true)]
async fn the_fake_server_passes_every_case() {
    let server = FakeApiServer::new();
    server.collect_garbage_always(true);
    let report = conformance::run_all(&server.client(), "case").await;
    for (name, why) in &report.failed {
        println!("FAILED {name}\n       {why}");
    }
    println!("conformance on the fake server: {} cases, {} passed", report.total(), report.passed.len());
    assert!(report.failed.is_empty(), "{} cases differ", report.failed.len());
    assert!(report.total() >= 60, "only {} cases ran", report.total());
}
