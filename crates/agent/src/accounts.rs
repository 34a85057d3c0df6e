//! The accounts of the system, their privileges, and the statements that make them. Pure.
//!
//! Every list of statements can be repeated: what is there already is set again to what this table says.

use std::fmt;

/// An account `NAME@'%'`.
#[derive(Debug)]
pub struct Account {
    /// The name.
    pub name: &'static str,
    /// The variable of the environment that has the password.
    pub variable: &'static str,
    /// What it may do everywhere.
    privileges: &'static [&'static str],
    /// What it may not do in the database `mysql`.
    withheld: &'static [&'static str],
    /// Whether it may pass on what it may do.
    grants: bool,
    /// Whether it may stand in for others: only who may can let others do so.
    proxies: bool,
}

/// The super user. The controller works with it, and so does the end of an initialisation.
pub const ADMIN: &str = "moco-admin";
/// The account of the agent in its daily work.
pub const AGENT: &str = "moco-agent";

/// What `moco-writable` may do: all that an application and its migrations need (data, definitions, routines, events, users and
/// roles), and to look at the server. Nothing that changes the server itself, its replication or its files. The list is the one that
/// users of the existing operator know.
const WRITABLE: [&str; 25] = [
    "ALTER",
    "ALTER ROUTINE",
    "CREATE",
    "CREATE ROLE",
    "CREATE ROUTINE",
    "CREATE TEMPORARY TABLES",
    "CREATE USER",
    "CREATE VIEW",
    "DELETE",
    "DROP",
    "DROP ROLE",
    "EVENT",
    "EXECUTE",
    "INDEX",
    "INSERT",
    "LOCK TABLES",
    "PROCESS",
    "REFERENCES",
    "REPLICATION CLIENT",
    "REPLICATION SLAVE",
    "SELECT",
    "SHOW DATABASES",
    "SHOW VIEW",
    "TRIGGER",
    "UPDATE",
];

/// What of it does not count in the database `mysql`: with a write there, one could grant oneself everything.
const WITHHELD: [&str; 16] = [
    "ALTER",
    "ALTER ROUTINE",
    "CREATE",
    "CREATE ROUTINE",
    "CREATE TEMPORARY TABLES",
    "CREATE VIEW",
    "DELETE",
    "DROP",
    "EVENT",
    "EXECUTE",
    "INDEX",
    "INSERT",
    "LOCK TABLES",
    "REFERENCES",
    "TRIGGER",
    "UPDATE",
];

const fn plain(name: &'static str, variable: &'static str, privileges: &'static [&'static str]) -> Account {
    Account { name, variable, privileges, withheld: &[], grants: false, proxies: false }
}

/// All accounts of the system.
pub const ACCOUNTS: [Account; 8] = [
    Account { grants: true, proxies: true, ..plain(ADMIN, "ADMIN_PASSWORD", &["ALL"]) },
    plain(
        AGENT,
        "AGENT_PASSWORD",
        &[
            "BINLOG_ADMIN",
            "CLONE_ADMIN",
            "RELOAD",
            "REPLICATION CLIENT",
            "SELECT",
            "SERVICE_CONNECTION_ADMIN",
            "SYSTEM_VARIABLES_ADMIN",
        ],
    ),
    plain("moco-repl", "REPLICATION_PASSWORD", &["REPLICATION CLIENT", "REPLICATION SLAVE"]),
    plain("moco-clone-donor", "CLONE_DONOR_PASSWORD", &["BACKUP_ADMIN", "SERVICE_CONNECTION_ADMIN"]),
    plain("moco-exporter", "EXPORTER_PASSWORD", &["PROCESS", "REPLICATION CLIENT", "SELECT"]),
    plain(
        "moco-backup",
        "BACKUP_PASSWORD",
        &[
            "BACKUP_ADMIN",
            "EVENT",
            "RELOAD",
            "SELECT",
            "SHOW VIEW",
            "TRIGGER",
            "REPLICATION CLIENT",
            "REPLICATION SLAVE",
            "SERVICE_CONNECTION_ADMIN",
        ],
    ),
    plain(
        "moco-readonly",
        "READONLY_PASSWORD",
        &["PROCESS", "REPLICATION CLIENT", "REPLICATION SLAVE", "SELECT", "SHOW DATABASES", "SHOW VIEW"],
    ),
    Account { withheld: &WITHHELD, grants: true, ..plain("moco-writable", "WRITABLE_PASSWORD", &WRITABLE) },
];

/// The passwords, in the order of [`ACCOUNTS`]. They are never shown.
#[derive(Clone)]
pub struct Passwords([String; ACCOUNTS.len()]);

impl fmt::Debug for Passwords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Passwords")
    }
}

