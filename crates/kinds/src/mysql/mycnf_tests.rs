use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use rstest::rstest;

use super::*;

fn given(options: &[(&str, &str)]) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn made(dialect: Dialect, options: &[(&str, &str)], memory: Option<u64>) -> MyCnf {
    my_cnf(dialect, &given(options), memory).unwrap()
}

/// The lines of the section of the server that are about an option.
fn lines_about(text: &str, about: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| *line != "[mysqld]");
    let is_about = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| root(name) == root(about));
    lines.filter(is_about).map(str::to_owned).collect()
}

#[test]
fn an_unconfigured_cluster_has_the_text_of_existing_ones() {
    let made = made(Dialect::Established, &[], None);
    assert_eq!(made.fingerprint(), "e15970f0");
    assert_eq!(made.ignored, []);
}

#[test]
fn the_text_for_any_version() {
    insta::assert_snapshot!(made(Dialect::AnyVersion, &[], Some(1000 << 20)).text);
}

#[rstest]
#[case::nothing(None, 134_217_728)]
#[case::little(Some(100 << 20), 134_217_728)]
#[case::as_much_as_the_least(Some(183 << 20), 134_217_728)]
#[case::a_little_more(Some(185 << 20), 129 << 20)]
#[case::some(Some(1000 << 20), 734_003_200)]
#[case::whole_mebibytes_only(Some(1001 << 20), 700 << 20)]
#[case::all(Some(u64::MAX), u64::MAX / 100 * 70 / (1 << 20) * (1 << 20))]
fn the_buffer_pool_has_its_share_of_the_memory(#[case] memory: Option<u64>, #[case] expected: u64) {
    let text = made(Dialect::AnyVersion, &[], memory).text;
    assert_eq!(lines_about(&text, BUFFER_POOL_SIZE), [format!("innodb_buffer_pool_size = {expected}")]);
}

#[rstest]
#[case::a_new_one("foo", "bar", "foo = bar")]
#[case::with_dashes("thread-cache-size", "200", "thread_cache_size = 200")]
#[case::the_size_of_the_pool("innodb_buffer_pool_size", "1G", "innodb_buffer_pool_size = 1G")]
#[case::a_loose_default_given_plainly("innodb_numa_interleave", "OFF", "innodb_numa_interleave = OFF")]
#[case::a_plain_default_given_loosely("loose-back-log", "80", "loose_back_log = 80")]
#[case::a_loose_default_given_loosely(
    "loose_innodb_validate_tablespace_paths",
    "ON",
    "loose_innodb_validate_tablespace_paths = ON"
)]
#[case::switched_off("skip_slow_query_log", "", "skip_slow_query_log = ")]
#[case::of_a_component("validate_password.length", "12", "validate_password.length = 12")]
#[case::with_a_line_end("max_connections", "500\n", "max_connections = 500")]
#[case::with_signs("sql_mode", "\"ANSI,NO_ZERO_DATE\" # both", "sql_mode = \"ANSI,NO_ZERO_DATE\" # both")]
fn a_users_option_replaces_every_spelling_of_the_default(#[case] name: &str, #[case] value: &str, #[case] line: &str) {
    for dialect in [Dialect::Established, Dialect::AnyVersion] {
        let made = made(dialect, &[(name, value)], None);
        assert_eq!(lines_about(&made.text, &normalised(name)), [line]);
        assert_eq!(made.ignored, []);
    }
}

