//! Sets of GTIDs mean to us what they mean to a server.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Error};
use windlass_dice::{Dice, number};
use windlass_kinds::mysql::gtid::{GtidSet, HIGHEST_NUMBER, Uuid};

use crate::server::Server;

const PAIRS: u64 = 3_000;
const TEXTS: u64 = 6_000;

#[tokio::test]
#[ignore = "needs a mysqld: the head of the file says how"]
async fn sets_are_read_compared_and_subtracted_as_a_server_does() {
    let server = Server::start(0).await;
    let (mut root, mut dice) = (server.root().await, Dice::new(number("WINDLASS_SEED").unwrap_or(1)));
    for _ in 0..number("WINDLASS_PAIRS").unwrap_or(PAIRS) {
        let (left, right) = (random_set(&mut dice), random_set(&mut dice));
        let (one, other): (GtidSet, GtidSet) = (left.parse().unwrap(), right.parse().unwrap());
        let is_within = ask(&mut root, "GTID_SUBSET", &[&left, &right]).await;
        assert_eq!(is_within, Some(u8::from(one.is_within(&other)).to_string()), "{left:?} and {right:?}");
        let without = ask(&mut root, "GTID_SUBTRACT", &[&left, &right]).await;
        assert_eq!(without, Some(one.without(&other).to_string()), "{left:?} and {right:?}");
    }
    let mut refused = 0;
    for _ in 0..number("WINDLASS_TEXTS").unwrap_or(TEXTS) {
        let text = damaged(&mut dice);
        let answer = ask(&mut root, "GTID_SUBTRACT", &[&text, ""]).await;
        refused += u64::from(answer.is_none());
        assert_eq!(text.parse::<GtidSet>().ok().map(|set| set.to_string()), answer, "{text:?}");
    }
    assert!((1..TEXTS).contains(&refused), "{refused} texts were refused");
}

/// What the server answers; nothing where it refuses what it is given.
async fn ask(root: &mut Conn, function: &str, sets: &[&str; 2]) -> Option<String> {
    let [left, right] = sets.map(quoted);
    match root.query_first(format!("SELECT CONCAT('', {function}({left}, {right}))")).await {
        Ok(answer) => answer,
        Err(Error::Server(_)) => None,
        Err(error) => panic!("{error}"),
    }
}

/// A text that the server takes: few servers, tags and numbers, so that sets meet; in any order, with blanks and upper case.
fn random_set(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(5) {
        let uuid = Uuid::new(u128::from(dice.below(3)) << 124 | 0xabcd).to_string();
        text += &if dice.chance(20) { uuid.to_uppercase() } else { uuid };
        for _ in 0..dice.below(8) {
            text += dice.pick(&[":", ":", ":", " : ", ":\n"]);
            if dice.chance(20) {
                text += dice.pick(&["a", "b", "A", "a_", "_", "a0"]);
                continue;
            }
            let high = if dice.chance(5) { HIGHEST_NUMBER - 20 } else { 1 };
            let first = high + u64::from(dice.below(20));
            text += &first.to_string();
            if dice.chance(60) {
                let last = first + u64::from(dice.below(8));
                text += "-";
                text += &if dice.chance(10) { 0 } else { last.min(HIGHEST_NUMBER) }.to_string();
            }
        }
        text += dice.pick(&[",", ",\n", " , ", ",,"]);
    }
    text
}

/// A text that the server may well refuse.
fn damaged(dice: &mut Dice) -> String {
    let mut characters: Vec<char> = random_set(dice).chars().collect();
    for _ in 0..dice.below(4) {
        let place = dice.index(characters.len() + 1);
        let other = dice.pick(&["0", "7", "f", "g", "X", "_", "-", ":", ",", " ", "\n", "\t", "{", "}", "+", ";"]);
        let other = other.chars().next().unwrap();
        match dice.below(3) {
            0 => characters.insert(place, other),
            1 if place < characters.len() => characters[place] = other,
            _ if place < characters.len() => drop(characters.remove(place)),
            _ => {}
        }
    }
    characters.into_iter().collect()
}

/// As hexadecimal digits, which need no escapes.
fn quoted(text: &str) -> String {
    let digits: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("CONVERT(X'{}' USING utf8mb4)", digits.concat())
}
