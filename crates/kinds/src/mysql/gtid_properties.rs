//! What holds for all sets, against a model that is a plain set of numbers.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;

/// One transaction: the server, the tag and the number. Few of each, so that sets meet.
type One = (u8, u8, u64);
type Model = BTreeSet<One>;

const TAGS: [&str; 4] = ["", "a", "a_", "b1"];

fn source(server: u8, tag: u8) -> Source {
    // Far apart, and with zeros in front.
    let uuid = Uuid::new(u128::from(server) << 100 | 0xff);
    Source { uuid, tag: TAGS[usize::from(tag)].parse().ok() }
}

/// Numbers at both ends of what is possible, so that intervals touch there too.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1_u64..30, 1 => HIGHEST_NUMBER - 4..=HIGHEST_NUMBER]
}

fn model() -> impl Strategy<Value = Model> {
    btree_set((0_u8..3, 0_u8..4, number()), 0..60)
}

fn set(model: &Model) -> GtidSet {
    let one = |(server, tag, number): &One| GtidSet::of_range(source(*server, *tag), *number..=*number);
    model.iter().map(one).fold(GtidSet::new(), |all, one| all.joined_with(&one))
}

fn model_of(set: &GtidSet) -> Model {
    let all = (0..3).flat_map(|server| (0..4).map(move |tag| (server, tag)));
    let numbers = || (1..40).chain(HIGHEST_NUMBER - 9..=HIGHEST_NUMBER);
    all.flat_map(|(server, tag)| numbers().map(move |number| (server, tag, number)))
        .filter(|(server, tag, number)| set.contains(&source(*server, *tag), *number))
        .collect()
}

/// Another text for the same set: each transaction on its own, out of order, repeated, in upper case, with blanks.
fn scrambled(model: &Model, order: &[u32]) -> String {
    let mut items: Vec<(u32, String)> = Vec::new();
    for (index, (server, tag, number)) in model.iter().enumerate() {
        let place = order[index % order.len()].rotate_left(u32::try_from(index).unwrap());
        let source = source(*server, *tag);
        let tag = source.tag.map(|tag| format!("{tag} :")).unwrap_or_default();
        items.push((place, format!("{}: {tag}{number}", source.uuid).to_uppercase()));
        items.push((place.reverse_bits(), format!("{} :{tag}{number}-\n{number}:3-2", source.uuid)));
    }
    items.sort();
    items.into_iter().map(|(_, item)| item).collect::<Vec<_>>().join(",\n ,")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_set_is_what_its_numbers_are(model in model()) {
        let set = set(&model);
        prop_assert_eq!(model_of(&set), model.clone());
        prop_assert_eq!(set.count(), model.len() as u128);
        prop_assert_eq!(set.is_empty(), model.is_empty());
        let servers: BTreeSet<Uuid> = model.iter().map(|(server, _, _)| source(*server, 0).uuid).collect();
        prop_assert!(set.uuids().eq(servers));
    }

    #[test]
    fn what_is_written_is_read_back(model in model()) {
        let set = set(&model);
        prop_assert_eq!(&set.to_string().parse::<GtidSet>().unwrap(), &set);
    }

    #[test]
    fn every_text_of_a_set_leads_to_the_one_form(model in model(), order in vec(any::<u32>(), 1..20)) {
        let read: GtidSet = scrambled(&model, &order).parse().unwrap();
        prop_assert_eq!(&read, &set(&model));
        prop_assert_eq!(read.to_string(), set(&model).to_string());
    }

    #[test]
    fn combined_sets_are_those_of_the_model(left in model(), right in model()) {
        let (one, other) = (set(&left), set(&right));
        prop_assert_eq!(one.joined_with(&other), set(&left.union(&right).copied().collect()));
        prop_assert_eq!(one.without(&other), set(&left.difference(&right).copied().collect()));
        prop_assert_eq!(one.shared_with(&other), set(&left.intersection(&right).copied().collect()));
        prop_assert_eq!(one.is_within(&other), left.is_subset(&right));
        prop_assert_eq!(one == other, left == right);
    }

    #[test]
    fn sets_obey_the_laws(one in model(), other in model(), third in model()) {
        let (one, other, third) = (set(&one), set(&other), set(&third));
        prop_assert_eq!(one.joined_with(&other), other.joined_with(&one));
        prop_assert_eq!(one.shared_with(&other), other.shared_with(&one));
        prop_assert_eq!(one.joined_with(&other).joined_with(&third), one.joined_with(&other.joined_with(&third)));
        prop_assert_eq!(one.without(&other).without(&third), one.without(&other.joined_with(&third)));
        prop_assert_eq!(one.without(&other).joined_with(&one.shared_with(&other)), one.clone());
        prop_assert_eq!(one.is_within(&other), one.without(&other).is_empty());
        prop_assert_eq!(one.is_within(&other) && other.is_within(&one), one == other);
        prop_assert!(one.is_within(&one.joined_with(&other)) && one.shared_with(&other).is_within(&one));
    }

    #[test]
    fn a_set_falls_apart_by_server(model in model()) {
        let set = set(&model);
        let parts = set.uuids().map(|uuid| set.of_uuid(uuid)).fold(GtidSet::new(), |all, part| all.joined_with(&part));
        prop_assert_eq!(&parts, &set);
        for uuid in set.uuids() {
            prop_assert_eq!(set.without_uuid(uuid), set.without(&set.of_uuid(uuid)));
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,40}|[-0-9a-f{}:, \n]{0,80}") {
        if let Err(error) = text.parse::<GtidSet>() {
            prop_assert!(error.position() <= text.chars().count());
            prop_assert!(error.to_string().ends_with('^'));
        }
    }
}
