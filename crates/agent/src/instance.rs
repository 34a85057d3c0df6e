//! Which instance of its cluster this is, and the few lines of configuration that only this instance has. Pure.

use windlass_core::ordinals::Ordinal;

/// The name of the per-instance file in the directory that my.cnf includes.
pub const FILE: &str = "my.cnf";

/// A pod name without a usable ordinal.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadInstance {
    /// The name does not end in `-N`.
    #[error("pod name {0:?} does not end in -N: POD_NAME must be the name of a StatefulSet's pod, set from metadata.name")]
    Name(String),
    /// The identifiers of servers are 32 bits.
    #[error(
        "server_id of instance {ordinal} would be {base} + {ordinal}, which is more than 4294967295: choose a smaller base"
    )]
    ServerId {
        /// The cluster's base.
        base: u32,
        /// The instance.
        ordinal: u16,
    },
}

/// The ordinal at the end of a pod's name.
pub fn parse_ordinal(pod_name: &str) -> Result<u16, BadInstance> {
    let (_, ordinal) = Ordinal::split_pod_name(pod_name).ok_or_else(|| BadInstance::Name(pod_name.to_owned()))?;
    Ok(ordinal.get())
}

/// The per-instance file. `admin_address` is where the administrative port listens.
pub fn build_file(pod_name: &str, server_id_base: u32, admin_on_localhost: bool) -> Result<String, BadInstance> {
    let ordinal = parse_ordinal(pod_name)?;
    let too_large = BadInstance::ServerId { base: server_id_base, ordinal };
    let server_id = server_id_base.checked_add(u32::from(ordinal)).ok_or(too_large)?;
    let admin_address = if admin_on_localhost { "localhost" } else { pod_name };
    Ok(format!("[mysqld]\nserver_id = {server_id}\nadmin_address = {admin_address}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("moco-a-0", Some(0))]
    #[case("moco-a-10", Some(10))]
    #[case("moco-1-2", Some(2))]
    #[case("moco", None)]
    #[case("moco-", None)]
    #[case("-1", None)]
    #[case("moco-a-+1", None)]
    #[case("moco-a-01", None)]
    #[case("moco-a-65536", None)]
    #[case("moco-a-1x", None)]
    fn ordinals_are_read_as_numbers_from_the_end_of_the_name(#[case] name: &str, #[case] ordinal: Option<u16>) {
        assert_eq!(parse_ordinal(name).ok(), ordinal);
    }

    #[test]
    fn the_file_has_the_server_id_and_the_admin_address() {
        assert_eq!(build_file("moco-a-2", 100, false).unwrap(), "[mysqld]\nserver_id = 102\nadmin_address = moco-a-2\n");
        assert_eq!(build_file("moco-a-0", 7, true).unwrap(), "[mysqld]\nserver_id = 7\nadmin_address = localhost\n");
    }

    #[test]
    fn a_server_id_that_does_not_fit_is_refused() {
        assert!(build_file("moco-a-0", u32::MAX, false).is_ok());
        let error = build_file("moco-a-1", u32::MAX, false).unwrap_err();
        assert_eq!(error, BadInstance::ServerId { base: u32::MAX, ordinal: 1 });
    }
}
