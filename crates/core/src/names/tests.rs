use rstest::rstest;

use super::*;
use crate::ordinals::Ordinal;

#[test]
fn objects_are_named_as_scripts_know_them() {
    let names = ReplicatedNames::new("shop").unwrap();
    assert_eq!(names.cluster(), "shop");
    assert_eq!(names.stateful_set(), "rss-shop");
    assert_eq!(names.headless_service(), "shop-svc");
    assert_eq!(names.client_service(), "shop-client");
    assert_eq!(names.disruption_budget(), "rss-shop");
    assert_eq!(names.pod(Ordinal::new(12)), "rss-shop-12");
    assert_eq!(names.host(Ordinal::new(0)), "rss-shop-0.shop-svc");
}

#[test]
fn longest_name_leaves_room_for_every_object() {
    let names = ReplicatedNames::new(&"n".repeat(48)).unwrap();
    assert_eq!(names.stateful_set().len(), 52);
    // A dash and ten characters of hash.
    assert!(names.stateful_set().len() + 11 <= LONGEST_DNS_LABEL);
    assert!(names.pod(Ordinal::new(u16::MAX)).len() <= LONGEST_DNS_LABEL);
    assert!(names.headless_service().len() <= LONGEST_DNS_LABEL);
    assert!(names.client_service().len() <= LONGEST_DNS_LABEL);
}

#[test]
fn longer_name_is_refused_with_the_bound_and_the_reason() {
    let name = "n".repeat(49);
    let error = ReplicatedNames::new(&name).unwrap_err().to_string();
    assert!(error.contains("has 49 characters and may have at most 48"), "{error}");
    assert!(error.contains(&format!("\"rss-{name}\"")), "{error}");
    assert!(error.contains("controller-revision-hash"), "{error}");
}

#[rstest]
#[case("")]
#[case("my.shop")]
#[case("9shop")]
#[case("-shop")]
#[case("shop-")]
#[case("Shop")]
#[case("shöp")]
#[case("shop_1")]
fn name_that_no_service_may_have_is_refused(#[case] name: &str) {
    assert_eq!(ReplicatedNames::new(name), Err(InvalidName::NotAServiceName { name: name.to_owned() }));
}

#[rstest]
#[case("a")]
#[case("a-1")]
#[case("shop2")]
fn ordinary_names_pass(#[case] name: &str) {
    assert!(ReplicatedNames::new(name).is_ok());
}
