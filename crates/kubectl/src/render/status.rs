//! The screen of `status`.

use k8s_openapi::jiff::Timestamp;

use super::age::age;
use super::paint::{Paint, Tone, one_line, tone_of};
use super::table::{Table, cell, plain, wrap};
use super::work;
use crate::view::{LaneState, LaneView, MemberView, OwnerState, OwnerView, StatusView};

/// The width of the heads on the left.
const LEFT: usize = 11;
/// The narrowest text that is worth wrapping.
const NARROWEST: usize = 30;

/// Lines with a head on the left.
struct Screen {
    lines: Vec<String>,
    paint: Paint,
    room: Option<usize>,
}

impl Screen {
    fn line(&mut self, head: &str, tone: Tone, text: &str) {
        let text = one_line(text);
        let parts = self.room.map_or_else(|| vec![text.clone()], |room| wrap(&text, room));
        for (index, part) in parts.iter().enumerate() {
            let head = if index == 0 { head } else { "" };
            let head = self.paint.text(Tone::Strong, &format!("{head:<LEFT$}"));
            self.lines.push(format!("{head}{}", self.paint.text(tone, part)));
        }
    }
}

/// One cluster on one screen.
pub(crate) fn status(view: &StatusView, paint: Paint, width: Option<usize>, now: Timestamp) -> Vec<String> {
    let cluster = &view.cluster;
    let room = width.map(|width| width.saturating_sub(LEFT)).filter(|room| *room >= NARROWEST);
    let mut screen = Screen { lines: Vec::new(), paint, room };
    let going = if cluster.deleting { ", being deleted" } else { "" };
    let about =
        format!("{} in {} ({}), {} old{going}", cluster.handle, cluster.namespace, cluster.kind, age(cluster.created, now));
    screen.line("Cluster", Tone::Plain, &about);
    let state = match cluster.ready.as_str() {
        "True" => "Ready".to_owned(),
        "False" => format!("Not ready ({})", cluster.reason),
        _ => format!("Not known ({})", cluster.reason),
    };
    screen.line("State", tone_of(&cluster.ready), &format!("{state}: {}", cluster.message));
    screen.line("Owner", owner_tone(&cluster.owner), &owner(&cluster.owner));
    let members = &cluster.members;
    let complete = if members.ready >= members.wanted { Tone::Plain } else { Tone::Warn };
    screen.line("Members", complete, &format!("{} of {} ready", members.ready, members.wanted));
    for role in &members.roles {
        screen.line("", Tone::Plain, &format!("{}: {}", role.role, role.members.join(" ")));
    }
    for component in &members.components {
        let complete = if component.ready >= component.wanted { Tone::Plain } else { Tone::Warn };
        let each: Vec<String> = component.members.iter().map(member).collect();
        let text = format!("{} {} of {}  {}", component.component, component.ready, component.wanted, each.join("  "));
        screen.line("", complete, text.trim_end());
    }
    for (index, text) in pauses(&cluster.lanes, now).iter().enumerate() {
        screen.line(if index == 0 { "Paused" } else { "" }, Tone::Warn, text);
    }
    if let Some(held) = cluster.held.filter(|held| *held > 0) {
        let steps = if held == 1 { "1 step is" } else { &format!("{held} steps are") };
        let command = format!("kubectl windlass plan {} -n {}", cluster.handle, cluster.namespace);
        screen.line("", Tone::Warn, &format!("{steps} held back; `{command}` shows what will happen on resume"));
    }
    for (index, work) in view.in_hand.iter().enumerate() {
        let announced = work.announced.map(|time| format!(" (announced {} ago)", age(Some(time), now))).unwrap_or_default();
        let left = work::left(work, now).map(|left| format!(", {left} left")).unwrap_or_default();
        let bar = work.percent.filter(|_| width.is_some()).map(|percent| format!("{} ", work::bar(percent.into(), 100)));
        let text = format!("{}{}{left}{announced}", bar.unwrap_or_default(), work::told(work));
        screen.line(if index == 0 { "In hand" } else { "" }, Tone::Plain, &text);
    }
    for (index, entry) in view.unproven.iter().enumerate() {
        let head = if index == 0 { "Unproven" } else { "" };
        screen.line(head, Tone::Bad, &format!("{}: {}; steps that cannot be undone wait for it", entry.entry, entry.why));
    }
    if let Some(stalled) = &view.stalled {
        screen.line("Stalled", Tone::Bad, &format!("{}: {}", stalled.reason, stalled.message));
        screen.line("To do", Tone::Strong, &stalled.advice);
    }
    let mut lines = screen.lines;
    if !view.conditions.is_empty() {
        lines.push(String::new());
        lines.extend(conditions(view, now).lines(paint, width));
    }
    lines
}

/// A member of a component: what is as it should be is not spelled out.
fn member(member: &MemberView) -> String {
    let id = if member.id.is_empty() { String::new() } else { format!(" store {}", member.id) };
    match member.state.as_str() {
        "healthy" => format!("{}{id}", member.name),
        state => format!("{}{id} {state}", member.name),
    }
}

