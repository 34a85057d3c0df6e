//! Random documents of an OpenAPI schema, as a definition of a custom resource has it: good ones, nearly good ones, and junk.

use serde_json::{Map, Value, json};

use crate::Dice;
use crate::junk::{junk, odd_number, text};

/// Below this depth, what is optional is mostly left out: else every document would be as large as the schema.
const SHALLOW: u16 = 3;

/// Makes documents.
#[derive(Clone, Debug)]
pub struct Documents {
    schema: Value,
    good: Value,
}

impl Documents {
    /// Documents of this schema, or made from a good one.
    pub fn new(schema: Value, good: Value) -> Self {
        Self { schema, good }
    }

    /// The next document.
    pub fn roll(&self, dice: &mut Dice) -> Value {
        // How many of a hundred values are not what the schema asks for. Most documents should get far into the code.
        let junk_percent = [0, 0, 1, 4, 20][dice.index(5)];
        let mut document = if dice.chance(60) {
            let mut document = self.good.clone();
            for _ in 0..=dice.below(6) {
                self.mutate(dice, &mut document, &self.schema, junk_percent);
            }
            document
        } else {
            let mut document = self.of(dice, &self.schema, 0, junk_percent);
            // A document without the parts that everything hangs on says little.
            for part in ["apiVersion", "kind", "metadata"] {
                if dice.chance(95) && document.is_object() {
                    document[part] = self.good[part].clone();
                }
            }
            document
        };
        if dice.chance(10) && document["metadata"].is_object() {
            let key = dice.pick(&["labels", "annotations", "finalizers", "generation", "ownerReferences", "name", "uid"]);
            document["metadata"][key] = junk(dice);
        }
        if dice.chance(20) && document.is_object() {
            document["status"] =
                if dice.chance(50) { junk(dice) } else { self.of(dice, &self.schema["properties"]["status"], 0, 20) };
        }
        document
    }

    /// Changes one place somewhere below this one.
    fn mutate(&self, dice: &mut Dice, place: &mut Value, schema: &Value, junk_percent: u16) {
        let further = dice.chance(75);
        match place {
            Value::Object(fields) if further && !fields.is_empty() => {
                let key = nth(dice, fields);
                let schema = child(schema, &key);
                self.mutate(dice, fields.entry(key).or_insert(Value::Null), schema, junk_percent);
            }
            Value::Array(items) if further && !items.is_empty() => {
                let index = dice.index(items.len());
                self.mutate(dice, &mut items[index], &schema["items"], junk_percent);
            }
            place => self.change(dice, place, schema, junk_percent),
        }
    }

    fn change(&self, dice: &mut Dice, place: &mut Value, schema: &Value, junk_percent: u16) {
        match (place, dice.below(6)) {
            (Value::Object(fields), 0) if !fields.is_empty() => {
                let key = nth(dice, fields);
                fields.remove(&key);
            }
            (Value::Object(fields), 1) => drop(fields.insert(text(dice), junk(dice))),
            // Something that the schema knows and the good document does not have.
            (Value::Object(fields), 2..=4) => {
                if let Some(known) = schema["properties"].as_object().filter(|known| !known.is_empty()) {
                    let key = nth(dice, known);
                    let value = self.of(dice, &known[&key], 1, junk_percent);
                    fields.insert(key, value);
                }
            }
            (Value::Array(items), 0..=2) if !items.is_empty() => {
                let twice = items[dice.index(items.len())].clone();
                items.push(twice);
            }
            (Value::Array(items), 3) => drop(items.pop()),
            (place, _) if dice.chance(junk_percent.saturating_mul(3)) => *place = junk(dice),
            (place, _) => *place = self.of(dice, schema, 1, junk_percent),
        }
    }

