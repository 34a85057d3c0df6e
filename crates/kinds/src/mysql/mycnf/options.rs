//! The options that each my.cnf has: those that clusters need, and the defaults.

/// A name and a value.
type Setting = (&'static str, &'static str);

/// What the cluster needs of each server. Nobody changes it.
pub(super) const FORCED: &[Setting] = &[
    ("admin_port", "33062"),
    ("binlog_format", "ROW"),
    ("datadir", "/var/lib/mysql/data"),
    ("enforce_gtid_consistency", "ON"),
    ("gtid_mode", "ON"),
    ("log_replica_updates", "ON"),
    ("loose_replication_optimize_for_static_plugin_config", "ON"),
    ("loose_replication_sender_observe_commit_only", "OFF"),
    ("mysqlx_port", "33060"),
    ("pid_file", "/run/mysqld.pid"),
    ("port", "3306"),
    ("read_only", "ON"),
    ("relay_log_recovery", "OFF"),
    ("secure_file_priv", "NULL"),
    ("skip_name_resolve", "ON"),
    ("skip_replica_start", "ON"),
    ("slow_query_log_file", "/var/log/mysql/mysql.slow"),
    ("socket", "/run/mysqld.sock"),
    ("super_read_only", "ON"),
];

/// What the user cannot give, by what it is about: the binary log is on and in its place, errors go to where they are read.
pub(super) const OURS: &[&str] = &["log_bin", "log_error"];

/// What programs need to find the server.
pub(super) const CLIENT: &[Setting] =
    &[("loose_default_character_set", "utf8mb4"), ("port", "3306"), ("socket", "/run/mysqld.sock")];

/// How the `mysql` program behaves: who changes something by hand has to commit.
pub(super) const MYSQL: &[Setting] = &[("auto_rehash", "OFF"), ("init_command", "\"SET autocommit=0\"")];

/// The defaults that all servers know.
pub(super) const DEFAULTS: &[Setting] = &[
    ("back_log", "900"),
    ("character_set_server", "utf8mb4"),
    ("collation_server", "utf8mb4_unicode_ci"),
    ("default_storage_engine", "InnoDB"),
    ("default_time_zone", "+0:00"),
    ("disabled_storage_engines", "MyISAM"),
    ("information_schema_stats_expiry", "0"),
    ("innodb_adaptive_hash_index", "ON"),
    ("innodb_buffer_pool_dump_at_shutdown", "1"),
    ("innodb_buffer_pool_dump_pct", "100"),
    ("innodb_buffer_pool_in_core_file", "OFF"),
    ("innodb_buffer_pool_load_at_startup", "0"),
    ("innodb_flush_method", "O_DIRECT"),
    ("innodb_flush_neighbors", "0"),
    ("innodb_lock_wait_timeout", "60"),
    ("innodb_log_write_ahead_size", "512"),
    ("innodb_online_alter_log_max_size", "1073741824"),
    ("innodb_print_all_deadlocks", "1"),
    ("innodb_random_read_ahead", "false"),
    ("innodb_read_ahead_threshold", "0"),
    ("innodb_tmpdir", "/tmp"),
    ("innodb_undo_log_truncate", "OFF"),
    ("join_buffer_size", "2M"),
    ("lock_wait_timeout", "60"),
    ("log_error_verbosity", "3"),
    ("log_slow_extra", "ON"),
    ("long_query_time", "2"),
    ("loose_binlog_transaction_compression", "ON"),
    ("loose_innodb_numa_interleave", "ON"),
    ("loose_innodb_validate_tablespace_paths", "OFF"),
    ("max_allowed_packet", "1G"),
    ("max_connections", "100000"),
    ("max_heap_table_size", "64M"),
    ("max_sp_recursion_depth", "20"),
    ("print_identified_with_as_hex", "ON"),
    ("slow_query_log", "ON"),
    ("sort_buffer_size", "4M"),
    ("table_definition_cache", "65536"),
    ("table_open_cache", "65536"),
    ("thread_cache_size", "100"),
    ("tmp_table_size", "64M"),
    ("tmpdir", "/tmp"),
    ("transaction_isolation", "READ-COMMITTED"),
    ("wait_timeout", "604800"),
];

/// The defaults that 9.7 does not know any more, as existing clusters have them.
pub(super) const ESTABLISHED: &[Setting] =
    &[("innodb_log_file_size", "800M"), ("innodb_log_files_in_group", "2"), ("temptable_use_mmap", "OFF")];

/// The same wishes for all servers. Before 8.0.30 the redo log is counted in files, since then by its capacity, which stands
/// above the files.
pub(super) const ANY_VERSION: &[Setting] = &[
    ("loose_innodb_log_file_size", "800M"),
    ("loose_innodb_log_files_in_group", "2"),
    ("loose_innodb_redo_log_capacity", "1600M"),
    ("temptable_max_mmap", "0"),
];

/// New options that would stand above what the user wishes with an old one: the new one and the old one.
pub(super) const STANDS_FOR: &[(&str, &str)] = &[
    ("innodb_redo_log_capacity", "innodb_log_file_size"),
    ("innodb_redo_log_capacity", "innodb_log_files_in_group"),
    ("temptable_max_mmap", "temptable_use_mmap"),
];