fn conditions(view: &StatusView, now: Timestamp) -> Table {
    let mut table = Table::new(vec!["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"]);
    for condition in &view.conditions {
        let tone = match (condition.type_.as_str(), condition.status.as_str()) {
            ("Progressing", _) | ("Stalled", "False") => Tone::Plain,
            ("Stalled", "True") => Tone::Bad,
            ("ReconciliationActive" | "ClusteringActive", "False") => Tone::Warn,
            (_, status) => tone_of(status),
        };
        table.row(vec![
            plain(&condition.type_),
            cell(tone, &condition.status),
            plain(age(condition.since, now)),
            plain(&condition.reason),
            plain(&condition.message),
        ]);
    }
    table
}

fn owner_tone(owner: &OwnerView) -> Tone {
    match owner.state {
        OwnerState::Claimed => Tone::Plain,
        OwnerState::Released | OwnerState::Unclaimed => Tone::Bad,
        OwnerState::Unknown => Tone::Warn,
    }
}

fn owner(owner: &OwnerView) -> String {
    let holder = if owner.holder.is_empty() { String::new() } else { format!(", held by {}", owner.holder) };
    match owner.state {
        OwnerState::Claimed => {
            format!("{} {}, epoch {}{holder}", owner.release, owner.version, owner.epoch.unwrap_or_default())
        }
        OwnerState::Released => format!("given up by {} {}: {}", owner.release, owner.version, owner.message),
        OwnerState::Unclaimed => format!("nobody: {}", owner.message),
        OwnerState::Unknown => format!("not known: {}", owner.message),
    }
}

/// One line for both lanes when they say the same, else one each.
fn pauses(lanes: &[LaneView], now: Timestamp) -> Vec<String> {
    let text = |lane: &LaneView| {
        let why = if lane.reason.is_empty() { String::new() } else { format!(": {}", lane.reason) };
        match lane.state {
            LaneState::Paused => {
                let since = lane.since.map(|since| format!(" since {since:.0} ({} ago)", age(Some(since), now)));
                Some(format!("paused{}{why}", since.unwrap_or_default()))
            }
            LaneState::Pausing => Some(format!("pausing{why}; {}", lane.message)),
            LaneState::Resuming => Some("about to resume".to_owned()),
            LaneState::Unknown if lane.requested => Some(format!("a pause is asked for and nobody has answered{why}")),
            LaneState::Active | LaneState::Unknown => None,
        }
    };
    let told: Vec<(&str, String)> = lanes.iter().filter_map(|lane| Some((lane.lane.as_str(), text(lane)?))).collect();
    match told.as_slice() {
        [(one, first), (other, second)] if first == second => vec![format!("{one} and {other}: {first}")],
        told => told.iter().map(|(lane, text)| format!("{lane}: {text}")).collect(),
    }
}

/// One cluster in one line, for those who follow it in a pipe.
pub(crate) fn change_line(view: &StatusView) -> String {
    let cluster = &view.cluster;
    let lanes: Vec<String> = cluster.lanes.iter().map(|lane| format!("{}={}", lane.lane, lane.state)).collect();
    let stalled = view.stalled.as_ref().map(|stalled| format!("  Stalled={}", stalled.reason)).unwrap_or_default();
    let held = cluster.held.map_or_else(|| "?".to_owned(), |held| held.to_string());
    let text = format!(
        "{}  Ready={} {}  members={}/{}  {}  held={held}{stalled}  {}",
        cluster.handle,
        cluster.ready,
        cluster.reason,
        cluster.members.ready,
        cluster.members.wanted,
        lanes.join(" "),
        cluster.message
    );
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{PLAIN, busy, fresh, healthy, held, now, shrinking};
    use super::*;

    fn screen(cluster: &crate::cluster::Cluster) -> String {
        status(&cluster.status(), PLAIN, None, now()).join("\n")
    }

    #[test]
    fn a_healthy_cluster_is_told_on_one_screen() {
        insta::assert_snapshot!(screen(&healthy()));
    }

    #[test]
    fn a_pause_is_told_with_reason_time_and_what_it_holds() {
        insta::assert_snapshot!(screen(&held()));
    }

    #[test]
    fn what_is_stalled_comes_with_what_to_do() {
        insta::assert_snapshot!(screen(&busy()));
    }

    #[test]
    fn a_cluster_that_nobody_looked_at_says_so() {
        insta::assert_snapshot!(screen(&fresh()));
    }

    #[test]
    fn components_stores_and_what_leaves_are_told() {
        insta::assert_snapshot!(screen(&shrinking()));
        insta::assert_snapshot!(status(&shrinking().status(), PLAIN, Some(100), now()).join("\n"));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        use unicode_width::UnicodeWidthStr as _;
        let lines = status(&busy().status(), PLAIN, Some(100), now());
        let widest = lines.iter().max_by_key(|line| line.width()).unwrap();
        assert!(widest.width() <= 100, "{widest}");
        assert!(lines.len() > status(&busy().status(), PLAIN, None, now()).len());
    }

    #[test]
    fn a_change_is_one_plain_line() {
        insta::assert_snapshot!(change_line(&held().status()));
        insta::assert_snapshot!(change_line(&busy().status()));
    }
}
