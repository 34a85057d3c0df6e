//! Scripted faults: which call or watch event goes wrong, and how.
//!
//! A rule fires on the calls its match describes, from the `nth` on and `times` times. The script never decides what
//! the right answer would have been; it only stands in the way.

use std::{sync::Arc, time::Duration};

use crate::{
    calls::{Call, Verb},
    server::Shared,
};

/// Which calls a rule is about. Everything not said is free.
#[derive(Clone, Debug, Default)]
pub struct CallMatch {
    verbs: Vec<Verb>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    writes_only: bool,
    nth: usize,
    times: Option<usize>,
}

impl CallMatch {
    /// Any call.
    pub fn any() -> Self {
        Self { times: Some(1), ..Self::default() }
    }

    /// Only calls that change something.
    pub fn writes() -> Self {
        Self { writes_only: true, ..Self::any() }
    }

    /// Only this verb; may be said more than once.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Only this plural resource.
    pub fn resource(mut self, plural: &str) -> Self {
        self.resource = Some(plural.to_owned());
        self
    }

    /// Only this API group.
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Only this subresource; the empty word means the object itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only in this namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only the object of this name.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Lets `nth` matching calls pass first.
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth;
        self
    }

    /// Fires this many times; once when not said.
    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    /// Fires on every matching call.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    fn describes(&self, call: &Call) -> bool {
        let same = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        (self.verbs.is_empty() || self.verbs.contains(&call.verb))
            && (!self.writes_only || call.verb.is_write())
            && same(&self.group, &call.group)
            && same(&self.resource, &call.resource)
            && same(&self.subresource, call.subresource.as_deref().unwrap_or_default())
            && same(&self.namespace, call.namespace.as_deref().unwrap_or_default())
            && same(&self.name, call.name.as_deref().unwrap_or_default())
    }
}

/// What happens to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Refused with this code; nothing is done.
    Refuse {
        /// HTTP code.
        code: u16,
        /// Seconds of a `Retry-After` header.
        retry_after: Option<u64>,
    },
    /// Done, and then answered with this code all the same.
    RefuseAfter {
        /// HTTP code.
        code: u16,
    },
    /// The connection breaks before the server does anything.
    LostBefore,
    /// The server does the work, then the connection breaks.
    LostAfter,
    /// Nothing is done and no answer ever comes.
    Hang,
    /// The work is done and no answer ever comes.
    HangAfter,
    /// The server starts this much later.
    Delay(Duration),
    /// The work is done, and the answer comes this much later.
    DelayAnswer(Duration),
    /// A get or list is answered as of this revision.
    StaleAt(u64),
    /// The request lies on its [`crate::Line`] until the test delivers it; its caller gets no answer.
    Keep,
}

impl Effect {
    /// 409 Conflict.
    pub fn conflict() -> Self {
        Self::code(409)
    }

    /// 410 Gone (Expired).
    pub fn gone() -> Self {
        Self::code(410)
    }

    /// 429 with a `Retry-After`.
    pub fn too_many_requests(seconds: u64) -> Self {
        Self::Refuse { code: 429, retry_after: Some(seconds) }
    }

    /// Any plain refusal: 500, 503, 504 and so on.
    pub fn code(code: u16) -> Self {
        Self::Refuse { code, retry_after: None }
    }
}

/// Which watch events a rule is about.
#[derive(Clone, Debug, Default)]
pub struct EventMatch {
    resource: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    nth: usize,
    times: Option<usize>,
}

impl EventMatch {
    /// Any event of this plural resource.
    pub fn of(plural: &str) -> Self {
        Self { resource: Some(plural.to_owned()), times: Some(1), ..Self::default() }
    }

    /// Only events about this object.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only `ADDED`, `MODIFIED` or `DELETED`.
    pub fn kind(mut self, kind: &str) -> Self {
        self.kind = Some(kind.to_owned());
        self
    }

    /// Lets `nth` matching events pass first.
    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth;
        self
    }

    /// Fires on every matching event.
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    fn describes(&self, resource: &str, name: &str, kind: &str) -> bool {
        let same = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        same(&self.resource, resource) && same(&self.name, name) && same(&self.kind, kind)
    }
}

