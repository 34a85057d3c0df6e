//! Counts requests in the API server's audit log: what really arrived there, whatever a client believes to have sent.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// The audit log, from a moment on.
pub(crate) struct Mark {
    path: PathBuf,
    offset: u64,
}

/// The requests of one user.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requests {
    /// Gets and lists.
    pub(crate) reads: u64,
    /// Renewals of the operator's Lease.
    pub(crate) renewals: u64,
    /// Everything that changes an object.
    pub(crate) writes: u64,
    /// Commands in members' pods.
    pub(crate) execs: u64,
    /// Watches that were started.
    pub(crate) watches: u64,
    /// Requests that were refused or failed, commands apart.
    pub(crate) refused: u64,
    /// How many of what, by verb, resource and refusal.
    pub(crate) by_request: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(rename = "auditID")]
    audit_id: String,
    verb: String,
    user: User,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    resource: Option<String>,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

impl Mark {
    /// From now on.
    pub(crate) fn now(path: &Path) -> Result<Self> {
        let offset = std::fs::metadata(path).with_context(|| format!("the audit log {} cannot be read", path.display()))?.len();
        Ok(Self { path: path.to_owned(), offset })
    }

    /// What the user asked for since then.
    pub(crate) fn requests_of(&self, user: &str) -> Result<Requests> {
        let mut file =
            File::open(&self.path).with_context(|| format!("the audit log {} cannot be read", self.path.display()))?;
        file.seek(SeekFrom::Start(self.offset))?;
        count(BufReader::with_capacity(1 << 20, file), user)
    }
}

fn count(mut log: impl std::io::BufRead, user: &str) -> Result<Requests> {
    let quoted = format!("\"{user}\"");
    let (mut requests, mut seen, mut line) = (Requests::default(), HashSet::new(), String::new());
    loop {
        line.clear();
        log.read_line(&mut line).context("the audit log cannot be read")?;
        // The server may be in the middle of the last line.
        if !line.ends_with('\n') {
            return Ok(requests);
        }
        if !line.contains(&quoted) {
            continue;
        }
        let entry: Entry = serde_json::from_str(&line).context("a line of the audit log cannot be understood")?;
        // A long request has two lines: when its answer starts and when it ends.
        if entry.user.username == user && seen.insert(entry.audit_id.clone()) {
            requests.add(&entry);
        }
    }
}

impl Requests {
    fn add(&mut self, entry: &Entry) {
        let object = entry.object_ref.as_ref();
        let resource = object.and_then(|object| object.resource.as_deref()).unwrap_or("-");
        let subresource = object.and_then(|object| object.subresource.as_deref());
        let code = entry.response_status.as_ref().and_then(|status| status.code).unwrap_or(0);
        let exec = subresource == Some("exec");
        match entry.verb.as_str() {
            _ if exec => self.execs += 1,
            // What a process costs for as long as it leads, whatever it looks after.
            _ if resource == "leases" => self.renewals += 1,
            "watch" => self.watches += 1,
            "get" | "list" => self.reads += 1,
            _ => self.writes += 1,
        }
        let mut text =
            subresource.map_or_else(|| format!("{} {resource}", entry.verb), |sub| format!("{} {resource}/{sub}", entry.verb));
        if code >= 400 {
            text = format!("{text} ({code})");
            self.refused += u64::from(!exec);
        }
        *self.by_request.entry(text).or_default() += 1;
    }

    /// How many writes of this there were, refused or not.
    pub(crate) fn writes_of(&self, resource: &str) -> u64 {
        let is_write = |verb: &str| !matches!(verb, "get" | "list" | "watch");
        let of = |text: &str| text.split(' ').nth(1) == Some(resource) && text.split(' ').next().is_some_and(is_write);
        self.by_request.iter().filter(|(text, _)| of(text)).map(|(_, count)| count).sum()
    }

    /// The most frequent requests, per cluster.
    pub(crate) fn per_cluster(&self, clusters: usize) -> String {
        let mut all: Vec<(&String, &u64)> = self.by_request.iter().collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let each = |count: u64| crate::table::number(crate::table::ratio(count, clusters));
        all.iter().map(|(what, count)| format!("{what} {}", each(**count))).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, user: &str, verb: &str, resource: &str, subresource: Option<&str>, code: u16) -> String {
        let entry = serde_json::json!({
            "auditID": id, "verb": verb, "user": { "username": user },
            "objectRef": { "resource": resource, "subresource": subresource }, "responseStatus": { "code": code },
        });
        format!("{entry}\n")
    }

    #[test]
    fn requests_are_told_apart_and_counted_once() {
        let log = [
            line("a", "me", "patch", "services", None, 200),
            line("b", "me", "update", "replicatedstatefulsets", Some("status"), 409),
            line("c", "me", "get", "pods", Some("exec"), 500),
            line("d", "me", "watch", "pods", None, 200),
            line("d", "me", "watch", "pods", None, 200),
            line("e", "me", "list", "pods", None, 200),
            line("f", "somebody", "patch", "services", None, 200),
            line("g", "me", "update", "leases", None, 200),
            "{\"auditID\": \"half a line of \"me\"".to_owned(),
        ];
        let counted = count(log.concat().as_bytes(), "me").unwrap();
        assert_eq!(counted.writes_of("replicatedstatefulsets/status"), 1);
        assert_eq!(counted.writes_of("pods"), 0);
        let Requests { reads, renewals, writes, execs, watches, refused, by_request } = counted;
        assert_eq!((reads, renewals, writes, execs, watches, refused), (1, 1, 2, 1, 1, 1));
        assert_eq!(by_request.get("update replicatedstatefulsets/status (409)"), Some(&1));
    }
}
