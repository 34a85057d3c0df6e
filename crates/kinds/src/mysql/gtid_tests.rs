use rstest::rstest;

use super::*;

const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const B: &str = "b0000000-71ca-11e1-9e33-c80aa9429562";

/// Texts of the tables: `A` and `B` stand for UUIDs, in upper case where nothing else has it.
fn full(text: &str) -> String {
    text.replace('A', A).replace('B', B)
}

fn read(text: &str) -> GtidSet {
    full(text).parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn uuid(text: &str) -> Uuid {
    text.parse().unwrap()
}

#[rstest]
#[case::nothing("", "")]
#[case::blanks(" \t\n", "")]
#[case::commas(",, ,", "")]
#[case::no_interval("A", "")]
#[case::a_tag_without_interval("A:tag", "")]
#[case::one("A:7", "A:7")]
#[case::an_interval("A:1-5", "A:1-5")]
#[case::of_one("A:5-5", "A:5")]
#[case::touching("A:1-2:3", "A:1-3")]
#[case::apart("A:1-2:4", "A:1-2:4")]
#[case::overlapping("A:1-5:3-9:2", "A:1-9")]
#[case::unordered("A:9:5:1-3", "A:1-3:5:9")]
#[case::within_another("A:1-9:3-4:11", "A:1-9:11")]
#[case::reversed("A:5-3", "")]
#[case::reversed_beside_others("A:5-3:7,B:2-0", "A:7")]
#[case::the_highest("A:9223372036854775806", "A:9223372036854775806")]
#[case::all("A:1-9223372036854775806", "A:1-9223372036854775806")]
#[case::leading_zeros("A:007-010", "A:7-10")]
#[case::two_servers("B:1,A:2", "A:2,\nB:1")]
#[case::a_server_twice("A:1,B:1,A:3,A:2", "A:1-3,\nB:1")]
#[case::blanks_between("  A : 1 - 3 :\n5 ,\r\n B\t:\tx : 1 ", "A:1-3:5,\nB:x:1")]
#[case::tags("A:tag:1-3", "A:tag:1-3")]
#[case::tags_in_order("A:b:1:a:2:5,A:9", "A:9:a:2:5:b:1")]
#[case::a_tag_twice("A:1:x:1:y:7:x:2", "A:1:x:1-2:y:7")]
#[case::a_tag_in_a_tag("A:x:y:1", "A:y:1")]
#[case::tags_of_the_next_server("A:x:1,B:1", "A:x:1,\nB:1")]
#[case::order_of_tags("A:aa:1:a_:1:a1:1:a:1:_a:1", "A:_a:1:a:1:a1:1:a_:1:aa:1")]
fn texts_are_read_and_written_in_the_one_form(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(read(text).to_string(), full(expected));
}

#[rstest]
#[case("3E11FA47-71CA-11E1-9E33-C80AA9429562:1")]
#[case("{3e11fa47-71ca-11e1-9e33-c80aa9429562}:1")]
#[case("3e11fa4771ca11e19e33c80aa9429562:1")]
fn uuids_have_several_forms(#[case] text: &str) {
    assert_eq!(text.parse::<GtidSet>().unwrap(), read("A:1"));
}

#[test]
fn tags_are_in_lower_case_and_may_have_32_characters() {
    let tag = "T".repeat(32);
    assert_eq!(format!("{A}:{tag}:1").parse::<GtidSet>().unwrap().to_string(), format!("{A}:{}:1", "t".repeat(32)));
    assert!(format!("{A}:{tag}t:1").parse::<GtidSet>().is_err());
}

#[rstest]
#[case::no_uuid("x", 0, "a hex digit of a UUID")]
#[case::a_short_uuid("3e11fa47-71ca-11e1-9e33-c80aa942956:1", 35, "a hex digit")]
#[case::a_long_uuid("A0:1", 36, "\":\", \",\" or the end")]
#[case::a_dash_forgotten("3e11fa47-71ca11e1-9e33-c80aa9429562:1", 13, "\"-\" in the UUID")]
#[case::braces_without_dashes("{3e11fa4771ca11e19e33c80aa9429562}:1", 9, "\"-\" in the UUID")]
#[case::braces_left_open("{A:1", 37, "\"}\" after the UUID")]
#[case::no_number("A:", 37, "a number from 1 to 9223372036854775806, or a tag,")]
#[case::no_number_after_a_tag("A:x:", 39, "a number from 1 to 9223372036854775806, or a tag,")]
#[case::a_zero("A:0", 37, "a number from 1")]
#[case::from_zero("A:0-4", 37, "a number from 1")]
#[case::too_high("A:9223372036854775807", 37, "a number from 1")]
#[case::far_too_high("A:99999999999999999999", 37, "a number from 1")]
#[case::an_end_too_high("A:1-9223372036854775807", 39, "a number up to 9223372036854775806")]
#[case::no_end("A:1-", 39, "a number up to")]
#[case::signs("A:+1", 37, "a number from 1")]
#[case::three_numbers("A:1-2-3", 40, "\":\", \",\" or the end")]
#[case::two_numbers("A:1 2", 39, "\":\", \",\" or the end")]
#[case::two_colons("A:1::2", 39, "a number from 1")]
#[case::another_separator("A:1;B:1", 38, "\":\", \",\" or the end")]
#[case::a_tag_with_a_dash("A:x-y:1", 38, "\":\", \",\" or the end")]
#[case::a_tag_of_other_letters("A:é:1", 37, "a number from 1")]
#[case::a_long_tag("A:ttttttttttttttttttttttttttttttttt:1", 69, "the end of the tag")]
#[case::in_the_second_line("A:1,\nB:y:0", 79, "a number from 1")]
fn mistakes_are_shown_where_they_are(#[case] text: &str, #[case] position: usize, #[case] expected: &str) {
    let error = full(text).parse::<GtidSet>().unwrap_err();
    assert_eq!(error.position(), position, "{error}");
    assert!(error.expected().starts_with(expected), "{error}");
}

#[test]
fn the_caret_stands_under_the_mistake() {
    let error = read_error("A:1-3:5x");
    assert_eq!(
        error,
        "the GTID set cannot be read: expected \":\", \",\" or the end at character 43\n\
         \x20 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5x\n\
         \x20                                           ^"
    );
}

#[test]
fn only_the_surroundings_of_a_mistake_are_shown() {
    let many = (1..2_000).map(|number| format!(":{}", number * 2)).collect::<Vec<_>>().concat();
    let error = read_error(&format!("A{many},\nB:0{many}"));
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines[0].ends_with(&format!("at character {}", 36 + many.len() + 2 + 36 + 2)), "{error}");
    assert_eq!(lines[1].find(":0:2:4").map(|place| place + 1), lines[2].find('^'), "{error}");
    assert!(lines[1].starts_with("  ...") && lines[1].ends_with("...") && lines[1].len() < 120, "{error}");
}

