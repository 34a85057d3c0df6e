use proptest::collection::btree_set;
use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[test]
fn ten_comes_after_nine() {
    assert!(Ordinal::new(10) > Ordinal::new(9));
    let ordinals = Ordinals::from([10, 9, 2]);
    assert_eq!(ordinals.to_string(), "[2,9,10]");
    assert_eq!(ordinals.highest(), Some(Ordinal::new(10)));
    assert_eq!(ordinals.lowest(), Some(Ordinal::new(2)));
}

#[rstest]
#[case(&[2], "member 2")]
#[case(&[2, 3], "members 2, 3")]
#[case(&[2, 5, 6, 7, 9], "members 2, 5 to 7, 9")]
#[case(&[0, 65534, 65535], "members 0, 65534, 65535")]
fn in_words(#[case] ordinals: &[u16], #[case] expected: &str) {
    assert_eq!(ordinals.iter().copied().collect::<Ordinals>().in_words(), expected);
}

#[rstest]
#[case("rss-shop-12", Some(("rss-shop", 12)))]
#[case("a-0", Some(("a", 0)))]
#[case("a-65535", Some(("a", 65535)))]
#[case("a-65536", None)]
#[case("a-01", None)]
#[case("a-+1", None)]
#[case("a-", None)]
#[case("a-1x", None)]
#[case("-1", None)]
#[case("12", None)]
#[case("", None)]
fn pod_name_gives_set_and_ordinal(#[case] pod: &str, #[case] expected: Option<(&str, u16)>) {
    let expected = expected.map(|(set, number)| (set, Ordinal::new(number)));
    assert_eq!(Ordinal::split_pod_name(pod), expected);
    if let Some((set, ordinal)) = expected {
        assert_eq!(ordinal.pod_name(set), pod);
    }
}

#[test]
fn pod_of_another_set_has_no_ordinal_here() {
    assert_eq!(Ordinal::of_pod("rss-shop", "rss-shop-3"), Some(Ordinal::new(3)));
    assert_eq!(Ordinal::of_pod("rss-shop", "rss-shop-eu-3"), None);
    assert_eq!(Ordinal::of_pod("rss-shop-eu", "rss-shop-3"), None);
}

#[test]
fn invalid_ordinal_says_what_was_expected() {
    let error = "+7".parse::<Ordinal>().unwrap_err().to_string();
    assert_eq!(error, "\"+7\" is no ordinal: expected a whole number from 0 to 65535 without leading zeros");
    assert!("".parse::<Ordinal>().is_err());
    assert_eq!("0".parse(), Ok(Ordinal::new(0)));
}

#[rstest]
#[case("[]", &[])]
#[case("[1,3]", &[1, 3])]
#[case(" [ 3 , 1, 3 ] ", &[1, 3])]
fn delete_slots_are_a_json_list(#[case] text: &str, #[case] expected: &[u16]) {
    let expected: Ordinals = expected.iter().copied().collect();
    assert_eq!(Ordinals::from_annotation(text).unwrap(), expected);
}

#[rstest]
#[case("")]
#[case("1,3")]
#[case("[-1]")]
#[case("[65536]")]
#[case("[1.5]")]
#[case("[\"1\"]")]
#[case("null")]
#[case("{}")]
fn other_delete_slots_are_refused_with_an_example(#[case] text: &str) {
    let error = Ordinals::from_annotation(text).unwrap_err().to_string();
    assert!(error.contains("like \"[1,3]\""), "{error}");
}

#[rstest]
#[case(0, &[], &[])]
#[case(0, &[0], &[])]
#[case(3, &[], &[0, 1, 2])]
#[case(5, &[1], &[0, 2, 3, 4, 5])]
#[case(3, &[0, 1, 2], &[3, 4, 5])]
#[case(3, &[3], &[0, 1, 2])]
#[case(3, &[1, 3], &[0, 2, 4])]
#[case(2, &[0, 3, 9], &[1, 2])]
fn members_are_the_first_that_are_no_slot(#[case] replicas: u16, #[case] slots: &[u16], #[case] expected: &[u16]) {
    let layout = Layout::with_slots(replicas, slots.iter().copied().collect());
    let expected: Ordinals = expected.iter().copied().collect();
    assert_eq!(layout.members(), expected);
}

#[test]
fn every_replica_count_fits() {
    assert_eq!(Layout::plain(u16::MAX).members().len(), 65535);
    // One slot short of the range: fewer members, never a wrapped or repeated number.
    let crowded = Layout::with_slots(u16::MAX, Ordinals::from([0]));
    assert_eq!(crowded.members().len(), 65534);
}

#[test]
fn layout_prints_its_slots_only_if_there_are_any() {
    assert_eq!(Layout::plain(3).to_string(), "3 replicas");
    assert_eq!(Layout::with_slots(3, Ordinals::from([1])).to_string(), "3 replicas, delete slots [1]");
}

fn ordinals() -> impl Strategy<Value = Ordinals> {
    btree_set(0_u16..40, 0..12).prop_map(|numbers| numbers.into_iter().collect())
}

proptest! {
    #[test]
    fn annotation_round_trips(slots in ordinals()) {
        prop_assert_eq!(Ordinals::from_annotation(&slots.to_string()).unwrap(), slots);
    }

    #[test]
    fn layout_of_members_stands_for_them(members in ordinals(), slots in ordinals()) {
        prop_assert_eq!(Layout::of(&members, &slots).members(), members);
    }

    #[test]
    fn layout_of_its_own_members_is_itself(replicas in 0_u16..20, slots in ordinals()) {
        let layout = Layout::with_slots(replicas, slots);
        prop_assert_eq!(Layout::of(&layout.members(), &layout.slots), layout);
    }

    #[test]
    fn members_never_touch_a_slot(replicas in 0_u16..20, slots in ordinals()) {
        let members = Layout::with_slots(replicas, slots.clone()).members();
        prop_assert_eq!(members.len(), usize::from(replicas));
        prop_assert!(members.shared_with(&slots).is_empty());
    }
}
