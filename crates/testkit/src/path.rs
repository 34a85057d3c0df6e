//! Reads a request's URL: which resource, object and subresource it means, and its query options.

use std::collections::BTreeMap;

/// The object or collection a URL names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// What a path stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A collection or an object.
    Resource(Target),
    /// `/api`, `/apis`, `/apis/G`, `/apis/G/V`, `/version`, `/readyz`: the words after the first.
    Discovery(Vec<String>),
}

/// Splits a path. `None` when it has no meaning for an API server.
pub(crate) fn parse_path(path: &str) -> Option<Route> {
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(percent_decode).collect();
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match words.as_slice() {
        ["version" | "readyz" | "livez" | "healthz" | "api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => {
            return Some(Route::Discovery(parts));
        }
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let mut target = Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
    // `/namespaces/NAME` and its subresources are the namespace itself; anything else behind it is inside it.
    let rest = match rest {
        ["namespaces", name, inner @ ..] if !inner.is_empty() && !matches!(inner, ["status" | "finalize"]) => {
            target.namespace = Some((*name).to_owned());
            inner
        }
        other => other,
    };
    match rest {
        [plural] => (*plural).clone_into(&mut target.plural),
        [plural, name] => {
            (*plural).clone_into(&mut target.plural);
            target.name = Some((*name).to_owned());
        }
        [plural, name, subresource @ ..] => {
            (*plural).clone_into(&mut target.plural);
            target.name = Some((*name).to_owned());
            target.subresource = Some(subresource.join("/"));
        }
        [] => return None,
    }
    Some(Route::Resource(target))
}

/// Query options by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(name), percent_decode(value))
        });
        Self(pairs.collect())
    }

    /// The option's value, if it was sent and is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether the option is sent as true.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(|value| value.parse().ok())
    }
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let escaped = (bytes[index] == b'%')
            .then(|| text.get(index + 1..index + 3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let Some(byte) = escaped {
            decoded.push(byte);
            index += 3;
        } else {
            decoded.push(if bytes[index] == b'+' { b' ' } else { bytes[index] });
            index += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match parse_path(path) {
            Some(Route::Resource(target)) => target,
            other => panic!("{path} gave {other:?}"),
        }
    }

    #[test]
    fn namespaced_object_with_subresource_is_read() {
        let read = target("/apis/apps/v1/namespaces/blue/statefulsets/db/status");
        assert_eq!(read.group, "apps");
        assert_eq!(read.namespace.as_deref(), Some("blue"));
        assert_eq!(read.plural, "statefulsets");
        assert_eq!(read.name.as_deref(), Some("db"));
        assert_eq!(read.subresource.as_deref(), Some("status"));
    }

    #[test]
    fn a_namespace_is_an_object_and_not_a_place_for_its_status() {
        let read = target("/api/v1/namespaces/blue/status");
        assert_eq!(read.plural, "namespaces");
        assert_eq!(read.namespace, None);
        assert_eq!(read.subresource.as_deref(), Some("status"));
        assert_eq!(target("/api/v1/namespaces/blue").name.as_deref(), Some("blue"));
    }

    #[test]
    fn query_values_are_unescaped() {
        let query = Query::parse(Some("labelSelector=a%3Db%2Cc+in+%28d%29&watch=true"));
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.flag("watch"));
    }
}