fn read_error(text: &str) -> String {
    full(text).parse::<GtidSet>().unwrap_err().to_string()
}

#[rstest]
#[case("", "", "", "", "")]
#[case("A:1-3", "", "A:1-3", "A:1-3", "")]
#[case("", "A:1-3", "A:1-3", "", "")]
#[case("A:1-3", "A:1-3", "A:1-3", "", "A:1-3")]
#[case("A:1-3", "A:4-5", "A:1-5", "A:1-3", "")]
#[case("A:1-9", "A:3:5-6", "A:1-9", "A:1-2:4:7-9", "A:3:5-6")]
#[case("A:3:5-6", "A:1-9", "A:1-9", "", "A:3:5-6")]
#[case("A:1-5:10-15:20", "A:4-12:14", "A:1-15:20", "A:1-3:13:15:20", "A:4-5:10-12:14")]
#[case("A:1,B:1", "B:1-2", "A:1,\nB:1-2", "A:1", "B:1")]
#[case("A:1:x:1", "A:x:1:y:1", "A:1:x:1:y:1", "A:1", "A:x:1")]
#[case(
    "A:1-9223372036854775806",
    "A:9223372036854775806",
    "A:1-9223372036854775806",
    "A:1-9223372036854775805",
    "A:9223372036854775806"
)]
fn sets_are_combined(
    #[case] left: &str,
    #[case] right: &str,
    #[case] joined: &str,
    #[case] without: &str,
    #[case] shared: &str,
) {
    let (left, right) = (read(left), read(right));
    assert_eq!(left.joined_with(&right), read(joined));
    assert_eq!(left.without(&right), read(without));
    assert_eq!(left.shared_with(&right), read(shared));
    assert_eq!(left.is_within(&right), read(without).is_empty());
}

