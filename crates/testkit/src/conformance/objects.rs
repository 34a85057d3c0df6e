//! Creating and reading objects: identity, names, and what is refused.

use serde_json::{Value, json};

use super::{
    Case,
    desk::{
        CONFIG_MAPS, CaseResult, Desk, LEASES, SECRETS, SERVICES, SPECIMENS, STATEFUL_SETS, check, config_map, refused, same,
        text, version,
    },
    specimen::specimen,
    status::stateful_set,
};

pub(super) fn cases() -> Vec<Case> {
    super::list_cases![
        a_created_object_has_an_identity,
        a_missing_object_is_not_found,
        a_missing_custom_object_is_not_found,
        an_unknown_resource_is_not_found,
        a_name_can_be_taken_once,
        a_generated_name_has_its_prefix,
        an_object_needs_a_name,
        an_illegal_name_is_refused,
        an_illegal_label_is_refused,
        an_owner_without_uid_is_refused,
        a_new_object_cannot_have_a_version,
        a_missing_namespace_is_not_found,
        the_namespace_must_be_that_of_the_url,
        the_kind_must_be_that_of_the_url,
        the_group_version_must_be_that_of_the_url,
        a_given_identity_is_not_taken_over,
        a_dry_run_creates_nothing,
        plain_secret_data_is_encoded,
        a_lease_can_be_created_by_put,
        a_config_map_cannot_be_created_by_put,
        revisions_are_shared_by_all_kinds,
        labels_must_be_text,
        a_service_is_stored_with_its_defaults,
        a_service_keeps_its_address,
        a_stateful_set_is_stored_with_its_defaults,
    ]
}

async fn a_created_object_has_an_identity(desk: Desk) -> CaseResult {
    let made = desk.post(&CONFIG_MAPS, &config_map("a", &json!({"x": "y"}), &json!({"k": "v"}))).await?;
    for field in ["/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp"] {
        check(!text(&made, field).is_empty(), format!("{field} is empty"))?;
    }
    same(text(&made, "/metadata/namespace"), desk.namespace.as_str(), "namespace")?;
    same(text(&made, "/kind"), "ConfigMap", "kind")?;
    same(&desk.get(&CONFIG_MAPS, "a").await?, &made, "what is read")
}

async fn a_missing_object_is_not_found(desk: Desk) -> CaseResult {
    let status = refused(desk.get(&CONFIG_MAPS, "none").await, 404, "NotFound")?;
    same(&status.message, "configmaps \"none\" not found", "message")?;
    let details = status.details;
    same(&details.name, "none", "details.name")?;
    same(&details.kind, "configmaps", "details.kind")
}

async fn a_missing_custom_object_is_not_found(desk: Desk) -> CaseResult {
    let status = refused(desk.get(&SPECIMENS, "none").await, 404, "NotFound")?;
    same(&status.message, "specimens.conformance.windlass.dev \"none\" not found", "message")?;
    same(&status.details.group, "conformance.windlass.dev", "details.group")
}

async fn an_unknown_resource_is_not_found(desk: Desk) -> CaseResult {
    let path = "/apis/conformance.windlass.dev/v1/namespaces/default/nonsenses/x";
    match desk.send("GET", path, "application/json", None).await {
        Err(kube::Error::Api(status)) => same(&status.code, &404, "code"),
        other => check(false, format!("{other:?}")),
    }
}

async fn a_name_can_be_taken_once(desk: Desk) -> CaseResult {
    let object = config_map("a", &json!({}), &json!({}));
    desk.post(&CONFIG_MAPS, &object).await?;
    let status = refused(desk.post(&CONFIG_MAPS, &object).await, 409, "AlreadyExists")?;
    same(&status.message, "configmaps \"a\" already exists", "message")?;
    same(&status.details.name, "a", "details.name")
}

async fn a_generated_name_has_its_prefix(desk: Desk) -> CaseResult {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "made-" } });
    let first = desk.post(&CONFIG_MAPS, &object).await?;
    let second = desk.post(&CONFIG_MAPS, &object).await?;
    let (first, second) = (text(&first, "/metadata/name"), text(&second, "/metadata/name"));
    check(first.starts_with("made-") && first.len() == 10, format!("name {first:?}"))?;
    check(first != second, "both got the same name")
}

async fn an_object_needs_a_name(desk: Desk) -> CaseResult {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {} });
    let status = refused(desk.post(&CONFIG_MAPS, &object).await, 422, "Invalid")?;
    let details = status.details;
    same(&details.kind, "ConfigMap", "details.kind")?;
    check(details.causes.iter().any(|cause| cause.field == "metadata.name"), "no cause names metadata.name")
}

