//! Why a benchmark could not be made.

use std::io;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The stack has no such thing: the cell of the table stays empty, with this reason.
    #[error("unsupported: {0}")]
    Unsupported(&'static str),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// Bytes are missing, too many, or not those that were sent.
    #[error("the bytes received are not those that were sent: {0}")]
    Damaged(&'static str),
    #[error("the peer ended the stream early")]
    Truncated,
    #[error("{what}: {why}")]
    Stack { what: &'static str, why: String },
}

impl Failure {
    /// Says what failed in a stack.
    pub(crate) fn at<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Stack { what, why: error.to_string() }
    }
}
