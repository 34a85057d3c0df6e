//! `MySQLCluster`: MySQL with semi-synchronous replication.
//!
//! The foundations, each by itself: what sets of transactions hold, who acknowledges commits and who may replace a lost primary, the
//! state that a cluster is in, and the servers' my.cnf. Nothing serves the kind yet.

pub mod acknowledging;
pub mod gtid;
pub mod instance;
pub mod mycnf;
pub mod state;
