//! Which plugins to install: semi-synchronous replication and clone. Pure.
//!
//! The server is asked, not its version: the family with the names source and replica is tried first, and the one with the older names
//! only where the server has no library of the newer. Two families must never be loaded side by side.

/// A plugin and the library that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plugin {
    pub(crate) name: &'static str,
    pub(crate) library: &'static str,
}

const CLONE: Plugin = Plugin { name: "clone", library: "mysql_clone.so" };
/// A server that sends, a server that receives.
const NEW: [Plugin; 2] = [
    Plugin { name: "rpl_semi_sync_source", library: "semisync_source.so" },
    Plugin { name: "rpl_semi_sync_replica", library: "semisync_replica.so" },
];
const OLD: [Plugin; 2] = [
    Plugin { name: "rpl_semi_sync_master", library: "semisync_master.so" },
    Plugin { name: "rpl_semi_sync_slave", library: "semisync_slave.so" },
];

impl Plugin {
    pub(crate) fn statement(self) -> String {
        format!("INSTALL PLUGIN {} SONAME '{}'", self.name, self.library)
    }
}

/// A plugin to install, and the one to install in its place where the server lacks its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) first: Plugin,
    pub(crate) otherwise: Option<Plugin>,
}

/// What is missing on a server with these plugins active.
pub(crate) fn decide(active: &[String]) -> Vec<Choice> {
    let has = |plugin: &Plugin| active.iter().any(|name| name.eq_ignore_ascii_case(plugin.name));
    let (new, old) = (NEW.iter().any(has), OLD.iter().any(has));
    let mut missing = Vec::new();
    for (new_one, old_one) in NEW.into_iter().zip(OLD) {
        if has(&new_one) || has(&old_one) {
            continue;
        }
        missing.push(match (new, old) {
            (false, true) => Choice { first: old_one, otherwise: None },
            (true, _) => Choice { first: new_one, otherwise: None },
            (false, false) => Choice { first: new_one, otherwise: Some(old_one) },
        });
    }
    if !has(&CLONE) {
        missing.push(Choice { first: CLONE, otherwise: None });
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&[], &["rpl_semi_sync_source|rpl_semi_sync_master", "rpl_semi_sync_replica|rpl_semi_sync_slave", "clone"])]
    #[case(&["rpl_semi_sync_source"], &["rpl_semi_sync_replica", "clone"])]
    #[case(&["rpl_semi_sync_master", "clone"], &["rpl_semi_sync_slave"])]
    #[case(&["RPL_SEMI_SYNC_SLAVE", "rpl_semi_sync_master", "clone"], &[])]
    #[case(&["rpl_semi_sync_source", "rpl_semi_sync_replica", "clone"], &[])]
    fn families_are_never_mixed(#[case] active: &[&str], #[case] expected: &[&str]) {
        let active: Vec<String> = active.iter().map(ToString::to_string).collect();
        let told: Vec<String> = decide(&active)
            .into_iter()
            .map(|choice| match choice.otherwise {
                Some(otherwise) => format!("{}|{}", choice.first.name, otherwise.name),
                None => choice.first.name.to_owned(),
            })
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn the_statement_names_the_library() {
        assert_eq!(CLONE.statement(), "INSTALL PLUGIN clone SONAME 'mysql_clone.so'");
    }
}
