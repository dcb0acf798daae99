//! What has come.

use bytes::Bytes;
use fulmar_qpack::Excess;
use http::HeaderMap;

use crate::priority::Priority;
use crate::settings::Settings;

/// What became of bytes that were received.
#[derive(Debug)]
#[must_use]
pub enum Received {
    /// Something has come. There may be more: ask again with the rest of the bytes.
    Event(Event),
    /// All bytes were taken, and more are needed.
    More,
    /// The stream waits for another one (RFC 9204 §2.1.2). Bytes that are left are to be kept, with
    /// whether they are the last, and the stream must not be read
    /// until [`Connection::poll_unblocked`](crate::Connection::poll_unblocked) names it.
    Blocked,
    /// The stream belongs to a session, which gets what is left of the bytes and all that follow.
    Claimed,
    /// Nothing that comes on the stream is of use any more.
    Done,
}

/// Something that has come on a stream.
#[derive(Debug)]
pub enum Event {
    /// A request, without its body.
    Request(Box<RequestHead>),
    /// An informational response (status 1xx): another one follows.
    Informational(Box<http::response::Parts>),
    /// The response, without its body.
    Response(Box<http::response::Parts>),
    /// A part of the body, at least one byte, as a slice of what was received.
    Data(Bytes),
    /// The trailers: nothing follows but the end.
    Trailers(Box<HeaderMap>),
    /// The message has ended as it should.
    Finished,
    /// The head of a message is larger than this end takes. A server can answer with status 431 and need not read the rest.
    Refused(Excess),
    /// A stream of a session.
    SessionStream {
        /// The number with which such streams begin.
        kind: u64,
        /// The stream of the session's request.
        session: u64,
    },
    /// The settings of the peer.
    Settings(Box<Settings>),
    /// The peer goes away (RFC 9114 §5.2): requests with this ID and above were not processed, and can be made elsewhere. What a
    /// client says is the ID of a push, and of no use.
    GoAway(u64),
    /// A request has got another priority.
    PriorityUpdate {
        /// The stream of the request.
        stream: u64,
        /// What it is now.
        priority: Priority,
    },
    /// What the server says it is authoritative for.
    Origins(Vec<String>),
}

/// A request that has come.
#[derive(Debug)]
pub struct RequestHead {
    /// Method, URI and fields. Extended CONNECT has a [`Protocol`](crate::Protocol) among the extensions.
    pub parts: http::request::Parts,
    /// Its priority, from its field or from a PRIORITY_UPDATE that came before.
    pub priority: Priority,
    /// It came as early data, and an attacker may have repeated it. What is not safe is to be answered with status 425 (RFC 8470
    /// §5.2), or kept until the handshake is complete.
    pub is_early: bool,
}

impl RequestHead {
    /// Whether it should be answered with 425 (Too Early): it came as early data, and its method may change something.
    #[must_use]
    pub fn is_too_early(&self) -> bool {
        self.is_early && !self.parts.method.is_safe()
    }
}
