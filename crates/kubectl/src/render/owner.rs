//! The answers of `owner`.

use k8s_openapi::jiff::Timestamp;

use super::age::age;
use super::paint::{Paint, Tone, one_line};
use super::table::{Table, cell, plain};
use crate::view::{ClusterOwnerView, OwnerState, OwnersView};

fn tone(state: OwnerState) -> Tone {
    match state {
        OwnerState::Claimed => Tone::Good,
        OwnerState::Released | OwnerState::Unclaimed => Tone::Bad,
        OwnerState::Unknown => Tone::Warn,
    }
}

/// Who looks after one cluster.
pub(crate) fn owner(view: &ClusterOwnerView, paint: Paint, now: Timestamp) -> Vec<String> {
    let owner = &view.owner;
    let mut lines = Vec::new();
    let mut line = |head: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{}{text}", paint.text(Tone::Strong, &format!("{head:<11}"))));
        }
    };
    line("Cluster", &format!("{} in {}", view.handle, view.namespace));
    line("State", &paint.text(tone(owner.state), &owner.state.to_string()));
    line("Release", &one_line(&owner.release));
    line("Version", &one_line(&owner.version));
    line("Holder", &one_line(&owner.holder));
    line("Epoch", &owner.epoch.map(|epoch| epoch.to_string()).unwrap_or_default());
    line("Since", &owner.since.map(|since| format!("{since:.0} ({} ago)", age(Some(since), now))).unwrap_or_default());
    line("Meaning", &one_line(&owner.message));
    lines
}

/// Who looks after which clusters.
pub(crate) fn owners(view: &OwnersView, wide: bool) -> Table {
    let mut heads = vec!["RELEASE", "VERSION", "STATE", "CLUSTERS", "HOLDER"];
    if wide {
        heads.push("NAMES");
    }
    let mut table = Table::new(heads);
    for release in &view.releases {
        let name = if release.release.is_empty() { "<none>" } else { &release.release };
        let mut row = vec![
            plain(name),
            plain(&release.version),
            cell(tone(release.state), release.state.to_string()),
            plain(release.clusters.len().to_string()),
            plain(release.holders.join(",")),
        ];
        if wide {
            row.push(plain(release.clusters.join(" ")));
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PLAIN, busy, fresh, healthy, held, now};
    use super::*;
    use crate::tell::owners_of;

    #[test]
    fn an_owner_is_told_with_its_epoch_and_since_when() {
        insta::assert_snapshot!(owner(&healthy().owner_view(), PLAIN, now()).join("\n"));
    }

    #[test]
    fn that_nobody_looks_after_a_cluster_is_said() {
        insta::assert_snapshot!(owner(&fresh().owner_view(), PLAIN, now()).join("\n"));
        insta::assert_snapshot!(owner(&busy().owner_view(), PLAIN, now()).join("\n"));
    }

    #[test]
    fn releases_are_listed_with_what_they_look_after() {
        let view = owners_of(&[healthy(), held(), busy(), fresh()]);
        insta::assert_snapshot!(owners(&view, true).lines(PLAIN, None).join("\n"));
    }
}
