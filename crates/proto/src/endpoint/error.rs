//! Why no connection came about.

use thiserror::Error;

use super::Incoming;
use crate::crypto::TlsError;

/// Why a connection could not be started.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server's name is not a DNS name or an IP address.
    #[error("{0:?} is not a valid server name")]
    InvalidServerName(String),
    /// The TLS configuration cannot be used.
    #[error("{0}")]
    Tls(TlsError),
    /// The endpoint uses no connection IDs, and has a connection to this address already.
    #[error("without connection IDs there can be one connection to an address only")]
    AddressInUse,
}

/// Why a connection could not be accepted.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptError {
    /// The endpoint has no server configuration any more.
    #[error("this endpoint is no server")]
    NotAServer,
    /// The TLS configuration cannot be used.
    #[error("{0}")]
    Tls(TlsError),
    /// The endpoint uses no connection IDs, and has a connection to this address already.
    #[error("without connection IDs there can be one connection to an address only")]
    AddressInUse,
}

/// The client has followed a Retry already, and would follow no other (RFC 9000 §17.2.5.2). The attempt is given
/// back.
#[derive(Debug, Error)]
#[error("the client has followed a Retry already")]
pub struct RetryError(pub Box<Incoming>);
