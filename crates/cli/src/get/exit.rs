//! The exit codes of `get`: those of curl where it has one.

use fulmar::{ConnectionError, TransportErrorCode};

use crate::failure::Failure;

pub(super) const NO_ADDRESS: u8 = 6;
pub(super) const NOT_CONNECTED: u8 = 7;
pub(super) const CUT: u8 = 18;
pub(super) const STATUS: u8 = 22;
pub(crate) const NOT_WRITTEN: u8 = 23;
pub(super) const NOT_READ: u8 = 26;
pub(super) const TOO_LATE: u8 = 28;
pub(super) const REDIRECTS: u8 = 47;
pub(super) const BROKEN: u8 = 56;
pub(super) const CERTIFICATE: u8 = 60;
pub(super) const ENCODING: u8 = 61;
pub(super) const SENT_ONCE: u8 = 65;

/// That of a failure, of which other commands tell by another one.
pub(crate) fn code(failure: &Failure) -> u8 {
    match failure {
        Failure::NoAddress { .. } => NO_ADDRESS,
        Failure::Connect { .. } | Failure::NoWay { .. } | Failure::NoSocket(_) | Failure::Protocol { .. } => {
            NOT_CONNECTED
        }
        Failure::Connection { error, .. } if is_before_handshake(error) => NOT_CONNECTED,
        Failure::Connection { .. } => BROKEN,
        Failure::Certificate { .. } => CERTIFICATE,
        Failure::Write { .. } | Failure::StandardOutput(_) => NOT_WRITTEN,
        Failure::Read { .. } => NOT_READ,
        failure => failure.exit_code(),
    }
}

/// Whether a connection has ended so before it was one.
pub(super) fn is_before_handshake(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::HandshakeTimedOut
        | ConnectionError::Refused
        | ConnectionError::Unsent(_)
        | ConnectionError::DatagramsTooLarge
        | ConnectionError::VersionMismatch
        | ConnectionError::Tls(_) => true,
        ConnectionError::ConnectionClosed { code, .. } => *code == TransportErrorCode::CONNECTION_REFUSED,
        _ => false,
    }
}
