//! Everything that can end a command, each as one sentence for the user.

use std::io;

use fulmar::{AcceptError, ConnectError, ConnectionError, TlsError, TransportErrorCode};
use fulmar_lab::scenario::ScenarioError;

use crate::report::counted;

/// Exit code of a command that failed.
pub(crate) const EXIT_FAILURE: u8 = 1;
/// Exit code of a command that was asked for something impossible; the parser of the command line uses it too.
const EXIT_USAGE: u8 = 2;
/// Exit code of an endpoint that does not support a test case, as the QUIC interop runner wants it.
const EXIT_UNSUPPORTED: u8 = 127;
/// Exit code of an interrupted command, as shells have it: 128 and the number of the signal.
const EXIT_INTERRUPTED: u8 = 130;

/// The CRYPTO_ERROR that carries the TLS alert no_application_protocol (RFC 9001 §4.8 and §8.1).
const NO_APPLICATION_PROTOCOL: TransportErrorCode = TransportErrorCode::crypto(120);

/// Why a command ended without success. The text of an error is the sentence the user reads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for something impossible.
    #[error("{0}")]
    Usage(String),
    /// The operating system refused something: `action` says what, as in "cannot write a.bin".
    #[error("{action}: {error}")]
    Io { action: String, error: io::Error },
    /// What has come cannot be written to `what`.
    #[error("cannot write {what}: {error}")]
    Write { what: String, error: io::Error },
    /// What is to be sent cannot be read.
    #[error("cannot read {what}: {error}")]
    Read { what: String, error: io::Error },
    /// Results could not be printed, though somebody may have waited for them.
    #[error("cannot write to standard output: {0}")]
    StandardOutput(io::Error),
    /// Whoever read standard output has enough: nobody is told of that.
    #[error("nobody reads standard output any more")]
    ReaderGone,
    /// Certificates or keys of our own cannot be used.
    #[error("{0}")]
    Tls(String),
    /// The name of a server has no address.
    #[error("{host} has no address: {error}")]
    NoAddress { host: String, error: io::Error },
    /// The certificate of a server is not the one we trust.
    #[error("the certificate of {peer} was refused: {why}")]
    Certificate { peer: String, why: String },
    /// A server speaks none of the protocols offered.
    #[error("{peer} does not speak the protocol {protocol} (ALPN)")]
    Protocol { peer: String, protocol: &'static str },
    /// A connection could not even be tried.
    #[error("cannot connect to {peer}: {error}")]
    Connect { peer: String, error: ConnectError },
    /// Nothing that --bind names has an address of the family of the server's.
    #[error("cannot send from {from} to {peer}")]
    NoWay { from: String, peer: String },
    /// The system gives no socket for QUIC.
    #[error("cannot open a UDP socket: {0}")]
    NoSocket(io::Error),
    /// A client could not be accepted.
    #[error("cannot accept {peer}: {error}")]
    Accept { peer: String, error: AcceptError },
    /// A connection ended before its work was done.
    #[error("{}", sentence(peer, error))]
    Connection { peer: String, error: ConnectionError },
    /// A request was not answered as it should be; `what` names it.
    #[error("{what}: {why}")]
    Request { what: String, why: String },
    /// What arrived is not what was sent.
    #[error("{0}")]
    NotVerified(String),
    /// A body begins again of which a part has left already.
    #[error("a part has gone to {0}, where it cannot be taken back, and the server sends all of it again")]
    CannotBeginAnew(String),
    /// A thread of ours panicked, which is a defect of the program.
    #[error("the thread of the {0} ended unexpectedly")]
    Thread(&'static str),
    /// The user ended the command.
    #[error("interrupted")]
    Interrupted,
    /// A scenario cannot be run as asked.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A run in the lab went wrong.
    #[error("{0}")]
    Run(String),
    /// Runs in the lab went wrong; a sentence about each was printed.
    #[error("{} failed", counted(*.0 as u64, "run"))]
    RunsFailed(usize),
    /// Goals of scenarios were not reached; the table was printed.
    #[error("{} {} missed", counted(*.0 as u64, "goal"), if *.0 == 1 { "was" } else { "were" })]
    GoalsMissed(usize),
    /// A test case of the QUIC interop runner that this program does not know.
    #[error("the test case {0:?} is not supported")]
    UnsupportedCase(String),
    /// This many sentences about files have been printed already, and how many files are missing.
    #[error("{missing} of the files could not be fetched")]
    AlreadyTold { sentences: usize, missing: usize, exit: u8 },
    /// A URL could not be fetched; `exit` is the exit code that says why.
    #[error("{what}: {why}")]
    Http { what: String, why: String, exit: u8 },
}

impl Failure {
    /// What maps an [`io::Error`] to a failure to do `action`.
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { action: action.into(), error }
    }

    /// What maps the end of the connection to `peer` to a failure.
    pub(crate) fn connection(peer: &str) -> impl Fn(ConnectionError) -> Self + '_ {
        |error| Self::Connection { peer: peer.to_owned(), error }
    }

    /// Whether the sentence would only repeat what was printed.
    pub(crate) fn is_told(&self) -> bool {
        matches!(self, Self::AlreadyTold { sentences: 1, .. })
    }

    /// Whether it is told as an object as well. The runs and goals of the lab have objects of their own, and what cannot be written cannot
    /// be told there either.
    pub(crate) fn is_object(&self) -> bool {
        !matches!(
            self,
            Self::AlreadyTold { .. }
                | Self::StandardOutput(_)
                | Self::RunsFailed(_)
                | Self::GoalsMissed(_)
                | Self::UnsupportedCase(_)
        )
    }

    /// The exit code of the program, if the command has none of its own for it, as `get` has.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Scenario(_) => EXIT_USAGE,
            Self::UnsupportedCase(_) => EXIT_UNSUPPORTED,
            Self::Interrupted => EXIT_INTERRUPTED,
            Self::AlreadyTold { exit, .. } | Self::Http { exit, .. } => *exit,
            _ => EXIT_FAILURE,
        }
    }
}

