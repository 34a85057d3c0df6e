//! Events: what people see in `kubectl describe`. Told beside the work; a lost Event never holds it up.
//!
//! The same again within a few minutes is counted on the Event that was told first. Of those no more is remembered than what finds them
//! again: clusters that are created by the hundred tell of very many things.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// How many Events may wait; more than that are dropped, and the log still has them.
const WAITING: usize = 1024;
/// The longest note that the server takes.
const LONGEST_NOTE: usize = 1000;
/// For as long the same again is counted instead of told anew.
const SAME: SignedDuration = SignedDuration::from_mins(6);
/// Who tells them.
const REPORTER: &str = "windlass";

/// What is to be told.
struct News {
    about: ObjectReference,
    sort: &'static str,
    reason: String,
    note: String,
}

/// Tells Events.
#[derive(Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<News>,
}

impl Events {
    pub(crate) fn start(client: Client, tasks: &TaskTracker) -> Self {
        let mut recorder = Recorder::new(std::env::var("POD_NAME").ok());
        let (queue, mut waiting) = mpsc::channel::<News>(WAITING);
        tasks.spawn(async move {
            while let Some(news) = waiting.recv().await {
                let events = Api::namespaced(client.clone(), news.about.namespace.as_deref().unwrap_or("default"));
                if let Err(error) = recorder.record(&events, news, Timestamp::now()).await {
                    tracing::debug!(%error, "an Event could not be told");
                }
            }
        });
        Self { queue }
    }

    /// Tells that something went as it should.
    pub(crate) fn normal(&self, about: &ObjectReference, reason: &str, note: String) {
        self.tell("Normal", about, reason, note);
    }

    /// Tells that something needs a look.
    pub(crate) fn warning(&self, about: &ObjectReference, reason: &str, note: String) {
        self.tell("Warning", about, reason, note);
    }

    fn tell(&self, sort: &'static str, about: &ObjectReference, reason: &str, mut note: String) {
        if let Some((end, _)) = note.char_indices().nth(LONGEST_NOTE) {
            note.truncate(end);
        }
        if self.queue.try_send(News { about: about.clone(), sort, reason: reason.to_owned(), note }).is_err() {
            tracing::debug!(reason, "too many Events wait, one is dropped");
        }
    }
}

/// An Event that was told.
struct Told {
    /// When: its name is made of it.
    first: Timestamp,
    last: Timestamp,
    count: i32,
}

/// Writes Events, and remembers which.
struct Recorder {
    instance: Option<String>,
    /// By what they are about. In the unlikely case that two have the same hash, one is counted as the other.
    told: HashMap<u64, Told>,
    hasher: RandomState,
    swept: Timestamp,
}

impl Recorder {
    fn new(instance: Option<String>) -> Self {
        Self { instance, told: HashMap::new(), hasher: RandomState::new(), swept: Timestamp::UNIX_EPOCH }
    }

    async fn record(&mut self, events: &Api<Event>, news: News, now: Timestamp) -> kube::Result<()> {
        self.forget(now);
        let key = self.key(&news);
        // One that cannot be counted, since somebody deleted it perhaps, is told anew the next time.
        let told = if let Some(Told { first, count, .. }) = self.told.remove(&key) {
            let count = count.saturating_add(1);
            let series = EventSeries { count, last_observed_time: MicroTime(now) };
            let counted = Patch::Merge(json!({ "series": series }));
            events.patch(&name_of(&news.about, first), &PatchParams::default(), &counted).await?;
            Told { first, last: now, count }
        } else {
            events.create(&PostParams::default(), &self.event(news, now)).await?;
            Told { first: now, last: now, count: 1 }
        };
        self.told.insert(key, told);
        Ok(())
    }

    /// Two that differ in their notes alone are two: only the first one could be read.
    fn key(&self, news: &News) -> u64 {
        let News { about, sort, reason, note } = news;
        let ObjectReference { api_version, kind, namespace, name, uid, .. } = about;
        self.hasher.hash_one((api_version, kind, namespace, name, uid, sort, reason, note))
    }

    /// Now and then, and not with each Event: there may be thousands.
    fn forget(&mut self, now: Timestamp) {
        if now.duration_since(self.swept) >= SAME / 2 {
            self.told.retain(|_, told| now.duration_since(told.last) < SAME);
            self.told.shrink_to_fit();
            self.swept = now;
        }
    }

    fn event(&self, news: News, now: Timestamp) -> Event {
        let News { about, sort, reason, note } = news;
        Event {
            metadata: ObjectMeta {
                namespace: about.namespace.clone(),
                name: Some(name_of(&about, now)),
                ..ObjectMeta::default()
            },
            action: Some(reason.clone()),
            reason: Some(reason),
            note: Some(note),
            type_: Some(sort.to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(about),
            reporting_controller: Some(REPORTER.to_owned()),
            reporting_instance: Some(self.instance.clone().unwrap_or_else(|| REPORTER.to_owned())),
            ..Event::default()
        }
    }
}

fn name_of(about: &ObjectReference, first: Timestamp) -> String {
    format!("{}.{:x}", about.name.as_deref().unwrap_or(REPORTER), first.as_nanosecond())
}

#[cfg(test)]
mod tests {
    use kube::api::{DeleteParams, ListParams};
    use windlass_testkit::FakeApiServer;

    use super::*;

    /// Tells of these, each with the cluster, the note and the second; then what there is to be read, in order.
    async fn told(news: &[(&str, &str, i64)], deleted_after: Option<usize>) -> Vec<(String, Option<i32>)> {
        let server = FakeApiServer::new();
        server.namespace("shop");
        let events: Api<Event> = Api::namespaced(server.client(), "shop");
        let mut recorder = Recorder::new(None);
        for (place, (name, note, second)) in news.iter().enumerate() {
            let about = ObjectReference {
                namespace: Some("shop".into()),
                name: Some((*name).to_owned()),
                uid: Some(format!("uid-{name}")),
                ..ObjectReference::default()
            };
            let news = News { about, sort: "Normal", reason: "Scaled".into(), note: (*note).to_owned() };
            // What cannot be told is lost.
            let _lost = recorder.record(&events, news, Timestamp::from_second(1_800_000_000 + second).unwrap()).await;
            if deleted_after == Some(place) {
                events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
            }
        }
        let mut all = events.list(&ListParams::default()).await.unwrap().items;
        all.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        all.into_iter().map(|event| (event.note.unwrap(), event.series.map(|series| series.count))).collect()
    }

    fn line(note: &str, count: Option<i32>) -> (String, Option<i32>) {
        (note.to_owned(), count)
    }

    #[tokio::test]
    async fn the_same_again_is_counted_and_after_a_while_told_anew() {
        let news = [("a", "to 3", 0), ("a", "to 3", 10), ("a", "to 3", 30), ("a", "to 3", 900)];
        assert_eq!(told(&news, None).await, [line("to 3", Some(3)), line("to 3", None)]);
    }

    #[tokio::test]
    async fn each_note_is_told_and_each_cluster_has_its_own() {
        let news = [("a", "to 3", 0), ("a", "to 5", 1), ("b", "to 3", 2)];
        assert_eq!(told(&news, None).await, [line("to 3", None), line("to 5", None), line("to 3", None)]);
    }

    #[tokio::test]
    async fn one_that_somebody_deleted_is_told_anew_by_the_time_after_the_next() {
        let news = [("a", "to 3", 0), ("a", "to 3", 1), ("a", "to 3", 2)];
        assert_eq!(told(&news, Some(0)).await, [line("to 3", None)]);
    }
}
