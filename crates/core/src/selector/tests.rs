use std::collections::BTreeMap;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn read(text: &str) -> Selector {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[rstest]
// Equality.
#[case("a=b", &[("a", "b")], true)]
#[case("a==b", &[("a", "b")], true)]
#[case("a=b", &[("a", "c")], false)]
#[case("a=b", &[], false)]
#[case("a=", &[("a", "")], true)]
#[case("a=", &[("a", "b")], false)]
#[case("a=", &[], false)]
#[case("a=,b", &[("a", ""), ("b", "x")], true)]
// Inequality holds for an absent key.
#[case("a!=b", &[("a", "c")], true)]
#[case("a!=b", &[("a", "b")], false)]
#[case("a!=b", &[], true)]
#[case("a!=", &[("a", "")], false)]
#[case("a!=", &[], true)]
// Sets.
#[case("a in (b,c)", &[("a", "c")], true)]
#[case("a in (b,c)", &[("a", "d")], false)]
#[case("a in (b,c)", &[], false)]
#[case("a in (b,)", &[("a", "")], true)]
#[case("a in (,b)", &[("a", "")], true)]
#[case("a in (,b)", &[("a", "b")], true)]
#[case("a in (b,,c)", &[("a", "")], true)]
#[case("a in (,)", &[("a", "")], true)]
#[case("a notin (b,c)", &[("a", "d")], true)]
#[case("a notin (b,c)", &[("a", "b")], false)]
#[case("a notin (b,c)", &[], true)]
#[case("a notin (,)", &[("a", "")], false)]
#[case("a in ()", &[("a", "")], true)]
#[case("a in ()", &[("a", "b")], false)]
#[case("a in ()", &[], false)]
#[case("a notin ()", &[("a", "")], false)]
#[case("a notin ()", &[], true)]
// Presence.
#[case("a", &[("a", "")], true)]
#[case("a", &[("b", "")], false)]
#[case("!a", &[("b", "")], true)]
#[case("!a", &[("a", "")], false)]
#[case("! a", &[("a", "")], false)]
// Numbers.
#[case("a>5", &[("a", "6")], true)]
#[case("a>5", &[("a", "5")], false)]
#[case("a>5", &[("a", "10")], true)]
#[case("a>5", &[("a", "x")], false)]
#[case("a>5", &[], false)]
#[case("a<5", &[("a", "4")], true)]
#[case("a<5", &[("a", "5")], false)]
#[case("a<5", &[("a", "")], false)]
#[case("a<5", &[], false)]
#[case("a > 07", &[("a", "8")], true)]
#[case("a>5,a<9", &[("a", "7")], true)]
#[case("a>5,a<9", &[("a", "9")], false)]
// All must hold.
#[case("a=b,c=d", &[("a", "b"), ("c", "d")], true)]
#[case("a=b,c=d", &[("a", "b")], false)]
#[case("a=b,!c,d notin (e)", &[("a", "b"), ("d", "f")], true)]
#[case("a=b,a!=b", &[("a", "b")], false)]
// Everything.
#[case("", &[], true)]
#[case(" \t\r\n ", &[("a", "b")], true)]
// Blanks do not matter.
#[case("  a  =  b  ,  c  ", &[("a", "b"), ("c", "")], true)]
#[case("a in(b)", &[("a", "b")], true)]
#[case("a\tin\n(\r\nb , c )", &[("a", "c")], true)]
// The words of the grammar are words elsewhere.
#[case("in", &[("in", "")], true)]
#[case("notin", &[("notin", "")], true)]
#[case("in in (in,notin)", &[("in", "notin")], true)]
#[case("notin notin (in)", &[("notin", "in")], false)]
#[case("a=in", &[("a", "in")], true)]
#[case("!in,a=notin", &[("a", "notin")], true)]
#[case("In=b", &[("In", "b")], true)]
// Prefixed keys.
#[case("app.kubernetes.io/name=x", &[("app.kubernetes.io/name", "x")], true)]
#[case("!example.com/a", &[("a", "x")], true)]
// What the documentation of a canary uses.
#[case("version!=canary", &[], true)]
#[case("version!=canary", &[("version", "canary")], false)]
#[case("version=canary", &[], false)]
fn selects_as_kubectl_does(#[case] selector: &str, #[case] pairs: &[(&str, &str)], #[case] selected: bool) {
    assert_eq!(read(selector).matches(&labels(pairs)), selected);
}

#[rstest]
#[case("", "")]
#[case("a==b", "a=b")]
#[case(" a != b ", "a!=b")]
#[case("b=1,a=2", "a=2,b=1")]
#[case("a=1,a=1", "a=1")]
#[case("a in (c,b,c)", "a in (b,c)")]
#[case("a in (,)", "a in ()")]
#[case("a notin ( )", "a notin ()")]
#[case("a in (b,,)", "a in (,b)")]
#[case("a notin (b,)", "a notin (,b)")]
#[case("a > 007", "a>7")]
#[case("! a", "!a")]
#[case("a=,b", "a=,b")]
fn is_printed_in_one_form(#[case] text: &str, #[case] printed: &str) {
    let selector = read(text);
    assert_eq!(selector.to_string(), printed);
    assert_eq!(read(printed), selector);
}

#[test]
fn order_of_requirements_does_not_matter() {
    assert_eq!(read("a=1,b in (x,y)"), read("b in (y,x),a==1"));
    assert_ne!(read("a=1"), read("a in (1)"));
}

#[test]
fn empty_selector_is_everything() {
    assert!(read("").is_everything());
    assert_eq!(read(" "), Selector::everything());
    assert!(!read("a").is_everything());
    assert_eq!(read("a,b").requirements().len(), 2);
}

#[rstest]
#[case(",", 0, "a label key, or \"!\" and a label key")]
#[case("a,", 2, "a label key, or \"!\" and a label key")]
#[case("a,,b", 2, "a label key, or \"!\" and a label key")]
#[case(",a", 0, "a label key, or \"!\" and a label key")]
#[case("=b", 0, "a label key, or \"!\" and a label key")]
#[case("(a)", 0, "a label key, or \"!\" and a label key")]
#[case("!", 1, "a label key after \"!\"")]
#[case("!!a", 1, "a label key after \"!\"")]
#[case("!a=b", 2, "\",\" or the end")]
#[case("!a in (b)", 3, "\",\" or the end")]
#[case("a=b c", 4, "\",\" or the end")]
#[case("a=b=c", 3, "\",\" or the end")]
#[case("a in (b)c", 8, "\",\" or the end")]
#[case("a===b", 3, "a label value, \",\" or the end after \"==\"")]
#[case("a=!b", 2, "a label value, \",\" or the end after \"=\"")]
#[case("a!=(b)", 3, "a label value, \",\" or the end after \"!=\"")]
#[case("a in b", 5, "\"(\" after \"in\"")]
#[case("a notin", 7, "\"(\" after \"notin\"")]
#[case("a in (b", 7, "\",\" or \")\"")]
#[case("a in (", 6, "a label value, \",\" or \")\"")]
#[case("a in (b,", 8, "a label value, \",\" or \")\"")]
#[case("a in (b c)", 8, "\",\" or \")\"")]
#[case("a in (b=c)", 7, "\",\" or \")\"")]
#[case("a in ((b))", 6, "a label value, \",\" or \")\"")]
#[case("a>b", 2, "a whole number after \">\"")]
#[case("a>", 2, "a whole number after \">\"")]
#[case("a<,b", 2, "a whole number after \"<\"")]
#[case("a>-1", 2, "a whole number after \">\"")]
#[case("a>1.5", 2, "a whole number after \">\"")]
#[case("a<9223372036854775808", 2, "a whole number after \"<\"")]
#[case("a>=1", 2, "a whole number after \">\"")]
#[case("-a=b", 0, "a letter or a digit in the label key")]
#[case("a=b,c$d", 5, "a letter, a digit, \"-\", \"_\" or \".\" in the label key")]
#[case("a=b/c", 3, "a letter, a digit, \"-\", \"_\" or \".\" in the label value")]
#[case("a in (b,c-)", 9, "a letter or a digit as the last character in the label value")]
#[case("X.y/a", 0, "a lower-case letter, a digit, \"-\" or \".\" before the \"/\" in the label key")]
#[case("é=b", 0, "a letter or a digit in the label key")]
fn mistake_is_found_at_its_place(#[case] text: &str, #[case] position: usize, #[case] expected: &str) {
    let error = text.parse::<Selector>().unwrap_err();
    assert_eq!((error.position(), error.expected()), (position, expected));
}

#[rstest]
#[case("a b")]
#[case("a !b")]
#[case("a )")]
#[case("a IN (b)")]
#[case("a is b")]
fn unknown_operator_lists_the_known_ones(#[case] text: &str) {
    let error = text.parse::<Selector>().unwrap_err();
    assert_eq!(error.position(), 2);
    assert_eq!(
        error.expected(),
        "one of \"=\", \"==\", \"!=\", \"in\", \"notin\", \">\", \"<\", \",\" or the end after the label key \"a\""
    );
}

#[test]
fn caret_stands_under_the_mistake() {
    let error = "app=shop,version=!canary".parse::<Selector>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the label selector cannot be read: expected a label value, \",\" or the end after \"=\"\n  \
         app=shop,version=!canary\n  \
         \u{20}                ^"
    );
}