async fn an_illegal_name_is_refused(desk: Desk) -> CaseResult {
    let object = config_map("Not_Legal", &json!({}), &json!({}));
    let status = refused(desk.post(&CONFIG_MAPS, &object).await, 422, "Invalid")?;
    let causes = status.details.causes;
    check(
        causes.iter().any(|cause| cause.field == "metadata.name" && cause.reason == "FieldValueInvalid"),
        format!("{causes:?}"),
    )?;
    refused(desk.post(&SPECIMENS, &specimen("Not_Legal", &json!({}))).await, 422, "Invalid").map(drop)
}

async fn an_illegal_label_is_refused(desk: Desk) -> CaseResult {
    let object = config_map("a", &json!({"key": "not a label"}), &json!({}));
    let status = refused(desk.post(&CONFIG_MAPS, &object).await, 422, "Invalid")?;
    let causes = status.details.causes;
    check(causes.iter().any(|cause| cause.field == "metadata.labels"), format!("{causes:?}"))
}

async fn an_owner_without_uid_is_refused(desk: Desk) -> CaseResult {
    let mut object = config_map("a", &json!({}), &json!({}));
    object["metadata"]["ownerReferences"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "" }]);
    refused(desk.post(&CONFIG_MAPS, &object).await, 422, "Invalid").map(drop)
}

async fn a_new_object_cannot_have_a_version(desk: Desk) -> CaseResult {
    let mut object = config_map("a", &json!({}), &json!({}));
    object["metadata"]["resourceVersion"] = json!("5");
    match desk.post(&CONFIG_MAPS, &object).await {
        Err(kube::Error::Api(status)) => {
            same(&status.code, &500, "code")?;
            same(&status.message, "resourceVersion should not be set on objects to be created", "message")
        }
        other => check(false, format!("{other:?}")),
    }
}

async fn a_missing_namespace_is_not_found(desk: Desk) -> CaseResult {
    let lost = desk.moved_to(&format!("{}-none", desk.namespace));
    let status = refused(lost.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await, 404, "NotFound")?;
    same(&status.details.kind, "namespaces", "details.kind")?;
    same(&lost.list_names(&CONFIG_MAPS, "").await?, &Vec::<String>::new(), "its list")
}

async fn the_namespace_must_be_that_of_the_url(desk: Desk) -> CaseResult {
    let mut object = config_map("a", &json!({}), &json!({}));
    object["metadata"]["namespace"] = json!("elsewhere");
    refused(desk.post(&CONFIG_MAPS, &object).await, 400, "BadRequest").map(drop)
}

async fn the_kind_must_be_that_of_the_url(desk: Desk) -> CaseResult {
    let mut object = config_map("a", &json!({}), &json!({}));
    object["kind"] = json!("Secret");
    refused(desk.post(&CONFIG_MAPS, &object).await, 400, "BadRequest").map(drop)
}

async fn the_group_version_must_be_that_of_the_url(desk: Desk) -> CaseResult {
    let mut object = specimen("a", &json!({}));
    object["apiVersion"] = json!("conformance.windlass.dev/v2");
    refused(desk.post(&SPECIMENS, &object).await, 400, "BadRequest").map(drop)
}

async fn a_given_identity_is_not_taken_over(desk: Desk) -> CaseResult {
    let mut object = config_map("a", &json!({}), &json!({}));
    object["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    object["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    object["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let made = desk.post(&CONFIG_MAPS, &object).await?;
    check(text(&made, "/metadata/uid") != "11111111-2222-3333-4444-555555555555", "uid was taken over")?;
    check(text(&made, "/metadata/creationTimestamp") != "2001-01-01T00:00:00Z", "creation time was taken over")?;
    same(text(&made, "/metadata/deletionTimestamp"), "", "deletion time")
}

async fn a_dry_run_creates_nothing(desk: Desk) -> CaseResult {
    let path = format!("{}?dryRun=All", desk.path(&CONFIG_MAPS, ""));
    let object = config_map("a", &json!({}), &json!({}));
    let shown = desk.send("POST", &path, "application/json", Some(&object)).await?;
    check(!text(&shown, "/metadata/uid").is_empty(), "a rehearsed object has a uid")?;
    same(text(&shown, "/metadata/resourceVersion"), "", "version of a rehearsed object")?;
    refused(desk.get(&CONFIG_MAPS, "a").await, 404, "NotFound").map(drop)
}

async fn plain_secret_data_is_encoded(desk: Desk) -> CaseResult {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" }, "stringData": { "word": "hello" },
    });
    let made = desk.post(&SECRETS, &object).await?;
    same(text(&made, "/data/word"), "aGVsbG8=", "data")?;
    check(made.get("stringData").is_none(), "stringData is kept")
}

