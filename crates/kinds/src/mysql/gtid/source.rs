//! Where transactions come from: the UUID of a server, and the tag that a transaction may have.

use std::fmt;
use std::str::FromStr;

use super::parse::{self, InvalidGtidSet};

/// The `server_uuid` of a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u128);

impl Uuid {
    /// From its 128 bits.
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cut from the left: 8, 4, 4, 4 and 12 digits.
        let part = |right: u32, digits: u32| (self.0 >> (4 * right)) & ((1 << (4 * digits)) - 1);
        write!(f, "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", part(24, 8), part(20, 4), part(16, 4), part(12, 4), part(0, 12))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = InvalidGtidSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::uuid(text)
    }
}

/// The tag of a transaction (since 8.3), in lower case. Made by parsing only, so that it is valid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(String);

impl Tag {
    /// The longest.
    pub const LONGEST: usize = 32;

    /// Takes a text of which the reader has seen that it is a tag.
    pub(super) fn of(text: &str) -> Self {
        Self(text.to_ascii_lowercase())
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tag {
    type Err = InvalidGtidSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse::tag(text)
    }
}

/// Whose numbers are counted: transactions of one server without a tag, or with the same tag.
///
/// Their order is the one in which the server writes them: what has no tag comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The server.
    pub uuid: Uuid,
    /// The tag, if there is one.
    pub tag: Option<Tag>,
}

impl From<Uuid> for Source {
    fn from(uuid: Uuid) -> Self {
        Self { uuid, tag: None }
    }
}
