//! The API server's audit log: who asked for what, and what came of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// One audit log.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
}

/// A moment: what comes after it can be read.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    offset: u64,
    time: Timestamp,
}

/// One request.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    #[serde(rename = "auditID")]
    id: String,
    /// `ResponseComplete`, or `ResponseStarted` for a request that still lasts.
    pub stage: String,
    /// The path and the query.
    #[serde(rename = "requestURI")]
    pub uri: String,
    /// The verb, as RBAC names it.
    pub verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Answer,
    /// What the server made of it; only of users in [`windlass_lab::TOLD_IN_FULL`].
    #[serde(default)]
    response_object: Value,
    #[serde(rename = "requestReceivedTimestamp")]
    received: Timestamp,
    #[serde(rename = "stageTimestamp", default)]
    finished: Option<Timestamp>,
    /// What admission and authorisation noted.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
struct User {
    username: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    code: u16,
}

impl Audit {
    /// The log in this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Now.
    pub fn mark(&self) -> Result<Mark> {
        let length = std::fs::metadata(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?.len();
        Ok(Mark { offset: length, time: Timestamp::now() })
    }

    /// Before everything.
    pub fn beginning(&self) -> Mark {
        Mark { offset: 0, time: Timestamp::MIN }
    }

    /// What a user asked for since a moment, each request once.
    pub fn requests_of(&self, user: &str, since: Mark) -> Result<Vec<Entry>> {
        let name = serde_json::to_string(user)?;
        self.read(since, |line| line.contains(&name), |entry| entry.user.username == user)
    }

    /// What all users of whom this is true asked for since a moment, each request once.
    pub fn requests_where(&self, is_wanted: impl Fn(&str) -> bool, since: Mark) -> Result<Vec<Entry>> {
        self.read(since, |_| true, |entry| is_wanted(&entry.user.username))
    }

    /// What anybody asked for in a namespace since a moment, each request once.
    pub fn requests_in(&self, namespace: &str, since: Mark) -> Result<Vec<Entry>> {
        let name = serde_json::to_string(namespace)?;
        self.read(since, |line| line.contains(&name), |entry| entry.object_ref.namespace == namespace)
    }

    /// Fails unless every pod of a namespace was admitted under Pod Security `restricted`, and nothing was found against it.
    pub fn check_restricted(&self, namespace: &str, since: Mark) -> Result<()> {
        let requests = self.requests_in(namespace, since)?;
        let created: Vec<&Entry> =
            requests.iter().filter(|entry| entry.resource() == "pods" && entry.verb == "create").collect();
        ensure!(!created.is_empty(), "no pod was created in namespace {namespace}");
        for entry in created {
            let policy = entry.annotations.get("pod-security.kubernetes.io/enforce-policy").map(String::as_str);
            ensure!(policy.is_some_and(|policy| policy.starts_with("restricted")), "{} under {policy:?}", entry.describe());
            ensure!(entry.code() == 201, "{}", entry.describe());
        }
        let violation =
            requests.iter().find(|entry| entry.annotations.contains_key("pod-security.kubernetes.io/audit-violations"));
        ensure!(violation.is_none(), "Pod Security found fault: {violation:?}");
        Ok(())
    }

    fn read(&self, since: Mark, may_match: impl Fn(&str) -> bool, matches: impl Fn(&Entry) -> bool) -> Result<Vec<Entry>> {
        let mut file = File::open(&self.path).with_context(|| format!("cannot read {}", self.path.display()))?;
        file.seek(SeekFrom::Start(since.offset))?;
        let mut found: BTreeMap<String, Entry> = BTreeMap::new();
        for line in BufReader::new(file).lines() {
            let line = line?;
            if !may_match(&line) {
                continue;
            }
            // The last line may be only half written.
            let Ok(entry) = serde_json::from_str::<Entry>(&line) else { continue };
            if entry.received >= since.time && matches(&entry) {
                // A long request is told twice; its end says more than its start.
                found.insert(entry.id.clone(), entry);
            }
        }
        let mut entries: Vec<Entry> = found.into_values().collect();
        entries.sort_by_key(|entry| entry.received);
        Ok(entries)
    }
}

impl Entry {
    /// Who asked.
    pub fn user(&self) -> &str {
        &self.user.username
    }

    /// When the server received it.
    pub fn received(&self) -> Timestamp {
        self.received
    }

