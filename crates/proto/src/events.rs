//! What the core tells the application and the endpoint.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{CloseCode, ConnectionId, FrameType, PathId, ResetToken, TransportErrorCode, VarInt};
use thiserror::Error;

use crate::crypto::TlsError;
use crate::datagram::FourTuple;
use crate::{StreamEvent, TransportError};

/// Something that the application may want to know.
#[derive(Debug)]
pub enum Event {
    /// The TLS handshake is complete: data can be sent and received.
    Connected,
    /// Both sides know that the handshake is complete (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// The connection is over. This is the last event.
    ConnectionLost {
        /// Why.
        reason: ConnectionError,
    },
    /// Something happened to a stream.
    Stream(StreamEvent),
    /// An unreliable datagram can be read.
    DatagramReceived,
    /// There is room again for outgoing unreliable datagrams.
    DatagramsUnblocked,
    /// Unreliable datagrams were dropped before they were sent: see
    /// [`Connection::dropped_datagram`](crate::Connection::dropped_datagram). Comes once until that has told of all.
    DatagramsDropped,
    /// Something happened to the addresses of the connection.
    Path(PathEvent),
}

/// What an end wants of a path (RFC 10069 §3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathUse {
    /// It is used like others.
    #[default]
    Available,
    /// It is used where no other works.
    Backup,
}

impl PathUse {
    pub(crate) fn new(available: bool) -> Self {
        if available { Self::Available } else { Self::Backup }
    }
}

/// Something that happened to the addresses of a connection (RFC 9000 §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEvent {
    /// Packets take another way from now on, because one of the ends has moved.
    Moved {
        /// The path that has moved.
        path: PathId,
        /// The addresses until now.
        from: FourTuple,
        /// The addresses from now on.
        to: FourTuple,
    },
    /// Another path is open, by this end or by the peer (RFC 10069). It carries data once it is validated.
    Opened {
        /// The path.
        path: PathId,
        /// Its addresses.
        addrs: FourTuple,
    },
    /// A path is gone. Its ID never returns.
    Abandoned {
        /// The path.
        path: PathId,
        /// Why: a transport error code.
        code: VarInt,
        /// Whether the peer has abandoned it.
        by_peer: bool,
    },
    /// The peer wants a path to be used otherwise than before.
    Status {
        /// The path.
        path: PathId,
        /// What the peer wants.
        wanted: PathUse,
    },
    /// The peer was seen to receive there.
    Validated {
        /// The path that the addresses belong to.
        path: PathId,
        /// The addresses.
        addrs: FourTuple,
    },
    /// Nothing came back from there in time, or the question was given up: more addresses were tried than a path keeps, or the peer has
    /// taken back the connection ID for it.
    Failed {
        /// The path that the addresses belong to.
        path: PathId,
        /// The addresses.
        addrs: FourTuple,
    },
    /// The peer tells where it sees this end (draft-ietf-quic-address-discovery).
    Observed {
        /// The path that the addresses belong to.
        path: PathId,
        /// The addresses as this end knows them.
        addrs: FourTuple,
        /// This end's address as the peer sees it.
        address: SocketAddr,
    },
}

/// Why a connection ended.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer supports none of our QUIC versions.
    #[error("the peer speaks no QUIC version that this end speaks")]
    VersionMismatch,
    /// The peer broke the protocol, and this end closed the connection.
    #[error("{0}")]
    Transport(TransportError),
    /// The TLS handshake failed on this end.
    #[error("{0}")]
    Tls(TlsError),
    /// The peer's transport closed the connection.
    #[error("closed by the peer: {}", describe_close(*code, *frame, reason))]
    ConnectionClosed {
        /// The peer's error code.
        code: TransportErrorCode,
        /// The frame that the peer objected to.
        frame: Option<FrameType>,
        /// The peer's words.
        reason: Bytes,
    },
    /// The peer's application closed the connection.
    #[error("closed by the peer's application with code {code}{}", words(reason))]
    ApplicationClosed {
        /// The application's code.
        code: VarInt,
        /// The application's words.
        reason: Bytes,
    },
    /// The peer has lost the connection's state (RFC 9000 §10.3).
    #[error("stateless reset by the peer, which no longer knows the connection")]
    Reset,
    /// Nothing was heard for the idle timeout (RFC 9000 §10.1).
    #[error("idle timeout: nothing was heard from the peer")]
    TimedOut,
    /// The handshake did not complete in time.
    #[error("handshake timeout: no usable answer from the peer")]
    HandshakeTimedOut,
    /// Nobody listens at the server's address, says the network, before anything was heard of the server. That is a hint, which
    /// nothing proves: see [`Connection::on_refused`](crate::Connection::on_refused).
    #[error("connection refused: nobody listens at the address")]
    Refused,
    /// The operating system of this end has refused to send all of it, for this reason, and nothing was heard of the server: see
    /// [`Connection::on_unsent`](crate::Connection::on_unsent).
    #[error("nothing could be sent: {0}")]
    Unsent(io::ErrorKind),
    /// The interface by which this end would send carries no datagrams of 1200 bytes, which every path of QUIC has to (RFC 9000 §14), and
    /// nothing was heard of the server: see [`Connection::on_too_large`](crate::Connection::on_too_large).
    #[error("datagrams of 1200 bytes, which QUIC needs, are too large for the network interface")]
    DatagramsTooLarge,
    /// The application of this end closed the connection.
    #[error("closed by this end")]
    LocallyClosed,
}

