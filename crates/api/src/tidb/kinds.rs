//! The components of a `TidbCluster`.

use serde::Serialize;

/// A component that runs as a `StatefulSet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
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

impl Component {
    /// Every component, in the order in which they are spoken of.
    pub const ALL: [Self; 7] = [Self::Pd, Self::Tikv, Self::Tidb, Self::Tiflash, Self::Ticdc, Self::Tiproxy, Self::Pump];

    /// As in labels, names of objects and fields of the spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pd => "pd",
            Self::Tikv => "tikv",
            Self::Tidb => "tidb",
            Self::Tiflash => "tiflash",
            Self::Ticdc => "ticdc",
            Self::Tiproxy => "tiproxy",
            Self::Pump => "pump",
        }
    }

    /// As people write it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Pd => "PD",
            Self::Tikv => "TiKV",
            Self::Tidb => "TiDB",
            Self::Tiflash => "TiFlash",
            Self::Ticdc => "TiCDC",
            Self::Tiproxy => "TiProxy",
            Self::Pump => "Pump",
        }
    }
}

impl std::fmt::Display for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