    /// When the server was done with it. The answer may have reached its caller a little before.
    pub fn finished(&self) -> Timestamp {
        self.finished.unwrap_or(self.received)
    }

    /// The object as the server answered; null when that is not told.
    pub fn answer(&self) -> &Value {
        &self.response_object
    }

    /// The namespace of the object; empty when it has none.
    pub fn namespace(&self) -> &str {
        &self.object_ref.namespace
    }

    /// The name of the object; empty when the request was for many.
    pub fn name(&self) -> &str {
        &self.object_ref.name
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.object_ref.api_group
    }

    /// `resource` or `resource/subresource`, as in RBAC rules; empty for paths that are no resource.
    pub fn resource(&self) -> String {
        let Object { resource, subresource, .. } = &self.object_ref;
        if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") }
    }

    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        self.response_status.code
    }

    /// Whether authorisation refused it. (A 403 can also come from admission, say in a namespace that is being deleted.)
    pub fn is_unauthorised(&self) -> bool {
        self.annotations.get("authorization.k8s.io/decision").is_some_and(|decision| decision == "forbid")
    }

    /// Whether it writes an object. Commands run in a container are told by [`Entry::command`].
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection") && self.command().is_none()
    }

    /// The command, when the request ran one in a container.
    pub fn command(&self) -> Option<Vec<String>> {
        if self.object_ref.subresource != "exec" {
            return None;
        }
        let query = self.uri.split_once('?').map_or("", |(_, query)| query);
        Some(query.split('&').filter_map(|part| part.strip_prefix("command=")).map(decode).collect())
    }

    /// The request in a few words, for messages.
    pub fn describe(&self) -> String {
        let command = self.command().map(|command| format!(" {command:?}")).unwrap_or_default();
        format!("{} {} {} {} -> {}{command}", self.received, self.verb, self.resource(), self.object_ref.name, self.code())
    }
}

/// Undoes the encoding of a query.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let number = std::str::from_utf8(&digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok());
                bytes.push(number.unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"auditID":"1","stage":"ResponseStarted","requestURI":"/api/v1/namespaces/n/pods/p/exec?&stdout=true&command=%2Fbin%2Fsh&command=-c&command=a+%26%26+b","verb":"get","user":{"username":"op"},"objectRef":{"resource":"pods","subresource":"exec","namespace":"n","name":"p"},"responseStatus":{"code":101},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}"#,
        "\n",
        r#"{"auditID":"1","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/pods/p/exec?command=x","verb":"get","user":{"username":"op"},"objectRef":{"resource":"pods","subresource":"exec","namespace":"n","name":"p"},"responseStatus":{"code":101},"requestReceivedTimestamp":"2026-01-01T00:00:01Z"}"#,
        "\n",
        r#"{"auditID":"2","stage":"ResponseComplete","requestURI":"/x","verb":"patch","user":{"username":"other"},"objectRef":{"resource":"pods","namespace":"n","name":"p"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:02Z"}"#,
        "\n",
        r#"{"auditID":"3","stage":"Respo"#,
    );

    fn log(name: &str) -> Audit {
        let path = std::env::temp_dir().join(format!("windlass-audit-{name}-{}", std::process::id()));
        std::fs::write(&path, LINES).unwrap();
        Audit::new(path)
    }

    #[test]
    fn a_request_that_is_told_twice_counts_once_and_half_a_line_for_nothing() {
        let audit = log("twice");
        assert_eq!(audit.requests_of("op", audit.beginning()).unwrap().len(), 1);
        assert_eq!(audit.requests_in("n", audit.beginning()).unwrap().len(), 2);
        assert_eq!(audit.requests_of("op", Mark { offset: 0, time: Timestamp::now() }).unwrap().len(), 0);
        std::fs::remove_file(audit.path).unwrap();
    }

    #[test]
    fn commands_are_read_from_the_query_and_are_no_writes() {
        let entry: Entry = serde_json::from_str(LINES.lines().next().unwrap()).unwrap();
        assert_eq!(entry.command().unwrap(), ["/bin/sh", "-c", "a && b"]);
        assert!(!entry.is_write());
        let other: Entry = serde_json::from_str(LINES.lines().nth(2).unwrap()).unwrap();
        assert!(other.is_write());
        assert_eq!(other.resource(), "pods");
    }
}
