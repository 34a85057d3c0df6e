//! The `Status` answers of the API server: code, reason, message and details as the real one words them.
//!
//! Callers of a client branch on `reason` and `code`, so both must be right; the message is for people.

use serde_json::{Value, json};

use crate::registry::Resource;

/// A refused request, with everything its `Status` body says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// HTTP code.
    pub(crate) code: u16,
    /// Machine-readable reason.
    pub(crate) reason: String,
    /// Text for people.
    pub(crate) message: String,
    /// The `details` object, or null.
    pub(crate) details: Value,
    /// Seconds of the `Retry-After` header.
    pub(crate) retry_after: Option<u64>,
}

impl Failure {
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: Value::Null, retry_after: None }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({ "name": name, "kind": resource.plural });
        if !resource.group.is_empty() {
            self.details["group"] = json!(resource.group);
        }
        self
    }

    fn with_causes(mut self, causes: Vec<Value>) -> Self {
        if self.details.is_null() {
            self.details = json!({});
        }
        self.details["causes"] = Value::Array(causes);
        self
    }

    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified());
        Self::new(404, "NotFound", message).about(resource, name)
    }

    pub(crate) fn no_such_path() -> Self {
        let mut failure = Self::new(404, "NotFound", "the server could not find the requested resource");
        failure.details = json!({});
        failure
    }

    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).about(resource, name)
    }

    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::new(409, "Conflict", message).about(resource, name)
    }

    /// The conflict of a delete precondition, which names the kind and not the resource.
    pub(crate) fn precondition(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified_kind());
        let mut failure = Self::new(409, "Conflict", message).about(resource, name);
        failure.details["kind"] = json!(resource.kind);
        failure
    }

    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        Self::conflict(
            resource,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Another manager owns fields that an apply wants to change. `fields` holds (described manager, field path).
    pub(crate) fn apply_conflict(fields: &[(String, String)]) -> Self {
        let causes = fields
            .iter()
            .map(|(manager, field)| {
                json!({
                    "reason": "FieldManagerConflict",
                    "message": format!("conflict with {manager}"),
                    "field": field,
                })
            })
            .collect();
        let listed: Vec<String> = fields.iter().map(|(manager, field)| format!("conflict with {manager}: {field}")).collect();
        let plural = if fields.len() == 1 { "1 conflict".to_owned() } else { format!("{} conflicts", fields.len()) };
        let message = format!("Apply failed with {plural}: {}", listed.join("; "));
        Self::new(409, "Conflict", message).with_causes(causes)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 422 with one cause per field error.
    pub(crate) fn invalid(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        let listed: Vec<String> = errors.iter().map(|error| format!("{}: {}", error.field, error.text)).collect();
        let message = format!("{} {name:?} is invalid: {}", resource.qualified_kind(), listed.join(", "));
        let causes =
            errors.iter().map(|error| json!({ "reason": error.cause, "message": error.text, "field": error.field })).collect();
        let mut failure = Self::new(422, "Invalid", message);
        failure.details = json!({ "name": name, "kind": resource.kind });
        if !resource.group.is_empty() {
            failure.details["group"] = json!(resource.group);
        }
        failure.with_causes(causes)
    }

    pub(crate) fn invalid_options(kind: &str, field: &str, text: &str, cause: &'static str) -> Self {
        let message = format!("{kind}.meta.k8s.io \"\" is invalid: {field}: {text}");
        let mut failure = Self::new(422, "Invalid", message);
        failure.details = json!({
            "group": "meta.k8s.io",
            "kind": kind,
            "causes": [{ "reason": cause, "message": text, "field": field }],
        });
        failure
    }

    pub(crate) fn unsupported_media_type(given: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml; got {given:?}"
            ),
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        let mut failure = Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
        failure.details = json!({});
        failure
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn revision_too_large(asked: u64, current: u64) -> Self {
        let mut failure =
            Self::new(504, "Timeout", format!("Timeout: Too large resource version: {asked}, current: {current}"));
        failure.details = json!({
            "retryAfterSeconds": 1,
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        });
        failure
    }

    /// The plain failure a server gives for `code` when it has nothing to say about the object.
    pub(crate) fn generic(code: u16, retry_after: Option<u64>) -> Self {
        let (reason, message) = match code {
            409 => ("Conflict", "the object has been modified; please apply your changes to the latest version and try again"),
            410 => ("Expired", "The resourceVersion for the provided list is too old."),
            429 => ("TooManyRequests", "too many requests, please try again later"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "Timeout: request did not complete within the requested timeout"),
            _ => ("InternalError", "Internal error occurred: scripted fault"),
        };
        let mut failure = Self::new(code, reason, message);
        failure.retry_after = retry_after;
        if let Some(seconds) = retry_after {
            failure.details = json!({ "retryAfterSeconds": seconds });
        }
        failure
    }

    /// The `Status` object.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        });
        if !self.details.is_null() {
            body["details"] = self.details.clone();
        }
        body
    }
}

/// One wrong field of a refused object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) text: String,
    pub(crate) cause: &'static str,
}

impl FieldError {
    pub(crate) fn invalid(field: &str, text: impl Into<String>) -> Self {
        Self::of(field, "FieldValueInvalid", text)
    }

    pub(crate) fn required(field: &str, text: &str) -> Self {
        let text = if text.is_empty() { "Required value".to_owned() } else { format!("Required value: {text}") };
        Self::of(field, "FieldValueRequired", text)
    }

    pub(crate) fn forbidden(field: &str, text: &str) -> Self {
        Self::of(field, "FieldValueForbidden", format!("Forbidden: {text}"))
    }

    pub(crate) fn of(field: &str, cause: &'static str, text: impl Into<String>) -> Self {
        Self { field: field.to_owned(), text: text.into(), cause }
    }
}
