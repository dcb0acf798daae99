//! What is to be done with a datagram.

use fulmar_wire::PathId;

use super::Incoming;
use crate::datagram::{Datagram, Transmit};

/// The name of a connection within its endpoint. It is reused after the connection has drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub usize);

/// What the connection ID that a datagram was sent to stands for. A connection gives each of its paths IDs of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Destination {
    /// The connection.
    pub connection: ConnectionHandle,
    /// The path of the connection. It is path 0 where there are no connection IDs.
    pub path: PathId,
}

/// What a datagram is at a first look.
#[derive(Debug)]
pub enum Recognized {
    /// It names this connection, and this path of it.
    Connection(Destination, Datagram),
    /// It came for a connection that was left to the endpoint, and needs no answer: it was dropped.
    Closed,
    /// Anything else.
    Unknown(Datagram),
}

/// What is to be done with a datagram.
#[derive(Debug)]
pub enum Route {
    /// It belongs to this connection: give it to [`Connection::handle_datagram`](crate::Connection::handle_datagram).
    Connection(ConnectionHandle, Datagram),
    /// A peer wants to connect: accept, refuse or ignore it.
    Incoming(Incoming),
    /// Send this answer, whose bytes are in the batch.
    Reply(Transmit),
    /// Nothing.
    Dropped(DropReason),
}

/// Why a datagram was dropped. Dropping is no error: anyone can send anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    /// It is not a QUIC packet.
    Malformed,
    /// It is long enough neither to be what it says nor to be answered.
    TooShort,
    /// It belongs to no connection and cannot start one.
    UnknownConnection,
    /// It belongs to a connection that was closed, and is not to be answered now (RFC 9000 §10.2).
    ConnectionClosed,
    /// It starts a connection, but this endpoint is no server.
    NotAServer,
    /// It starts a connection, but its protection is broken.
    Unauthenticated,
    /// Too many attempts, or too many bytes of one attempt, are waiting.
    Overloaded,
    /// It belongs to an attempt that is waiting and was kept for it.
    Buffered,
}
