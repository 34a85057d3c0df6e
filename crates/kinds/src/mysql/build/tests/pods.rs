//! The pods: which containers they have, as whom these run, and what users can say of them.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::*;

fn pod(made: &[Manifest]) -> PodSpec {
    from::<StatefulSet>(set(made)).spec.unwrap().template.spec.unwrap()
}

fn container(made: &[Manifest], name: &str) -> Container {
    let pod = pod(made);
    let all: Vec<Container> = pod.init_containers.into_iter().flatten().chain(pod.containers).collect();
    all.into_iter().find(|it| it.name == name).unwrap_or_else(|| panic!("there is no container {name}"))
}

/// A typical cluster, with fields of the server's container.
fn with_mysqld(fields: Value) -> Vec<Manifest> {
    let mut resource = typical();
    resource.spec.pod_template.spec.containers[0].rest.extend(from::<BTreeMap<String, Value>>(fields));
    made(&resource)
}

#[test]
fn sets_are_what_kubernetes_reads() {
    for made in [made_first(&typical()), made(&full())] {
        let set = from::<StatefulSet>(set(&made)).spec.unwrap();
        let labels = set.template.metadata.unwrap().labels.unwrap();
        let selector = set.selector.match_labels.unwrap();
        assert_eq!(selector.len(), 3);
        assert!(selector.iter().all(|(key, value)| labels.get(key) == Some(value)));
        assert!(!labels.contains_key("moco.cybozu.com/role"));
        let pod = set.template.spec.unwrap();
        let claims = set.volume_claim_templates.unwrap();
        for claim in &claims {
            let owner = &claim.metadata.owner_references.as_ref().unwrap()[0];
            assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("MySQLCluster", "u-1", Some(true)));
            assert_eq!(claim.metadata.labels.as_ref().unwrap()["windlass.dev/kind"], "mysql");
        }
        let volumes = pod.volumes.unwrap().into_iter().map(|volume| volume.name);
        let volumes: Vec<String> = volumes.chain(claims.into_iter().filter_map(|claim| claim.metadata.name)).collect();
        let containers = pod.init_containers.unwrap().into_iter().chain(pod.containers);
        for container in containers {
            let mut paths = std::collections::BTreeSet::new();
            for mount in container.volume_mounts.iter().flatten() {
                assert!(volumes.contains(&mount.name), "{}: {}", container.name, mount.mount_path);
                assert!(paths.insert(&mount.mount_path), "{}: {} twice", container.name, mount.mount_path);
            }
            assert!(container.ports.iter().flatten().all(|port| port.protocol.is_some()), "{}", container.name);
        }
    }
}

#[test]
fn the_server_comes_first_and_what_users_add_last() {
    let names = |containers: &[Container]| containers.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let full = pod(&made(&full()));
    assert_eq!(names(&full.containers), ["mysqld", "agent", "slow-log", "mysqld-exporter", "filebeat"]);
    assert_eq!(names(&full.init_containers.unwrap()), ["copy-moco-init", "moco-init", "prepare"]);
    assert_eq!(names(&pod(&made(&typical())).containers), ["mysqld", "agent"]);
}

#[test]
fn containers_with_the_names_of_sidecars_are_the_users_where_there_is_no_sidecar() {
    let mut resource = full();
    resource.spec.disable_slow_query_log_container = true;
    resource.spec.collectors = None;
    let made = made(&resource);
    for name in ["slow-log", "mysqld-exporter"] {
        let container = container(&made, name);
        assert_eq!((container.volume_mounts, container.security_context), (None, None), "{name}");
    }
    let maps = made.iter().filter(|it| it.object.kind == ObjectKind::ConfigMap);
    assert_eq!(maps.count(), 1);
}

