//! What the API server is told to ask us, and by which authority it knows us.
//!
//! The chart makes both registrations without a word in them, and removes them; what they say is written by this process, since only it
//! knows its authority and reads the selector. They say `Ignore`: whatever a webhook refuses, the controller refuses to act upon as well, so
//! one that is down costs a later answer, and never a failed change.

use k8s_openapi::ByteString;
use serde_json::{Value, json};
use windlass_core::selector::{Selector, Test};

/// Where the API server finds us, and what it asks about.
#[derive(Clone, Debug)]
pub(super) struct Registration {
    /// The name of both registrations.
    pub(super) name: String,
    /// The Service, its namespace and its port.
    pub(super) service: String,
    pub(super) service_namespace: String,
    /// The namespace whose objects are judged; all when absent.
    pub(super) namespace: Option<String>,
    pub(super) selector: Selector,
}

impl Registration {
    /// The registrations, as they are applied.
    pub(super) fn objects(&self, bundle: &str) -> [Value; 2] {
        let object = |kind: &str, webhooks: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": self.name },
                "webhooks": webhooks,
            })
        };
        let clusters = |operations: &[&str]| rule(MOCO, "mysqlclusters", operations);
        let validating = json!([
            self.webhook("mysqlcluster.validate.windlass.dev", "/validate", &clusters(&["CREATE", "UPDATE"]), bundle),
            self.webhook(
                "backuppolicy.validate.windlass.dev",
                "/validate",
                &rule(MOCO, "backuppolicies", &["CREATE", "UPDATE", "DELETE"]),
                bundle
            ),
            self.webhook(
                "tidbcluster.validate.windlass.dev",
                "/validate",
                &rule(PINGCAP, "tidbclusters", &["CREATE", "UPDATE"]),
                bundle
            ),
        ]);
        let mutating = json!([self.webhook("mysqlcluster.complete.windlass.dev", "/mutate", &clusters(&["CREATE"]), bundle)]);
        [object("ValidatingWebhookConfiguration", validating), object("MutatingWebhookConfiguration", mutating)]
    }

    fn webhook(&self, name: &str, path: &str, rule: &Value, bundle: &str) -> Value {
        let mut webhook = json!({
            "name": name,
            "admissionReviewVersions": ["v1"],
            "clientConfig": {
                "caBundle": ByteString(bundle.as_bytes().to_vec()),
                "service": { "name": self.service, "namespace": self.service_namespace, "path": path, "port": 443 },
            },
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "objectSelector": object_selector(&self.selector),
            "rules": [rule],
            "sideEffects": "None",
            "timeoutSeconds": 5,
        });
        if let Some(namespace) = &self.namespace {
            webhook["namespaceSelector"] = json!({ "matchLabels": { "kubernetes.io/metadata.name": namespace } });
        }
        webhook
    }
}

/// A group and its version.
const MOCO: (&str, &str) = ("moco.cybozu.com", "v1beta2");
const PINGCAP: (&str, &str) = ("pingcap.com", "v1alpha1");

fn rule((group, version): (&str, &str), resource: &str, operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": [version], "resources": [resource],
        "operations": operations, "scope": "Namespaced",
    })
}

/// The selector as far as the API server can tell it: it compares no numbers, and so asks about more than we judge.
fn object_selector(selector: &Selector) -> Value {
    let expressions = selector.requirements().iter().map(|requirement| {
        let (operator, values) = match requirement.test() {
            Test::Exists | Test::Above(_) | Test::Below(_) => ("Exists", Vec::new()),
            Test::Absent => ("DoesNotExist", Vec::new()),
            Test::Equals(value) => ("In", vec![value]),
            Test::Differs(value) => ("NotIn", vec![value]),
            Test::In(values) => ("In", values.iter().collect()),
            Test::NotIn(values) => ("NotIn", values.iter().collect()),
        };
        let mut expression = json!({ "key": requirement.key(), "operator": operator });
        if !values.is_empty() {
            expression["values"] = json!(values);
        }
        expression
    });
    json!({ "matchExpressions": expressions.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(selector: &str, namespace: Option<&str>) -> Registration {
        Registration {
            name: "canary-windlass.ops".into(),
            service: "canary-windlass-webhook".into(),
            service_namespace: "ops".into(),
            namespace: namespace.map(str::to_owned),
            selector: selector.parse().unwrap(),
        }
    }

    #[test]
    fn the_server_asks_about_what_is_selected_and_never_about_less() {
        let told = object_selector(&"release=canary,tier in (a,b),zone notin (c),!old,new,size>3,kind!=x".parse().unwrap());
        let expected = json!({ "matchExpressions": [
            { "key": "kind", "operator": "NotIn", "values": ["x"] },
            { "key": "new", "operator": "Exists" },
            { "key": "old", "operator": "DoesNotExist" },
            { "key": "release", "operator": "In", "values": ["canary"] },
            { "key": "size", "operator": "Exists" },
            { "key": "tier", "operator": "In", "values": ["a", "b"] },
            { "key": "zone", "operator": "NotIn", "values": ["c"] },
        ] });
        assert_eq!(told, expected);
        assert_eq!(object_selector(&Selector::everything()), json!({ "matchExpressions": [] }));
    }

    #[test]
    fn the_server_asks_about_every_kind_that_is_judged() {
        let [validating, mutating] = registration("", None).objects("bundle");
        let asked = |object: &Value| -> Vec<String> {
            let rules = object["webhooks"].as_array().unwrap().iter().map(|it| &it["rules"][0]);
            let texts = rules.map(|it| [&it["apiGroups"][0], &it["apiVersions"][0], &it["resources"][0]]);
            texts.map(|it| it.map(|text| text.as_str().unwrap()).join("/")).collect()
        };
        let clusters = "moco.cybozu.com/v1beta2/mysqlclusters";
        let expected = [clusters, "moco.cybozu.com/v1beta2/backuppolicies", "pingcap.com/v1alpha1/tidbclusters"];
        assert_eq!((asked(&validating), asked(&mutating)), (expected.map(str::to_owned).to_vec(), vec![clusters.to_owned()]));
    }

    #[test]
    fn a_webhook_that_is_down_costs_no_change() {
        for object in registration("", Some("shop")).objects("bundle") {
            for webhook in object["webhooks"].as_array().unwrap() {
                assert_eq!((&webhook["failurePolicy"], &webhook["sideEffects"]), (&json!("Ignore"), &json!("None")));
                assert_eq!(webhook["clientConfig"]["caBundle"], "YnVuZGxl");
                assert_eq!(webhook["clientConfig"]["service"]["namespace"], "ops");
                assert_eq!(webhook["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], "shop");
            }
        }
    }
}
