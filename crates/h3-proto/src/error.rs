//! What goes wrong, and the codes that tell the peer.

use std::fmt;

use thiserror::Error;

/// An error code of HTTP/3 (RFC 9114 §8.1), QPACK (RFC 9204 §6) or HTTP datagrams (RFC 9297 §5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// H3_DATAGRAM_ERROR: a datagram or capsule breaks the rules.
    DatagramError = 0x33,
    /// H3_NO_ERROR: a connection or stream is closed, and nothing is wrong.
    NoError = 0x100,
    /// H3_GENERAL_PROTOCOL_ERROR: a breach without a code of its own.
    GeneralProtocolError = 0x101,
    /// H3_INTERNAL_ERROR: this end has a fault.
    InternalError = 0x102,
    /// H3_STREAM_CREATION_ERROR: a stream that this end does not accept.
    StreamCreationError = 0x103,
    /// H3_CLOSED_CRITICAL_STREAM: a stream that the connection needs was closed.
    ClosedCriticalStream = 0x104,
    /// H3_FRAME_UNEXPECTED: a frame where it is not allowed.
    FrameUnexpected = 0x105,
    /// H3_FRAME_ERROR: a frame of a wrong form or length.
    FrameError = 0x106,
    /// H3_EXCESSIVE_LOAD: the peer makes this end do or hold too much.
    ExcessiveLoad = 0x107,
    /// H3_ID_ERROR: an ID is used wrongly, for instance beyond a limit.
    IdError = 0x108,
    /// H3_SETTINGS_ERROR: an error in SETTINGS.
    SettingsError = 0x109,
    /// H3_MISSING_SETTINGS: the control stream does not begin with SETTINGS.
    MissingSettings = 0x10a,
    /// H3_REQUEST_REJECTED: the request was not processed, and may be sent again.
    RequestRejected = 0x10b,
    /// H3_REQUEST_CANCELLED: the request or its response is not wanted any more.
    RequestCancelled = 0x10c,
    /// H3_REQUEST_INCOMPLETE: the client's stream ended without a whole request.
    RequestIncomplete = 0x10d,
    /// H3_MESSAGE_ERROR: a message is malformed.
    MessageError = 0x10e,
    /// H3_CONNECT_ERROR: the TCP connection of a CONNECT request was reset.
    ConnectError = 0x10f,
    /// H3_VERSION_FALLBACK: the request should be made by HTTP/1.1.
    VersionFallback = 0x110,
    /// QPACK_DECOMPRESSION_FAILED: an encoded field section cannot be decoded.
    QpackDecompressionFailed = 0x200,
    /// QPACK_ENCODER_STREAM_ERROR: the encoder stream breaks the rules.
    QpackEncoderStreamError = 0x201,
    /// QPACK_DECODER_STREAM_ERROR: the decoder stream breaks the rules.
    QpackDecoderStreamError = 0x202,
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u64 {
        self as u64
    }

    /// What a number of the peer means. Unknown ones are no error (RFC 9114 §9), and count as H3_NO_ERROR does.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        ALL.iter().copied().find(|known| known.code() == code)
    }
}

const ALL: &[ErrorCode] = &[
    ErrorCode::DatagramError,
    ErrorCode::NoError,
    ErrorCode::GeneralProtocolError,
    ErrorCode::InternalError,
    ErrorCode::StreamCreationError,
    ErrorCode::ClosedCriticalStream,
    ErrorCode::FrameUnexpected,
    ErrorCode::FrameError,
    ErrorCode::ExcessiveLoad,
    ErrorCode::IdError,
    ErrorCode::SettingsError,
    ErrorCode::MissingSettings,
    ErrorCode::RequestRejected,
    ErrorCode::RequestCancelled,
    ErrorCode::RequestIncomplete,
    ErrorCode::MessageError,
    ErrorCode::ConnectError,
    ErrorCode::VersionFallback,
    ErrorCode::QpackDecompressionFailed,
    ErrorCode::QpackEncoderStreamError,
    ErrorCode::QpackDecoderStreamError,
];

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} (0x{:x})", self.code())
    }
}

/// What an error ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The connection: close it with the code.
    Connection,
    /// One stream: reset what this end sends of it, and ask the peer to stop what it sends, both with the code.
    Stream(u64),
}

/// A breach by the peer, or a refusal by this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[error("{reason}: {code}")]
pub struct Error {
    scope: Scope,
    code: ErrorCode,
    reason: &'static str,
}

impl Error {
    /// What it ends.
    #[must_use]
    pub const fn scope(&self) -> Scope {
        self.scope
    }

    /// What the peer is told.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// A short sentence for logs and for the reason phrase.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }

    pub(crate) const fn connection(code: ErrorCode, reason: &'static str) -> Self {
        Self { scope: Scope::Connection, code, reason }
    }

    pub(crate) const fn stream(stream: u64, code: ErrorCode, reason: &'static str) -> Self {
        Self { scope: Scope::Stream(stream), code, reason }
    }
}

impl From<fulmar_qpack::Error> for Error {
    fn from(error: fulmar_qpack::Error) -> Self {
        use fulmar_qpack::ErrorCode as Qpack;
        let code = match error.code() {
            Qpack::DecompressionFailed => ErrorCode::QpackDecompressionFailed,
            Qpack::EncoderStreamError => ErrorCode::QpackEncoderStreamError,
            Qpack::DecoderStreamError => ErrorCode::QpackDecoderStreamError,
            Qpack::ExcessiveLoad => ErrorCode::ExcessiveLoad,
        };
        Self::connection(code, error.reason())
    }
}

/// Why something was not sent. Nothing has changed, and nothing is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The stream is not there, or its sending side is over.
    #[error("the stream is closed")]
    Closed,
    /// The order of a message does not allow it: a head, data, trailers.
    #[error("out of the order of a message")]
    OutOfOrder,
    /// The body is longer or shorter than its Content-Length.
    #[error("the body has another length than Content-Length says")]
    ContentLength,
    /// The head has what HTTP/3 cannot carry: a request without authority, status 101, a wrong Content-Length.
    #[error("{0}")]
    Malformed(&'static str),
    /// The field section is larger than the peer accepts (SETTINGS_MAX_FIELD_SECTION_SIZE).
    #[error("the fields are larger than the peer accepts")]
    TooLarge,
    /// The peer takes no more requests on this connection (GOAWAY).
    #[error("the peer takes no more requests on this connection")]
    GoingAway,
    /// The peer has not said that it supports this: extended CONNECT or datagrams.
    #[error("the peer does not support this")]
    Unsupported,
    /// Too much waits to be written to the control stream.
    #[error("too much waits for the control stream")]
    QueueFull,
}
