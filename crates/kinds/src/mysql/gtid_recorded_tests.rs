//! The same answers as a real server: recorded ones in every run, and many more from a server on demand.
//!
//! The recorded answers are those of `GTID_SUBTRACT` and `GTID_SUBSET` of mysqld 9.7.4, one JSON list per line. On demand:
//! `WINDLASS_MYSQL="mysql -uroot -S SOCKET" cargo test -p windlass-kinds --lib -- --ignored a_real_server`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use windlass_dice::{Dice, number};

use super::*;

const PAIRS: u64 = 3_000;
const TEXTS: u64 = 6_000;

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

#[test]
#[ignore = "needs the client of a real server in WINDLASS_MYSQL"]
fn a_real_server_gives_the_same_answers() {
    let mut dice = Dice::new(number("WINDLASS_SEED").unwrap_or(1));
    let pairs: Vec<_> =
        (0..number("WINDLASS_PAIRS").unwrap_or(PAIRS)).map(|_| (random_set(&mut dice), random_set(&mut dice))).collect();
    let questions = pairs.iter().flat_map(|(left, right)| {
        let (left, right) = (quoted(left), quoted(right));
        ["SUBSET", "SUBTRACT"].map(|function| format!("GTID_{function}({left}, {right})"))
    });
    let answers = ask(&questions.collect::<Vec<_>>());
    for ((left, right), answers) in pairs.iter().zip(answers.chunks(2)) {
        let (one, other) = (read(left), read(right));
        let ours = [u8::from(one.is_within(&other)).to_string(), one.without(&other).to_string()];
        assert_eq!(answers, ours.map(Some), "{left:?} and {right:?}");
    }

    let texts: Vec<_> = (0..number("WINDLASS_TEXTS").unwrap_or(TEXTS)).map(|_| damaged(&mut dice)).collect();
    let answers = ask(&texts.iter().map(|text| format!("GTID_SUBTRACT({}, '')", quoted(text))).collect::<Vec<_>>());
    for (text, answer) in texts.iter().zip(&answers) {
        assert_eq!(&canonical(text), answer, "{text:?}");
    }
    let refused = answers.iter().filter(|answer| answer.is_none()).count();
    println!("{} pairs and {} texts agree, {refused} of them refused", pairs.len(), texts.len());
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

/// What the server answers to each expression; nothing where it fails.
fn ask(expressions: &[String]) -> Vec<Option<String>> {
    let client = std::env::var("WINDLASS_MYSQL").expect("WINDLASS_MYSQL is the command of a client");
    let mut client = Command::new("sh")
        .args(["-c", &format!("{client} --batch --skip-column-names --force")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = client.stdin.take().unwrap();
    let questions = expressions.iter().enumerate();
    let questions: Vec<String> =
        questions.map(|(index, expression)| format!("SELECT {index}, CONCAT('=', HEX(CONCAT('', {expression})));\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(questions.concat().as_bytes()).unwrap());
    let output = client.wait_with_output().unwrap();
    writer.join().unwrap();
    let mut answers = vec![None; expressions.len()];
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let (index, digits) = line.split_once("\t=").unwrap();
        let bytes = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap());
        answers[index.parse::<usize>().unwrap()] = Some(String::from_utf8(bytes.collect()).unwrap());
    }
    assert!(answers.iter().any(Option::is_some), "the server did not answer");
    answers
}
