//! The rules that the API server evaluates. Nothing here evaluates them: they are shown to be there, word for word where it
//! matters, and at the place that they speak of.

use rstest::rstest;
use serde_json::Value;

use super::schema;

const POD: &str = "/properties/spec/properties/podTemplate/properties/spec";
const CLAIMS: &str = "/properties/spec/properties/volumeClaimTemplates";

fn rules(place: &str) -> Vec<Value> {
    let schema = schema("MySQLCluster");
    let node = schema.pointer(place).unwrap_or_else(|| panic!("there is no {place}"));
    node["x-kubernetes-validations"].as_array().cloned().unwrap_or_default()
}

#[rstest]
#[case("", "at most 40 characters", &["size(self.metadata.name) <= 40", "oldSelf.hasValue()"])]
#[case("/properties/spec", "may not decrease", &["self.replicas", "oldSelf.replicas", ">="])]
#[case("/properties/spec", "neither added", &["self.replicationSourceSecretName == oldSelf.replicationSourceSecretName"])]
#[case("/properties/spec", "restore may not", &["self.restore == oldSelf.restore", "has(self.restore) == has(oldSelf.restore)"])]
#[case("/properties/spec", "slow-log", &["c.name != 'slow-log'", "self.disableSlowQueryLogContainer"])]
#[case("/properties/spec", "mysqld-exporter", &["c.name != 'mysqld-exporter'", "self.collectors"])]
#[case("/properties/spec/properties/replicas", "odd", &["self % 2 == 1"])]
#[case(CLAIMS, "mysql-data", &["t.metadata.name == 'mysql-data'"])]
#[case("/properties/spec/properties/volumeClaimTemplates/items", "request storage", &["'storage' in self.spec.resources.requests"])]
#[case(POD, "called mysqld", &["self.containers.exists(c, c.name == 'mysqld')"])]
#[case(POD, "agent", &["c.name != 'agent'"])]
#[case(POD, "ports 3306", &["[3306, 33060, 33062, 9081]"])]
#[case(POD, "port names", &["['mysql', 'mysqlx', 'mysql-admin', 'health']"])]
#[case(POD, "moco-init", &["self.initContainers.all(c, c.name != 'moco-init')"])]
#[case(POD, "volume names", &["'tmp'", "'run'", "'var-log'", "'mysql-conf'", "'mysql-conf-d'", "'my-cnf-secret'", "'slow-fluent-bit-config'"])]
fn every_rule_is_there(#[case] place: &str, #[case] message: &str, #[case] parts: &[&str]) {
    let rules = rules(place);
    let rule = rules.iter().find(|rule| rule["message"].as_str().unwrap().contains(message)).unwrap();
    for part in parts {
        assert!(rule["rule"].as_str().unwrap().contains(part), "{part}: {rule}");
    }
}

#[test]
fn there_are_no_rules_beside_those() {
    let counted = |place: &str| rules(place).len();
    assert_eq!((counted(""), counted("/properties/spec"), counted(POD)), (1, 5, 6));
    assert_eq!((counted(CLAIMS), counted("/properties/spec/properties/replicas")), (1, 1));
}

#[test]
fn a_long_name_is_no_reason_to_refuse_a_change() {
    assert_eq!(rules("")[0]["optionalOldSelf"], true);
}

/// The API server refuses a rule over a list without an end: it could take too long.
#[rstest]
#[case(CLAIMS)]
#[case("/properties/spec/properties/podTemplate/properties/spec/properties/containers")]
#[case("/properties/spec/properties/podTemplate/properties/spec/properties/initContainers")]
#[case("/properties/spec/properties/podTemplate/properties/spec/properties/volumes")]
#[case("/properties/spec/properties/podTemplate/properties/spec/properties/containers/items/properties/ports")]
fn lists_that_rules_walk_have_an_end(#[case] place: &str) {
    assert!(schema("MySQLCluster").pointer(place).unwrap()["maxItems"].is_u64());
}
