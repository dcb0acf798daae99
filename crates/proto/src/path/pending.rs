//! Which writers may have something to send on a path.

use crate::packed::packed;

/// A set of bits, one for each kind of writer: raised when a component may have got something to say, cleared when it
/// was asked and had nothing. A bit too many costs a question; one too few would leave a frame unsent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pending(u16);

packed!(Pending);

impl Pending {
    pub(crate) const NONE: Self = Self(0);
    /// Connection IDs of this end to be announced.
    pub(crate) const LOCAL_CIDS: Self = Self(1);
    /// Challenges and answers on the tuple in use.
    pub(crate) const TUPLE: Self = Self(1 << 1);
    /// HANDSHAKE_DONE, and CRYPTO frames in 1-RTT packets.
    pub(crate) const HANDSHAKE: Self = Self(1 << 2);
    /// Tokens for later connections.
    pub(crate) const TOKENS: Self = Self(1 << 3);
    /// Connection IDs of the peer to be retired.
    pub(crate) const REMOTE_CIDS: Self = Self(1 << 4);
    /// The address that the peer is seen at.
    pub(crate) const ADDRESS: Self = Self(1 << 5);
    pub(crate) const DATAGRAMS: Self = Self(1 << 6);
    pub(crate) const STREAMS: Self = Self(1 << 7);
    /// Data of the application, of either kind.
    pub(crate) const DATA: Self = Self(Self::DATAGRAMS.0 | Self::STREAMS.0);
    /// Repair symbols of forward erasure correction, and reports of what it has recovered.
    pub(crate) const FEC: Self = Self(1 << 8);
    /// What is said of paths, their IDs and their connection IDs.
    pub(crate) const MULTIPATH: Self = Self(1 << 9);
    /// After what happens rarely, everybody is asked.
    pub(crate) const ALL: Self = Self((1 << 10) - 1);
    /// What belongs to a path itself.
    pub(crate) const OWN: Self = Self(Self::LOCAL_CIDS.0 | Self::TUPLE.0 | Self::REMOTE_CIDS.0);
    /// All but what carries data.
    pub(crate) const CONTROL: Self = Self(Self::ALL.0 & !(Self::DATA.0 | Self::FEC.0));

    /// Whether one of `bits` is raised.
    #[inline]
    pub(crate) fn has(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    /// The bits of both.
    #[inline]
    pub(crate) fn and(self, bits: Self) -> Self {
        Self(self.0 & bits.0)
    }

    /// Those without `bits`.
    #[inline]
    pub(crate) fn without(self, bits: Self) -> Self {
        Self(self.0 & !bits.0)
    }

    #[inline]
    pub(crate) fn with(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }

    #[inline]
    pub(crate) fn raise(&mut self, bits: Self) {
        self.0 |= bits.0;
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}