/// What Pod Security asks of restricted pods.
#[rstest]
#[case(made(&typical()), &["agent", "copy-moco-init", "moco-init"])]
#[case(made(&full()), &["agent", "copy-moco-init", "moco-init", "slow-log", "mysqld-exporter", "mysqld", "filebeat", "prepare"])]
fn containers_may_run_where_only_restricted_ones_may(#[case] made: Vec<Manifest>, #[case] names: &[&str]) {
    for name in names {
        let context = container(&made, name).security_context.unwrap();
        assert_eq!(context.allow_privilege_escalation, Some(false), "{name}");
        assert_eq!(context.run_as_non_root, Some(true), "{name}");
        assert_eq!(context.capabilities.unwrap().drop, Some(vec!["ALL".to_owned()]), "{name}");
        assert_eq!(context.seccomp_profile.unwrap().type_, "RuntimeDefault", "{name}");
    }
    let allowed = ["emptyDir", "configMap", "secret"];
    for volume in pod(&made).volumes.unwrap() {
        let fields = fields_of(&volume);
        assert!(fields.keys().all(|field| field == "name" || allowed.contains(&field.as_str())), "{}", volume.name);
    }
}

#[rstest]
#[case::nobody(json!({}), json!({}), (10000, 10000), Some(true))]
#[case::of_the_pod(json!({ "runAsUser": 999 }), json!({}), (999, 10000), Some(true))]
#[case::of_the_container(json!({ "runAsUser": 999 }), json!({ "runAsUser": 27, "runAsGroup": 28 }), (27, 28), Some(true))]
#[case::root(json!({}), json!({ "runAsUser": 0, "runAsGroup": 0 }), (0, 0), None)]
fn all_run_as_the_server_does(
    #[case] of_pod: Value,
    #[case] of_container: Value,
    #[case] expected: (i64, i64),
    #[case] non_root: Option<bool>,
) {
    let mut resource = typical();
    let pod_template = &mut resource.spec.pod_template.spec;
    pod_template.rest.insert("securityContext".into(), of_pod);
    pod_template.containers[0].rest.insert("securityContext".into(), of_container);
    for name in ["agent", "copy-moco-init", "moco-init"] {
        let context = container(&made(&resource), name).security_context.unwrap();
        assert_eq!((context.run_as_user.unwrap(), context.run_as_group.unwrap()), expected, "{name}");
        assert_eq!(context.run_as_non_root, non_root, "{name}");
    }
    let context = pod(&made(&resource)).security_context.unwrap();
    assert_eq!((context.fs_group, context.fs_group_change_policy.as_deref()), (Some(10000), Some("OnRootMismatch")));
}

#[test]
fn users_say_how_patient_probes_are_but_not_what_they_ask() {
    let given = json!({
        "startupProbe": { "periodSeconds": 60 },
        "livenessProbe": { "timeoutSeconds": 9, "tcpSocket": { "port": 3306 } },
        "readinessProbe": { "httpGet": { "path": "/", "port": 80 }, "failureThreshold": 7 },
    });
    let mysqld = container(&with_mysqld(given), "mysqld");
    let (startup, liveness, readiness) =
        (mysqld.startup_probe.unwrap(), mysqld.liveness_probe.unwrap(), mysqld.readiness_probe.unwrap());
    // An hour in all, as by default.
    assert_eq!((startup.period_seconds, startup.failure_threshold), (Some(60), Some(60)));
    assert_eq!((liveness.timeout_seconds, &liveness.tcp_socket), (Some(9), &None));
    assert_eq!((readiness.timeout_seconds, readiness.failure_threshold), (Some(5), Some(7)));
    let paths = [startup, liveness, readiness].map(|probe| probe.http_get.unwrap().path.unwrap());
    assert_eq!(paths, ["/healthz", "/healthz", "/readyz"]);
}

#[rstest]
#[case(None, 360)]
#[case(Some(7200), 720)]
#[case(Some(5), 1)]
#[case(Some(0), 1)]
fn a_server_has_its_time_to_start(#[case] wait: Option<i32>, #[case] threshold: i32) {
    let mut resource = typical();
    resource.spec.startup_wait_seconds = wait;
    let probe = container(&made(&resource), "mysqld").startup_probe.unwrap();
    assert_eq!((probe.period_seconds, probe.failure_threshold), (Some(10), Some(threshold)));
}

