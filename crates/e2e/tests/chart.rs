//! What the charts render, and what they refuse. Nothing is installed.

#![cfg(feature = "lab")]

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use windlass_e2e::Stage;
use windlass_e2e::galera::read_repository;
use windlass_e2e::helm::{DEFINITIONS, MAIN, Release, chart};

const RULES: &str = "charts/windlass/files/rules.yaml";

async fn release(name: &str, namespace: &str) -> Result<Release> {
    Ok(Stage::get().await?.release(name, namespace))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Result<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind).with_context(|| format!("there is no {kind}"))
}

fn kinds(objects: &[Value]) -> BTreeSet<&str> {
    objects.iter().filter_map(|object| object["kind"].as_str()).collect()
}

fn container(objects: &[Value]) -> Result<Value> {
    Ok(of_kind(objects, "Deployment")?["spec"]["template"]["spec"]["containers"][0].clone())
}

/// Kind, namespace and name: two objects with the same are one.
fn identities(objects: &[Value]) -> BTreeSet<(String, String, String)> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    objects
        .iter()
        .map(|object| (word(&object["kind"]), word(&object["metadata"]["namespace"]), word(&object["metadata"]["name"])))
        .collect()
}

#[tokio::test]
async fn helm_finds_no_fault_with_the_charts() -> Result<()> {
    let release = release(MAIN, "somewhere").await?;
    for name in [DEFINITIONS, MAIN] {
        release.helm(&["lint", "--strict", &chart(name).to_string_lossy()], &Value::Null).await?.ok()?;
    }
    Ok(())
}

#[tokio::test]
async fn no_two_releases_share_an_object() -> Result<()> {
    let releases = [("windlass", "a"), ("windlass-canary", "a"), ("canary", "a"), ("windlass", "b"), ("windlass-a", "b")];
    // Beside each other everywhere, and beside each other in one namespace that is none of theirs.
    for values in [json!({}), json!({ "spec": { "namespace": "shared" } })] {
        let mut all = BTreeSet::new();
        let mut count = 0;
        for (name, namespace) in releases {
            let objects = release(name, namespace).await?.render(&values).await?;
            for object in &objects {
                let instance = &object["metadata"]["labels"]["app.kubernetes.io/instance"];
                ensure!(instance == name, "{} of {name} has the instance {instance}", object["kind"]);
            }
            count += objects.len();
            all.extend(identities(&objects));
        }
        ensure!(all.len() == count && count == 9 * releases.len(), "{count} objects have {} names: {all:?}", all.len());
    }
    Ok(())
}

#[tokio::test]
async fn the_longest_release_has_names_that_fit() -> Result<()> {
    let longest = "r".repeat(53);
    let objects = release(&longest, "somewhere").await?.render(&json!({})).await?;
    let service = of_kind(&objects, "Service")?["metadata"]["name"].as_str().context("no name")?;
    ensure!(service.len() <= 63 && service.ends_with("-windlass"), "{service:?} is too long for a Service");
    Ok(())
}

#[tokio::test]
async fn the_operator_is_told_what_to_look_after() -> Result<()> {
    let release = release("canary", "home").await?;
    let selectors = [
        (json!(""), "--selector="),
        (json!("release=canary,!old"), "--selector=release=canary,!old"),
        (json!(["release=canary", "tier in (a,b)"]), "--selector=release=canary,tier in (a,b)"),
        (json!("release=canary\n"), "--selector=release=canary"),
    ];
    for (given, argument) in selectors {
        let objects = release.render(&json!({ "spec": { "labelSelector": given } })).await?;
        let arguments = &container(&objects)?["args"];
        ensure!(arguments.as_array().is_some_and(|all| all.contains(&json!(argument))), "{given} became {arguments}");
    }
    let objects = release.render(&json!({})).await?;
    let container = container(&objects)?;
    ensure!(!container["args"].to_string().contains("--namespace"), "one namespace only: {}", container["args"]);
    let environment = container["env"].as_array().context("no environment")?;
    let variable = |name: &str| environment.iter().find(|it| it["name"] == name).with_context(|| format!("{name} is not set"));
    ensure!(variable("WINDLASS_RELEASE")?["value"] == "canary-windlass", "{environment:?}");
    let field = |name: &str| Ok::<_, anyhow::Error>(variable(name)?["valueFrom"]["fieldRef"]["fieldPath"].clone());
    ensure!(field("WINDLASS_RELEASE_NAMESPACE")? == "metadata.namespace", "{environment:?}");
    ensure!(field("WINDLASS_IDENTITY")? == "metadata.name", "{environment:?}");
    Ok(())
}

