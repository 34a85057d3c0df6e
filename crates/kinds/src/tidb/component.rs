//! The components of a TiDB cluster: their names, and where each tells about itself.

use strum::{EnumIter, IntoStaticStr};

/// A component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Component {
    /// The placement driver: knows where every region is, and gives out time.
    Pd,
    /// Stores with rows.
    TiKv,
    /// Stores with columns.
    TiFlash,
    /// Gathers binary logs.
    Pump,
    /// Speaks SQL.
    TiDb,
    /// Tells other systems of changes.
    TiCdc,
    /// Balances connections.
    TiProxy,
}

impl Component {
    /// The name in labels, and at the end of the names of objects.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The name as people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Pd => "PD",
            Self::TiKv => "TiKV",
            Self::TiFlash => "TiFlash",
            Self::Pump => "Pump",
            Self::TiDb => "TiDB",
            Self::TiCdc => "TiCDC",
            Self::TiProxy => "TiProxy",
        }
    }

    /// The port on which a server of it answers HTTP requests about itself.
    pub fn status_port(self) -> u16 {
        match self {
            Self::Pd => 2379,
            Self::TiKv => 20180,
            Self::TiFlash => 20292,
            Self::Pump => 8250,
            Self::TiDb => 10080,
            Self::TiCdc => 8301,
            Self::TiProxy => 3080,
        }
    }

    /// Whether its members are stores of PD.
    pub fn has_stores(self) -> bool {
        matches!(self, Self::TiKv | Self::TiFlash)
    }
}

impl std::fmt::Display for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.title())
    }
}