/// Whether a handshake failed because the two sides have no application protocol in common.
pub(crate) fn is_protocol_refusal(error: &ConnectionError) -> bool {
    match error {
        ConnectionError::Tls(error) => *error == TlsError::NoApplicationProtocol,
        ConnectionError::Transport(error) => error.code == NO_APPLICATION_PROTOCOL,
        ConnectionError::ConnectionClosed { code, .. } => *code == NO_APPLICATION_PROTOCOL,
        _ => false,
    }
}

/// How the connection to `peer` ended.
fn sentence(peer: &str, error: &ConnectionError) -> String {
    match error {
        ConnectionError::HandshakeTimedOut => format!("no answer from {peer}: the handshake timed out"),
        ConnectionError::Unsent(reason) => format!("nothing could be sent to {peer}: {reason}"),
        error @ ConnectionError::DatagramsTooLarge => format!("nothing could be sent to {peer}: {error}"),
        ConnectionError::TimedOut => format!("nothing more came from {peer}: the connection timed out"),
        ConnectionError::Reset => format!("{peer} has forgotten the connection: stateless reset"),
        ConnectionError::VersionMismatch => {
            format!("{peer} speaks no version of QUIC that this program speaks")
        }
        ConnectionError::ConnectionClosed { code: TransportErrorCode::CONNECTION_REFUSED, .. } => {
            format!("{peer} refused the connection: it is too busy, or is stopping")
        }
        ConnectionError::LocallyClosed => format!("the connection to {peer} was closed here"),
        ConnectionError::ApplicationClosed { code, reason } => {
            let reason = in_words(reason);
            format!("{peer} closed the connection with code {code}{reason}")
        }
        error => format!("the connection to {peer} failed: {error}"),
    }
}

/// The reason a peer gave, fit to print: whatever bytes it sent, nothing of them steers the terminal.
fn in_words(reason: &[u8]) -> String {
    if reason.is_empty() {
        return String::new();
    }
    format!(" ({})", String::from_utf8_lossy(reason).escape_debug())
}

#[cfg(test)]
mod tests;
