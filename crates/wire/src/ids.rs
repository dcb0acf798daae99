//! Names: connection IDs, reset tokens, streams and paths.

use std::fmt;
use std::ops::Not;

use crate::VarInt;
use crate::varint::VarIntTooLarge;

/// The longest connection ID of QUIC versions 1 and 2, in bytes (RFC 9000 §17.2).
pub const CID_LEN_MAX: usize = 20;

/// A connection ID of up to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    len: u8,
    bytes: [u8; CID_LEN_MAX],
}

impl ConnectionId {
    /// The connection ID without bytes.
    pub const EMPTY: Self = Self { len: 0, bytes: [0; CID_LEN_MAX] };

    /// A connection ID with these bytes, if there are at most 20.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut cid = Self { len: u8::try_from(bytes.len()).ok()?, bytes: [0; CID_LEN_MAX] };
        cid.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(cid)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cid:{self}")
    }
}

/// A stateless reset token (RFC 9000 §10.3). Comparison takes the same time wherever two tokens differ.
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct ResetToken(pub [u8; 16]);

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(other.0).fold(0, |acc, (a, b)| acc | (a ^ b));
        std::hint::black_box(difference) == 0
    }
}

impl std::hash::Hash for ResetToken {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for ResetToken {
    /// Does not print the token: whoever knows it can end the connection.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that started the connection.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// Whether this is the client.
    pub fn is_client(self) -> bool {
        self == Self::Client
    }

    /// Whether this is the server.
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

impl Not for Side {
    type Output = Self;
    /// The other end.
    fn not(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Whether data flows on a stream in both directions or in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// In both directions.
    Bi,
    /// From the initiator to the other end.
    Uni,
}

/// A stream's name (RFC 9000 §2.1): who opened it, its direction, and a count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(VarInt);

impl StreamId {
    /// The largest index of a stream: 2^60 streams of each type.
    pub const INDEX_MAX: u64 = (1 << 60) - 1;

    /// The `index`-th stream that `initiator` opens in this direction, counted from 0.
    ///
    /// # Panics
    /// Panics if `index` is over [`StreamId::INDEX_MAX`].
    pub fn new(initiator: Side, dir: Dir, index: u64) -> Self {
        assert!(index <= Self::INDEX_MAX, "there are at most 2^60 streams of a type");
        let initiator = u64::from(initiator.is_server());
        let dir = u64::from(dir == Dir::Uni);
        Self(VarInt::saturating(index << 2 | dir << 1 | initiator))
    }

    /// The end that opens the stream.
    pub fn initiator(self) -> Side {
        if self.as_u64() & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// The directions in which data flows.
    pub fn dir(self) -> Dir {
        if self.as_u64() & 2 == 0 { Dir::Bi } else { Dir::Uni }
    }

    /// The count of the stream among those of its initiator and direction.
    pub fn index(self) -> u64 {
        self.as_u64() >> 2
    }

    /// The number on the wire.
    pub fn as_u64(self) -> u64 {
        self.0.get()
    }

    /// The number on the wire.
    pub fn as_varint(self) -> VarInt {
        self.0
    }
}

impl From<VarInt> for StreamId {
    fn from(value: VarInt) -> Self {
        Self(value)
    }
}

impl TryFrom<u64> for StreamId {
    type Error = VarIntTooLarge;
    fn try_from(value: u64) -> Result<Self, VarIntTooLarge> {
        VarInt::try_from(value).map(Self)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_u64().fmt(f)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {} ({:?} {:?} {})", self.as_u64(), self.initiator(), self.dir(), self.index())
    }
}

/// A path's name in the multipath extension (RFC 10069). Without it there is path 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId(pub u32);

impl PathId {
    /// The path of the handshake.
    pub const ZERO: Self = Self(0);
}
