//! The values that events have: states, reasons, texts.

/// What is known about ECN on a network path (RFC 9000 §13.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnState {
    /// The first packets are marked.
    Testing,
    /// The answers to the first packets are awaited.
    Unknown,
    /// The marks arrive.
    Capable,
    /// Marks are not kept, or not wanted.
    Failed,
}

/// Why no more datagrams are sent for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockedReason {
    /// There is nothing to send.
    NothingToSend,
    /// The congestion window is full.
    Window,
    /// The pacer has nothing to give yet.
    Pacer,
    /// The peer's address is not validated, and as much was sent there as may be (RFC 9000 §8.1).
    AmplificationLimit,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first packet was made, or has come.
    Attempted,
    /// The handshake is complete.
    Established,
    /// The handshake is confirmed.
    Confirmed,
    /// This end closes.
    Closing,
    /// The peer has closed, or has forgotten the connection.
    Draining,
    /// The connection has ended without a word: nothing was heard for too long.
    TimedOut,
    /// The connection is over.
    Drained,
}

/// Why a packet, or what is left of a datagram, was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDropReason {
    /// It is no packet of QUIC.
    Unreadable,
    /// It is not for this connection, or not for its present state: another version or source, an address that is not
    /// known, a second Retry.
    Unwanted,
    /// It came before.
    Duplicate,
    /// Its protection is broken.
    Unauthenticated,
    /// Its keys are gone, or are still to come and there is no room to wait.
    NoKeys,
}

/// A packet without a number, which is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarePacket {
    /// A Retry (RFC 9000 §17.2.5).
    Retry,
    /// A Version Negotiation packet (RFC 9000 §17.2.1).
    VersionNegotiation,
    /// A stateless reset (RFC 9000 §10.3).
    StatelessReset,
}

/// The state of a new network path (RFC 9000 §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationState {
    /// It is asked whether it carries packets.
    ProbingStarted,
    /// It does not answer.
    ProbingAbandoned,
    /// It does answer.
    ProbingSuccessful,
    /// The connection uses it, before it has answered.
    MigrationStarted,
    /// It has not answered; the connection has returned to where it was.
    MigrationAbandoned,
    /// The connection uses it, and it has answered.
    MigrationComplete,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseCause {
    /// An application closed it.
    Application,
    /// A transport closed it: with an error, or with NO_ERROR.
    Transport,
    /// Nothing was heard for the idle timeout.
    IdleTimeout,
    /// The handshake took too long.
    HandshakeTimeout,
    /// The peer has forgotten it, and has said so.
    StatelessReset,
    /// The ends have no version in common.
    VersionMismatch,
    /// The network says that nobody listens at the server's address.
    Refused,
    /// The operating system of this end sends nothing to the server's address.
    Unsent,
    /// The network interface of this end carries no datagrams of the least size that QUIC works with.
    DatagramsTooLarge,
}

/// What a [`LogText`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// The application protocol that was negotiated.
    Alpn,
    /// The reason that comes with a [`LogEvent::Closed`](super::LogEvent::Closed), which follows.
    Reason,
}

/// The bytes of a text that fit an entry.
pub(super) const TEXT_PART_MAX: usize = 20;

/// The longest text that is logged, in bytes; the rest is cut. So a peer that closes with many words pushes few entries out of
/// the log.
pub const TEXT_MAX: usize = 5 * TEXT_PART_MAX;

/// A text, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogText {
    /// What it is.
    pub kind: TextKind,
    /// Whether the next entry of this kind continues it.
    pub goes_on: bool,
    len: u8,
    bytes: [u8; TEXT_PART_MAX],
}

impl LogText {
    /// The parts of a text, at least one. It need not be UTF-8.
    pub fn parts(kind: TextKind, text: &[u8]) -> impl Iterator<Item = Self> {
        let text = &text[..text.len().min(TEXT_MAX)];
        let count = text.len().div_ceil(TEXT_PART_MAX).max(1);
        (0..count).map(move |place| {
            let part = &text[place * TEXT_PART_MAX..text.len().min((place + 1) * TEXT_PART_MAX)];
            let mut bytes = [0; TEXT_PART_MAX];
            bytes[..part.len()].copy_from_slice(part);
            Self { kind, goes_on: place + 1 < count, len: part.len() as u8, bytes }
        })
    }

    /// The bytes of this part.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(TEXT_PART_MAX)]
    }
}
