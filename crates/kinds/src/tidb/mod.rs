//! `TidbCluster`: PD, `TiKV`, `TiDB` and what belongs to them.

pub mod answers;
pub mod component;
pub mod deeds;
pub mod discovery;
pub mod facts;
