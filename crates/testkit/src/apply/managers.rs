//! Who owns which field: reads `metadata.managedFields`, settles a write, writes it back.
//!
//! The rules are the server's: an update takes what it changes; an apply owns what it states, gives up what it no
//! longer states (and the value goes when nobody else owns it), and is refused when it changes what another owns.

use serde_json::{Map, Value, json};

use super::{
    fields::{FieldSet, readable},
    topology::Place,
    walk,
};
use crate::{failure::Failure, registry::Resource};

/// Who writes, through which subresource, and when.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) manager: String,
    pub(crate) subresource: String,
    pub(crate) now: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Owner {
    manager: String,
    apply: bool,
    api_version: String,
    subresource: String,
    time: String,
    fields: FieldSet,
}

impl Owner {
    fn of(writer: &Writer, resource: &Resource, apply: bool) -> Self {
        Self {
            manager: writer.manager.clone(),
            apply,
            api_version: resource.api_version(),
            subresource: writer.subresource.clone(),
            time: writer.now.clone(),
            fields: FieldSet::default(),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.manager == other.manager && self.apply == other.apply && self.subresource == other.subresource
    }

    fn read(entry: &Value) -> Option<Self> {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let operation = entry["operation"].as_str()?;
        Some(Self {
            manager: text("manager"),
            apply: operation == "Apply",
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: text("time"),
            fields: FieldSet::from_json(&entry["fieldsV1"]),
        })
    }

    fn write(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager,
            "operation": if self.apply { "Apply" } else { "Update" },
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_json(),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = json!(self.subresource);
        }
        entry
    }

    fn described(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text = format!("{text} with subresource {:?}", self.subresource);
        }
        if !self.apply {
            text = format!("{text} using {} at {}", self.api_version, self.time);
        }
        text
    }
}

fn read_owners(object: &Value) -> Vec<Owner> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().filter_map(Owner::read).collect()
}

fn write_owners(object: &mut Value, mut owners: Vec<Owner>) {
    owners.retain(|owner| !owner.fields.is_empty());
    owners
        .sort_by(|a, b| (!a.apply, &a.time, &a.manager, &a.subresource).cmp(&(!b.apply, &b.time, &b.manager, &b.subresource)));
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    if owners.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), owners.iter().map(Owner::write).collect());
    }
}

fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// Book-keeping of a create (`old` is null), PUT, or patch other than apply.
pub(crate) fn settle_update(old: &Value, new: &mut Value, resource: &Resource, writer: &Writer) {
    let given = new["metadata"]["managedFields"].as_array();
    let reset =
        given.is_some_and(|entries| matches!(entries.as_slice(), [only] if only.as_object().is_some_and(Map::is_empty)));
    let mut owners = read_owners(new);
    if owners.is_empty() && !reset {
        owners = read_owners(old);
    }
    let place = Place::root(resource);
    let empty = json!({});
    let before = if old.is_null() { empty } else { without_owners(old) };
    let comparison = walk::compare(&before, &without_owners(new), place);
    let written = comparison.written().without_system_fields();
    let mut own = Owner::of(writer, resource, false);
    for owner in &mut owners {
        if owner.is_same(&own) && owner.api_version == own.api_version {
            continue;
        }
        owner.fields = owner.fields.difference(&written).difference(&comparison.removed);
    }
    let known = owners
        .iter()
        .position(|owner| owner.is_same(&own) && owner.api_version == own.api_version)
        .map(|index| owners.remove(index));
    let previous = known.as_ref().map(|owner| owner.fields.clone()).unwrap_or_default();
    own.fields = previous.difference(&comparison.removed).union(&written);
    if let Some(known) = known
        && written.is_empty()
        && own.fields == known.fields
    {
        own.time = known.time;
    }
    owners.push(own);
    write_owners(new, owners);
}

/// The live object with `config` applied, ownership settled. `live` is null when the object does not exist.
pub(crate) fn settle_apply(
    live: &Value,
    config: &Value,
    resource: &Resource,
    writer: &Writer,
    force: bool,
) -> Result<Value, Failure> {
    let place = Place::root(resource);
    let before = if live.is_null() { json!({}) } else { without_owners(live) };
    let applied = walk::field_set(config, place);
    let mut owners = read_owners(live);
    let mut own = Owner::of(writer, resource, true);
    let known = owners.iter().position(|owner| owner.is_same(&own)).map(|index| owners.remove(index));

    let merged = walk::merge(&before, config, place);
    let merged = match &known {
        Some(known) => prune(&merged, &known.fields, &applied, &owners, place),
        None => merged,
    };

    let comparison = walk::compare(&before, &merged, place);
    let written = comparison.written();
    let mut conflicts = Vec::new();
    for owner in &owners {
        for path in owner.fields.intersection(&written).iter() {
            conflicts.push((owner.described(), readable(path)));
        }
    }
    if !force && !conflicts.is_empty() {
        return Err(Failure::apply_conflict(&conflicts));
    }
    for owner in &mut owners {
        owner.fields = owner.fields.difference(&written).difference(&comparison.removed);
    }

    own.fields = applied.without_system_fields();
    if let Some(known) = known
        && known.fields == own.fields
        && merged == before
    {
        own.time = known.time;
    }
    owners.push(own);
    let mut merged = merged;
    write_owners(&mut merged, owners);
    Ok(merged)
}

/// Takes away what the writer applied last time, does not state now, and nobody else owns.
fn prune(merged: &Value, last: &FieldSet, applied: &FieldSet, others: &[Owner], place: Place<'_>) -> Value {
    let mut owned = applied.clone();
    // The object's identity is never in a stored set, but it is always stated: metadata itself must not go.
    owned.insert(&["f:metadata".to_owned(), "f:name".to_owned()]);
    for owner in others {
        owned = owned.union(&owner.fields);
    }
    let orphaned = last.with_declared_ancestors(place).difference(&owned.with_declared_ancestors(place));
    walk::remove(merged, &orphaned, place)
}
