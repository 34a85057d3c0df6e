//! The table of `list`.

use k8s_openapi::jiff::Timestamp;

use super::age::age;
use super::paint::{Tone, tone_of};
use super::table::{Cell, Table, cell, plain};
use crate::view::{ClusterView, LaneState, LaneView, OwnerState, OwnerView};

/// The table, and for each row what makes it another one: ages do not.
pub(crate) fn list(clusters: &[ClusterView], namespaces: bool, wide: bool, now: Timestamp) -> (Table, Vec<String>) {
    let mut heads = vec!["NAME", "READY", "STATUS", "MEMBERS", "PAUSED", "HELD", "OWNER", "VERSION", "AGE"];
    if namespaces {
        heads.insert(0, "NAMESPACE");
    }
    if wide {
        heads.extend(["KIND", "PHASE", "HOLDER", "EPOCH", "MESSAGE"]);
    }
    let mut table = Table::new(heads);
    let mut keys = Vec::new();
    for cluster in clusters {
        let mut row = Vec::new();
        if namespaces {
            row.push(plain(&cluster.namespace));
        }
        row.extend(cells(cluster, now));
        if wide {
            let owner = &cluster.owner;
            row.extend([
                plain(&cluster.kind),
                plain(cluster.phase.as_deref().unwrap_or_default()),
                plain(&owner.holder),
                plain(owner.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()),
                plain(&cluster.message),
            ]);
        }
        table.row(row);
        keys.push(format!("{cluster:?}"));
    }
    (table, keys)
}

fn cells(cluster: &ClusterView, now: Timestamp) -> Vec<Cell> {
    let members = &cluster.members;
    let complete = if members.ready >= members.wanted { Tone::Plain } else { Tone::Warn };
    let reason = if cluster.deleting { "Deleting" } else { &cluster.reason };
    let held = cluster.held.map_or_else(|| "?".to_owned(), |held| held.to_string());
    vec![
        plain(&cluster.handle),
        cell(tone_of(&cluster.ready), &cluster.ready),
        plain(reason),
        cell(complete, format!("{}/{}", members.ready, members.wanted)),
        paused(&cluster.lanes),
        cell(if cluster.held.unwrap_or(0) > 0 { Tone::Warn } else { Tone::Plain }, held),
        owner(&cluster.owner),
        plain(&cluster.owner.version),
        plain(age(cluster.created, now)),
    ]
}

/// The lanes that are closed, or on the way.
fn paused(lanes: &[LaneView]) -> Cell {
    let words: Vec<String> = lanes
        .iter()
        .filter_map(|lane| match lane.state {
            LaneState::Paused => Some(lane.lane.clone()),
            LaneState::Pausing | LaneState::Resuming => Some(format!("{}({})", lane.lane, lane.state)),
            // Somebody asked, and nobody has answered.
            LaneState::Unknown if lane.requested => Some(format!("{}(Requested)", lane.lane)),
            LaneState::Active | LaneState::Unknown => None,
        })
        .collect();
    cell(Tone::Warn, words.join(","))
}

fn owner(owner: &OwnerView) -> Cell {
    match owner.state {
        OwnerState::Claimed => plain(&owner.release),
        OwnerState::Released => cell(Tone::Bad, "<released>"),
        OwnerState::Unclaimed => cell(Tone::Bad, "<none>"),
        OwnerState::Unknown => cell(Tone::Warn, "<unknown>"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PLAIN, busy, fresh, healthy, held, now};
    use super::*;

    fn all() -> Vec<ClusterView> {
        [healthy(), held(), busy(), fresh()].iter().map(crate::cluster::Cluster::view).collect()
    }

    #[test]
    fn the_table_tells_each_cluster_in_a_line() {
        insta::assert_snapshot!(list(&all(), true, false, now()).0.lines(PLAIN, None).join("\n"));
    }

    #[test]
    fn the_wide_table_tells_more() {
        insta::assert_snapshot!(list(&all(), false, true, now()).0.lines(PLAIN, None).join("\n"));
    }

    #[test]
    fn an_older_cluster_is_the_same_row_and_a_changed_one_is_not() {
        let keys = |clusters: &[ClusterView], now| list(clusters, false, false, now).1;
        let later = now() + k8s_openapi::jiff::SignedDuration::from_hours(1);
        assert_eq!(keys(&all(), now()), keys(&all(), later));
        let mut changed = all();
        changed[0].members.ready = 2;
        assert_ne!(keys(&all(), now())[0], keys(&changed, now())[0]);
    }
}
