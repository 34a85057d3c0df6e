//! What is told of a cluster. Computed from observation alone; of the stored status only the times of conditions are read, and what
//! Jobs wrote there.

use windlass_api::mysql::conditions::{self as types, State, reasons};
use windlass_api::mysql::{MySQLClusterStatus, ReconcileInfo};
use windlass_core::condition_type;
use windlass_core::conditions::{Common, ConditionType, Conditions, Previous, Reason, Truth, brief};
use windlass_core::gate::Door;
use windlass_core::kind::{Observed, Report};
use windlass_core::lane::Lane;
use windlass_core::outcome::Outcome;
use windlass_core::{reason, telling};

use super::MySql;
use super::deeds::Deed;
use super::remember::entries;
use super::scene::Scene;

/// The version of the way in which objects are made; scripts of users read it.
const RECONCILE_VERSION: i32 = 1;

const INITIALIZED: ConditionType = condition_type!(types::INITIALIZED);
const HEALTHY: ConditionType = condition_type!(types::HEALTHY);
const STATEFUL_SET_READY: ConditionType = condition_type!(types::STATEFUL_SET_READY);
const RECONCILE_SUCCESS: ConditionType = condition_type!(types::RECONCILE_SUCCESS);
const BACKUP_ACTIVE: ConditionType = condition_type!(types::BACKUP_ACTIVE);

fn word(state: State) -> Reason {
    match state {
        State::Incomplete => reason!("Incomplete"),
        State::Healthy => reason!("Healthy"),
        State::Cloning => reason!("Cloning"),
        State::Restoring => reason!("Restoring"),
        State::Degraded => reason!("Degraded"),
        State::Failed => reason!("Failed"),
        State::Lost => reason!("Lost"),
        State::Offline => reason!("Offline"),
    }
}

pub(super) fn status(observed: &Observed<'_, MySql>, report: &Report<'_, Deed>) -> MySQLClusterStatus {
    let scene = Scene::of(observed, entries(report.remembered));
    let state = scene.state();
    let stored = observed.resource.status.clone().unwrap_or_default();
    let previous = Previous::from(stored.conditions.as_slice());
    let errant: Vec<u16> = scene.cluster().errant().into_iter().map(windlass_core::ordinals::Ordinal::get).collect();
    let ready = scene.instances.iter().filter(|it| it.ready).count();
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    MySQLClusterStatus {
        observed_generation: report.remembered.acted_generation,
        conditions: conditions(&scene, report, state).build(&previous, observed.now),
        current_primary_index: scene.primary().get(),
        synced_replicas: Some(count(ready)),
        errant_replicas: Some(count(errant.len())),
        errant_replica_list: errant,
        cloned: scene.entries.cloned,
        reconcile_info: report
            .remembered
            .acted_generation
            .map(|generation| ReconcileInfo { generation: Some(generation), reconcile_version: RECONCILE_VERSION }),
        // Written by the Jobs that took and restored them.
        backup: stored.backup,
        restored_time: stored.restored_time,
    }
}

