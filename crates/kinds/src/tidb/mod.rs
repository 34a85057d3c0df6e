//! `TidbCluster`: PD, TiKV, TiDB, TiFlash, TiCDC, TiProxy and Pump.

pub mod build;
#[cfg(test)]
mod fixture;
pub mod validate;
