//! Numbers every call that changes something, and decides what happens to it. One director sees a scenario from its beginning to its
//! end, through all lives of the controller.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use windlass_testkit::{Effect, EventEffect};

/// After this time a stream that lost an event is ended by the server.
pub const EXPIRY: Duration = Duration::from_secs(30);
/// How long a delayed event and all behind it come later.
pub const DELAY: Duration = Duration::from_secs(10);

/// How long a slow answer takes: less than the deadline of a call.
pub const SLOW: Duration = Duration::from_secs(2);

/// When the controller dies, seen from one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before it is sent.
    Before,
    /// While it runs; for actions on members, which take time.
    During,
    /// After it was done; the answer is lost.
    After,
    /// Before it is sent; and it arrives all the same, when the successor is at rest.
    Late,
}

/// What goes wrong with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refused with this code; nothing is done.
    Code(u16),
    /// Done, and answered with this code all the same.
    CodeAfter(u16),
    /// The connection breaks before anything is done.
    LostBefore,
    /// It is done, and the connection breaks.
    LostAfter,
    /// Nothing is done and no answer comes.
    Hang,
    /// It is done and no answer comes.
    HangAfter,
    /// It is done, and the answer comes when the events of it have long been seen.
    Slow,
    /// An action on a member fails, and does nothing.
    Fails,
}

/// What happens to a numbered call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The controller dies.
    Crash(Moment),
    /// The call goes wrong.
    Fault(Fault),
}

/// What happens to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// It is not shown; a new list comes later.
    Drop,
    /// It comes late, and all behind it.
    Delay,
    /// Only the next one of its object is shown.
    Merge,
    /// The watch ends with 410 instead.
    Gone,
}

impl Twist {
    fn effect(self) -> EventEffect {
        match self {
            Self::Drop => EventEffect::Skip(EXPIRY),
            Self::Delay => EventEffect::Delay(DELAY),
            Self::Merge => EventEffect::Merge(EXPIRY),
            Self::Gone => EventEffect::Gone,
        }
    }
}

/// One perturbation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strike {
    /// At the numbered call.
    Call {
        /// Its number, from 0.
        at: usize,
        /// What happens to it.
        blow: Blow,
    },
    /// At the numbered event of a resource.
    Event {
        /// The plural resource.
        resource: String,
        /// Its number among the events of that resource, from 0.
        at: usize,
        /// What happens to it.
        twist: Twist,
    },
}

/// A call that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// What it does.
    pub what: String,
    /// Whether it is an action on a member.
    pub hook: bool,
}

/// Numbers calls and events, and strikes.
pub struct Director {
    inner: Mutex<Inner>,
}

struct Inner {
    recording: bool,
    strikes: Vec<Strike>,
    calls: Vec<Numbered>,
    events: BTreeMap<String, Vec<String>>,
    /// Everything that happened, in order: numbered calls, strikes, deaths.
    trace: Vec<String>,
    struck_event: bool,
}

impl Director {
    pub fn new(strikes: Vec<Strike>) -> Self {
        let inner = Inner {
            recording: false,
            strikes,
            calls: Vec::new(),
            events: BTreeMap::new(),
            trace: Vec::new(),
            struck_event: false,
        };
        Self { inner: Mutex::new(inner) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// From now on calls and events are numbered.
    pub fn record(&self) {
        self.lock().recording = true;
    }

    /// A call is about to be sent: what happens to it.
    pub fn number(&self, what: String, hook: bool) -> Option<Blow> {
        let mut inner = self.lock();
        if !inner.recording {
            return None;
        }
        let at = inner.calls.len();
        inner.calls.push(Numbered { what: what.clone(), hook });
        let found = inner.strikes.iter().position(|strike| matches!(strike, Strike::Call { at: struck, .. } if *struck == at));
        let blow = found.map(|index| inner.strikes.remove(index)).and_then(|strike| match strike {
            Strike::Call { blow, .. } => Some(blow),
            Strike::Event { .. } => None,
        });
        inner.trace.push(blow.map_or_else(|| format!("{at:>4} {what}"), |blow| format!("{at:>4} {what}   <== {blow:?}")));
        blow
    }

    /// An event is about to be shown: what happens to it.
    pub fn event(&self, resource: &str, what: String) -> Option<EventEffect> {
        let mut inner = self.lock();
        if !inner.recording {
            return None;
        }
        let seen = inner.events.entry(resource.to_owned()).or_default();
        let number = seen.len();
        seen.push(what.clone());
        let found = inner.strikes.iter().position(
            |strike| matches!(strike, Strike::Event { resource: struck, at, .. } if struck == resource && *at == number),
        )?;
        let Strike::Event { twist, .. } = inner.strikes.remove(found) else { return None };
        inner.struck_event = true;
        inner.trace.push(format!("     event {resource} {number}: {what}   <== {twist:?}"));
        Some(twist.effect())
    }

    /// Writes something into the trace.
    pub fn note(&self, what: impl Into<String>) {
        self.lock().trace.push(format!("     {}", what.into()));
    }

    pub fn calls(&self) -> Vec<Numbered> {
        self.lock().calls.clone()
    }

    pub fn count(&self) -> usize {
        self.lock().calls.len()
    }

    pub fn events(&self) -> BTreeMap<String, Vec<String>> {
        self.lock().events.clone()
    }

    pub fn trace(&self) -> Vec<String> {
        self.lock().trace.clone()
    }

    /// Whether an event was perturbed, so that its aftermath has to be awaited. Asked once.
    pub fn take_struck_event(&self) -> bool {
        std::mem::take(&mut self.lock().struck_event)
    }
}

/// What a blow does to a request.
pub fn effect_of(blow: Blow) -> Effect {
    match blow {
        Blow::Crash(Moment::Before) => Effect::Hang,
        Blow::Crash(Moment::During | Moment::After) => Effect::HangAfter,
        Blow::Crash(Moment::Late) => Effect::Keep,
        Blow::Fault(Fault::Code(429)) => Effect::too_many_requests(1),
        Blow::Fault(Fault::Code(code)) => Effect::code(code),
        Blow::Fault(Fault::CodeAfter(code)) => Effect::RefuseAfter { code },
        Blow::Fault(Fault::LostBefore | Fault::Fails) => Effect::LostBefore,
        Blow::Fault(Fault::LostAfter) => Effect::LostAfter,
        Blow::Fault(Fault::Hang) => Effect::Hang,
        Blow::Fault(Fault::HangAfter) => Effect::HangAfter,
        Blow::Fault(Fault::Slow) => Effect::DelayAnswer(SLOW),
    }
}