#[test]
fn caret_is_not_carried_away_by_tabs_and_wide_bytes() {
    let error = "\ta=é,\n!".parse::<Selector>().unwrap_err();
    assert_eq!(error.position(), 3);
    let error = "a\t=\tb\n!".parse::<Selector>().unwrap_err();
    let lines: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[1], "  a = b !");
    assert_eq!(lines[2], "        ^");
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?",
        "[a-z0-9]([a-z0-9-]{0,4}[a-z0-9])?(\\.[a-z0-9]{1,3}){0,2}/[A-Za-z0-9]{1,6}",
        Just("in".to_owned()),
        Just("notin".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        "([A-Za-z0-9]([A-Za-z0-9_.-]{0,8}[A-Za-z0-9])?)?",
        Just("in".to_owned()),
        Just("notin".to_owned()),
        Just(String::new()),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    prop_oneof![
        Just(Test::Exists),
        Just(Test::Absent),
        value().prop_map(Test::Equals),
        value().prop_map(Test::Differs),
        btree_set(value(), 1..4).prop_map(Test::In),
        btree_set(value(), 1..4).prop_map(Test::NotIn),
        (0..i64::MAX).prop_map(Test::Above),
        (0..i64::MAX).prop_map(Test::Below),
    ]
}

fn selector() -> impl Strategy<Value = Selector> {
    vec((key(), test()).prop_map(|(key, test)| Requirement { key, test }), 0..5).prop_map(Selector::of)
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(selector in selector()) {
        prop_assert_eq!(read(&selector.to_string()), selector);
    }

    #[test]
    fn what_is_printed_selects_the_same(
        selector in selector(), pairs in vec((key(), value()), 0..4),
    ) {
        let labels: BTreeMap<String, String> = pairs.into_iter().collect();
        prop_assert_eq!(read(&selector.to_string()).matches(&labels), selector.matches(&labels));
    }

    #[test]
    fn negations_are_opposites(
        key in key(), value in value(), pairs in vec((key(), value()), 0..4),
    ) {
        let labels: BTreeMap<String, String> = pairs.into_iter().collect();
        let opposite = |one: &str, other: &str| {
            read(one).matches(&labels) != read(other).matches(&labels)
        };
        let equals = format!("{key}={value}");
        let differs = format!("{key}!={value}");
        let within = format!("{key} in ({value},x)");
        let without = format!("{key} notin ({value},x)");
        let absent = format!("!{key}");
        prop_assert!(opposite(&equals, &differs));
        prop_assert!(opposite(&within, &without));
        prop_assert!(opposite(&key, &absent));
    }

    #[test]
    fn no_input_is_beyond_the_reader(text in "\\PC{0,20}|[a-c=!,() <>inot/\t\n-]{0,16}") {
        match text.parse::<Selector>() {
            Ok(selector) => prop_assert_eq!(read(&selector.to_string()), selector),
            Err(error) => {
                prop_assert!(error.position() <= text.chars().count());
                prop_assert_eq!(error.to_string().lines().count(), 3);
            }
        }
    }
}