async fn a_lease_can_be_created_by_put(desk: Desk) -> CaseResult {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" },
        "spec": { "holderIdentity": "me" },
    });
    desk.put(&LEASES, "a", &lease).await?;
    same(text(&desk.get(&LEASES, "a").await?, "/spec/holderIdentity"), "me", "holder")
}

async fn a_config_map_cannot_be_created_by_put(desk: Desk) -> CaseResult {
    let object = config_map("a", &json!({}), &json!({}));
    refused(desk.put(&CONFIG_MAPS, "a", &object).await, 404, "NotFound")?;
    let mut object = specimen("a", &json!({}));
    object["metadata"]["resourceVersion"] = json!("1");
    refused(desk.put(&SPECIMENS, "a", &object).await, 404, "NotFound").map(drop)
}

async fn revisions_are_shared_by_all_kinds(desk: Desk) -> CaseResult {
    let first = version(&desk.post(&CONFIG_MAPS, &config_map("a", &json!({}), &json!({}))).await?)?;
    let second = version(&desk.post(&SPECIMENS, &specimen("a", &json!({}))).await?)?;
    let third = version(&desk.post(&CONFIG_MAPS, &config_map("b", &json!({}), &json!({}))).await?)?;
    check(first < second && second < third, format!("{first}, {second}, {third}"))
}

async fn labels_must_be_text(desk: Desk) -> CaseResult {
    refused(desk.post(&CONFIG_MAPS, &config_map("a", &json!({"x": 1}), &json!({}))).await, 400, "BadRequest")?;
    refused(desk.post(&CONFIG_MAPS, &config_map("a", &json!("text"), &json!({}))).await, 400, "BadRequest").map(drop)
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a" },
        "spec": { "selector": { "app": "x" }, "ports": [{ "name": "sql", "port": 3306 }] },
    })
}

async fn a_service_is_stored_with_its_defaults(desk: Desk) -> CaseResult {
    let made = desk.post(&SERVICES, &service()).await?;
    let address = text(&made, "/spec/clusterIP");
    check(address.contains('.'), format!("address {address:?}"))?;
    let wanted = json!({
        "clusterIP": address,
        "clusterIPs": [address],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{ "name": "sql", "port": 3306, "protocol": "TCP", "targetPort": 3306 }],
        "selector": { "app": "x" },
        "sessionAffinity": "None",
        "type": "ClusterIP",
    });
    same(&made["spec"], &wanted, "spec")
}

async fn a_service_keeps_its_address(desk: Desk) -> CaseResult {
    let made = desk.post(&SERVICES, &service()).await?;
    let mut object = service();
    object["metadata"]["labels"] = json!({"x": "y"});
    let written = desk.put(&SERVICES, "a", &object).await?;
    same(&written["spec"], &made["spec"], "spec")
}

async fn a_stateful_set_is_stored_with_its_defaults(desk: Desk) -> CaseResult {
    let mut object = stateful_set("a", 0);
    object["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = json!({ "exec": { "command": ["true"] } });
    object["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    }]);
    let made = desk.post(&STATEFUL_SETS, &object).await?;
    let wanted = json!({
        "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Retain", "whenScaled": "Retain" },
        "podManagementPolicy": "OrderedReady",
        "replicas": 0,
        "revisionHistoryLimit": 10,
        "selector": { "matchLabels": { "app": "a" } },
        "serviceName": "a",
        "template": {
            "metadata": { "labels": { "app": "a" } },
            "spec": {
                "containers": [{
                    "name": "main",
                    "image": "main:1",
                    "imagePullPolicy": "IfNotPresent",
                    "readinessProbe": {
                        "exec": { "command": ["true"] },
                        "failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
                    },
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        },
        "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "partition": 0 } },
        "volumeClaimTemplates": [{
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": "data" },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
                "volumeMode": "Filesystem",
            },
            "status": { "phase": "Pending" },
        }],
    });
    let mut spec = made["spec"].clone();
    // The real server repeats a null creation time in templates.
    for pointer in ["/template/metadata", "/volumeClaimTemplates/0/metadata"] {
        if let Some(metadata) = spec.pointer_mut(pointer).and_then(Value::as_object_mut) {
            metadata.remove("creationTimestamp");
        }
    }
    same(&spec, &wanted, "spec")
}
