//! The configuration of each component: what the user wrote, what must be, and what is so where the user says nothing else.
//!
//! Decides settings only; how they are kept is decided in `config_map`.

mod stores;
mod tiproxy;

use toml::{Table, Value};
use windlass_api::tidb::Component;

use super::super::validate::{Group, Validated};
use super::tls;

pub(super) use stores::{CLUSTER_LOG, ERROR_LOG, SERVER_LOG, log_path, proxy};
pub(super) use tiproxy::{encrypts_to_tidb, is_newer_layout, serves_https, shows_own};

/// A component's configuration, as it is written.
pub(super) fn config(cluster: &Validated, group: &Group) -> Table {
    let mut config = Settings(group.config.clone());
    match group.component {
        Component::Pd => of_pd(cluster, &mut config),
        Component::Tikv => stores::of_tikv(cluster, &mut config),
        Component::Tidb => of_tidb(cluster, &mut config),
        Component::Tiflash => stores::of_tiflash(cluster, group, &mut config),
        Component::Ticdc => translate(&mut config),
        Component::Tiproxy => tiproxy::of_tiproxy(cluster, &mut config),
        Component::Pump => of_pump(cluster, &mut config),
    }
    config.0
}

/// A table whose settings are named by their whole path: `log.file.max-backups`.
pub(super) struct Settings(pub(super) Table);

impl Settings {
    /// Sets a value, whatever the user says.
    pub(super) fn set(&mut self, path: &str, value: impl Into<Value>) {
        let (tables, name) = path.rsplit_once('.').map_or((None, path), |(tables, name)| (Some(tables), name));
        let mut table = &mut self.0;
        for part in tables.into_iter().flat_map(|tables| tables.split('.')) {
            let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
            // What is no table cannot hold the setting.
            if !inner.is_table() {
                *inner = Value::Table(Table::new());
            }
            let Value::Table(inner) = inner else { return };
            table = inner;
        }
        table.insert(name.to_owned(), value.into());
    }

    /// Sets a value where the user says nothing.
    pub(super) fn put_default(&mut self, path: &str, value: impl Into<Value>) {
        if self.get(path).is_none() {
            self.set(path, value);
        }
    }

    /// What is set.
    pub(super) fn get(&self, path: &str) -> Option<&Value> {
        let mut parts = path.split('.');
        let mut value = self.0.get(parts.next()?)?;
        for part in parts {
            value = value.as_table()?.get(part)?;
        }
        Some(value)
    }

    /// The certificate in this place, by the names that a component has for its parts.
    pub(super) fn set_certificate(&mut self, [authority, certificate, key]: [&str; 3], path: &str) {
        self.set(authority, tls::authority(path));
        self.set(certificate, tls::certificate(path));
        self.set(key, tls::key(path));
    }
}

fn of_pd(cluster: &Validated, config: &mut Settings) {
    if cluster.tls {
        let names = ["security.cacert-path", "security.cert-path", "security.key-path"];
        config.set_certificate(names, &tls::cluster_path("pd"));
    }
    if shows_certificate_to_tidb(cluster) {
        config.set_certificate(
            ["dashboard.tidb-cacert-path", "dashboard.tidb-cert-path", "dashboard.tidb-key-path"],
            tls::CLIENT,
        );
    }
    if let Some(proxy) = cluster.spec.pd.as_ref().and_then(|pd| pd.enable_dashboard_internal_proxy) {
        config.set("dashboard.internal-proxy", proxy);
    }
}

/// Whether programs of the cluster show a certificate when they are clients of TiDB.
pub(super) fn shows_certificate_to_tidb(cluster: &Validated) -> bool {
    let tls = cluster.spec.tidb.as_ref().and_then(|tidb| tidb.tls_client.as_ref());
    tls.is_some_and(|tls| tls.enabled && !tls.skip_internal_client_ca)
}

/// How many old logs TiDB keeps where the user says nothing else.
const LOGS_KEPT: i64 = 3;

fn of_tidb(cluster: &Validated, config: &mut Settings) {
    let Some(tidb) = &cluster.spec.tidb else { return };
    config.put_default("log.file.max-backups", LOGS_KEPT);
    if tidb.token_based_auth_enabled.unwrap_or_default() {
        config.set("security.auth-token-jwks", super::containers::AUTH_TOKEN_FILE);
    }
    if cluster.tls {
        let names = ["security.cluster-ssl-ca", "security.cluster-ssl-cert", "security.cluster-ssl-key"];
        let path = tls::cluster_path("tidb");
        config.set_certificate(names, &path);
        // A proxy moves sessions between servers, which then have to believe each other's tokens.
        if cluster.spec.tiproxy.as_ref().is_some_and(|tiproxy| tiproxy.replicas > 0) {
            config.set("security.session-token-signing-key", tls::key(&path));
            config.set("security.session-token-signing-cert", tls::certificate(&path));
        }
    }
    if let Some(client) = tidb.tls_client.as_ref().filter(|tls| tls.enabled) {
        if !client.disable_client_authn {
            config.set("security.ssl-ca", tls::authority(tls::SERVER));
        }
        config.set("security.ssl-cert", tls::certificate(tls::SERVER));
        config.set("security.ssl-key", tls::key(tls::SERVER));
    }
    if tidb.bootstrap_sql_config_map_name.as_ref().is_some_and(|name| !name.is_empty()) {
        config.set("initialize-sql-file", super::containers::BOOTSTRAP_FILE);
    }
}

fn of_pump(cluster: &Validated, config: &mut Settings) {
    if cluster.tls {
        config.set_certificate(["security.ssl-ca", "security.ssl-cert", "security.ssl-key"], &tls::cluster_path("pump"));
    }
}

/// Settings of TiCDC that users write in another way.
const WRITTEN_OTHERWISE: [(&str, &str); 4] =
    [("timezone", "tz"), ("gcTTL", "gc-ttl"), ("logLevel", "log-level"), ("logFile", "log-file")];

fn translate(config: &mut Settings) {
    for (written, meant) in WRITTEN_OTHERWISE {
        if let Some(value) = config.0.remove(written) {
            config.put_default(meant, value);
        }
    }
}

/// Settings of TiCDC that are arguments; there is a file only for others.
pub(super) const ARGUMENTS_OF_TICDC: [&str; 4] = ["tz", "gc-ttl", "log-level", "log-file"];

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn settings(text: &str) -> Settings {
        Settings(text.parse().unwrap())
    }

    #[rstest]
    #[case("", "a", "a = 1\n")]
    #[case("", "a.b.c", "[a.b]\nc = 1\n")]
    #[case("[a]\nx = 2\n", "a.b", "[a]\nb = 1\nx = 2\n")]
    #[case("a = 7\n", "a.b", "[a]\nb = 1\n")]
    #[case("a = 7\n", "a", "a = 1\n")]
    fn a_value_is_set_wherever_it_belongs(#[case] before: &str, #[case] path: &str, #[case] after: &str) {
        let mut settings = settings(before);
        settings.set(path, 1);
        assert_eq!(settings.0.to_string(), after);
    }

    #[rstest]
    #[case("[a]\nb = 2\n", "a.b", Some(2))]
    #[case("[a]\nb = 2\n", "a.c", None)]
    #[case("a = 2\n", "a.c", None)]
    fn a_default_is_none_where_something_is(#[case] before: &str, #[case] path: &str, #[case] is: Option<i64>) {
        let mut settings = settings(before);
        assert_eq!(settings.get(path).and_then(Value::as_integer), is);
        settings.put_default(path, 1);
        assert_eq!(settings.get(path).and_then(Value::as_integer), is.or(Some(1)));
    }
}
