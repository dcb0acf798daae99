//! What can go wrong.

use fulmar::{AcceptError, ConnectError, ConnectionError, ReadError, WriteError};
use thiserror::Error;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request, a response or a body did not come through.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is over.
    #[error("the connection is over: {0}")]
    Connection(#[from] ConnectionError),
    /// The connection could not be made.
    #[error("cannot connect: {0}")]
    Connect(#[from] ConnectError),
    /// A connection of a client could not be accepted.
    #[error("cannot accept: {0}")]
    Accept(#[from] AcceptError),
    /// The name of the server could not be resolved.
    #[error("cannot resolve the name: {0}")]
    Resolve(#[source] std::io::Error),
    /// The socket could not be opened, or the TLS configuration cannot be used.
    #[error("cannot set up: {0}")]
    Setup(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The URI is none, or names no server that this client can reach: `https://host/`.
    #[error("the URI is not one of https with a host")]
    Uri,
    /// The peer has broken a rule.
    #[error(transparent)]
    Protocol(#[from] fulmar_h3_proto::Error),
    /// A message cannot be sent.
    #[error(transparent)]
    Send(#[from] fulmar_h3_proto::SendError),
    /// The peer has given up the request, with this code (RFC 9114 §8.1).
    #[error("the peer gave up the request with code 0x{0:x}")]
    Reset(u64),
    /// The head of a request is larger than this server takes: it is answered with status 431.
    #[error("the head of a request is too large")]
    TooLarge,
    /// HTTP over TCP has failed.
    #[error("over TCP: {}", chain(.0.as_ref()))]
    Tcp(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server can be reached neither by QUIC nor over TCP.
    #[error("by QUIC: {quic}; {tcp}")]
    Unreachable {
        /// What went wrong by QUIC.
        quic: Box<Error>,
        /// What went wrong over TCP.
        tcp: Box<Error>,
    },
    /// A body is longer than its reader takes.
    #[error("the body is longer than {0} bytes")]
    BodyTooLong(usize),
    /// The body that was to be sent failed.
    #[error("the body failed: {0}")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// How the last of some attempts to connect failed; there may have been no address to try.
    pub(crate) fn of_attempts(mut failures: Vec<Self>) -> Self {
        failures.pop().unwrap_or_else(|| Self::Resolve(std::io::ErrorKind::NotFound.into()))
    }

    pub(crate) fn tcp(error: impl Into<BoxError>) -> Self {
        Self::Tcp(error.into())
    }

    /// The same for another request that has met it. Of what has caused it, that has the sentence.
    pub(crate) fn for_another(&self) -> Self {
        match self {
            Self::Connection(error) => Self::Connection(error.clone()),
            Self::Connect(error) => Self::Connect(error.clone()),
            Self::Accept(error) => Self::Accept(error.clone()),
            Self::Resolve(error) => Self::Resolve(std::io::Error::new(error.kind(), error.to_string())),
            Self::Setup(error) => Self::Setup(chain(error.as_ref()).into()),
            Self::Uri => Self::Uri,
            Self::Protocol(error) => Self::Protocol(*error),
            Self::Send(error) => Self::Send(*error),
            Self::Reset(code) => Self::Reset(*code),
            Self::TooLarge => Self::TooLarge,
            Self::Tcp(error) => Self::Tcp(chain(error.as_ref()).into()),
            Self::Unreachable { quic, tcp } => {
                let [quic, tcp] = [quic, tcp].map(|error| Box::new(error.for_another()));
                Self::Unreachable { quic, tcp }
            }
            Self::BodyTooLong(len) => Self::BodyTooLong(*len),
            Self::Body(error) => Self::Body(chain(error.as_ref()).into()),
        }
    }
}

/// An error with what caused it: some errors say only in which step they came up.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut sentences: Vec<String> = Vec::new();
    for sentence in causes.map(ToString::to_string) {
        // Others repeat what caused them.
        if sentences.last().is_none_or(|last| !last.ends_with(&sentence)) {
            sentences.push(sentence);
        }
    }
    sentences.join(": ")
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Reset(code.get()),
            ReadError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Send(fulmar_h3_proto::SendError::Closed),
        }
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Reset(code.get()),
            WriteError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Send(fulmar_h3_proto::SendError::Closed),
        }
    }
}