#[test]
fn a_set_is_asked_for_its_parts() {
    let set = read("A:1-5:8:x:2,B:3");
    let (a, b) = (uuid(A), uuid(B));
    let tagged = Source { uuid: a, tag: Some("X".parse().unwrap()) };
    assert_eq!(set.count(), 8);
    assert_eq!(set.uuids().collect::<Vec<_>>(), [a, b]);
    assert_eq!(set.of_uuid(a), read("A:1-5:8:x:2"));
    assert_eq!(set.without_uuid(a), read("B:3"));
    assert_eq!(set.of_uuid(Uuid::new(1)), GtidSet::new());
    assert!(set.contains(&a.into(), 5) && set.contains(&a.into(), 8) && set.contains(&tagged, 2));
    assert!(!set.contains(&a.into(), 6) && !set.contains(&tagged, 1) && !set.contains(&Uuid::new(1).into(), 1));
    let ranges: Vec<_> = set.ranges().map(|(source, numbers)| (source.clone(), numbers)).collect();
    assert_eq!(ranges, [(a.into(), 1..=5), (a.into(), 8..=8), (tagged, 2..=2), (b.into(), 3..=3)]);
}

#[rstest]
#[case(3..=5, "A:3-5")]
#[case(0..=2, "A:1-2")]
#[case(0..=0, "")]
#[case(u64::MAX..=u64::MAX, "")]
#[case(9_223_372_036_854_775_806..=u64::MAX, "A:9223372036854775806")]
fn ranges_hold_what_can_be(#[case] numbers: RangeInclusive<u64>, #[case] expected: &str) {
    assert_eq!(GtidSet::of_range(uuid(A).into(), numbers), read(expected));
}

#[test]
fn sets_of_everything_are_counted() {
    let set = read("A:1-9223372036854775806:x:1-9223372036854775806,B:1-9223372036854775806");
    assert_eq!(set.count(), 3 * 9_223_372_036_854_775_806);
}

#[test]
fn sets_are_kept_as_text() {
    let set = read("A:1-3,B:x:2");
    let json = serde_json::to_string(&set).unwrap();
    assert_eq!(json, format!("\"{A}:1-3,\\n{B}:x:2\""));
    assert_eq!(serde_json::from_str::<GtidSet>(&json).unwrap(), set);
    assert!(serde_json::from_str::<GtidSet>("\"nonsense\"").unwrap_err().to_string().contains("a hex digit of a UUID"));
}

#[rstest]
#[case("", "a hex digit of a UUID")]
#[case("3e11fa47-71ca-11e1-9e33-c80aa9429562 ", "the end")]
fn a_uuid_stands_alone(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(text.parse::<Uuid>().unwrap_err().expected(), expected);
}

#[rstest]
#[case("", "a letter or \"_\"")]
#[case("1a", "a letter or \"_\"")]
#[case("a b", "the end")]
fn a_tag_stands_alone(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(text.parse::<Tag>().unwrap_err().expected(), expected);
}

/// Large sets are walked once: with quadratic walks this would take minutes.
#[test]
fn large_sets_are_no_trouble() {
    let text = |offset: u64| {
        let numbers: Vec<_> = (0..100_000).map(|index| format!(":{}", index * 4 + offset)).collect();
        format!("{A}{}", numbers.concat())
    };
    let (left, right): (GtidSet, GtidSet) = (text(1).parse().unwrap(), text(2).parse().unwrap());
    let joined = left.joined_with(&right);
    assert_eq!(joined.count(), 200_000);
    assert_eq!(joined.without(&right), left);
    assert_eq!(joined.shared_with(&left), left);
    assert!(left.is_within(&joined) && !joined.is_within(&left));
}
