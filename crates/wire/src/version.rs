//! QUIC versions.

use std::fmt;

/// A QUIC version number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// Version 1 (RFC 9000).
    pub const V1: Self = Self(1);
    /// Version 2 (RFC 9369).
    pub const V2: Self = Self(0x6b33_43cf);
    /// The number in Version Negotiation packets (RFC 8999 §6).
    pub const NEGOTIATION: Self = Self(0);

    /// Whether the number is reserved to exercise version negotiation (RFC 9000 §15).
    pub fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V1 => f.write_str("v1"),
            Self::V2 => f.write_str("v2"),
            Self(number) => write!(f, "{number:#010x}"),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What was agreed about the multipath extension, as far as it changes how frames are encoded.
///
/// Frames in memory always carry the path. Only the codec asks for the dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// ACK, NEW_CONNECTION_ID and RETIRE_CONNECTION_ID, which mean path 0 (RFC 9000).
    #[default]
    SinglePath,
    /// PATH_ACK, PATH_NEW_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID (RFC 10069).
    Multipath,
}
