//! The kinds of packets that carry frames.

/// The kinds of packets that carry frames (RFC 9000 §17).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketKind {
    /// The first packets of the handshake.
    Initial,
    /// Early data of a client that resumes.
    ZeroRtt,
    /// The rest of the handshake.
    Handshake,
    /// Everything after it.
    OneRtt,
}
