//! Events: what people see in `kubectl describe`. Told beside the work; a lost Event never holds it up.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// How many Events may wait; more than that are dropped, and the log still has them.
const WAITING: usize = 1024;
/// The longest note that the server takes.
const LONGEST_NOTE: usize = 1000;

/// Tells Events.
#[derive(Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<(Event, ObjectReference)>,
}

impl Events {
    pub(crate) fn start(client: Client, tasks: &TaskTracker) -> Self {
        let reporter = Reporter { controller: "windlass".into(), instance: std::env::var("POD_NAME").ok() };
        let recorder = Recorder::new(client, reporter);
        let (queue, mut waiting) = mpsc::channel::<(Event, ObjectReference)>(WAITING);
        tasks.spawn(async move {
            while let Some((event, about)) = waiting.recv().await {
                if let Err(error) = recorder.publish(&event, &about).await {
                    tracing::debug!(%error, "an Event could not be told");
                }
            }
        });
        Self { queue }
    }

    /// Tells that something went as it should.
    pub(crate) fn normal(&self, about: &ObjectReference, reason: &str, note: String) {
        self.tell(EventType::Normal, about, reason, note);
    }

    /// Tells that something needs a look.
    pub(crate) fn warning(&self, about: &ObjectReference, reason: &str, note: String) {
        self.tell(EventType::Warning, about, reason, note);
    }

    fn tell(&self, type_: EventType, about: &ObjectReference, reason: &str, mut note: String) {
        if let Some((end, _)) = note.char_indices().nth(LONGEST_NOTE) {
            note.truncate(end);
        }
        let event = Event { type_, reason: reason.to_owned(), note: Some(note), action: reason.to_owned(), secondary: None };
        if self.queue.try_send((event, about.clone())).is_err() {
            tracing::debug!(reason, "too many Events wait, one is dropped");
        }
    }
}
