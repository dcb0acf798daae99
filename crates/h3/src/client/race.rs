//! The race of QUIC and TCP for a connection to a server that there is none to.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::alt_svc::Used;
use super::connection::ClientConnection;
use super::origin::{HEAD_START, Origin, State, Transports};
use super::service::Found;
use super::tcp::TcpConnection;
use crate::error::Error;
use crate::shared::now;

/// What is there first.
#[derive(Debug)]
pub(super) enum Winner {
    Quic(ClientConnection),
    Tcp(TcpConnection),
}

impl Winner {
    /// The address of the server.
    pub(super) fn remote(&self) -> SocketAddr {
        match self {
            Self::Quic(http3) => http3.quic().remote_address(),
            Self::Tcp(connection) => connection.remote,
        }
    }
}

/// A race: QUIC has a head start, unless it has failed before.
pub(super) struct Race<'a> {
    origin: &'a Arc<Origin>,
    transports: &'a Transports,
    /// Of the places that the server had named when it began.
    generation: u64,
    /// The attempt of QUIC, while it is under way.
    quic: Option<Attempt>,
    /// Why it has failed.
    quic_error: Option<Error>,
}

impl<'a> Race<'a> {
    pub(super) fn new(origin: &'a Arc<Origin>, transports: &'a Transports) -> Self {
        let generation = origin.state().generation;
        Self { origin, transports, generation, quic: None, quic_error: None }
    }

    /// Runs it between the places that DNS has named.
    ///
    /// # Errors
    ///
    /// Both have failed.
    pub(super) async fn run(mut self, found: Found) -> Result<Winner, Error> {
        let transports = self.transports;
        let Some(tcp) = &transports.tcp else {
            // It is asked for nothing else, so it is tried whatever DNS says.
            return connect_quic(self.origin, transports, found.quic_at_last()).await.map(Winner::Quic);
        };
        if let Some(http3) = self.head_start(&found).await {
            return Ok(Winner::Quic(http3));
        }
        let mut over_tcp = pin!(tcp.connect(&self.origin.host, &found.tcp));
        let tcp_error = loop {
            tokio::select! {
                connected = wait(&mut self.quic), if self.quic.is_some() => {
                    self.quic = None;
                    match connected {
                        Ok(http3) => return Ok(Winner::Quic(http3)),
                        Err(error) => self.on_failure(error),
                    }
                }
                connected = &mut over_tcp => match connected {
                    Ok(connection) => {
                        self.leave_quic();
                        return Ok(Winner::Tcp(connection));
                    }
                    Err(error) => break error,
                }
            }
        };
        match self.quic_at_last(&found).await {
            Ok(http3) => Ok(Winner::Quic(http3)),
            Err(quic_error) => {
                self.origin.state().on_failure(self.generation, Some(&quic_error));
                Err(Error::Unreachable { quic: Box::new(quic_error), tcp: Box::new(tcp_error) })
            }
        }
    }

    /// Lets QUIC begin, if it may be of use, and waits for it for a while.
    async fn head_start(&mut self, found: &Found) -> Option<ClientConnection> {
        // Where DNS says that there is no HTTP/3, a field of a response may still say that there is.
        let speaks_http3 = !found.quic.is_empty() || !self.origin.alternatives().at(now()).is_empty();
        if !speaks_http3 || !self.origin.state().may_try_quic() {
            return None;
        }
        let mut attempt = Attempt::begin(self.origin, self.transports, found.quic.clone(), self.generation);
        match tokio::time::timeout(HEAD_START, &mut attempt.task).await {
            Ok(Ok(Ok(http3))) => return Some(http3),
            Ok(Ok(Err(error))) => self.on_failure(error),
            Ok(Err(_)) => {}
            Err(_) => self.quic = Some(attempt),
        }
        None
    }

    fn on_failure(&mut self, error: Error) {
        self.origin.state().on_failure(self.generation, Some(&error));
        log_failure(&self.origin.host, &error);
        self.quic_error = Some(error);
    }

