//! What goes wrong, and the codes that tell the peer (RFC 9204 §6).

use thiserror::Error;

/// An error code of HTTP/3 with which a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// QPACK_DECOMPRESSION_FAILED: an encoded field section cannot be decoded.
    DecompressionFailed,
    /// QPACK_ENCODER_STREAM_ERROR: the encoder stream of the peer breaks the rules.
    EncoderStreamError,
    /// QPACK_DECODER_STREAM_ERROR: the decoder stream of the peer breaks the rules.
    DecoderStreamError,
    /// H3_EXCESSIVE_LOAD: the peer makes this end hold more than a limit allows (RFC 9114 §8.1).
    ExcessiveLoad,
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            Self::DecompressionFailed => 0x0200,
            Self::EncoderStreamError => 0x0201,
            Self::DecoderStreamError => 0x0202,
            Self::ExcessiveLoad => 0x0107,
        }
    }
}

/// A breach by the peer. Each ends the connection with its [`code`](Self::code).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[error("{reason}")]
pub struct Error {
    code: ErrorCode,
    reason: &'static str,
}

impl Error {
    /// What the connection is closed with.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// A short sentence for logs and for the reason phrase.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.reason
    }

    pub(crate) const fn section(reason: &'static str) -> Self {
        Self { code: ErrorCode::DecompressionFailed, reason }
    }

    pub(crate) const fn encoder_stream(reason: &'static str) -> Self {
        Self { code: ErrorCode::EncoderStreamError, reason }
    }

    pub(crate) const fn decoder_stream(reason: &'static str) -> Self {
        Self { code: ErrorCode::DecoderStreamError, reason }
    }

    pub(crate) const fn load(reason: &'static str) -> Self {
        Self { code: ErrorCode::ExcessiveLoad, reason }
    }
}
