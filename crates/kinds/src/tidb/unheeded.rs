//! What a spec asks for that this version does not do, and that stands in nobody's way: it is accepted, and told by a condition and an
//! Event. What would be dangerous to leave out is refused instead, by `validate`.

use windlass_api::tidb::{TidbCluster, conditions as types, keys};
use windlass_core::conditions::{ConditionType, Conditions, Reason};
use windlass_core::kind::News;
use windlass_core::{condition_type, reason};

use super::Settings;

const FULLY_SUPPORTED: ConditionType = condition_type!(types::FULLY_SUPPORTED);

/// Which fields and annotations have no effect.
fn names(cluster: &TidbCluster, settings: &Settings) -> Vec<&'static str> {
    let spec = &cluster.spec;
    let annotated = |key: &str| cluster.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(key));
    let pd_spares = spec.pd.as_ref().is_some_and(|it| it.spare_vol_replace_replicas.is_some());
    let tikv_spares = spec.tikv.as_ref().is_some_and(|it| it.spare_vol_replace_replicas.is_some());
    let initializer = spec.tidb.as_ref().and_then(|it| it.initializer.as_ref());
    let all = [
        (
            "spec.pvReclaimPolicy (volumes are in no namespace, and this operator is bound to one)",
            spec.pv_reclaim_policy.is_some() && !settings.manages_volumes,
        ),
        ("spec.enablePVCReplace", spec.enable_pvc_replace == Some(true)),
        ("spec.pd.spareVolReplaceReplicas", pd_spares),
        ("spec.tikv.spareVolReplaceReplicas", tikv_spares),
        ("spec.tidb.initializer.createPassword", initializer.is_some_and(|it| it.create_password)),
        ("the annotation app.kubernetes.io/auto-failure-recovery", annotated(keys::AUTO_FAILURE_RECOVERY)),
        ("the annotation pingcap.com/ha-topology-key", annotated(keys::HA_TOPOLOGY_KEY)),
    ];
    all.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
}

/// The words for it, if there is anything.
fn words(cluster: &TidbCluster, settings: &Settings) -> Option<(Reason, String)> {
    let names = names(cluster, settings);
    let note = || format!("accepted, and without effect in this version of Windlass: {}", names.join(", "));
    (!names.is_empty()).then(|| (reason!("WithoutEffect"), note()))
}

/// A cluster of which everything is heeded has no such condition.
pub(super) fn tell(cluster: &TidbCluster, settings: &Settings, conditions: &mut Conditions) {
    if let Some((reason, note)) = words(cluster, settings) {
        conditions.set(FULLY_SUPPORTED, false, reason, note);
    }
}

/// Told once: the status does not say so yet, and nor did this process.
pub(super) fn news(told: &mut Option<String>, cluster: &TidbCluster, settings: &Settings) -> Option<News> {
    let (reason, note) = words(cluster, settings)?;
    let mut stored = cluster.status.iter().flat_map(|it| &it.conditions).filter(|it| it.type_ == types::FULLY_SUPPORTED);
    let is_news = told.as_ref() != Some(&note) && !stored.any(|it| it.message == note);
    *told = Some(note.clone());
    is_news.then_some(News::Event { warning: true, reason, note })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};
    use windlass_core::conditions::Previous;

    use super::*;

    fn cluster(spec: &Value, annotations: &Value) -> TidbCluster {
        let object = json!({
            "apiVersion": "pingcap.com/v1alpha1",
            "kind": "TidbCluster",
            "metadata": { "name": "a", "annotations": annotations },
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[rstest]
    #[case::nothing(json!({}), json!({}), &[])]
    #[case::as_if_absent(json!({ "enablePVCReplace": false, "tidb": { "replicas": 1, "initializer": {} } }), json!({}), &[])]
    #[case::a_field(json!({ "enablePVCReplace": true }), json!({}), &["spec.enablePVCReplace"])]
    #[case::what_is_done(json!({ "pvReclaimPolicy": "Delete", "enablePVReclaim": true }), json!({}), &[])]
    #[case::of_components(
        json!({ "tikv": { "replicas": 3, "spareVolReplaceReplicas": 1 }, "tidb": { "replicas": 1, "initializer": { "createPassword": true } } }),
        json!({}),
        &["spec.tikv.spareVolReplaceReplicas", "spec.tidb.initializer.createPassword"],
    )]
    #[case::an_annotation(json!({}), json!({ "pingcap.com/ha-topology-key": "zone" }), &["the annotation pingcap.com/ha-topology-key"])]
    fn what_has_no_effect_is_named(#[case] spec: Value, #[case] annotations: Value, #[case] expected: &[&str]) {
        let cluster = cluster(&spec, &annotations);
        assert_eq!(names(&cluster, &Settings::default()), expected);
        let mut conditions = Conditions::new(1, &[]);
        tell(&cluster, &Settings::default(), &mut conditions);
        let built = conditions.build(&Previous::default(), jiff::Timestamp::UNIX_EPOCH);
        let told = built.iter().find(|it| it.type_ == types::FULLY_SUPPORTED);
        assert_eq!(told.is_some(), !expected.is_empty());
        assert!(told.is_none_or(|it| it.status == "False" && expected.iter().all(|name| it.message.contains(name))));
    }

    #[rstest]
    #[case::asked_for(json!({ "pvReclaimPolicy": "Retain" }), 1)]
    #[case::not_asked_for(json!({}), 0)]
    fn volumes_are_out_of_reach_for_an_operator_of_one_namespace(#[case] spec: Value, #[case] expected: usize) {
        let settings = Settings { manages_volumes: false, ..Settings::default() };
        let names = names(&cluster(&spec, &json!({})), &settings);
        assert!(names.len() == expected && names.iter().all(|it| it.starts_with("spec.pvReclaimPolicy (")), "{names:?}");
    }

    #[test]
    fn it_is_told_once_and_again_when_it_is_more() {
        let settings = Settings::default();
        let mut first = cluster(&json!({ "enablePVCReplace": true }), &json!({}));
        let mut told = None;
        assert!(news(&mut told, &first, &settings).is_some());
        assert!(news(&mut told, &first, &settings).is_none());
        let tikv = json!({ "replicas": 3, "spareVolReplaceReplicas": 1 });
        let more = cluster(&json!({ "enablePVCReplace": true, "tikv": tikv }), &json!({}));
        assert!(news(&mut told, &more, &settings).is_some());
        // Another process finds it in the status.
        let mut conditions = Conditions::new(1, &[]);
        tell(&first, &settings, &mut conditions);
        let conditions = conditions.build(&Previous::default(), jiff::Timestamp::UNIX_EPOCH);
        first.status = Some(windlass_api::tidb::TidbClusterStatus { conditions, ..Default::default() });
        assert!(news(&mut None, &first, &settings).is_none());
    }
}
