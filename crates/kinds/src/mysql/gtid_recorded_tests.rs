//! The same answers as a real server, recorded: those of `GTID_SUBTRACT` and `GTID_SUBSET` of mysqld 9.7.4, one JSON list per line. Many more
//! are compared with a server that runs in `crates/clients/tests/mysql/comparing.rs`.

use super::*;

/// A text, and how the server writes it; nothing when it refuses it.
const RECORDED_TEXTS: &str = include_str!("gtid/recorded_texts.jsonl");
/// Two sets, whether the first is a subset of the second, and the first without the second.
const RECORDED_PAIRS: &str = include_str!("gtid/recorded_pairs.jsonl");

fn canonical(text: &str) -> Option<String> {
    text.parse::<GtidSet>().ok().map(|set| set.to_string())
}

fn read(text: &str) -> GtidSet {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn texts_are_read_as_recorded() {
    for line in RECORDED_TEXTS.lines() {
        let (text, answer): (String, Option<String>) = serde_json::from_str(line).unwrap();
        assert_eq!(canonical(&text), answer, "{line}");
    }
    assert!(RECORDED_TEXTS.lines().count() >= 100);
}

#[test]
fn pairs_compare_as_recorded() {
    for line in RECORDED_PAIRS.lines() {
        let (left, right, within, rest): (String, String, bool, String) = serde_json::from_str(line).unwrap();
        let (left, right) = (read(&left), read(&right));
        assert_eq!(left.is_within(&right), within, "{line}");
        assert_eq!(left.without(&right).to_string(), rest, "{line}");
    }
    assert!(RECORDED_PAIRS.lines().count() >= 50);
}
