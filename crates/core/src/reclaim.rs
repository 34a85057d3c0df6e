//! The note on a claim that says what its volume was told: what becomes of it when the claim is gone.
//!
//! It spares questions: whoever reads it need not look at the volume. So it holds for one claim only. Tools that restore a cluster copy
//! annotations to new claims, whose volumes nobody told anything yet: the note names the claim's UID.

use crate::labels::RECLAIM_POLICY;
use crate::views::Meta;

/// The volume is left as it is when its claim goes.
pub const RETAIN: &str = "Retain";
/// The volume goes with its claim.
pub const DELETE: &str = "Delete";

/// What is noted on a claim with this UID.
pub fn note(policy: &str, uid: &str) -> String {
    format!("{policy}@{uid}")
}

/// What was said to the volume of a claim, if anything was.
pub fn noted(claim: &Meta) -> Option<&str> {
    let (policy, uid) = claim.annotations.get(RECLAIM_POLICY)?.split_once('@')?;
    (uid == claim.uid).then_some(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::as_we_write_it(Some(note(RETAIN, "u-1")), Some(RETAIN))]
    #[case::of_the_claim_that_this_one_was_copied_from(Some(note(RETAIN, "u-0")), None)]
    #[case::in_somebodys_own_words(Some("Retain".to_owned()), None)]
    #[case::nothing(None, None)]
    fn a_note_holds_for_the_claim_that_it_names(#[case] annotation: Option<String>, #[case] expected: Option<&str>) {
        let mut claim = Meta { uid: "u-1".into(), ..Meta::default() };
        claim.annotations.extend(annotation.map(|it| (RECLAIM_POLICY.to_owned(), it)));
        assert_eq!(noted(&claim), expected);
    }
}