#[rstest]
#[case("port", "port", "3306")]
#[case("pid-file", "pid_file", "/run/mysqld.pid")]
#[case("loose_datadir", "datadir", "/var/lib/mysql/data")]
#[case("loose-super-read-only", "super_read_only", "ON")]
#[case("skip_super_read_only", "super_read_only", "ON")]
#[case("loose_disable-read_only", "read_only", "ON")]
#[case("disable_skip_name_resolve", "skip_name_resolve", "ON")]
#[case("log_slave_updates", "log_replica_updates", "ON")]
#[case("skip-slave-start", "skip_replica_start", "ON")]
#[case("plugin-mysqlx-port", "mysqlx_port", "33060")]
#[case("replication_sender_observe_commit_only", "loose_replication_sender_observe_commit_only", "OFF")]
fn what_the_cluster_needs_cannot_be_changed(#[case] name: &str, #[case] forced: &str, #[case] value: &'static str) {
    let made = made(Dialect::AnyVersion, &[(name, "1")], None);
    assert_eq!(lines_about(&made.text, forced), [format!("{forced} = {value}")]);
    assert_eq!(made.ignored, [Ignored { name: name.to_owned(), because: Reason::Forced(value) }]);
}

#[rstest]
#[case("log_bin")]
#[case("log-bin")]
#[case("skip_log_bin")]
#[case("disable_log_bin")]
#[case("loose_skip-log-bin")]
#[case("log_error")]
fn what_belongs_to_the_operator_is_left_out(#[case] name: &str) {
    let made = made(Dialect::Established, &[(name, "x")], None);
    assert_eq!(made.fingerprint(), "e15970f0");
    assert_eq!(made.ignored, [Ignored { name: name.to_owned(), because: Reason::LeftOut }]);
}

#[test]
fn of_several_spellings_one_counts_and_the_others_are_told() {
    let options = [("loose_back_log", "1"), ("back_log", "2"), ("back-log", "3"), ("port", "4"), ("log_bin", "5")];
    let made = made(Dialect::AnyVersion, &options, None);
    assert_eq!(lines_about(&made.text, "back_log"), ["loose_back_log = 1"]);
    let ignored: Vec<_> = made.ignored.iter().map(|ignored| ignored.name.as_str()).collect();
    assert_eq!(ignored, ["back-log", "back_log", "log_bin", "port"]);
    assert_eq!(made.ignored[0].because, Reason::Repeated("back_log".into()));
    assert_eq!(made.ignored[1].because, Reason::Repeated("loose_back_log".into()));
}

#[rstest]
#[case::files(&[("innodb_log_file_size", "2G")], &["innodb_log_file_size = 2G", "loose_innodb_log_files_in_group = 2"])]
#[case::number_of_files(
    &[("innodb_log_files_in_group", "9")],
    &["innodb_log_files_in_group = 9", "loose_innodb_log_file_size = 800M"]
)]
#[case::capacity(
    &[("innodb_redo_log_capacity", "4G")],
    &["innodb_redo_log_capacity = 4G", "loose_innodb_log_file_size = 800M", "loose_innodb_log_files_in_group = 2"]
)]
#[case::maps(&[("temptable_use_mmap", "ON")], &["temptable_use_mmap = ON"])]
#[case::size_of_maps(&[("temptable_max_mmap", "1G")], &["temptable_max_mmap = 1G"])]
fn a_newer_default_does_not_stand_above_a_users_older_option(#[case] options: &[(&str, &str)], #[case] expected: &[&str]) {
    let text = made(Dialect::AnyVersion, options, None).text;
    let about = options[0].0.split('_').next().unwrap();
    let concerned = ["innodb_log_file_size", "innodb_log_files_in_group", "innodb_redo_log_capacity", "temptable_use_mmap"];
    let concerned = concerned.iter().chain(&["temptable_max_mmap"]).filter(|name| name.starts_with(about));
    let mut lines: Vec<String> = concerned.flat_map(|name| lines_about(&text, name)).collect();
    lines.sort();
    assert_eq!(lines, expected);
}

#[rstest]
#[case::one_line("performance-schema-instrument='memory/%=ON'", false)]
#[case::several("a = 1\nb = 2\n", false)]
#[case::empty("", false)]
#[case::with_a_section("a = 1\n [client]\nuser = x", true)]
fn opaque_text_comes_first_and_as_it_is(#[case] opaque: &str, #[case] again: bool) {
    let plain = made(Dialect::AnyVersion, &[], None).text;
    let made = made(Dialect::AnyVersion, &[(OPAQUE, opaque)], None);
    let (before, after) = plain.split_once("[mysqld]\n").unwrap();
    let header = if again { "[mysqld]\n" } else { "" };
    assert_eq!(made.text, format!("{before}[mysqld]\n{opaque}\n{header}{after}"));
    assert_eq!(made.ignored, []);
}

