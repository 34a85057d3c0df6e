//! Who has asked, and what that proves: a member that asks has no data, until it is told how to begin.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use windlass_core::ordinals::Ordinal;

use super::Answer;

/// How long what a member showed by asking counts. It asks again within some seconds.
const FRESH: Duration = Duration::from_secs(20);

/// What is remembered of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Mark {
    /// When it asked last, and the claims that it had then.
    asked: Option<(Duration, BTreeSet<String>)>,
    /// When it was told last how to begin: from then on it may have data.
    told: Option<Duration>,
}

/// Who has asked. It ends with the process, and that does no harm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    marks: BTreeMap<Ordinal, Mark>,
}

impl Heard {
    /// A member asked at one time, with these claims, and was answered at another. An answer may overtake an earlier question: what was
    /// asked before it was told how to begin proves nothing.
    pub fn note(&mut self, ordinal: Ordinal, claims: BTreeSet<String>, asked: Duration, answer: &Answer, answered: Duration) {
        let mark = self.marks.entry(ordinal).or_default();
        match answer {
            Answer::Join(_) | Answer::Begin { .. } => mark.told = mark.told.max(Some(answered)),
            Answer::Wait { .. } => {
                if mark.asked.as_ref().is_none_or(|(before, _)| *before < asked) {
                    mark.asked = Some((asked, claims));
                }
            }
        }
    }

    /// Whether a member that has these claims now is known to have no data.
    pub fn has_nothing(&self, ordinal: Ordinal, claims: &BTreeSet<String>, now: Duration) -> bool {
        let Some(Mark { asked: Some((asked, had)), told }) = self.marks.get(&ordinal) else { return false };
        told.is_none_or(|told| told < *asked) && now.saturating_sub(*asked) <= FRESH && had == claims && !claims.is_empty()
    }
}
