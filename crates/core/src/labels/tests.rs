use rstest::rstest;

use super::*;

#[rstest]
#[case("a")]
#[case("A")]
#[case("9")]
#[case("in")]
#[case("a-b_c.D9")]
#[case("app.kubernetes.io/managed-by")]
#[case("a/b")]
#[case("0.a-b.c/X_y")]
fn good_keys_pass(#[case] key: &str) {
    assert_eq!(check_key(key), Ok(()));
}

#[rstest]
#[case("", 0, "a name of at least one character")]
#[case("-a", 0, "a letter or a digit")]
#[case("a-", 1, "a letter or a digit as the last character")]
#[case("a b", 1, "a letter, a digit, \"-\", \"_\" or \".\"")]
#[case("ä", 0, "a letter or a digit")]
#[case("aß", 1, "a letter, a digit, \"-\", \"_\" or \".\"")]
#[case("/a", 0, "a DNS name before the \"/\"")]
#[case("a/", 2, "a name of at least one character")]
#[case("a/b/c", 3, "a letter, a digit, \"-\", \"_\" or \".\"")]
#[case("Ab/c", 0, "a lower-case letter, a digit, \"-\" or \".\" before the \"/\"")]
#[case("a_b/c", 1, "a lower-case letter, a digit, \"-\" or \".\" before the \"/\"")]
#[case("a..b/c", 2, "a lower-case letter or a digit")]
#[case("a-.b/c", 2, "a lower-case letter or a digit")]
#[case("a.-b/c", 2, "a lower-case letter or a digit")]
#[case("-a/c", 0, "a lower-case letter or a digit")]
#[case(".a/c", 0, "a lower-case letter or a digit")]
#[case("a./c", 1, "a lower-case letter or a digit before the \"/\"")]
#[case("a-/c", 1, "a lower-case letter or a digit before the \"/\"")]
#[case("a.b/-", 4, "a letter or a digit")]
fn bad_keys_say_where(#[case] key: &str, #[case] offset: usize, #[case] expected: &str) {
    let flaw = check_key(key).unwrap_err();
    assert_eq!((flaw.offset, flaw.expected), (offset, expected));
}

#[test]
fn lengths_are_bounded() {
    let name = "n".repeat(63);
    let prefix = "p".repeat(253);
    assert_eq!(check_key(&format!("{prefix}/{name}")), Ok(()));
    assert_eq!(check_value(&name), Ok(()));
    assert_eq!(check_key(&format!("{prefix}/{name}n")).unwrap_err().offset, 317);
    assert_eq!(check_key(&format!("{prefix}p/{name}")).unwrap_err().offset, 253);
    assert_eq!(check_value(&format!("{name}n")).unwrap_err().offset, 63);
}

#[test]
fn values_may_be_empty_and_have_no_prefix() {
    assert_eq!(check_value(""), Ok(()));
    assert_eq!(check_value("v1.2_3-x"), Ok(()));
    assert_eq!(check_value("a/b").unwrap_err().offset, 1);
    assert_eq!(check_value("-1").unwrap_err().to_string(), "expected a letter or a digit at character 1");
}

#[test]
fn our_own_words_keep_the_rules() {
    for key in [
        MANAGED_BY,
        INSTANCE,
        COMPONENT,
        APP,
        RSS_OPERATOR_MANAGED,
        RSS_ACTIVE_MEMBER,
        RESOURCES_PAUSED,
        CLUSTERING_PAUSED,
        PAUSE_REASON,
        ADOPT,
        DESIRED_HASH,
    ] {
        assert_eq!(check_key(key), Ok(()), "{key}");
    }
    assert_eq!(check_value(MANAGED_BY_WINDLASS), Ok(()));
}

#[rstest]
#[case(APP, true)]
#[case(MANAGED_BY, true)]
#[case(INSTANCE, true)]
#[case(COMPONENT, true)]
#[case(NAME, true)]
#[case(RSS_ACTIVE_MEMBER, true)]
#[case("rss-anything", true)]
#[case("version", false)]
#[case("application", false)]
fn selectors_own_the_reserved_keys(#[case] key: &str, #[case] reserved: bool) {
    assert_eq!(is_reserved(key), reserved);
}