    /// TCP was first. The attempt of QUIC goes on, for later requests.
    fn leave_quic(&mut self) {
        if let Some(attempt) = self.quic.take() {
            tracing::info!(host = self.origin.host, "TCP was faster than QUIC, which is still tried");
            attempt.go_on_aside(self.origin, &mut self.origin.state(), self.transports);
        }
    }

    /// What comes of QUIC where TCP has failed.
    async fn quic_at_last(&mut self, found: &Found) -> Result<ClientConnection, Error> {
        if let Some(error) = self.quic_error.take() {
            return Err(error);
        }
        if self.quic.is_some() {
            return wait(&mut self.quic).await;
        }
        // It was thought to be of no use.
        connect_quic(self.origin, self.transports, found.quic_at_last()).await
    }
}

/// An attempt to connect by QUIC. It ends when it is dropped.
pub(super) struct Attempt {
    task: JoinHandle<Result<ClientConnection, Error>>,
    /// Of the places that the server had named when it began.
    generation: u64,
}

impl Attempt {
    /// Begins to connect to `addresses`, or to what DNS names, if there are none.
    pub(super) fn begin(
        origin: &Arc<Origin>,
        transports: &Transports,
        addresses: Vec<SocketAddr>,
        generation: u64,
    ) -> Self {
        let (origin, transports) = (Arc::clone(origin), transports.clone());
        let task = tokio::spawn(async move { connect_quic(&origin, &transports, &addresses).await });
        Self { task, generation }
    }

    /// Lets it go on beside requests over TCP. What comes of it is remembered.
    pub(super) fn go_on_aside(mut self, origin: &Arc<Origin>, state: &mut State, transports: &Transports) {
        state.is_quic_tried |= state.generation == self.generation;
        let origin = Arc::clone(origin);
        let closed = transports.quic.closing.closed();
        tokio::spawn(async move {
            let connected = tokio::select! {
                connected = &mut self.task => connected,
                () = closed => return,
            };
            let mut state = origin.state();
            let is_current = state.generation == self.generation;
            if is_current {
                state.is_quic_tried = false;
            }
            match connected {
                Ok(Ok(http3)) => {
                    state.on_http3(http3);
                }
                result if is_current => {
                    let error = result.ok().and_then(Result::err);
                    state.on_failure(self.generation, error.as_ref());
                    if let Some(error) = error {
                        log_failure(&origin.host, &error);
                    }
                }
                _ => {}
            }
        });
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn wait(attempt: &mut Option<Attempt>) -> Result<ClientConnection, Error> {
    match attempt {
        Some(attempt) => (&mut attempt.task).await.unwrap_or_else(|gone| Err(Error::Setup(gone.into()))),
        None => std::future::pending().await,
    }
}

/// Tells why requests go over TCP.
fn log_failure(host: &str, error: &Error) {
    tracing::info!(host, "QUIC does not reach the server: {error}");
}

/// Connects by QUIC to the places that the server has named, one after the other, and then to the server itself. It has to prove its
/// own name everywhere (RFC 7838 §2.1).
async fn connect_quic(
    origin: &Origin,
    transports: &Transports,
    addresses: &[SocketAddr],
) -> Result<ClientConnection, Error> {
    let known = origin.alternatives().at(now());
    for place in known {
        let host = if place.host.is_empty() { &origin.place } else { &place.host };
        let Ok(found) = transports.names.resolve(host, place.port).await else { continue };
        match transports.quic.connect(&origin.host, &found).await {
            Ok(http3) => return Ok(http3.at_alternative(Some(Used::new(host, &place)))),
            Err(error) => {
                tracing::debug!(%error, host, port = place.port, "an alternative service is not there")
            }
        }
    }
    if addresses.is_empty() {
        let found = transports.names.find(&origin.place, origin.port).await?;
        return transports.quic.connect(&origin.host, &found.quic).await;
    }
    transports.quic.connect(&origin.host, addresses).await
}
