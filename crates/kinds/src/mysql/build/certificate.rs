//! The Secret with the certificate of the agents, as a recipe: nothing here ever knows a key.
//!
//! Decides when it is made anew: after two thirds of its life, when the operator is not known by it any more, or, where another one's
//! certificate is shown, when it is time to look at that one again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use windlass_core::certificates::{CERTIFICATE, COPY, COPY_OF, ISSUED, ROOTS, is_renewed};
use windlass_core::secrets::{Certificate, Recipe};
use windlass_core::step::{Manifest, ObjectKind};
use windlass_core::views::ObjectView;

use super::super::validate::Validated;
use super::manifest;

/// What the certificate depends on.
#[derive(Clone, Copy, Debug)]
pub struct Renewal<'a> {
    /// The time.
    pub now: Timestamp,
    /// The Secret, if it exists.
    pub live: Option<&'a ObjectView>,
    /// The authority by which the operator shows who it is, where somebody asked.
    pub authority: Option<&'a str>,
}

/// The certificate: as it is, or a new one.
pub(super) fn certificate(cluster: &Validated, renewal: &Renewal<'_>) -> Manifest {
    let names = cluster.names();
    // A minute is enough to tell two of them apart, and the same within one pass and the next.
    let minute = Timestamp::from_second(renewal.now.as_second() / 60 * 60).unwrap_or(renewal.now);
    let since = kept(renewal).unwrap_or(minute);
    let wanted = Certificate {
        names: vec![format!("*.{}.{}.svc", names.headless_service(), cluster.namespace)],
        since,
        instead: format!("moco-agent-{}.{}", cluster.namespace, cluster.name),
    };
    let recipe = Recipe { certificate: Some(wanted), ..Recipe::default() };
    let annotations = BTreeMap::from([(ISSUED.to_owned(), since.to_string())]);
    Manifest { annotations, ..manifest(cluster, ObjectKind::Secret, &names.certificate(), recipe.value()) }
}

/// When the one that is there was asked for, if it stays.
fn kept(renewal: &Renewal<'_>) -> Option<Timestamp> {
    let annotations = &renewal.live?.meta.annotations;
    let since: Timestamp = annotations.get(ISSUED)?.parse().ok()?;
    let life = if annotations.contains_key(COPY_OF) { COPY * 3 / 2 } else { CERTIFICATE };
    let roots = annotations.get(ROOTS)?;
    let is_known = renewal.authority.is_none_or(|authority| roots.split('.').any(|root| root == authority));
    // One from the future is of a clock that was wrong.
    (is_known && since <= renewal.now && !is_renewed(since, life, renewal.now)).then_some(since)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use rstest::rstest;
    use windlass_core::pairs::Pairs;
    use windlass_core::views::Meta;

    use super::*;

    const ROOT: &str = "1700000000";

    fn live(days_ago: i64, roots: &str, copy: bool, now: Timestamp) -> ObjectView {
        let since = now - SignedDuration::from_hours(24 * days_ago);
        let mut annotations = Pairs::from([(ISSUED.to_owned(), since.to_string()), (ROOTS.to_owned(), roots.to_owned())]);
        if copy {
            annotations.insert(COPY_OF.to_owned(), "moco-agent-shop.harbour".to_owned());
        }
        ObjectView { meta: Meta { annotations, ..Meta::default() }, ..ObjectView::default() }
    }

    #[rstest]
    #[case::new(0, ROOT, false, None, true)]
    #[case::before_two_thirds(59, ROOT, false, None, true)]
    #[case::after_two_thirds(60, ROOT, false, None, false)]
    #[case::known_by_it(1, "1600000000.1700000000", false, Some(ROOT), true)]
    #[case::not_known_by_it(1, "1600000000", false, Some(ROOT), false)]
    #[case::a_part_of_a_name_is_none(1, "17000000001", false, Some(ROOT), false)]
    #[case::a_copy_is_looked_at_again(1, ROOT, true, None, false)]
    #[case::a_fresh_copy(0, ROOT, true, None, true)]
    #[case::from_the_future(-1, ROOT, false, None, false)]
    fn a_certificate_stays_while_it_is_good(
        #[case] days_ago: i64,
        #[case] roots: &str,
        #[case] copy: bool,
        #[case] authority: Option<&str>,
        #[case] stays: bool,
    ) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let live = live(days_ago, roots, copy, now);
        assert_eq!(kept(&Renewal { now, live: Some(&live), authority }).is_some(), stays);
    }

    #[test]
    fn what_another_operator_made_is_made_anew() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!(kept(&Renewal { now, live: Some(&ObjectView::default()), authority: None }), None);
        assert_eq!(kept(&Renewal { now, live: None, authority: None }), None);
    }
}
