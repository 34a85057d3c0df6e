//! The servers in the fake kubelet's pods, of whichever kind the clusters are.

use std::net::Ipv4Addr;

use anyhow::Result;

use crate::kind::Kind;
use crate::{mysql, tidb};

/// All servers.
#[derive(Clone)]
pub(crate) enum Servers {
    Mysql(mysql::Fleet),
    Tidb(tidb::Fleet),
}

/// The running servers. When this is dropped they end, and so does the way to them.
pub(crate) enum Fakes {
    Mysql(mysql::Fakes),
    Tidb(tidb::Fakes),
}

impl Fakes {
    /// Starts those of a kind, if it has any.
    pub(crate) fn start(kind: Kind, members: u16) -> Result<Option<Self>> {
        Ok(match kind {
            Kind::Rss => None,
            Kind::Mysql => Some(Self::Mysql(mysql::Fakes::start(members)?)),
            Kind::Tidb => Some(Self::Tidb(tidb::Fakes::start()?)),
        })
    }

    pub(crate) fn servers(&self) -> Servers {
        match self {
            Self::Mysql(fakes) => Servers::Mysql(fakes.fleet.clone()),
            Self::Tidb(fakes) => Servers::Tidb(fakes.fleet.clone()),
        }
    }
}

impl Servers {
    /// The address of the n-th pod.
    pub(crate) const fn address(&self, number: u32) -> Ipv4Addr {
        match self {
            Self::Mysql(_) => mysql::RANGE.address(number),
            Self::Tidb(_) => tidb::RANGE.address(number),
        }
    }

    /// A pod runs, and so does its server.
    pub(crate) fn start(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        match self {
            Self::Mysql(fleet) => fleet.start(namespace, pod, address),
            Self::Tidb(fleet) => fleet.start(namespace, pod, address),
        }
    }

    /// A pod is gone, and so is its server.
    pub(crate) fn remove(&self, namespace: &str, pod: &str, address: Ipv4Addr) {
        match self {
            Self::Mysql(fleet) => fleet.remove(namespace, pod, address),
            Self::Tidb(fleet) => fleet.remove(namespace, pod, address),
        }
    }

    /// What they have to say of how they were treated.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let (mut all, unknown) = match self {
            Self::Mysql(fleet) => (fleet.complaints(), fleet.unknown_statements()),
            Self::Tidb(fleet) => (fleet.complaints(), fleet.unknown_requests()),
        };
        let unknown = unknown.into_iter();
        all.extend(unknown.map(|text| format!("the bench's servers do not know what they were asked, {text}")));
        all
    }

    pub(crate) const fn mysql(&self) -> Option<&mysql::Fleet> {
        match self {
            Self::Mysql(fleet) => Some(fleet),
            Self::Tidb(_) => None,
        }
    }

    pub(crate) const fn tidb(&self) -> Option<&tidb::Fleet> {
        match self {
            Self::Mysql(_) => None,
            Self::Tidb(fleet) => Some(fleet),
        }
    }
}
