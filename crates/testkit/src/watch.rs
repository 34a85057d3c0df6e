//! Watch streams: changes in the order of their revisions, seen through a selector, with bookmarks and faults.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::Stream;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{
    failure::Failure,
    faults::EventEffect,
    line::{Sighting, Way},
    object::meta,
    path::Query,
    read::{View, revision_of},
    registry::Resource,
    selector::Selection,
    server::Shared,
    state::State,
    store::{Change, with_revision},
};

/// How often the server bookmarks an otherwise silent stream.
const BOOKMARK_PERIOD: Duration = Duration::from_mins(1);
/// How long a watch lasts when the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// What one client follows.
#[derive(Debug)]
pub(crate) struct Subscription {
    resource: Arc<Resource>,
    namespace: Option<String>,
    selection: Selection,
    view: View,
    bookmarks: bool,
    timeout: Duration,
    /// Changes up to here have been seen.
    cursor: u64,
    queue: VecDeque<Step>,
    held_back: Option<Value>,
    /// An event that waits for the next one of its object, and until when at most.
    merging: Option<(String, Value, Instant)>,
    /// When the server says that it does not know this watch any more.
    expires: Option<Instant>,
    /// The line of the client, if it has one of its own.
    way: Option<Arc<Way>>,
}

/// The next thing to do on a stream.
#[derive(Debug)]
enum Step {
    Send(Value),
    Wait(Duration),
    Close,
    Break,
}

impl State {
    /// Opens a watch: decides where it begins and what it shows first.
    pub(crate) fn subscribe(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        query: &Query,
        view: View,
        stale_at: Option<u64>,
    ) -> Result<Subscription, Failure> {
        let initial = query.flag("sendInitialEvents");
        if initial && query.get("resourceVersionMatch") != Some("NotOlderThan") {
            return Err(Failure::invalid_options(
                "ListOptions",
                "resourceVersionMatch",
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                "FieldValueForbidden",
            ));
        }
        let newest = self.readable_revision(stale_at);
        let asked = revision_of(query)?;
        let timeout = query.number("timeoutSeconds").map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        let mut subscription = Subscription {
            resource: Arc::clone(resource),
            namespace: namespace.map(str::to_owned),
            selection: Selection::from_query(query, resource.plural == "pods")?,
            view,
            bookmarks: query.flag("allowWatchBookmarks"),
            timeout,
            cursor: newest,
            queue: VecDeque::new(),
            held_back: None,
            merging: None,
            expires: None,
            way: None,
        };
        match asked {
            Some(from) if from > 0 && !initial => {
                if from < self.history.horizon() {
                    let failure = Failure::expired(format!("too old resource version: {from} ({})", self.history.horizon()));
                    subscription.queue.push_back(Step::Send(json!({ "type": "ERROR", "object": failure.body() })));
                    subscription.queue.push_back(Step::Close);
                }
                subscription.cursor = from;
            }
            _ => {
                for (_, object) in self.history.list_at(resource, namespace, newest) {
                    if subscription.selection.matches(&object) {
                        let event = subscription.event("ADDED", &object);
                        subscription.queue.push_back(Step::Send(event));
                    }
                }
                if initial {
                    subscription.queue.push_back(Step::Send(subscription.bookmark(newest, true)));
                }
            }
        }
        Ok(subscription)
    }
}

impl Subscription {
    /// The same watch, for the client at the end of this line.
    pub(crate) fn on_line(self, way: Option<Arc<Way>>) -> Self {
        Self { way, ..self }
    }

    fn event(&self, kind: &str, object: &Value) -> Value {
        json!({ "type": kind, "object": self.view.show(&self.resource, object) })
    }