#[rstest]
#[case(json!(300), Some(20))]
#[case(json!(null), Some(20))]
#[case(json!(30), Some(15))]
#[case(json!(1), None)]
#[case(json!(0), None)]
fn a_server_that_is_to_stop_lingers_no_longer_than_it_may(#[case] grace: Value, #[case] expected: Option<i64>) {
    let mut resource = typical();
    resource.spec.pod_template.spec.rest.insert("terminationGracePeriodSeconds".into(), grace);
    let lifecycle = container(&made(&resource), "mysqld").lifecycle;
    let sleep = lifecycle.and_then(|it| it.pre_stop?.sleep).map(|sleep| sleep.seconds);
    assert_eq!(sleep, expected);
}

#[rstest]
#[case(&[("lower_case_table_names", "1")], Some("1"))]
#[case(&[("lower-case-table-names", "2\n")], Some("2"))]
#[case(&[("loose_lower_case_table_names", "0")], Some("0"))]
#[case(&[("lower_case_table_names", "3")], None)]
#[case(&[("lower_case_table_names", "no")], None)]
#[case(&[], None)]
fn the_setting_of_an_initialisation_reaches_it(#[case] given: &[(&str, &str)], #[case] expected: Option<&str>) {
    let command = container(&with_options(&typical(), given), "moco-init").command.unwrap();
    let found = command.iter().find_map(|argument| argument.strip_prefix("--lower-case-table-names="));
    assert_eq!(found, expected);
}

#[test]
fn the_initialisation_has_what_the_server_has() {
    let resources = json!({ "requests": { "cpu": "4" }, "limits": { "memory": "8Gi" }, "claims": [{ "name": "device" }] });
    let given = container(&with_mysqld(json!({ "resources": resources })), "moco-init").resources.unwrap();
    assert_eq!(serde_json::to_value(given).unwrap(), json!({ "requests": { "cpu": "4" }, "limits": { "memory": "8Gi" } }));
    let default = container(&made(&typical()), "moco-init").resources.unwrap();
    assert_eq!(default.requests.unwrap()["memory"].0, "512Mi");
    assert!(!default.limits.unwrap().contains_key("cpu"));
}

#[test]
fn an_overwrite_takes_the_place_of_all_that_was_there() {
    let made = made(&full());
    let agent = container(&made, "agent").resources.unwrap();
    assert_eq!((agent.limits, agent.requests.unwrap().len()), (None, 1));
    assert_eq!(container(&made, "copy-moco-init").resources, None);
    assert_eq!(container(&made, "moco-init").security_context.unwrap().run_as_user, None);
    assert_eq!(container(&made, "slow-log").resources.unwrap().limits.unwrap()["memory"].0, "20Mi");
}

#[test]
fn the_size_is_not_part_of_the_hash() {
    let (cluster, none) = (validate(&typical()).unwrap(), BTreeMap::new());
    let hash = |size| {
        let made = objects(&cluster, &Inputs { size, ..inputs(&none, None) }, &Children::default()).without_kept();
        find(&made, ObjectKind::StatefulSet, "moco-harbour").unwrap().annotations
    };
    assert_eq!(hash(0), hash(3));
}

#[test]
fn a_newer_operator_alone_is_no_reason_for_another_template() {
    let (cluster, none) = (validate(&typical()).unwrap(), BTreeMap::new());
    let now = template_inputs(&cluster, &inputs(&none, None));
    assert_eq!(template_inputs(&cluster, &Inputs { agent_image: "windlass:2", size: 0, ..inputs(&none, None) }), now);
    let given = options(&[("max_connections", "1")]);
    assert_ne!(template_inputs(&cluster, &inputs(&given, None)), now);
    assert_ne!(template_inputs(&validate(&full()).unwrap(), &inputs(&none, None)), now);
}

#[test]
fn users_who_want_no_affinity_get_none() {
    let mut resource = typical();
    assert!(pod(&made(&resource)).affinity.is_some());
    resource.spec.pod_template.spec.rest.insert("affinity".into(), json!({}));
    assert_eq!(pod(&made(&resource)).affinity, None);
}