#[tokio::test]
async fn the_operator_is_told_when_failed_members_are_replaced() -> Result<()> {
    let release = release("windlass", "home").await?;
    let failover = async |values: Value| {
        let arguments = container(&release.render(&values).await?)?["args"].clone();
        let all: Vec<String> = serde_json::from_value(arguments)?;
        Ok::<_, anyhow::Error>(all.into_iter().filter(|it| it.contains("failover")).collect::<Vec<_>>())
    };
    let plain = failover(json!({})).await?;
    let five = ["pd", "tikv", "tiflash", "tidb"].map(|it| format!("--{it}-failover-period=5m"));
    ensure!(plain[0] == "--auto-failover=true" && plain[1..] == five, "{plain:?}");
    let given = failover(json!({ "controllerManager": { "autoFailover": false, "tikvFailoverPeriod": "1h30m" } })).await?;
    ensure!(given[0] == "--auto-failover=false" && given[2] == "--tikv-failover-period=1h30m", "{given:?}");
    for refused in [json!({ "tikvFailoverPeriod": "soon" }), json!({ "tikvFailoverPeriod": 5 }), json!({ "workers": 3 })] {
        ensure!(release.render(&json!({ "controllerManager": refused })).await.is_err(), "{refused} was let pass");
    }
    Ok(())
}

