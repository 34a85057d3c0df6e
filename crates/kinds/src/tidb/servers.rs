//! The components that PD does not know become more or fewer: TiDB and TiProxy at once, captures of TiCDC after they gave away their
//! tables, pumps after they gave away what they gathered.

use std::time::Duration;

use jiff::Timestamp;
use windlass_api::tidb::{Component, keys};
use windlass_core::ordinals::Ordinal;
use windlass_core::reason;
use windlass_core::scale::{Drain, Guard, Limits, Scale};
use windlass_core::step::ObjectKind;

use super::answers::Said;
use super::deeds::Task;
use super::facts::after;
use super::membership::Standing;
use super::plan::Planner;
use super::scene::Scene;

const ONLINE: &str = "online";
const OFFLINE: &str = "offline";

/// Whether a member of such a component is there: its pod is ready.
fn is_there(scene: &Scene<'_>, component: Component, ordinal: Ordinal) -> bool {
    scene.group(component).pods.get(&ordinal).is_some_and(|pod| pod.ready)
}

/// How far the removal of a member is.
fn drain(scene: &Scene<'_>, component: Component, ordinal: Ordinal) -> Drain {
    let group = scene.group(component);
    let around = group.around(ordinal, None);
    if !around.leaves {
        return Drain::NotStarted;
    }
    let gone = if around.marked { Drain::Finished } else { Drain::Draining };
    if !group.runs(ordinal) {
        return gone;
    }
    match component {
        Component::Ticdc => match begun(scene, ordinal) {
            None => Drain::NotStarted,
            Some(at) if is_drained(scene, ordinal, at) => gone,
            Some(_) => Drain::Draining,
        },
        Component::Pump => match scene.said(component, ordinal) {
            Some(Said::Pump { state, .. }) if state == OFFLINE => gone,
            Some(Said::Pump { state, .. }) if state == ONLINE => Drain::NotStarted,
            Some(_) => Drain::Draining,
            None => Drain::Unknown,
        },
        _ => gone,
    }
}

/// When a capture was first asked to give away its tables.
pub(super) fn begun(scene: &Scene<'_>, ordinal: Ordinal) -> Option<Timestamp> {
    let pod = scene.group(Component::Ticdc).pods.get(&ordinal)?;
    pod.meta.annotations.get(keys::TICDC_GRACEFUL_SHUTDOWN_BEGIN_TIME)?.parse().ok()
}

/// Whether a capture has no tables any more, or was waited for long enough, or nobody could take them.
pub(super) fn is_drained(scene: &Scene<'_>, ordinal: Ordinal, begun: Timestamp) -> bool {
    let patience = scene.group(Component::Ticdc).wish.as_ref().map_or(Duration::ZERO, |wish| wish.patience);
    let pod = scene.names.pod(Component::Ticdc, ordinal);
    let drained = scene.observed.facts.done(&pod).is_some_and(|ended| {
        matches!(ended.task, Task::DrainCapture { .. }) && ended.left.is_none_or(|left| left == 0) && ended.at >= begun
    });
    drained || after(begun, patience) <= scene.observed.now || captures(scene).all(|(other, _)| other == ordinal)
}

/// The captures that answer, and whether each owns the changefeeds.
fn captures<'a>(scene: &'a Scene<'_>) -> impl Iterator<Item = (Ordinal, (&'a str, bool))> {
    scene.group(Component::Ticdc).pods.keys().filter_map(|ordinal| match scene.said(Component::Ticdc, *ordinal)? {
        Said::Ticdc { capture, is_owner, .. } => Some((*ordinal, (capture.as_str(), *is_owner))),
        _ => None,
    })
}

impl Planner<'_> {
    /// Plans the size of a component; tells whether it is on its way to another one.
    pub(super) fn scale_servers(&mut self, component: Component) -> Scale {
        let group = self.scene.group(component);
        let (size, wanted) = (group.size(), group.wanted());
        let (Some(wish), true) = (group.wish.clone(), group.live_set().is_some()) else { return Scale::default() };
        if size == wanted {
            return Scale::default();
        }
        let gives_nothing = matches!(component, Component::Tidb | Component::Tiproxy);
        // Those that left before and still end hold a place.
        let ending = group.pods.keys().filter(|ordinal| ordinal.get() >= size).count();
        let room = usize::from(wish.scale_in.get()).saturating_sub(ending);
        let first = size.saturating_sub(u16::try_from(room).unwrap_or(u16::MAX));
        let view = self.view(component, |ordinal| {
            let standing = if is_there(&self.scene, component, ordinal) { Standing::Is(()) } else { Standing::Never };
            let drain = drain(&self.scene, component, ordinal);
            // Who gives away nothing is held here, or all would go at once.
            (if gives_nothing && ordinal.get() < first { Drain::NotStarted } else { drain }, standing)
        });
        let because = format!("at most {} may leave at once", wish.scale_in);
        let limits = Limits {
            scale_in_parallelism: wish.scale_in,
            scale_out_parallelism: wish.scale_out,
            guard: if gives_nothing { Guard::AtMost { more: 0, because } } else { Guard::Open },
            ..Limits::default()
        };
        let scale = self.scale(component, &view, &limits);
        for ordinal in scale.start.iter().chain(&scale.keep) {
            self.leave_server(component, ordinal);
        }
        scale
    }

    fn leave_server(&mut self, component: Component, ordinal: Ordinal) {
        let runs = self.scene.group(component).runs(ordinal);
        match (component, self.scene.said(component, ordinal)) {
            (Component::Ticdc, _) if runs => {
                if self.drain_capture(ordinal, "the capture is to leave") {
                    self.mark(component, ordinal);
                }
            }
            (Component::Pump, Some(Said::Pump { node, state, .. })) if state == ONLINE => {
                let (at, task) = ((component, ordinal), Task::PumpOffline { node: node.clone() });
                self.server_task(at, at, task, "the pump is to leave");
            }
            (Component::Pump, Some(Said::Pump { state, .. })) if state != OFFLINE => {
                let pod = self.scene.names.pod(component, ordinal);
                self.wait(reason!("Draining"), format!("{pod} is {state}, and leaves when it is {OFFLINE}"), false);
            }
            _ => self.mark(component, ordinal),
        }
    }

    /// Lets a capture give away its tables; tells whether it has none any more.
    pub(super) fn drain_capture(&mut self, ordinal: Ordinal, why: &str) -> bool {
        let component = Component::Ticdc;
        let Some(pod) = self.scene.group(component).pods.get(&ordinal).copied() else { return true };
        let Some(begun) = begun(&self.scene, ordinal) else {
            let now = self.scene.observed.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            self.annotate(ObjectKind::Pod, &pod.meta, &[(keys::TICDC_GRACEFUL_SHUTDOWN_BEGIN_TIME, Some(now))], why);
            return false;
        };
        if is_drained(&self.scene, ordinal, begun) {
            return true;
        }
        let mine =
            captures(&self.scene).find(|(other, _)| *other == ordinal).map(|(_, (capture, owns))| (capture.to_owned(), owns));
        let owner = captures(&self.scene).find(|(_, (_, owns))| *owns).map(|(owner, _)| owner);
        match (mine, owner) {
            (Some((_, true)), _) => {
                self.server_task((component, ordinal), (component, ordinal), Task::ResignTiCdcOwner, why);
            }
            (Some((capture, false)), Some(owner)) => {
                self.server_task((component, owner), (component, ordinal), Task::DrainCapture { capture }, why);
            }
            _ => self.wait(
                reason!("Draining"),
                format!("{} gives its tables away when the captures answer", pod.meta.name),
                false,
            ),
        }
        false
    }
}
