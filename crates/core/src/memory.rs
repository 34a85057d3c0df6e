//! What the operator remembers of a cluster, and whether that memory can be trusted.
//!
//! *New*, *known*, *lost* and *contradicted* are told apart; what is lost or contradicted is never guessed: irreversible steps
//! wait until observation proves each entry again.

use windlass_api::logbook::LogbookSpec;

use crate::views::Children;

/// The state of the logbook of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Memory {
    /// Nothing of the cluster exists yet: an empty logbook is the truth.
    New,
    /// The logbook speaks of this cluster.
    Known(Box<LogbookSpec>),
    /// There is no logbook, or it speaks of another object, beside things that tell of a past.
    Lost {
        /// What was found, in a sentence.
        why: String,
    },
}

impl Memory {
    /// Judges what was found.
    pub fn judge(found: Option<&LogbookSpec>, cluster_uid: &str, children: &Children) -> Self {
        match found {
            Some(logbook) if logbook.cluster_uid == cluster_uid => Self::Known(Box::new(logbook.clone())),
            None if !children.tell_of_a_past() => Self::New,
            Some(logbook) if !children.tell_of_a_past() && logbook.cluster_uid.is_empty() => Self::New,
            None => Self::Lost { why: "the logbook is missing beside members or volumes of the cluster".into() },
            Some(logbook) => Self::Lost {
                why: format!(
                    "the logbook speaks of a cluster with UID {:?}, this one has {cluster_uid:?}",
                    logbook.cluster_uid
                ),
            },
        }
    }

    /// What is remembered; nothing when new or lost.
    pub fn entries(&self) -> LogbookSpec {
        match self {
            Self::Known(logbook) => (**logbook).clone(),
            Self::New | Self::Lost { .. } => LogbookSpec::default(),
        }
    }

    /// Whether irreversible steps must wait, and why.
    pub fn lost(&self) -> Option<&str> {
        match self {
            Self::Lost { why } => Some(why),
            Self::New | Self::Known(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::ClaimView;

    fn with_a_claim() -> Children {
        Children { claims: [("data-0".to_owned(), ClaimView::default())].into(), ..Children::default() }
    }

    fn logbook(uid: &str) -> LogbookSpec {
        LogbookSpec { cluster_uid: uid.into(), ..LogbookSpec::default() }
    }

    #[test]
    fn absent_beside_nothing_is_new() {
        assert_eq!(Memory::judge(None, "u1", &Children::default()), Memory::New);
    }

    #[test]
    fn absent_beside_a_volume_is_lost() {
        assert!(Memory::judge(None, "u1", &with_a_claim()).lost().is_some());
    }

    #[test]
    fn another_uid_is_lost_even_beside_nothing() {
        let memory = Memory::judge(Some(&logbook("u0")), "u1", &Children::default());
        assert!(memory.lost().unwrap().contains("u0"));
    }

    #[test]
    fn the_same_uid_is_known() {
        assert_eq!(Memory::judge(Some(&logbook("u1")), "u1", &with_a_claim()), Memory::Known(Box::new(logbook("u1"))));
    }
}