#[tokio::test]
async fn roles_hold_the_rules_where_the_clusters_are() -> Result<()> {
    // Objects of the release have its name.
    let rules = read_repository(RULES)?.replace("{{ include `windlass.name` . }}", "windlass");
    let rules: Value = serde_saphyr::from_str(&rules)?;
    let release = release("windlass", "home").await?;

    let everywhere = release.render(&json!({})).await?;
    ensure!(of_kind(&everywhere, "ClusterRole")?["rules"] == rules["clusters"], "the ClusterRole has other rules");
    ensure!(of_kind(&everywhere, "Role")?["rules"] == rules["release"], "the Role has other rules");
    ensure!(of_kind(&everywhere, "Role")?["metadata"]["namespace"] == "home", "the Role is not in the release's namespace");

    let one = release.render(&json!({ "spec": { "namespace": "databases" } })).await?;
    let cluster_wide: Vec<&str> = kinds(&one).into_iter().filter(|kind| kind.starts_with("Cluster")).collect();
    ensure!(cluster_wide.is_empty(), "rights everywhere for one namespace: {cluster_wide:?}");
    let is_there = |object: &&Value| object["kind"] == "Role" && object["metadata"]["namespace"] == "databases";
    let there = one.iter().find(is_there).context("no Role in the namespace")?;
    ensure!(there["rules"] == rules["clusters"], "the Role in the namespace has other rules");
    ensure!(container(&one)?["args"].to_string().contains("\"--namespace=databases\""), "the operator does not know it");
    for binding in one.iter().filter(|object| object["kind"] == "RoleBinding") {
        let subject = &binding["subjects"][0];
        ensure!(subject["name"] == "windlass" && subject["namespace"] == "home", "bound to {subject}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_optional_is_made_only_when_it_is_asked_for() -> Result<()> {
    let release = release("windlass", "home").await?;
    let plain = release.render(&json!({})).await?;
    let basic = ["ClusterRole", "ClusterRoleBinding", "Deployment", "Role", "RoleBinding", "Service", "ServiceAccount"];
    let policy = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
    ensure!(kinds(&plain) == basic.into_iter().chain(policy).collect::<BTreeSet<_>>(), "{:?}", kinds(&plain));
    let unprotected = release.render(&json!({ "preventDelete": { "enabled": false } })).await?;
    ensure!(kinds(&unprotected) == BTreeSet::from(basic), "{:?}", kinds(&unprotected));
    let values = json!({ "networkPolicy": { "enabled": true }, "serviceMonitor": { "enabled": true, "labels": { "a": "b" } } });
    let full = release.render(&values).await?;
    ensure!(of_kind(&full, "ServiceMonitor")?["metadata"]["labels"]["a"] == "b", "the label is missing");
    let policy = of_kind(&full, "NetworkPolicy")?;
    let deployment = of_kind(&full, "Deployment")?;
    ensure!(policy["spec"]["podSelector"] == deployment["spec"]["selector"], "it is for other pods");
    ensure!(of_kind(&full, "Service")?["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"], "other pods");
    Ok(())
}

#[tokio::test]
async fn the_policy_is_for_pods_of_mysql_where_the_clusters_are() -> Result<()> {
    let release = release("canary", "home").await?;
    let everywhere = release.render(&json!({})).await?;
    let policy = of_kind(&everywhere, "ValidatingAdmissionPolicy")?;
    ensure!(policy["metadata"]["name"] == "canary-windlass.home", "{}", policy["metadata"]["name"]);
    let pods = &policy["spec"]["matchConstraints"];
    ensure!(pods["objectSelector"]["matchLabels"]["app.kubernetes.io/name"] == "mysql", "{pods}");
    ensure!(pods["resourceRules"][0]["operations"] == json!(["DELETE"]), "{pods}");
    let binding = of_kind(&everywhere, "ValidatingAdmissionPolicyBinding")?;
    ensure!(
        binding["spec"]["policyName"] == policy["metadata"]["name"] && binding["spec"]["matchResources"].is_null(),
        "{binding}"
    );
    let one = release.render(&json!({ "spec": { "namespace": "databases" } })).await?;
    let binding = of_kind(&one, "ValidatingAdmissionPolicyBinding")?;
    let namespaces = &binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"];
    ensure!(namespaces["kubernetes.io/metadata.name"] == "databases", "{binding}");
    Ok(())
}

#[tokio::test]
async fn the_webhook_is_off_by_default_and_shares_nothing_with_another_release() -> Result<()> {
    let values = json!({ "webhook": { "enabled": true }, "spec": { "labelSelector": "release=canary" } });
    let (one, other) =
        (release("windlass", "home").await?.render(&values).await?, release("windlass", "away").await?.render(&values).await?);
    ensure!(identities(&one).is_disjoint(&identities(&other)), "{:?}", identities(&one).intersection(&identities(&other)));
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let registration = of_kind(&one, kind)?;
        ensure!(registration["metadata"]["name"] == "windlass.home" && registration["webhooks"].is_null(), "{registration}");
    }
    let is_webhook = |object: &&Value| object["kind"] == "Deployment" && object["metadata"]["name"] == "windlass-webhook";
    let deployment = one.iter().find(is_webhook).context("no Deployment")?;
    let arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    for argument in ["--selector=release=canary", "--service=windlass-webhook", "--registration=windlass.home"] {
        ensure!(arguments.contains(argument), "{argument} in {arguments}");
    }
    let rights = one.iter().find(|it| it["kind"] == "ClusterRole" && it["metadata"]["name"] == "windlass-webhook:home");
    let rights = &rights.context("no ClusterRole")?["rules"];
    ensure!(rights[0]["resourceNames"] == json!(["windlass.home"]) && rights[0]["verbs"] == json!(["patch"]), "{rights}");
    Ok(())
}

#[tokio::test]
async fn every_value_of_a_pod_reaches_it_and_none_breaks_the_selector() -> Result<()> {
    let values = json!({
        "replicas": 2,
        "image": { "repository": "example.com/windlass", "digest": format!("sha256:{}", "0".repeat(64)), "pullPolicy": "Always" },
        "imagePullSecrets": [{ "name": "key" }],
        "resources": { "limits": { "cpu": 1 } },
        "log": { "format": "json", "level": "windlass_engine=debug,info" },
        "podAnnotations": { "note": "x" },
        "podLabels": { "mine": "y", "app.kubernetes.io/instance": "stolen" },
        "nodeSelector": { "disk": "fast" },
        "tolerations": [{ "operator": "Exists" }],
        "affinity": { "nodeAffinity": {} },
        "priorityClassName": "high",
    });
    let objects = release("windlass", "home").await?.render(&values).await?;
    let deployment = of_kind(&objects, "Deployment")?;
    let (template, pod) = (&deployment["spec"]["template"], &deployment["spec"]["template"]["spec"]);
    ensure!(deployment["spec"]["replicas"] == 2 && deployment["spec"]["strategy"]["type"] == "RollingUpdate", "{deployment}");
    ensure!(template["metadata"]["annotations"] == json!({ "note": "x" }), "{template}");
    let labels = &template["metadata"]["labels"];
    ensure!(labels["mine"] == "y" && labels["app.kubernetes.io/instance"] == "windlass", "{labels}");
    for (key, value) in deployment["spec"]["selector"]["matchLabels"].as_object().context("no selector")? {
        ensure!(&labels[key] == value, "the pods have not {key}={value}");
    }
    for key in ["imagePullSecrets", "nodeSelector", "tolerations", "affinity", "priorityClassName"] {
        ensure!(pod[key] == values[key], "{key} is {}", pod[key]);
    }
    let container = &pod["containers"][0];
    ensure!(container["image"] == format!("example.com/windlass@sha256:{}", "0".repeat(64)), "{container}");
    ensure!(container["imagePullPolicy"] == "Always" && container["resources"]["limits"]["cpu"] == 1, "{container}");
    for argument in ["--log-format=json", "--log=windlass_engine=debug,info"] {
        ensure!(container["args"].as_array().is_some_and(|all| all.contains(&json!(argument))), "{}", container["args"]);
    }
    ensure!(
        pod["securityContext"]["runAsNonRoot"] == true && container["securityContext"]["capabilities"]["drop"][0] == "ALL",
        "{pod}"
    );
    Ok(())
}

#[tokio::test]
async fn values_that_cannot_be_meant_are_refused_with_their_place() -> Result<()> {
    let release = release("windlass", "home").await?;
    let refused = [
        (json!({ "labelSelector": "release=canary" }), "labelSelector"),
        (json!({ "spec": { "selector": "release=canary" } }), "selector"),
        (json!({ "spec": { "labelSelector": "release=canary;tier=a" } }), "/spec/labelSelector"),
        (json!({ "spec": { "labelSelector": { "release": "canary" } } }), "/spec/labelSelector"),
        (json!({ "spec": { "labelSelector": ["release=canary", " "] } }), "/spec/labelSelector"),
        (json!({ "spec": { "namespace": "Databases" } }), "/spec/namespace"),
        (json!({ "replicas": -1 }), "/replicas"),
        (json!({ "replicas": "one" }), "/replicas"),
        (json!({ "image": { "pullPolicy": "Sometimes" } }), "/image/pullPolicy"),
        (json!({ "log": { "format": "xml" } }), "/log/format"),
        (json!({ "podLabels": { "a": 1 } }), "/podLabels"),
    ];
    let chart = chart("windlass");
    for (values, place) in refused {
        let told = release.helm(&["template", "windlass", &chart.to_string_lossy(), "--values", "-"], &values).await?;
        ensure!(!told.success, "taken: {values}");
        ensure!(told.errors.contains(place), "{values}: {}", told.errors);
    }
    Ok(())
}