#[rstest]
#[case("back_log", "1\ndatadir = /elsewhere", "several lines")]
#[case("back_log", "1\r2", "several lines")]
#[case("", "1", "no name")]
#[case("a b", "1", "no name")]
#[case("[client]\nuser", "x", "no name")]
fn what_is_no_line_is_refused(#[case] name: &str, #[case] value: &str, #[case] expected: &str) {
    let error = my_cnf(Dialect::AnyVersion, &given(&[(name, value)]), None).unwrap_err();
    assert_eq!(error.name, name);
    assert!(error.to_string().contains(expected), "{error}");
}

#[rstest]
#[case("sync_relay_log", true)]
#[case("sync-relay-log", true)]
#[case("loose_sync_relay_log", true)]
#[case("sync_relay_log_info", false)]
#[case("include", false)]
fn a_user_is_asked_whether_she_gave_an_option(#[case] name: &str, #[case] expected: bool) {
    assert_eq!(is_given(&given(&[("loose-sync-relay-log", "0"), (OPAQUE, "x = 1")]), name), expected);
}

/// Each name is in its order and stands once, in each section and each table.
#[test]
fn no_option_is_named_twice() {
    for dialect in [Dialect::Established, Dialect::AnyVersion] {
        let text = made(dialect, &[], None).text;
        for section in text.split("\n\n") {
            let names: Vec<&str> = section.lines().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();
            assert!(names.is_sorted(), "{section}");
            let roots: std::collections::BTreeSet<String> = names.iter().map(|name| root(name)).collect();
            assert_eq!(roots.len(), names.len(), "{section}");
        }
        assert!(text.ends_with("\n\n!includedir /etc/mysql-conf.d\n"));
    }
}

#[rstest]
#[case("0", Some(0))]
#[case("1024", Some(1024))]
#[case("+5", Some(5))]
#[case("1Ki", Some(1024))]
#[case("1000Mi", Some(1_048_576_000))]
#[case("1.5Gi", Some(1_610_612_736))]
#[case(".5k", Some(500))]
#[case("2G", Some(2_000_000_000))]
#[case("1e3", Some(1000))]
#[case("1E-1", Some(1))]
#[case("1E", Some(1_000_000_000_000_000_000))]
#[case("1500m", Some(2))]
#[case("1u", Some(1))]
#[case("15Ei", Some(15 << 60))]
#[case("16Ei", None)]
#[case("", None)]
#[case(".", None)]
#[case("Gi", None)]
#[case("-1", None)]
#[case("1ki", None)]
#[case("1 Gi", None)]
#[case("1.2.3", None)]
#[case("1e", None)]
#[case("1e99999", None)]
#[case("99999999999999999999999999999999999999999", None)]
fn quantities_are_read(#[case] quantity: &str, #[case] expected: Option<u64>) {
    assert_eq!(memory_of(Some(&Quantity(quantity.to_owned())), None), expected);
}

#[rstest]
#[case(None, None, None)]
#[case(Some("1Ki"), None, Some(1024))]
#[case(None, Some("2Ki"), Some(2048))]
#[case(Some("1Ki"), Some("2Ki"), Some(1024))]
#[case(Some("nonsense"), Some("2Ki"), Some(2048))]
fn memory_is_what_is_requested_else_the_limit(
    #[case] request: Option<&str>,
    #[case] limit: Option<&str>,
    #[case] expected: Option<u64>,
) {
    let quantity = |text: &str| Quantity(text.to_owned());
    assert_eq!(memory_of(request.map(quantity).as_ref(), limit.map(quantity).as_ref()), expected);
}