/// Variables without a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no password in {}: the container must have all of the Secret of its cluster in its environment", .0.join(", "))]
pub struct NoPassword(pub Vec<&'static str>);

impl Passwords {
    /// Looks each password up by its variable.
    pub fn gather(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, NoPassword> {
        let found = ACCOUNTS.each_ref().map(|account| lookup(account.variable).filter(|password| !password.is_empty()));
        let missing: Vec<&str> =
            ACCOUNTS.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(account, _)| account.variable).collect();
        if missing.is_empty() { Ok(Self(found.map(Option::unwrap_or_default))) } else { Err(NoPassword(missing)) }
    }

    /// Each account with its password.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static Account, &str)> {
        const { &ACCOUNTS }.iter().zip(self.0.iter().map(String::as_str))
    }

    /// The password of an account; empty for a name that is none of ours.
    pub(crate) fn of(&self, name: &str) -> &str {
        self.pairs().find(|(account, _)| account.name == name).map(|(_, password)| password).unwrap_or_default()
    }
}

/// A string as SQL writes it. The session must not have `NO_BACKSLASH_ESCAPES`; ours have no SQL mode at all.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// What makes this account, or makes it what it should be. Needs `partial_revokes`.
pub(crate) fn build_statements(account: &Account, password: &str) -> Vec<String> {
    let who = format!("{}@'%'", quote(account.name));
    // Every server that we run has this plugin; the older one is gone from MySQL 9, and an account of a donor may still use it.
    let identified = format!("IDENTIFIED WITH caching_sha2_password BY {}", quote(password));
    let option = if account.grants { " WITH GRANT OPTION" } else { "" };
    let mut statements = vec![
        format!("CREATE USER IF NOT EXISTS {who} {identified}"),
        format!("ALTER USER {who} {identified}"),
        format!("GRANT {} ON *.* TO {who}{option}", account.privileges.join(", ")),
    ];
    if account.proxies {
        statements.push(format!("GRANT PROXY ON ''@'' TO {who} WITH GRANT OPTION"));
    }
    if !account.withheld.is_empty() {
        statements.push(format!("REVOKE {} ON mysql.* FROM {who}", account.withheld.join(", ")));
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str) -> &'static Account {
        const { &ACCOUNTS }.iter().find(|account| account.name == name).unwrap()
    }

    #[test]
    fn statements_set_the_password_and_exactly_the_privileges() {
        assert_eq!(
            build_statements(account("moco-repl"), "it's \\ odd"),
            [
                "CREATE USER IF NOT EXISTS 'moco-repl'@'%' IDENTIFIED WITH caching_sha2_password BY 'it''s \\\\ odd'",
                "ALTER USER 'moco-repl'@'%' IDENTIFIED WITH caching_sha2_password BY 'it''s \\\\ odd'",
                "GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO 'moco-repl'@'%'",
            ]
        );
        let admin = build_statements(account(ADMIN), "a");
        assert_eq!(admin[2], "GRANT ALL ON *.* TO 'moco-admin'@'%' WITH GRANT OPTION");
        assert_eq!(admin[3], "GRANT PROXY ON ''@'' TO 'moco-admin'@'%' WITH GRANT OPTION");
    }

    #[test]
    fn the_writable_account_writes_everywhere_but_in_the_servers_own_tables() {
        let statements = build_statements(account("moco-writable"), "w");
        assert!(statements[2].ends_with(" TO 'moco-writable'@'%' WITH GRANT OPTION"));
        assert!(statements[3].starts_with("REVOKE ALTER, ") && statements[3].ends_with(" ON mysql.* FROM 'moco-writable'@'%'"));
        // Nothing is withheld that is not granted, and looking is not withheld.
        assert!(WITHHELD.iter().all(|privilege| WRITABLE.contains(privilege)));
        assert!(!WITHHELD.contains(&"SELECT"));
        assert!(WRITABLE.is_sorted() && WITHHELD.is_sorted());
    }

    #[test]
    fn all_missing_passwords_are_told_at_once() {
        let some = |variable: &str| (variable.starts_with('A')).then(|| "x".to_owned());
        let missing = Passwords::gather(some).unwrap_err();
        assert_eq!(missing.0.len(), 6);
        let empty = |variable: &str| Some(if variable == "ADMIN_PASSWORD" { String::new() } else { "x".to_owned() });
        assert_eq!(Passwords::gather(empty).unwrap_err(), NoPassword(vec!["ADMIN_PASSWORD"]));
    }

    #[test]
    fn each_account_has_its_own_password_and_none_is_shown() {
        let passwords = Passwords::gather(|variable| Some(format!("of {variable}"))).unwrap();
        assert_eq!(passwords.of(AGENT), "of AGENT_PASSWORD");
        assert_eq!(passwords.of("moco-writable"), "of WRITABLE_PASSWORD");
        assert_eq!(format!("{passwords:?}"), "Passwords");
    }
}