fn conditions(scene: &Scene<'_>, report: &Report<'_, Deed>, state: State) -> Conditions {
    let newest = scene.observed.resource.metadata.generation.unwrap_or_default();
    let acted = report.remembered.acted_generation.unwrap_or_default();
    let own = [INITIALIZED, HEALTHY, STATEFUL_SET_READY, RECONCILE_SUCCESS, BACKUP_ACTIVE];
    let mut conditions = Conditions::new(acted, &own);
    let (reason, message) = (word(state), format!("the current state is {}", state.as_str()));
    conditions.set(INITIALIZED, !matches!(state, State::Cloning | State::Restoring), reason, &message);
    // Who is told to look away does not tell how things stand.
    let seen = |truth: bool| match report.gate.door(Lane::Clustering) {
        Door::Closed => Truth::Unknown,
        _ => Truth::from(truth),
    };
    conditions.set(Common::Available, seen(matches!(state, State::Healthy | State::Degraded)), reason, &message);
    conditions.set(HEALTHY, seen(state == State::Healthy), reason, &message);
    stateful_set(scene, &mut conditions);
    let (unsaved, why) = backup(scene.observed.resource.spec.backup_policy_name.as_deref());
    conditions.set(BACKUP_ACTIVE, false, unsaved, why);
    let stalled = telling::stalled(report);
    let failed = report.taken.iter().find_map(|(step, outcome)| match outcome {
        Outcome::Failed { why } | Outcome::Foreign { why } => Some(format!("{step}: {}", brief(why))),
        _ => None,
    });
    match &failed {
        Some(why) => {
            conditions.set(RECONCILE_SUCCESS, false, reason!(reasons::RECONCILE_FAILED), format!("reconcile failed: {why}"))
        }
        None => conditions.set(RECONCILE_SUCCESS, true, reason!(reasons::RECONCILE_SUCCESS), "reconcile successfully"),
    };
    let busy = telling::busy(scene.observed, report);
    telling::tell_work(busy.as_ref(), stalled.as_ref(), Some(newest), &mut conditions);
    let idle = report.plan.steps.is_empty() && busy.is_none() && report.held.is_empty();
    // Pods of another template, or a StatefulSet that was not looked at since it changed, are not what the spec asks for.
    let current = conditions.truth(STATEFUL_SET_READY) == Truth::True;
    let ready = seen(state == State::Healthy && idle && stalled.is_none() && current);
    let (reason, message) = match (&stalled, &busy) {
        (Some((reason, message)), _) => (*reason, message.clone()),
        (None, None) if state == State::Healthy && !current => {
            (reason!(reasons::STATEFUL_SET_NOT_READY), "not every pod is ready and of the newest template".to_owned())
        }
        (None, Some(busy)) if state == State::Healthy => (reason!("Progressing"), busy.clone()),
        (None, Some(busy)) => (reason, format!("{message}: {busy}")),
        (None, None) => (reason, message),
    };
    conditions.set(Common::Ready, ready, reason, message);
    lanes(report, newest, &mut conditions);
    let owner = report.remembered.claim.as_ref().map_or("this operator", |claim| claim.release.as_str());
    conditions.set_at(Common::Managed, true, reason!("Owned"), format!("release {owner} manages the cluster"), newest);
    conditions
}

fn stateful_set(scene: &Scene<'_>, conditions: &mut Conditions) {
    let Some(set) = scene.set else {
        conditions.set(STATEFUL_SET_READY, false, reason!(reasons::STATEFUL_SET_NOT_FOUND), "StatefulSet not found");
        return;
    };
    let current = scene.by_pod().values().filter(|pod| pod.ready && set.is_current(pod)).count();
    let ready = set.observed_generation == set.object.meta.generation && current == usize::from(set.replicas);
    if ready {
        conditions.set(STATEFUL_SET_READY, true, reason!(reasons::STATEFUL_SET_READY), "StatefulSet is ready");
    } else {
        conditions.set(STATEFUL_SET_READY, false, reason!(reasons::STATEFUL_SET_NOT_READY), "StatefulSet is not ready");
    }
}

fn lanes(report: &Report<'_, Deed>, newest: i64, conditions: &mut Conditions) {
    let lanes = [
        (
            Common::ReconciliationActive,
            Lane::Resources,
            "reconciliation",
            reason!(reasons::RECONCILIATION_ACTIVE),
            reason!(reasons::RECONCILIATION_INACTIVE),
        ),
        (
            Common::ClusteringActive,
            Lane::Clustering,
            "clustering",
            reason!(reasons::CLUSTERING_ACTIVE),
            reason!(reasons::CLUSTERING_INACTIVE),
        ),
    ];
    for (type_, lane, name, active, inactive) in lanes {
        let (truth, reason, message) = match report.gate.door(lane) {
            Door::Open => (true, active, format!("{name} is active")),
            Door::Opening => (true, reason!("Resuming"), format!("{name} is active from the next pass on")),
            Door::Closing { awaiting } => (true, reason!("Pausing"), format!("{name} stops after: {}", awaiting.join("; "))),
            Door::Closed => (false, inactive, format!("{name} is inactive")),
        };
        conditions.set_at(type_, truth, reason, message, newest);
    }
}

/// Whether backups are taken: by this version never, and that is said rather than left to be found out.
pub(super) fn backup(policy: Option<&str>) -> (Reason, String) {
    match policy {
        None => (reason!("NoBackupPolicy"), "spec.backupPolicyName names no policy: no backup is taken".to_owned()),
        Some(policy) => {
            let message = format!(
                "spec.backupPolicyName is {policy}, and this version of Windlass takes no backups: nothing is backed up; take backups \
                 by other means"
            );
            (reason!("BackupNotImplemented"), message)
        }
    }
}
