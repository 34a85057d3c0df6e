//! Where each component of a TiDB cluster tells about itself, and which of them PD knows as stores.

pub use windlass_api::tidb::Component;

/// The port on which a server of a component answers HTTP requests about itself.
pub fn status_port(component: Component) -> u16 {
    match component {
        Component::Pd => 2379,
        Component::Tikv => 20180,
        Component::Tiflash => 20292,
        Component::Pump => 8250,
        Component::Tidb => 10080,
        Component::Ticdc => 8301,
        Component::Tiproxy => 3080,
    }
}

/// Whether the members of a component are stores of PD.
pub(super) fn has_stores(component: Component) -> bool {
    matches!(component, Component::Tikv | Component::Tiflash)
}
