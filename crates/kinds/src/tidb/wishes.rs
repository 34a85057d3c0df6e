//! What a spec that was found good asks of a component, in numbers; and what the last such spec asked for, while the present one is
//! refused.

use std::num::NonZeroU16;
use std::time::Duration;

use windlass_api::logbook::tidb::AskedEntry;
use windlass_api::tidb::{Component, Failover};

use super::validate::Validated;

/// What the spec asks of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    /// How many members there are to be, those in place of failed ones aside.
    pub(super) replicas: u16,
    /// How many may leave at once.
    pub(super) scale_in: NonZeroU16,
    /// How many may come at once.
    pub(super) scale_out: NonZeroU16,
    /// How many may be added in place of failed ones.
    pub(super) failovers: u16,
    /// Which of those are to go again.
    pub(super) recovery: Recovery,
    /// Whether it is to be stopped.
    pub(super) suspended: bool,
    /// Whether the user replaces pods.
    pub(super) hands_off: bool,
    /// How long a pod must have been ready before the next one is replaced.
    pub(super) settles: Duration,
    /// Pods with a lower ordinal are not replaced.
    pub(super) lowest: u16,
    /// How long a member is given to hand over what it does.
    pub(super) patience: Duration,
    /// How long leaders are waited for after a member was replaced.
    pub(super) return_patience: Duration,
}

/// Which members in place of failed ones are to go again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// None, unless it goes by itself.
    None,
    /// All.
    All,
    /// Those of one replacement, by its name in the status.
    Of(String),
}

impl Wish {
    /// What is remembered of it.
    pub(super) fn as_remembered(&self) -> AskedEntry {
        AskedEntry {
            replicas: self.replicas,
            failovers: self.failovers,
            suspended: self.suspended,
            patience_seconds: self.patience.as_secs(),
            ..AskedEntry::default()
        }
    }

    /// What was asked for before the spec was refused. What concerns objects alone is not needed: those stay as they are.
    pub(super) fn of_before(asked: &AskedEntry) -> Self {
        Self {
            replicas: asked.replicas,
            scale_in: NonZeroU16::MIN,
            scale_out: NonZeroU16::MIN,
            failovers: asked.failovers,
            recovery: Recovery::None,
            suspended: asked.suspended,
            hands_off: true,
            settles: Duration::ZERO,
            lowest: 0,
            patience: Duration::from_secs(asked.patience_seconds),
            return_patience: Duration::ZERO,
        }
    }
}

/// What the spec asks of a component; nothing where it does not name it.
pub(super) fn wish(cluster: &Validated, component: Component) -> Option<Wish> {
    let group = cluster.group(component)?;
    let at_once = |count: u16| NonZeroU16::new(count).unwrap_or(NonZeroU16::MIN);
    let recovery = match component {
        Component::Tikv => cluster.spec.tikv.as_ref().map(|it| recovery(it.recover_failover, it.failover.as_ref())),
        Component::Tiflash => cluster.spec.tiflash.as_ref().map(|it| recovery(it.recover_failover, it.failover.as_ref())),
        _ => None,
    };
    Some(Wish {
        replicas: group.replicas,
        scale_in: at_once(group.parallelism.scale_in),
        scale_out: at_once(group.parallelism.scale_out),
        failovers: group.max_failover,
        recovery: recovery.unwrap_or(Recovery::None),
        suspended: group.suspended,
        hands_off: group.replaced_by_user,
        settles: group.min_ready,
        lowest: group.partition,
        patience: match component {
            Component::Ticdc => cluster.graceful_shutdown_timeout,
            _ => cluster.evict_leader_timeout,
        },
        return_patience: cluster.leaders_back_timeout,
    })
}

fn recovery(all: bool, failover: Option<&Failover>) -> Recovery {
    let named = failover.and_then(|it| it.recover_by_uid.clone()).filter(|uid| !uid.is_empty());
    match named {
        _ if all => Recovery::All,
        Some(uid) => Recovery::Of(uid),
        None => Recovery::None,
    }
}
