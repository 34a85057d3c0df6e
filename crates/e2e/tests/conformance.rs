//! The cases that the fake API server was made by, on the real one.

#![cfg(feature = "lab")]

use anyhow::{Result, ensure};
use windlass_e2e::Stage;
use windlass_testkit::conformance;

#[tokio::test(flavor = "multi_thread")]
async fn the_real_api_server_passes_every_case_that_the_fake_one_passes() -> Result<()> {
    let stage = Stage::get().await?;
    let prefix = format!("conformance-{}", std::process::id());
    let report = conformance::run_all(&stage.client(), &prefix).await;
    println!("conformance on the lab: {} cases, {} passed", report.total(), report.passed.len());
    for (case, seen) in &report.failed {
        println!("  {case}: {seen}");
    }
    ensure!(report.failed.is_empty(), "{} of {} cases failed", report.failed.len(), report.total());
    ensure!(report.total() == conformance::cases().len(), "not every case ran");
    Ok(())
}
