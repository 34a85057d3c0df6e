//! The components of a TiDB cluster, and where each tells about itself.

/// A component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Component {
    /// The placement driver: metadata, time, and who holds what.
    Pd,
    /// The rows.
    Tikv,
    /// Speaks SQL.
    Tidb,
    /// The columns.
    Tiflash,
    /// Tells others of changes.
    Ticdc,
    /// Stands before TiDB and moves connections.
    Tiproxy,
    /// Writes binlogs.
    Pump,
}

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
