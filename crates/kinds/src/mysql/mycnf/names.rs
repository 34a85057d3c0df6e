//! The names of options: which of them mean the same to a server.
//!
//! Upper case and shortened names are no names to a server, so they are left as they are.

/// What may stand before the name of an option. A switch keeps its subject: `skip_ssl` and `ssl` are about the same.
const PREFIXES: [&str; 5] = ["loose_", "skip_", "disable_", "enable_", "plugin_"];

/// Old names that a server still knows, without their prefixes, and the new ones.
const RENAMED: [(&str, &str); 2] = [("log_slave_updates", "log_replica_updates"), ("slave_start", "replica_start")];

/// Whether a text can stand before an equals sign without meaning anything else.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// With underscores, as it is written.
pub(super) fn normalised(name: &str) -> String {
    name.replace('-', "_")
}

/// What a normalised name is about, whatever its prefixes.
pub(super) fn root(name: &str) -> String {
    let mut rest = name;
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter;
    }
    RENAMED.iter().find(|(old, _)| *old == rest).map_or(rest, |(_, new)| new).to_owned()
}