    fn bookmark(&self, revision: u64, initial_end: bool) -> Value {
        let mut metadata = json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, api_version) = match self.view {
            View::Whole => (self.resource.kind.clone(), self.resource.api_version()),
            View::MetadataOnly => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
        };
        json!({ "type": "BOOKMARK", "object": { "kind": kind, "apiVersion": api_version, "metadata": metadata } })
    }

    /// What a change looks like through the selector: leaving it is a deletion, entering it an addition.
    fn translate(&self, change: &Change) -> Option<(&'static str, Value)> {
        let key = &change.key;
        if key.group != self.resource.group
            || key.plural != self.resource.plural
            || self.namespace.as_ref().is_some_and(|namespace| *namespace != key.namespace)
        {
            return None;
        }
        let seen = |object: &Option<Arc<Value>>| object.clone().filter(|object| self.selection.matches(object));
        match (seen(&change.before), seen(&change.after)) {
            (_, Some(after)) if change.before.as_ref().is_some_and(|before| self.selection.matches(before)) => {
                Some(("MODIFIED", (*after).clone()))
            }
            (_, Some(after)) => Some(("ADDED", (*after).clone())),
            (Some(before), None) => Some(("DELETED", with_revision((*before).clone(), change.revision))),
            (None, None) => None,
        }
    }

    /// Takes over what has happened since, as far as the script lets it show.
    fn advance(&mut self, state: &mut State) {
        let limit = state.readable_revision(self.way.as_ref().and_then(|way| way.held_at()));
        let changes: Vec<Change> =
            state.history.changes_after(self.cursor).iter().take_while(|change| change.revision <= limit).cloned().collect();
        for change in changes {
            self.cursor = change.revision;
            let Some((kind, object)) = self.translate(&change) else {
                continue;
            };
            let name = meta(&object, "name").to_owned();
            let event = self.event(kind, &object);
            let scripted = state.script.effect_on_event(&self.resource.plural, &name, kind);
            let effect = scripted.or_else(|| {
                let resource = self.resource.plural.clone();
                self.way.as_ref()?.guard.event(&Sighting { resource, name: name.clone(), kind, revision: change.revision })
            });
            if self.merging.as_ref().is_some_and(|(waiting, _, _)| *waiting == name) {
                self.merging = None;
            }
            match effect {
                None => self.send(event),
                Some(EventEffect::Drop) => {}
                Some(EventEffect::Skip(time)) => self.expires = Some(Instant::now() + time),
                Some(EventEffect::Merge(time)) => self.merging = Some((name, event, Instant::now() + time)),
                Some(EventEffect::SwapWithNext) => self.held_back = Some(event),
                Some(EventEffect::Delay(time)) => {
                    self.queue.push_back(Step::Wait(time));
                    self.send(event);
                }
                Some(EventEffect::Close) => {
                    self.queue.push_back(Step::Close);
                    return;
                }
                Some(EventEffect::Break) => {
                    self.queue.push_back(Step::Break);
                    return;
                }
                Some(EventEffect::Gone) => {
                    self.expire();
                    return;
                }
            }
        }
        self.cursor = self.cursor.max(limit.min(state.history.revision()));
    }

    fn expire(&mut self) {
        let failure = Failure::generic(410, None);
        self.queue.push_back(Step::Send(json!({ "type": "ERROR", "object": failure.body() })));
        self.queue.push_back(Step::Close);
    }

    /// The next moment at which something happens without a change.
    fn due(&self) -> Option<Instant> {
        let merging = self.merging.as_ref().map(|(_, _, until)| *until);
        [merging, self.expires].into_iter().flatten().min()
    }

    /// Lets happen what is due.
    fn pass_time(&mut self) {
        let now = Instant::now();
        if let Some((_, event, _)) = self.merging.take_if(|(_, _, until)| *until <= now) {
            self.send(event);
        }
        if self.expires.take_if(|at| *at <= now).is_some() {
            self.expire();
        }
    }

    fn send(&mut self, event: Value) {
        self.queue.push_back(Step::Send(event));
        if let Some(held) = self.held_back.take() {
            self.queue.push_back(Step::Send(held));
        }
    }
}

struct Follower {
    shared: Arc<Shared>,
    subscription: Subscription,
    wake: watch::Receiver<u64>,
    deadline: Instant,
    next_bookmark: Instant,
    bookmarks_seen: u64,
    closing: bool,
}

/// The body of a watch answer: one JSON line per event.
pub(crate) fn stream(shared: Arc<Shared>, subscription: Subscription) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let now = Instant::now();
    let bookmarks_seen = shared.lock().bookmarks;
    let follower = Follower {
        wake: shared.subscribe(),
        bookmarks_seen,
        deadline: now + subscription.timeout,
        next_bookmark: now + BOOKMARK_PERIOD,
        closing: false,
        shared,
        subscription,
    };
    futures::stream::unfold(follower, |mut follower| async move {
        let item = follower.next().await?;
        Some((item, follower))
    })
}

impl Follower {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.subscription.queue.pop_front() {
                Some(Step::Send(event)) => {
                    let mut line = event.to_string().into_bytes();
                    line.push(b'\n');
                    return Some(Ok(Bytes::from(line)));
                }
                Some(Step::Wait(time)) => {
                    tokio::time::sleep(time).await;
                    continue;
                }
                Some(Step::Close) => return None,
                Some(Step::Break) => {
                    self.subscription.queue.push_back(Step::Close);
                    return Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by scripted fault")));
                }
                None if self.closing => return None,
                None => {}
            }
            self.wake.borrow_and_update();
            {
                let shared = Arc::clone(&self.shared);
                let mut state = shared.lock();
                self.subscription.pass_time();
                self.subscription.advance(&mut state);
                if self.subscription.queue.is_empty() && state.bookmarks != self.bookmarks_seen {
                    self.bookmarks_seen = state.bookmarks;
                    self.push_bookmark();
                }
            }
            if !self.subscription.queue.is_empty() {
                continue;
            }
            let due = self.subscription.due();
            tokio::select! {
                changed = self.wake.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = sleep_until(self.deadline) => {
                    self.push_bookmark();
                    self.closing = true;
                }
                () = sleep_until(due.unwrap_or(self.deadline)), if due.is_some() => {}
                () = sleep_until(self.next_bookmark) => {
                    self.next_bookmark += BOOKMARK_PERIOD;
                    self.push_bookmark();
                }
            }
        }
    }

    fn push_bookmark(&mut self) {
        if self.subscription.bookmarks {
            let bookmark = self.subscription.bookmark(self.subscription.cursor, false);
            self.subscription.queue.push_back(Step::Send(bookmark));
        }
    }
}
