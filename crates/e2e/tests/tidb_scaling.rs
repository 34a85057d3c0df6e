//! Stores leave and come at every parallelism, on the real PD: `cargo xtask campaign tidb`.

#![cfg(feature = "lab")]

use std::num::NonZeroU16;

use anyhow::{Result, ensure};
use windlass_dice::number;
use windlass_e2e::Stage;
use windlass_e2e::tidb::scaling::{Round, move_freely};

/// From so many stores to three.
const SIZES: [u16; 2] = [8, 6];
const ONE: NonZeroU16 = NonZeroU16::MIN;
const PARALLELISMS: [NonZeroU16; 4] = [ONE, ONE.saturating_add(1), ONE.saturating_add(2), ONE.saturating_add(4)];
/// Regions that a store gives away in a second: all the same, and mixed.
const SPEEDS: [&[f64]; 2] = [&[0.25], &[0.5, 0.125, 0.25]];
/// Regions that a store has at least, before it leaves.
const REGIONS: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn stores_leave_as_fast_as_they_may() -> Result<()> {
    let stage = Stage::get().await?;
    let mut rounds = Vec::new();
    for speeds in SPEEDS {
        for from in SIZES {
            rounds.extend(PARALLELISMS.map(|parallelism| Round { from, parallelism, speeds }));
        }
    }
    rounds.truncate(number("WINDLASS_SCALINGS").and_then(|count| usize::try_from(count).ok()).unwrap_or(1));
    let mut efficiencies = Vec::new();
    stage
        .with_namespace("scaling", false, async |place| {
            let tidb = place.tidb(move_freely).await?;
            for round in &rounds {
                let gone = tidb.marked_claims().await?;
                tidb.allow(round.parallelism).await?;
                round.come(&tidb, &gone).await?;
                tidb.wait_until_spread(REGIONS).await?;
                let watched = round.leave(&tidb).await?;
                let efficiency = watched.efficiency(round.parallelism);
                stage.say(&format!("{round:?}: {watched:?}, efficiency {efficiency:.3}"));
                efficiencies.push(efficiency);
            }
            Ok(())
        })
        .await?;
    ensure!(efficiencies.len() == rounds.len(), "not all rounds were played");
    efficiencies.sort_by(f64::total_cmp);
    let (least, median) = (efficiencies[0], efficiencies[efficiencies.len() / 2]);
    stage.say(&format!("{} times stores left and came: efficiency at least {least:.3}, median {median:.3}", rounds.len()));
    Ok(())
}