impl ConnectionError {
    /// What comes closest among the kinds of `std::io`.
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::TimedOut | Self::HandshakeTimedOut => io::ErrorKind::TimedOut,
            Self::Reset => io::ErrorKind::ConnectionReset,
            Self::Refused => io::ErrorKind::ConnectionRefused,
            Self::Unsent(reason) => *reason,
            Self::LocallyClosed => io::ErrorKind::NotConnected,
            Self::VersionMismatch
            | Self::Transport(_)
            | Self::Tls(_)
            | Self::DatagramsTooLarge
            | Self::ConnectionClosed { .. }
            | Self::ApplicationClosed { .. } => io::ErrorKind::ConnectionAborted,
        }
    }

    /// The error that a CONNECTION_CLOSE from the peer means.
    pub(crate) fn from_peer(code: CloseCode, reason: Bytes) -> Self {
        match code {
            CloseCode::Transport { code, frame } => {
                Self::ConnectionClosed { code, frame: (frame != FrameType::PADDING).then_some(frame), reason }
            }
            CloseCode::Application(code) => Self::ApplicationClosed { code, reason },
        }
    }
}

/// For applications that use the traits of `std::io`.
impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        Self::new(error.io_kind(), error)
    }
}

fn describe_close(code: TransportErrorCode, frame: Option<FrameType>, reason: &[u8]) -> String {
    let frame = frame.map(|f| format!(" in {f}")).unwrap_or_default();
    format!("{code}{frame}{}", words(reason))
}

/// The peer's words, printable, or nothing.
fn words(reason: &[u8]) -> String {
    if reason.is_empty() {
        return String::new();
    }
    let text: String =
        String::from_utf8_lossy(reason).chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    format!(" ({text})")
}

/// What a connection tells its endpoint, so that datagrams find the connection.
#[derive(Debug)]
pub struct EndpointEvent(pub(crate) EndpointEventInner);

impl EndpointEvent {
    /// Whether the connection is over and can be dropped. Another one gets its handle only when nothing can come for it any more.
    pub fn is_drained(&self) -> bool {
        matches!(self.0, EndpointEventInner::Drained | EndpointEventInner::Left { .. })
    }
}

#[derive(Debug)]
pub(crate) enum EndpointEventInner {
    /// A connection ID was issued for this path: route it here.
    CidIssued(PathId, ConnectionId),
    /// A connection ID was retired: forget it.
    CidRetired(ConnectionId),
    /// A datagram that ends with this token is a stateless reset of this connection.
    ResetTokenLearned(ResetToken),
    /// The token's connection ID was retired.
    ResetTokenForgotten(ResetToken),
    /// The peer has proven its address: the connection is half open no more.
    AddressValidated,
    /// The connection is over.
    Drained,
    /// The same, but datagrams for it may still come until then. If this end has closed they are answered with this one.
    Left { until: Instant, packet: Option<Box<[u8]>> },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_connection_is_an_input_output_error_that_says_why() {
        let error = io::Error::from(ConnectionError::TimedOut);
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(error.to_string(), ConnectionError::TimedOut.to_string());
        let closed = ConnectionError::ApplicationClosed { code: VarInt::from_u32(7), reason: Bytes::new() };
        assert_eq!(io::Error::from(closed).kind(), io::ErrorKind::ConnectionAborted);
    }
}
