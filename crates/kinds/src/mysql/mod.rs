//! `MySQLCluster`: MySQL with semi-synchronous replication.

pub mod gtid;
pub mod mycnf;
