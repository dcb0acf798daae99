//! What can go wrong, by operation.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use fulmar_proto::{ConnectionError, VarInt};
use thiserror::Error;

/// Why dialling failed before anything was sent.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The endpoint has no default client configuration, and none was given.
    #[error("no client configuration was given")]
    NoClientConfig,
    /// No datagram from this endpoint's socket can reach the address: its port is zero, its family is another, or
    /// there is no such socket.
    #[error("{0} cannot be reached from this endpoint's socket")]
    UnreachableAddress(SocketAddr),
    /// The server name or the TLS configuration cannot be used.
    #[error("{0}")]
    Config(#[from] fulmar_proto::ConnectError),
}

/// Why no connection came about over any of several pairs of addresses.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectOverError {
    /// No pair of addresses was given.
    #[error("no address was given")]
    NoAddress,
    /// Nothing could be sent.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The attempt failed on the network.
    #[error(transparent)]
    Lost(#[from] ConnectionError),
}

/// Why an incoming connection could not be accepted.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The endpoint is no server any more, or its TLS configuration cannot be used.
    #[error("{0}")]
    Config(#[from] fulmar_proto::AcceptError),
    /// The connection was lost while it was being established. Only awaiting an [`Incoming`](crate::Incoming) reports this.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// Why reading from a stream failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The peer abandoned the stream with this code (RESET_STREAM, RFC 9000 §19.4). Bytes that were not read are gone.
    #[error("stream reset by the peer with code {0}")]
    Reset(VarInt),
    /// The connection is over and everything that arrived before was read.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped by this end.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why [`RecvStream::read_exact`](crate::RecvStream::read_exact) failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadExactError {
    /// The stream ended after this many bytes. They can still be read.
    #[error("the stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// Reading failed. What was received before can still be read.
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// Why [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream is longer than the limit. What was received so far can still be read.
    #[error("the stream is longer than {0} bytes")]
    TooLong(usize),
    /// Reading failed. What was received before can still be read.
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// Why writing to a stream failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// The peer wants no more of this stream and gave this code (STOP_SENDING, RFC 9000 §19.5).
    #[error("sending stopped by the peer with code {0}")]
    Stopped(VarInt),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset by this end.
    #[error("the stream is closed")]
    ClosedStream,
}

/// Why waiting for the end of a sent stream failed.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoppedError {
    /// This end has reset the stream itself, so that it was neither delivered nor stopped.
    #[error("the stream was reset by this end")]
    Reset,
    /// The connection ended first: the peer may or may not have received everything.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The stream was already finished, reset, stopped, or read to its end.
#[derive(Debug, Clone, Copy, Error, PartialEq, Eq)]
#[error("the stream is closed")]
pub struct ClosedStream;

/// Why an unreliable datagram was not sent.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendDatagramError {
    /// The peer takes no datagrams (RFC 9221 §3).
    #[error("the peer does not support datagrams")]
    UnsupportedByPeer,
    /// The datagram is larger than [`Connection::max_datagram_size`](crate::Connection::max_datagram_size), which depends on
    /// the path and on the peer's limit.
    #[error("the datagram is too large for this connection")]
    TooLarge,
    /// `TransportConfig::datagram_send_buffer` is full of datagrams of larger priorities; the datagram is given back.
    #[error("too many datagrams of larger priorities wait to be sent")]
    QueueFull(Bytes),
    /// The connection is over.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(lost) => lost.io_kind(),
            ReadError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl From<ReadExactError> for io::Error {
    fn from(error: ReadExactError) -> Self {
        match error {
            ReadExactError::FinishedEarly(_) => Self::new(io::ErrorKind::UnexpectedEof, error),
            ReadExactError::Read(error) => error.into(),
        }
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::TooLong(_) => Self::new(io::ErrorKind::InvalidData, error),
            ReadToEndError::Read(error) => error.into(),
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::ConnectionLost(lost) => lost.io_kind(),
            WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

impl From<StoppedError> for io::Error {
    fn from(error: StoppedError) -> Self {
        let kind = match &error {
            StoppedError::Reset => io::ErrorKind::NotConnected,
            StoppedError::ConnectionLost(lost) => lost.io_kind(),
        };
        Self::new(kind, error)
    }
}

impl From<SendDatagramError> for io::Error {
    fn from(error: SendDatagramError) -> Self {
        let kind = match &error {
            SendDatagramError::UnsupportedByPeer => io::ErrorKind::Unsupported,
            SendDatagramError::TooLarge => io::ErrorKind::InvalidInput,
            SendDatagramError::QueueFull(_) => io::ErrorKind::WouldBlock,
            SendDatagramError::ConnectionLost(lost) => lost.io_kind(),
        };
        Self::new(kind, error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::EndpointClosed => io::ErrorKind::NotConnected,
            ConnectError::UnreachableAddress(_) => io::ErrorKind::AddrNotAvailable,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

impl From<AcceptError> for io::Error {
    fn from(error: AcceptError) -> Self {
        let kind = match &error {
            AcceptError::ConnectionLost(lost) => lost.io_kind(),
            _ => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}