    /// A value of a schema.
    fn of(&self, dice: &mut Dice, schema: &Value, depth: u16, junk_percent: u16) -> Value {
        if dice.chance(junk_percent) {
            return junk(dice);
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return if dice.chance(50) { json!(dice.below(10_000)) } else { quantity(dice) };
        }
        if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
            return values[dice.index(values.len())].clone();
        }
        match schema["type"].as_str() {
            Some("object") => self.object(dice, schema, depth, junk_percent),
            Some("array") => {
                let least = u16::try_from(schema["minItems"].as_u64().unwrap_or(0)).unwrap_or(0);
                let length = least + dice.below(3);
                (0..length).map(|_| self.of(dice, &schema["items"], depth + 1, junk_percent)).collect()
            }
            Some("string") => string(dice, schema),
            Some("integer") => integer(dice, schema, junk_percent),
            Some("boolean") => Value::Bool(dice.chance(50)),
            Some("number") => odd_number(dice),
            _ => junk(dice),
        }
    }

    fn object(&self, dice: &mut Dice, schema: &Value, depth: u16, junk_percent: u16) -> Value {
        let mut object = Map::new();
        let required = |key: &str| schema["required"].as_array().into_iter().flatten().any(|it| it == key);
        let wanted = if depth < SHALLOW { 45 } else { 60 / (depth + 1) };
        for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
            let present = if required(key) { !dice.chance(junk_percent) } else { dice.chance(wanted) };
            if present {
                object.insert(key.clone(), self.of(dice, schema, depth + 1, junk_percent));
            }
        }
        if schema["additionalProperties"].is_object() {
            for _ in 0..dice.below(3) {
                let key = if dice.chance(70) { format!("key{}", dice.below(9)) } else { text(dice) };
                object.insert(key, self.of(dice, &schema["additionalProperties"], depth + 1, junk_percent));
            }
        }
        if dice.chance(junk_percent) {
            object.insert(text(dice), junk(dice));
        }
        Value::Object(object)
    }
}

/// The name of a random field. There must be one.
fn nth(dice: &mut Dice, fields: &Map<String, Value>) -> String {
    fields.keys().nth(dice.index(fields.len())).cloned().unwrap_or_default()
}

/// The schema of a field.
fn child<'a>(schema: &'a Value, key: &str) -> &'a Value {
    let known = &schema["properties"][key];
    if known.is_null() { &schema["additionalProperties"] } else { known }
}

fn quantity(dice: &mut Dice) -> Value {
    json!(dice.pick(&["1", "500m", "0.5", "1Gi", "1e3", "100Ki", "0", "50%", "http"]))
}

fn string(dice: &mut Dice, schema: &Value) -> Value {
    // The only patterns in our definitions are those of durations.
    if schema["pattern"].is_string() && dice.chance(80) {
        return json!(dice.pick(&[
            "0",
            "0s",
            "1",
            "30s",
            "1h30m",
            "10ms",
            "1d",
            "18446744073709551615",
            "18446744073709551615d",
            "213503982334601d",
            "1s1s1s"
        ]));
    }
    if schema["format"] == "date-time" && dice.chance(80) {
        return json!(dice.pick(&[
            "2026-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
            "9999-12-30T22:00:00Z",
            "2026-01-01T00:00:00.123456789+02:00"
        ]));
    }
    if dice.chance(50) { json!(format!("name{}", dice.below(100))) } else { json!(text(dice)) }
}

fn integer(dice: &mut Dice, schema: &Value, junk_percent: u16) -> Value {
    let bound = |key: &str| schema[key].as_f64().map(|bound| json!(bound));
    // A bound is written as a float; whole numbers are asked for.
    let whole =
        |bound: Value| bound.as_f64().and_then(|it| format!("{it:.0}").parse::<i64>().ok()).map_or(Value::Null, |it| json!(it));
    match (dice.below(6), bound("minimum"), bound("maximum")) {
        (0, Some(least), _) => whole(least),
        (1, _, Some(most)) => whole(most),
        (2, ..) if dice.chance(junk_percent.saturating_mul(3)) => odd_number(dice),
        _ => json!(dice.below(6)),
    }
}
