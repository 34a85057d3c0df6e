//! What the webhook answers: the controller's own rules, told before an object is stored, and changes that would have no effect.
//!
//! Only what a request makes worse is refused. What was wrong before must not keep anybody from changing something else.

use serde_json::Value;
use windlass_api::tidb::{Component, TidbCluster};

use super::validate::{Invalid, Validated, validate};

/// What PD reads of its configuration when it is founded, and never again.
const READ_ONCE: [&str; 2] = ["schedule", "replication"];

/// Judges a cluster that is made, or changed from another state.
pub fn judge_cluster(old: Option<&TidbCluster>, new: &TidbCluster) -> Result<(), Invalid> {
    if new.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let (before, after) = (old.map(validate), validate(new));
    let known = before.as_ref().and_then(|it| it.as_ref().err()).map(|it| it.problems.clone()).unwrap_or_default();
    let problems = match (&before, after) {
        (_, Err(invalid)) => invalid.problems.into_iter().filter(|problem| !known.contains(problem)).collect(),
        (Some(Ok(before)), Ok(after)) => changes_in_vain(before, &after),
        _ => Vec::new(),
    };
    if problems.is_empty() { Ok(()) } else { Err(Invalid { problems }) }
}

/// Changes that nothing would come of, and whose author would not be told later.
fn changes_in_vain(before: &Validated, after: &Validated) -> Vec<String> {
    let part = |cluster: &Validated, name: &str| {
        let config = cluster.group(Component::Pd).and_then(|pd| pd.config.get(name));
        serde_json::to_value(config).unwrap_or(Value::Null)
    };
    let is_changed = |name: &&str| part(before, name) != part(after, name);
    let of_pd = READ_ONCE.into_iter().filter(is_changed).map(|name| {
        format!(
            "spec.pd.config: PD reads {name} when the cluster is founded, and keeps it by itself from then on; leave it as it is, and \
             change it by pd-ctl or by SET CONFIG"
        )
    });
    let bootstrap =
        |cluster: &Validated| cluster.spec.tidb.as_ref().and_then(|tidb| tidb.bootstrap_sql_config_map_name.clone());
    let named = bootstrap(after).filter(|name| !name.is_empty() && bootstrap(before).as_ref() != Some(name));
    let named = named.map(|_| {
        "spec.tidb.bootstrapSQLConfigMapName: it is read when the cluster is made; it can be removed, and not be changed"
            .to_owned()
    });
    of_pd.chain(named).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::super::fixture::changed;
    use super::*;

    const BOOTSTRAP: &str = "/spec/tidb/bootstrapSQLConfigMapName";

    #[rstest]
    #[case::nothing(("/spec/timezone", json!("UTC")), ("/spec/timezone", json!("UTC")), None)]
    #[case::size(("/spec/tikv/replicas", json!(3)), ("/spec/tikv/replicas", json!(5)), None)]
    #[case::no_pd(("/spec/pd/replicas", json!(3)), ("/spec/pd/replicas", json!(0)), Some("spec.pd.replicas"))]
    #[case::it_was_bad(("/spec/pd/replicas", json!(0)), ("/spec/pd/replicas", json!(0)), None)]
    #[case::kept_by_pd(
        ("/spec/pd/config", json!({ "replication": { "max-replicas": 3 } })),
        ("/spec/pd/config", json!({ "replication": { "max-replicas": 5 } })),
        Some("replication"),
    )]
    #[case::kept_by_pd_and_in_another_form(
        ("/spec/pd/config", json!({ "replication": { "max-replicas": 3 } })),
        ("/spec/pd/config", json!("[replication]\nmax-replicas = 3\n")),
        None,
    )]
    #[case::of_pd_and_read_at_each_start(
        ("/spec/pd/config", json!({ "log": { "level": "info" } })),
        ("/spec/pd/config", json!({ "log": { "level": "warn" } })),
        None,
    )]
    #[case::statements_that_nobody_reads((BOOTSTRAP, json!("a")), (BOOTSTRAP, json!("b")), Some("bootstrapSQLConfigMapName"))]
    #[case::statements_that_were_read((BOOTSTRAP, json!("a")), (BOOTSTRAP, json!("")), None)]
    fn what_a_change_makes_worse_is_refused(
        #[case] old: (&str, Value),
        #[case] new: (&str, Value),
        #[case] refused: Option<&str>,
    ) {
        let told = judge_cluster(Some(&changed(&[old])), &changed(&[new]));
        match refused {
            None => assert_eq!(told, Ok(())),
            Some(field) => assert!(told.as_ref().is_err_and(|it| it.to_string().contains(field)), "{told:?}"),
        }
    }

    #[test]
    fn a_new_cluster_is_judged_as_the_controller_does() {
        assert_eq!(judge_cluster(None, &changed(&[])), Ok(()));
        let bad = changed(&[("/spec/pd/replicas", json!(0))]);
        assert_eq!(judge_cluster(None, &bad), Err(validate(&bad).unwrap_err()));
    }

    #[test]
    fn one_that_ends_is_free() {
        let end = ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"));
        assert_eq!(judge_cluster(Some(&changed(&[])), &changed(&[end, ("/spec/pd/replicas", json!(0))])), Ok(()));
    }
}
