//! Values that nobody asked for: texts, numbers and trees of the kinds that break programs.

use serde_json::{Map, Number, Value, json};

use crate::Dice;

/// Texts as people and programs write them, well and badly: names, quantities, durations, times, versions, paths, and rubbish.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "-",
    "name-",
    "a-name",
    "A_Name",
    "1st",
    "a.dot",
    "true",
    "false",
    "null",
    "0",
    "00",
    "-1",
    "1",
    "3306",
    "65535",
    "65536",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "1e309",
    "NaN",
    "0s",
    "1ms",
    "30s",
    "1h30m",
    "90m",
    "1m 30s",
    "99999999999999999999d",
    "213503982334d",
    "1Gi",
    "500m",
    "0.5",
    "-1Gi",
    "1e3",
    "Gi",
    "2026-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "-009999-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "TCP",
    "ReadWriteOnce",
    "Always",
    "ClusterFirst",
    "/",
    "../../etc/passwd",
    "/var/lib/data",
    "localhost/image:1",
    "image@sha256:",
    "key=value",
    "windlass.dev/paused",
    "3@logbook",
    "none@logbook",
    "@",
    "\u{0}",
    "\n",
    "\"quoted\"",
    "{}",
    "{\"history\":null,\"sequence\":null,\"safe\":false,\"kind\":\"none\"}",
    "{\"history\":\"6f2c\",\"sequence\":-1,\"safe\":true,\"kind\":\"clean\"}",
    "%s%n%d",
    "$(HOME)",
    "${HOME}",
    "'; DROP TABLE orders; --",
    "ünï-cödé",
    "名前",
    "🦀",
    "e\u{301}",
    "\u{202e}desrever",
    "\u{feff}",
    "İ",
];

/// Numbers at the edges of the types that hold them.
const EDGES: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    7,
    99,
    100,
    127,
    128,
    255,
    256,
    32_767,
    65_535,
    65_536,
    2_147_483_647,
    2_147_483_648,
    -2_147_483_648,
    4_294_967_295,
    9_223_372_036_854_775_807,
    -9_223_372_036_854_775_808,
];

/// How deep a tree of junk may be.
const DEEPEST: u16 = 40;

/// A text: mostly short, sometimes very long.
pub fn text(dice: &mut Dice) -> String {
    match dice.below(40) {
        0 => "x".repeat(usize::from(dice.below(5_000))),
        1 => "ß".repeat(usize::from(dice.below(300))),
        2 => format!("n{}", dice.below(1_000)),
        3 => "a".repeat(44 + usize::from(dice.below(24))),
        _ => dice.pick(TEXTS).to_owned(),
    }
}

/// A number that fits no purpose.
pub(crate) fn odd_number(dice: &mut Dice) -> Value {
    match dice.below(12) {
        0 => json!(u64::MAX),
        1 => Number::from_f64(0.1).map_or(Value::Null, Value::Number),
        2 => Number::from_f64(-1e300).map_or(Value::Null, Value::Number),
        _ => json!(EDGES[dice.index(EDGES.len())]),
    }
}

/// Any value at all.
pub fn junk(dice: &mut Dice) -> Value {
    tree(dice, 0)
}

fn tree(dice: &mut Dice, depth: u16) -> Value {
    let sorts = if depth < 4 { 10 } else { 5 };
    match dice.below(sorts) {
        0 => Value::Null,
        1 => Value::Bool(dice.chance(50)),
        2 => odd_number(dice),
        3 | 4 => Value::String(text(dice)),
        5 => json!([]),
        6 => json!({}),
        7 => (0..dice.below(4)).map(|_| tree(dice, depth + 1)).collect(),
        8 => {
            // One long path rather than many branches.
            let inner = tree(dice, depth + 1);
            (0..dice.below(DEEPEST))
                .fold(inner, |inner, _| if inner.is_array() { json!({ "deep": inner }) } else { json!([inner]) })
        }
        _ => {
            let fields = (0..dice.below(4)).map(|_| (text(dice), tree(dice, depth + 1)));
            Value::Object(fields.collect::<Map<String, Value>>())
        }
    }
}
