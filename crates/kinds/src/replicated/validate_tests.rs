use k8s_openapi::api::core::v1::Container;
use rstest::rstest;
use windlass_api::ReplicatedStatefulSet;

use super::super::fixtures::*;
use super::*;

#[rstest]
#[case::no_service_name(|it: &mut ReplicatedStatefulSet| it.metadata.name = Some("Orders".into()), "metadata.name")]
#[case::long_name(|it: &mut ReplicatedStatefulSet| it.metadata.name = Some("a".repeat(49)), "metadata.name")]
#[case::more_primaries_than_members(|it: &mut ReplicatedStatefulSet| it.spec.primaries = Some(4), "spec.primaries")]
#[case::no_primaries(|it: &mut ReplicatedStatefulSet| it.spec.primaries = Some(0), "spec.primaries")]
#[case::secondaries_without_a_hook(|it: &mut ReplicatedStatefulSet| it.spec.primaries = Some(1), "spec.pod.commands.secondary")]
#[case::interval_in_words(|it: &mut ReplicatedStatefulSet| it.spec.reconcile_interval = Some("soon".into()), "spec.reconcileInterval")]
#[case::no_interval(|it: &mut ReplicatedStatefulSet| it.spec.reconcile_interval = Some("0".into()), "spec.reconcileInterval")]
#[case::no_container(|it: &mut ReplicatedStatefulSet| it.spec.pod.containers.clear(), "spec.pod.containers")]
#[case::no_image(|it: &mut ReplicatedStatefulSet| it.spec.pod.containers.push(Container::default()), "spec.pod.containers[1].image")]
#[case::empty_image(|it: &mut ReplicatedStatefulSet| it.spec.pod.containers[0].image = Some(String::new()), "spec.pod.containers[0].image")]
#[case::no_sequence(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.sequence.command.clear(), "spec.pod.commands.sequence.command")]
#[case::no_status(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.status.command.clear(), "spec.pod.commands.status.command")]
#[case::no_stop(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.stop.command.clear(), "spec.pod.commands.stop.command")]
#[case::no_primary(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.primary.command.clear(), "spec.pod.commands.primary.command")]
#[case::empty_seed(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.seed = Some(Command::default()), "spec.pod.commands.seed.command")]
#[case::empty_secondary(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.secondary = Some(Command::default()), "spec.pod.commands.secondary.command")]
#[case::empty_promote(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.promote = Some(Command::default()), "spec.pod.commands.promote.command")]
#[case::timeout_in_words(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.stop.timeout = Some("long".into()), "spec.pod.commands.stop.timeout")]
#[case::no_timeout(|it: &mut ReplicatedStatefulSet| it.spec.pod.commands.stop.timeout = Some("0s".into()), "spec.pod.commands.stop.timeout")]
#[case::a_secret_twice(|it: &mut ReplicatedStatefulSet| it.spec.secrets = vec!["a".into(), "b".into(), "a".into()], "spec.secrets")]
#[case::unnamed_ports(
    |it: &mut ReplicatedStatefulSet| it.spec.service_ports = Some(vec![ServicePort::default(), ServicePort::default()]),
    "spec.servicePorts"
)]
fn what_is_wrong_is_named_by_its_path(#[case] change: fn(&mut ReplicatedStatefulSet), #[case] field: &str) {
    let mut resource = resource(3);
    change(&mut resource);
    let invalid = validate(&resource).unwrap_err();
    assert_eq!(invalid.field, field);
    assert!(invalid.to_string().starts_with(&format!("{field}: ")), "{invalid}");
    assert!(invalid.problem.len() > 10, "{invalid}");
}

#[test]
fn defaults_are_filled_in() {
    let mut resource = resource(3);
    resource.spec.replicas = None;
    let cluster = validate(&resource).unwrap();
    assert_eq!((cluster.replicas, cluster.primaries, cluster.interval), (3, 3, Duration::from_mins(1)));
    assert_eq!(cluster.question(About::Status).1, Duration::from_secs(10));
    assert_eq!(cluster.question(About::Sequence).1, Duration::from_mins(10));
    assert_eq!(cluster.deed(Deed::Stop).1, Duration::from_mins(10));
}

#[rstest]
#[case::stopped(|it: &mut ReplicatedStatefulSet| it.spec.replicas = Some(0))]
#[case::stopped_with_primaries(|it: &mut ReplicatedStatefulSet| { it.spec.replicas = Some(0); it.spec.primaries = Some(2); })]
#[case::one_unnamed_port(|it: &mut ReplicatedStatefulSet| it.spec.service_ports = Some(vec![ServicePort::default()]))]
#[case::longest_name(|it: &mut ReplicatedStatefulSet| it.metadata.name = Some("a".repeat(48)))]
fn what_is_unusual_is_accepted(#[case] change: fn(&mut ReplicatedStatefulSet)) {
    let mut resource = resource(3);
    change(&mut resource);
    assert!(validate(&resource).is_ok(), "{:?}", validate(&resource));
}

#[test]
fn without_a_seed_hook_the_primary_hook_seeds() {
    let mut resource = resource(3);
    resource.spec.pod.commands.seed = None;
    let cluster = validate(&resource).unwrap();
    assert_eq!(cluster.deed(Deed::Seed).0.command, ["/hooks/primary"]);
}