/// What happens to a watch event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventEffect {
    /// It is never sent.
    Drop,
    /// It, and all behind it, come this much later.
    Delay(Duration),
    /// The next event of the stream is sent before it.
    SwapWithNext,
    /// The stream ends before it; a new watch will show it.
    Close,
    /// The stream breaks with a connection error before it.
    Break,
    /// The stream ends with an ERROR event of code 410.
    Gone,
    /// It is never sent; the stream goes on, and after this time ends with an ERROR event of code 410, so that a new list shows it.
    Skip(Duration),
    /// It waits for the next event of the same object, which is then the only one that is sent; this long at most.
    Merge(Duration),
}

#[derive(Clone, Debug)]
struct Rule<M, E> {
    matches: M,
    effect: E,
    nth: usize,
    times: Option<usize>,
    seen: usize,
    fired: usize,
}

impl<M, E: Clone> Rule<M, E> {
    fn fire(&mut self) -> Option<E> {
        self.seen += 1;
        if self.seen <= self.nth || self.times.is_some_and(|times| self.fired >= times) {
            return None;
        }
        self.fired += 1;
        Some(self.effect.clone())
    }
}

/// All rules.
#[derive(Debug, Default)]
pub(crate) struct Script {
    calls: Vec<Rule<CallMatch, Effect>>,
    events: Vec<Rule<EventMatch, EventEffect>>,
    /// Reads and watches show nothing newer than this.
    pub(crate) held_at: Option<u64>,
}

impl Script {
    /// The effect for a call: of the first rule that fires. Every rule that describes the call counts it.
    pub(crate) fn effect_on(&mut self, call: &Call) -> Option<Effect> {
        let mut chosen = None;
        for rule in self.calls.iter_mut().filter(|rule| rule.matches.describes(call)) {
            if chosen.is_none() {
                chosen = rule.fire();
            } else {
                rule.seen += 1;
            }
        }
        chosen
    }

    pub(crate) fn effect_on_event(&mut self, resource: &str, name: &str, kind: &str) -> Option<EventEffect> {
        let mut chosen = None;
        for rule in &mut self.events {
            if rule.matches.describes(resource, name, kind) && chosen.is_none() {
                chosen = rule.fire();
            }
        }
        chosen
    }
}

/// The handle with which a test scripts faults.
#[derive(Clone)]
pub struct Faults {
    pub(crate) shared: Arc<Shared>,
}

impl Faults {
    /// Adds a rule about calls.
    pub fn on(&self, matches: CallMatch, effect: Effect) -> &Self {
        let rule = Rule { nth: matches.nth, times: matches.times, matches, effect, seen: 0, fired: 0 };
        self.shared.lock().script.calls.push(rule);
        self
    }

    /// Adds a rule about watch events.
    pub fn on_event(&self, matches: EventMatch, effect: EventEffect) -> &Self {
        let rule = Rule { nth: matches.nth, times: matches.times, matches, effect, seen: 0, fired: 0 };
        self.shared.lock().script.events.push(rule);
        self
    }

    /// From now on gets and lists are answered as of `revision`, and watches show nothing newer. Writes go through.
    pub fn hold_view_at(&self, revision: u64) -> &Self {
        self.shared.lock().script.held_at = Some(revision);
        self
    }

    /// Ends `hold_view_at`: watches now show what they missed.
    pub fn release_view(&self) -> &Self {
        self.shared.lock().script.held_at = None;
        self.shared.wake();
        self
    }

    /// How often any rule has fired.
    pub fn fired(&self) -> usize {
        let state = self.shared.lock();
        let calls: usize = state.script.calls.iter().map(|rule| rule.fired).sum();
        let events: usize = state.script.events.iter().map(|rule| rule.fired).sum();
        calls + events
    }

    /// Removes every rule and releases the view.
    pub fn clear(&self) -> &Self {
        self.shared.lock().script = Script::default();
        self.shared.wake();
        self
    }
}
