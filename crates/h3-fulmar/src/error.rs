//! What `h3` is told when something fails.

use std::sync::Arc;

use fulmar::{ConnectionError, ReadError, WriteError};
use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};

pub(crate) fn connection(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code.get() }
        }
        ConnectionError::TimedOut | ConnectionError::HandshakeTimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// That of a stream which is over because its connection is.
pub(crate) fn lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection(error) }
}

pub(crate) fn write(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code.get() },
        WriteError::ConnectionLost(error) => lost(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

pub(crate) fn read(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code.get() },
        ReadError::ConnectionLost(error) => lost(error),
        error => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}
