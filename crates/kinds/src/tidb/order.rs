//! The orders that matter, all of them. Where none is named here, components do not wait for each other.

use windlass_api::tidb::Component::{self, Pd, Pump, Ticdc, Tidb, Tiflash, Tikv, Tiproxy};

/// Which components must serve before the first pod of another one is made. What runs already waits for nobody.
pub(super) fn made_after(component: Component) -> &'static [Component] {
    match component {
        Pd => &[],
        // They look for PD once, and end when it is not there.
        Tikv | Tiflash | Tiproxy | Pump => &[Pd],
        // It looks for data, and writes to pumps from its first statement on.
        Tidb => &[Pd, Tikv, Pump],
        Ticdc => &[Pd, Tikv],
    }
}

/// Whose pods must be up to date, and whose members neither come nor go, before pods of another component are replaced: newer ones may
/// speak to older ones, but not the other way round.
pub(super) fn replaced_after(component: Component) -> &'static [Component] {
    match component {
        Pd | Tiproxy => &[],
        Tiflash => &[Pd],
        Tikv => &[Pd, Tiflash],
        Pump => &[Pd, Tiflash, Tikv],
        Tidb => &[Pd, Tiflash, Tikv, Pump],
        Ticdc => &[Pd, Tiflash, Tikv, Pump, Tidb],
    }
}

/// Which components must be stopped, where they are to be, before another one is: whoever needs another one goes first.
pub(super) fn stopped_after(component: Component) -> &'static [Component] {
    match component {
        Tidb | Tiproxy => &[],
        Tiflash => &[Tidb],
        Ticdc => &[Tidb, Tiflash],
        Tikv => &[Tidb, Tiflash, Ticdc],
        Pump => &[Tidb, Tiflash, Ticdc, Tikv],
        Pd => &[Tidb, Tiflash, Ticdc, Tikv, Pump, Tiproxy],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Whoever waits for itself waits for ever.
    #[rstest]
    #[case(made_after)]
    #[case(replaced_after)]
    #[case(stopped_after)]
    fn nobody_waits_for_itself(#[case] order: fn(Component) -> &'static [Component]) {
        for component in Component::ALL {
            let (mut reached, mut next) = (Vec::new(), order(component).to_vec());
            while let Some(other) = next.pop() {
                assert_ne!(other, component);
                if !reached.contains(&other) {
                    reached.push(other);
                    next.extend(order(other));
                }
            }
        }
    }

    #[test]
    fn pd_is_made_and_replaced_first_and_stopped_last() {
        let others = || Component::ALL.into_iter().filter(|it| *it != Pd);
        assert!(others().all(|it| made_after(it).contains(&Pd)));
        assert!(others().filter(|it| *it != Tiproxy).all(|it| replaced_after(it).contains(&Pd)));
        assert!(others().all(|it| stopped_after(Pd).contains(&it)));
    }
}
