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

use super::super::validate::Validated;
use super::{Fields, fields_of};

const TEMPLATES: &str = "volumeClaimTemplates";
const STORAGE: &str = "/spec/resources/requests/storage";

/// How the claim templates that are there stand to what is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Claims {
    /// They are so, or there are none yet.
    AsAsked,
    /// The set has to be made again.
    Differ,
    /// A volume would have to become smaller: what is to be done about it.
    Smaller(String),
    /// There is another set of volumes: what is to be done about it.
    Others(String),
}

/// Puts the claim templates of the live set, as long as that is there, into a rendered one.
pub(super) fn resolve(set: &mut Manifest, cluster: &Validated, live: Option<&StatefulSetView>) -> Claims {
    let asked: Vec<Fields> = cluster.spec.volume_claim_templates.iter().map(fields_of).collect();
    let inputs = short_hash(&serde_json::to_string(&asked).unwrap_or_default());
    let mut spec = live.map(|live| live.object.spec.value()).unwrap_or_default();
    let Some(templates) = spec.get_mut(TEMPLATES).map(Value::take) else {
        set.annotations.insert(CLAIM_INPUTS.to_owned(), inputs);
        return Claims::AsAsked;
    };
    let there: Vec<Value> = templates.as_array().into_iter().flatten().cloned().map(as_written).collect();
    let made_for = live.and_then(|live| live.object.meta.annotations.get(CLAIM_INPUTS)).cloned();
    let claims = if made_for.as_ref() == Some(&inputs) { Claims::AsAsked } else { compare(asked, &there) };
    // What the set is not made for yet stays asked for.
    let noted = if claims == Claims::AsAsked { Some(inputs) } else { made_for };
    set.annotations.extend(noted.map(|noted| (CLAIM_INPUTS.to_owned(), noted)));
    set.spec[TEMPLATES] = there.into();
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

fn compare(asked: Vec<Fields>, there: &[Value]) -> Claims {
    let asked: Vec<Value> = asked.into_iter().map(Value::Object).collect();
    let names = |all: &[Value]| {
        let mut names: Vec<String> = all.iter().filter_map(name).map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    if names(&asked) != names(there) {
        let message = format!(
            "spec.volumeClaimTemplates names {}, and the instances have {}; volumes cannot be added or taken away: name those that are there",
            names(&asked).join(", "),
            names(there).join(", ")
        );
        return Claims::Others(message);
    }
    let mut claims = Claims::AsAsked;
    for mut template in asked {
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
