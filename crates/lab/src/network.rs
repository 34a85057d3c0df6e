//! The lab's network: a namespace of its own, a pair of interfaces to the host, and no way out.
//!
//! The namespace has no default route, so nothing that runs in the lab reaches another machine.

use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::layout::Layout;
use crate::{cache, command};

/// The range for tests between devices (RFC 2544), as the first address and the count of /24 in it.
const RANGE: (Ipv4Addr, u32) = (Ipv4Addr::new(198, 18, 0, 0), 512);
/// The addresses of pods; each lab has a namespace of its own, so all use the same.
pub(crate) const POD_RANGE: &str = "10.244.0.0/16";
/// The addresses of Services.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";
/// The address of the API server's own Service: the first of the range.
pub(crate) const KUBERNETES_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

/// The two ends of the link between host and lab.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) host: Ipv4Addr,
    pub(crate) node: Ipv4Addr,
}

impl Link {
    fn of_subnet(index: u32) -> Self {
        let base = RANGE.0.to_bits() + index * 256;
        Self { host: Ipv4Addr::from_bits(base + 1), node: Ipv4Addr::from_bits(base + 2) }
    }
}

/// Creates namespace, interfaces and routes.
pub(crate) async fn create(layout: &Layout) -> Result<Link> {
    // Two labs that start at once must not choose the same subnet.
    let _lock = cache::lock(cache::root()?.join("labs").join("network.lock"), || ()).await?;
    let link = choose(layout).await?;
    let name = layout.interface();
    let Link { host, node } = link;
    let outside = format!(
        "netns add {name}
         link add {name} type veth peer name node0 netns {name}
         address add {host}/24 dev {name}
         link set {name} up"
    );
    // A bridge without ports stands in for a dummy device, which not every kernel has: processes on
    // the node need a route to the Services before the packet filter rewrites their packets.
    let inside = format!(
        "link set lo up
         address add {node}/24 dev node0
         link set node0 up
         link add services type bridge
         link set services up
         route add {SERVICE_RANGE} dev services src {node}
         route add unreachable default metric 4278198272"
    );
    for line in outside.lines() {
        ip(&[], line).await?;
    }
    for line in inside.lines() {
        ip(&["-n", &name], line).await?;
    }
    let namespace = format!("--net={}", layout.network_namespace().display());
    command::run("nsenter", &[namespace.as_str(), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])
        .await
        .context("cannot switch forwarding on in the lab's namespace")?;
    Ok(link)
}

/// Removes what [`create`] made; what is gone already is fine.
pub(crate) async fn remove(layout: &Layout) -> Result<()> {
    let name = layout.interface();
    if interface_exists(&name) {
        ip(&[], &format!("link delete {name}")).await?;
    }
    if layout.network_namespace().exists() {
        ip(&[], &format!("netns delete {name}")).await?;
    }
    Ok(())
}

pub(crate) fn interface_exists(name: &str) -> bool {
    Path::new("/sys/class/net").join(name).exists()
}

async fn ip(options: &[&str], line: &str) -> Result<String> {
    let words: Vec<&str> = options.iter().copied().chain(line.split_whitespace()).collect();
    command::run("ip", &words).await
}

/// The first free subnet, beginning at a place that depends on the name, so that a lab mostly gets
/// the same one again.
async fn choose(layout: &Layout) -> Result<Link> {
    #[derive(Deserialize)]
    struct Interface {
        #[serde(default)]
        addr_info: Vec<Address>,
    }
    #[derive(Deserialize)]
    struct Address {
        local: Option<Ipv4Addr>,
    }
    let output = command::run("ip", &["-json", "-4", "address", "show"]).await?;
    let interfaces: Vec<Interface> = serde_json::from_str(&output).context("cannot read the machine's addresses from `ip`")?;
    let taken: Vec<Ipv4Addr> =
        interfaces.into_iter().flat_map(|interface| interface.addr_info).filter_map(|address| address.local).collect();
    first_free(&layout.name, &taken).context("every subnet of 198.18.0.0/15 is in use: bring down a lab that is not needed")
}

fn first_free(name: &str, taken: &[Ipv4Addr]) -> Option<Link> {
    let start = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    (0..RANGE.1)
        .map(|step| Link::of_subnet(start.wrapping_add(step) % RANGE.1))
        .find(|link| !taken.iter().any(|address| address.to_bits() / 256 == link.node.to_bits() / 256))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_subnet_is_passed_over() {
        let first = first_free("windlass", &[]).unwrap();
        let second = first_free("windlass", &[first.host]).unwrap();
        assert_ne!(first.host.to_bits() / 256, second.host.to_bits() / 256);
        assert_eq!(second.node.octets()[3], 2);
    }

    #[test]
    fn subnets_stay_inside_the_range_for_tests() {
        for name in ["a", "windlass", "ltest", "zzzzzzzzzzz"] {
            let link = first_free(name, &[]).unwrap();
            assert!(matches!(link.host.octets(), [198, 18 | 19, _, 1]), "{link:?}");
        }
    }

    #[test]
    fn no_subnet_is_left_when_all_are_taken() {
        let taken: Vec<Ipv4Addr> = (0..RANGE.1).map(|index| Link::of_subnet(index).host).collect();
        assert!(first_free("windlass", &taken).is_none());
    }
}
