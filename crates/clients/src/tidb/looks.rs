//! What servers other than PD say of themselves.

use std::collections::BTreeMap;

use serde::Deserialize;
use windlass_kinds::tidb::answers::{Read, Said};
use windlass_kinds::tidb::component::Component;

use crate::http::{Answer, Failure, Http, Peer};
use crate::pd::Pd;

/// The metric that tells how many regions a store leads.
const REGION_COUNT: &str = "tikv_raftstore_region_count";
/// How much of what a server says of itself is kept.
const INFO: usize = 1024;

/// Asks a server about itself.
pub(super) async fn look(http: &Http, peer: &Peer, component: Component, pod: &str) -> Result<Said, Failure> {
    match component {
        Component::Pd => Ok(Said::Pd { ready: Pd::new(http, peer).ready().await? }),
        Component::Tikv => {
            let answer = http.ask("asking TiKV for its metrics", peer, "/metrics").await?.yes()?;
            let leaders = leaders(answer.text()?).map_err(|why| answer.strange(why))?;
            Ok(Said::Tikv { leaders })
        }
        Component::Tiflash => {
            let answer = http.ask("asking TiFlash how it is", peer, "/tiflash/store-status").await?.yes()?;
            Ok(Said::Tiflash { running: answer.text()?.trim() == "Running" })
        }
        Component::Tidb => http.ask("asking TiDB how it is", peer, "/status").await?.yes().map(|_| Said::Tidb),
        Component::Ticdc => capture(http, peer).await,
        Component::Tiproxy => {
            let answer = http.ask("asking TiProxy how it is", peer, "/api/debug/health").await?.yes()?;
            Ok(Said::Tiproxy { info: answer.text()?.trim().chars().take(INFO).collect() })
        }
        Component::Pump => {
            let answer = http.ask("asking a pump for all pumps", peer, "/status").await?.yes()?;
            pump(&answer, pod)
        }
    }
}

/// How many regions a store leads, of its metrics.
fn leaders(metrics: &str) -> Result<u64, String> {
    let of_leaders = |line: &str| {
        let (labels, value) = line.strip_prefix(REGION_COUNT)?.strip_prefix('{')?.split_once('}')?;
        labels.split(',').any(|label| label.trim() == r#"type="leader""#).then(|| value.trim().to_owned())
    };
    let value = metrics.lines().find_map(of_leaders);
    let value = value.ok_or_else(|| format!("there is no {REGION_COUNT}{{type=\"leader\"}} yet"))?;
    // A time may follow.
    let number: Option<f64> = value.split(' ').next().and_then(|number| number.parse().ok());
    match number {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and within bounds")]
        Some(number) if number.fract() == 0.0 && (0.0..9.0e15).contains(&number) => Ok(number as u64),
        _ => Err(format!("{REGION_COUNT} is {value:?}")),
    }
}

#[derive(Deserialize)]
struct CaptureStatus {
    id: String,
    #[serde(default)]
    version: String,
    is_owner: bool,
}

#[derive(Deserialize)]
struct Capture {
    id: String,
}

async fn capture(http: &Http, peer: &Peer) -> Result<Said, Failure> {
    let answer = http.ask("asking TiCDC how it is", peer, "/status").await?.yes()?;
    let CaptureStatus { id, version, is_owner } = answer.json()?;
    let listed = listed(http, peer, &id).await.map_err(|failure| failure.to_string());
    Ok(Said::Ticdc { capture: id, version, is_owner, listed })
}

async fn listed(http: &Http, peer: &Peer, id: &str) -> Result<bool, Failure> {
    let answer = http.ask("asking TiCDC for all captures", peer, "/api/v1/captures").await?.yes()?;
    Ok(answer.json::<Vec<Capture>>()?.iter().any(|capture| capture.id == id))
}

#[derive(Deserialize)]
struct Pumps {
    #[serde(default)]
    status: Option<BTreeMap<String, PumpNode>>,
    #[serde(rename = "ErrMsg", default)]
    error: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PumpNode {
    node_id: String,
    host: String,
    state: String,
}

/// The pump of a pod, among all of them.
fn pump(answer: &Answer, pod: &str) -> Result<Said, Failure> {
    let pumps: Pumps = answer.json()?;
    if !pumps.error.is_empty() {
        return Err(answer.strange(pumps.error));
    }
    // Not the tenth one for the first.
    let is_it = |host: &str| host.strip_prefix(pod).is_some_and(|rest| rest.starts_with(['.', ':']));
    let mut found = pumps.status.unwrap_or_default().into_values().filter(|node| is_it(&node.host));
    match (found.next(), found.next()) {
        (Some(PumpNode { node_id, host, state }), None) => Ok(Said::Pump { node: node_id, host, state }),
        (Some(_), Some(_)) => Err(answer.strange(format!("more than one pump is at {pod}"))),
        (None, _) => Err(answer.strange(format!("no pump is registered at {pod}"))),
    }
}

/// What is known, or why it is not.
pub(super) fn read<T>(result: Result<T, Failure>) -> Read<T> {
    result.map_err(|failure| failure.to_string())
}

#[cfg(test)]
#[path = "looks_tests.rs"]
mod tests;
