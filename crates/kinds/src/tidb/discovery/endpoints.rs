//! Where discovery finds PD, and what it tells those who ask for it.

use std::collections::BTreeSet;

use windlass_core::ordinals::Ordinal;

use super::{Asker, Claim, Cluster};

const CLIENT_PORT: u16 = 2379;

/// Where a PD may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    fn new(host: String) -> Self {
        Self { host, port: CLIENT_PORT }
    }

    /// Of a URL, or of `HOST:PORT`, or of a host alone.
    fn parse(url: &str) -> Option<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, CLIENT_PORT),
        };
        (!host.is_empty()).then(|| Self { host: host.to_owned(), port })
    }
}

impl Cluster {
    /// Where PD of this very cluster may answer: its Service, and each member but the one that asks.
    pub fn own_endpoints(&self, claims: &[Claim], asker: &Asker) -> Vec<Endpoint> {
        let Self { name, namespace, .. } = self;
        let ordinals: BTreeSet<Ordinal> =
            self.members_wanted.iter().chain(claims.iter().filter_map(|claim| claim.ordinal)).collect();
        let others = ordinals.into_iter().filter(|ordinal| *ordinal != asker.ordinal);
        let domain = asker.host.split_once(".svc").map_or("", |(_, domain)| domain);
        let member = |ordinal: Ordinal| format!("{name}-pd-{ordinal}.{name}-pd-peer.{namespace}.svc{domain}");
        std::iter::once(format!("{name}-pd.{namespace}.svc{domain}")).chain(others.map(member)).map(Endpoint::new).collect()
    }

    /// Where a PD may answer that this cluster joins.
    pub fn other_endpoints(&self) -> Vec<Endpoint> {
        let elsewhere = self.elsewhere.iter().map(|it| {
            let domain = if it.domain.is_empty() { String::new() } else { format!(".{}", it.domain) };
            Endpoint::new(format!("{}-pd.{}.svc{domain}", it.name, it.namespace))
        });
        let named = self.addresses.iter().chain(self.peers.iter().map(|peer| &peer.client_url));
        elsewhere.chain(named.filter_map(|url| Endpoint::parse(url))).collect()
    }
}

/// All URLs by which PD may be reached: the one that somebody knows, and those of healthy members elsewhere, in the same form.
pub fn verify(url: &str, cluster: &Cluster) -> String {
    let url = url.trim_end();
    let with_scheme = url.contains("://");
    let peers = cluster.peers.iter().filter(|peer| peer.healthy).filter_map(|peer| {
        if with_scheme {
            return Some(peer.client_url.clone());
        }
        Endpoint::parse(&peer.client_url).map(|it| format!("{}:{}", it.host, it.port))
    });
    std::iter::once(url.to_owned()).chain(peers).collect::<Vec<_>>().join(",")
}
