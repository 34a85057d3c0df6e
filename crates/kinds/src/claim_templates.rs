//! The claim templates of a `StatefulSet` that is there already. They cannot be changed in place: either they stay as they are, or the
//! set is deleted alone and made again, which its pods do not notice.
//!
//! What counts is what the user asks for, not how it is written: labels that another operator or another release put on a template, or
//! a size in other words, are no reason to make a set again.

use serde_json::Value;
use windlass_core::labels::CLAIM_INPUTS;
use windlass_core::likeness::{contains, short_hash};
use windlass_core::quantity;
use windlass_core::step::Manifest;
use windlass_core::views::StatefulSetView;

use crate::fields::take_list;

const TEMPLATES: &str = "volumeClaimTemplates";
const STORAGE: &str = "/spec/resources/requests/storage";

/// How the claim templates that are there stand to what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claims {
    /// They are so, or there are none yet.
    AsAsked,
    /// The set has to be made again.
    Differ,
    /// A volume would have to become smaller: what is to be done about it.
    Smaller(String),
    /// There is another set of volumes: what is to be done about it.
    Others(String),
}

/// What the user asks for, and how to speak of it.
pub(crate) struct Asked<'a> {
    /// The templates, with no more than the user says.
    pub(crate) templates: Vec<Value>,
    /// Where the user says so.
    pub(crate) field: &'a str,
    /// Who has the volumes.
    pub(crate) members: &'a str,
}

/// Puts the claim templates of the live set, as long as that is there, into a rendered one.
pub(crate) fn resolve(set: &mut Manifest, asked: &Asked<'_>, live: Option<&StatefulSetView>) -> Claims {
    let inputs = short_hash(&serde_json::to_string(&asked.templates).unwrap_or_default());
    let Some(Value::Object(mut spec)) = live.map(|live| live.object.spec.value()) else {
        set.annotations.insert(CLAIM_INPUTS.to_owned(), inputs);
        return Claims::AsAsked;
    };
    let there: Vec<Value> = take_list(&mut spec, TEMPLATES).into_iter().map(as_written).collect();
    let made_for = live.and_then(|live| live.object.meta.annotations.get(CLAIM_INPUTS)).map(str::to_owned);
    let claims = if made_for.as_ref() == Some(&inputs) { Claims::AsAsked } else { compare(asked, &there) };
    // What the set is not made for yet stays asked for.
    let noted = if claims == Claims::AsAsked { Some(inputs) } else { made_for };
    set.annotations.extend(noted.map(|noted| (CLAIM_INPUTS.to_owned(), noted)));
    if let Value::Object(fields) = &mut set.spec {
        fields.remove(TEMPLATES);
        // A set without volumes has no list of them.
        fields.extend((!there.is_empty()).then(|| (TEMPLATES.to_owned(), there.into())));
    }
    claims
}

/// Without what the server adds to each.
fn as_written(mut template: Value) -> Value {
    if let Value::Object(fields) = &mut template {
        fields.retain(|name, _| name == "metadata" || name == "spec");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.remove("creationTimestamp");
        }
    }
    template
}

fn compare(asked: &Asked<'_>, there: &[Value]) -> Claims {
    let names = |all: &[Value]| {
        let mut names: Vec<String> = all.iter().filter_map(name).map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    if names(&asked.templates) != names(there) {
        let message = format!(
            "{} names {}, and the {} have {}; volumes cannot be added or taken away: name those that are there",
            asked.field,
            names(&asked.templates).join(", "),
            asked.members,
            names(there).join(", ")
        );
        return Claims::Others(message);
    }
    let mut claims = Claims::AsAsked;
    for mut template in asked.templates.iter().cloned() {
        let Some(has) = there.iter().find(|it| name(it) == name(&template)) else { continue };
        let (wanted, is) = (size(&template).to_owned(), size(has).to_owned());
        let (wanted_bytes, is_bytes) = (quantity::bytes(&wanted), quantity::bytes(&is));
        if wanted_bytes < is_bytes {
            let message = format!(
                "claim template {} asks for {wanted}, and its volumes have {is}; volumes cannot become smaller: ask for {is} or more",
                name(has).unwrap_or_default()
            );
            return Claims::Smaller(message);
        }
        // The same size may be written in another way.
        if wanted_bytes == is_bytes
            && let Some(place) = template.pointer_mut(STORAGE)
        {
            *place = is.into();
        }
        if !contains(has, &template) {
            claims = Claims::Differ;
        }
    }
    claims
}

fn name(template: &Value) -> Option<&str> {
    template.pointer("/metadata/name")?.as_str()
}

fn size(template: &Value) -> &str {
    template.pointer(STORAGE).and_then(Value::as_str).unwrap_or_default()
}
