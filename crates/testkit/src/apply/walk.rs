//! Walks objects along their topology: which paths a value has, how two values differ, how one is laid over another.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    fields::{FieldPath, FieldSet},
    topology::{ListShape, Place, item_element},
};

/// The paths of an applied value.
pub(crate) fn field_set(value: &Value, root: Place<'_>) -> FieldSet {
    let mut set = FieldSet::default();
    collect(value, root, &mut Vec::new(), &mut set);
    set
}

fn collect(value: &Value, place: Place<'_>, path: &mut FieldPath, set: &mut FieldSet) {
    match value {
        Value::Object(map) if !place.is_atomic_map() => {
            for (name, child) in map {
                path.push(format!("f:{name}"));
                collect(child, place.field(name), path, set);
                let empty = child.is_null() || child.as_object().is_some_and(Map::is_empty);
                if empty || !place.declares(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Value::Array(items) => {
            let shape = place.list_shape();
            if shape == ListShape::Atomic {
                set.insert(path);
                return;
            }
            for item in items {
                let Some(element) = item_element(&shape, item) else { continue };
                path.push(element);
                collect(item, place.item(), path, set);
                set.insert(path);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
}

/// What changed between two objects.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    /// Added and modified together: what the writer now owns.
    pub(crate) fn written(&self) -> FieldSet {
        self.added.union(&self.modified)
    }
}

pub(crate) fn compare(old: &Value, new: &Value, root: Place<'_>) -> Comparison {
    let mut comparison = Comparison::default();
    differ(Some(old), Some(new), root, &mut Vec::new(), &mut comparison);
    comparison
}

fn differ(old: Option<&Value>, new: Option<&Value>, place: Place<'_>, path: &mut FieldPath, out: &mut Comparison) {
    if descend(old, new, place, path, out) {
        match (old, new) {
            (None, Some(_)) => out.added.insert(path),
            (Some(_), None) => out.removed.insert(path),
            _ => {}
        }
        return;
    }
    match (old, new) {
        (None, Some(_)) => out.added.insert(path),
        (Some(_), None) => out.removed.insert(path),
        (Some(old), Some(new)) if old != new => out.modified.insert(path),
        _ => {}
    }
}

/// Goes into maps and keyed lists; false when the place is a leaf.
fn descend(old: Option<&Value>, new: Option<&Value>, place: Place<'_>, path: &mut FieldPath, out: &mut Comparison) -> bool {
    let none = Value::Null;
    let either = new.or(old).unwrap_or(&none);
    let fits = |value: Option<&Value>| {
        value.is_none_or(|value| {
            value.is_null() || value.is_object() == either.is_object() && value.is_array() == either.is_array()
        })
    };
    if !fits(old) || !fits(new) {
        return false;
    }
    let empty = |value: Option<&Value>| match value {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => true,
    };
    if empty(old) && empty(new) {
        return false;
    }
    if either.is_object() && !place.is_atomic_map() {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let names = old.into_iter().flatten().chain(new.into_iter().flatten());
        let names: BTreeSet<&String> = names.map(|(name, _)| name).collect();
        for name in names {
            path.push(format!("f:{name}"));
            let old = old.and_then(|map| map.get(name));
            let new = new.and_then(|map| map.get(name));
            differ(old, new, place.field(name), path, out);
            path.pop();
        }
        return true;
    }
    let shape = place.list_shape();
    if either.is_array() && shape != ListShape::Atomic {
        let (old, new) = (index(old, &shape), index(new, &shape));
        let elements: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for element in elements {
            path.push(element.clone());
            differ(old.get(element).copied(), new.get(element).copied(), place.item(), path, out);
            path.pop();
        }
        return true;
    }
    false
}

fn index<'a>(list: Option<&'a Value>, shape: &ListShape) -> BTreeMap<String, &'a Value> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(|item| Some((item_element(shape, item)?, item))).collect()
}

/// Lays `applied` over `live`.
pub(crate) fn merge(live: &Value, applied: &Value, place: Place<'_>) -> Value {
    match (live, applied) {
        (Value::Object(live_map), Value::Object(applied_map)) if !place.is_atomic_map() => {
            let mut merged = live_map.clone();
            for (name, value) in applied_map {
                let value = match live_map.get(name) {
                    Some(existing) => merge(existing, value, place.field(name)),
                    None => value.clone(),
                };
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        (Value::Array(live_items), Value::Array(applied_items)) => {
            let shape = place.list_shape();
            if shape == ListShape::Atomic {
                applied.clone()
            } else {
                Value::Array(merge_items(live_items, applied_items, &shape, place))
            }
        }
        _ => applied.clone(),
    }
}

/// Applied items come in their order; a live item nobody applied stays behind the live item it followed.
fn merge_items(live: &[Value], applied: &[Value], shape: &ListShape, place: Place<'_>) -> Vec<Value> {
    let element = |item: &Value| item_element(shape, item).unwrap_or_default();
    let applied_elements: Vec<String> = applied.iter().map(element).collect();
    let live_elements: Vec<String> = live.iter().map(element).collect();
    let mut merged = Vec::new();
    let mut next_live = 0;
    let take_live_only = |merged: &mut Vec<Value>, from: &mut usize, until: Option<usize>| {
        let end = until.unwrap_or(live.len());
        while *from < end {
            if !applied_elements.contains(&live_elements[*from]) {
                merged.push(live[*from].clone());
            }
            *from += 1;
        }
    };
    for (position, item) in applied.iter().enumerate() {
        let known = live_elements.iter().position(|known| *known == applied_elements[position]);
        if let Some(at) = known {
            if at >= next_live {
                take_live_only(&mut merged, &mut next_live, Some(at));
                next_live = at + 1;
            }
            merged.push(merge(&live[at], item, place.item()));
        } else {
            // A new item comes after the live-only items that precede the next shared one.
            if !applied_elements[position..].iter().any(|later| live_elements.contains(later)) {
                take_live_only(&mut merged, &mut next_live, None);
            }
            merged.push(item.clone());
        }
    }
    take_live_only(&mut merged, &mut next_live, None);
    merged
}

/// The value without the places in `unwanted`; `None` when nothing is left.
pub(crate) fn remove(value: &Value, unwanted: &FieldSet, place: Place<'_>) -> Value {
    strip(value, unwanted, place, &mut Vec::new()).unwrap_or_else(|| Value::Object(Map::new()))
}

fn strip(value: &Value, unwanted: &FieldSet, place: Place<'_>, path: &mut FieldPath) -> Option<Value> {
    match value {
        Value::Object(map) if !place.is_atomic_map() => {
            let mut kept = Map::new();
            for (name, child) in map {
                path.push(format!("f:{name}"));
                if !unwanted.contains(path)
                    && let Some(child) = strip(child, unwanted, place.field(name), path)
                {
                    kept.insert(name.clone(), child);
                }
                path.pop();
            }
            (!kept.is_empty() || map.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let shape = place.list_shape();
            if shape == ListShape::Atomic {
                return Some(value.clone());
            }
            let mut kept = Vec::new();
            for item in items {
                path.push(item_element(&shape, item).unwrap_or_default());
                if !unwanted.contains(path)
                    && let Some(item) = strip(item, unwanted, place.item(), path)
                {
                    kept.push(item);
                }
                path.pop();
            }
            (!kept.is_empty() || items.is_empty()).then_some(Value::Array(kept))
        }
        _ => Some(value.clone()),
    }
}
