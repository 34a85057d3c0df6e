//! `MySQLCluster`: what is decided about it.

pub mod acknowledging;
