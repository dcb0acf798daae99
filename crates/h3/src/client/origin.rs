//! A server as the client knows it: its connections, where else it is found, and whether QUIC reaches it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use fulmar::Instant;
use http::header::ALT_SVC;
use http::{HeaderMap, HeaderValue};
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore};

use super::alt_svc::{AltSvc, Known};
use super::connection::ClientConnection;
use super::dns::{HttpsRecords, find};
use super::info::ConnectionInfo;
use super::quic::Quic;
use super::race::{Attempt, Race, Winner};
use super::tcp::{Pool, Tcp, TcpConnection};
use crate::error::Error;
use crate::shared::now;

/// How long QUIC has to connect before TCP is tried beside it. Both handshakes need a round trip or more, so where QUIC gets through it
/// is first on any path; where it does not, this is what it costs, once.
pub(super) const HEAD_START: Duration = Duration::from_millis(200);

/// For how long TCP is taken at once after QUIC has failed; twice as long after each further time, up to the maximum.
const BROKEN_FIRST: Duration = Duration::from_secs(5 * 60);
const BROKEN_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How many requests to a server are under way at once over TCP. The next ones wait until the body of one was read or dropped.
pub(super) const TCP_REQUESTS_MAX: usize = 100;

/// A server.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) state: Mutex<State>,
    alternatives: StdMutex<Known>,
    tcp_requests: Arc<Semaphore>,
}

/// What is known of it while requests go there.
#[derive(Debug, Default)]
pub(super) struct State {
    http3: Option<ClientConnection>,
    tcp: Pool,
    /// Where QUIC has reached it, and which alternative service that is.
    last: Option<(SocketAddr, Option<HeaderValue>)>,
    /// Whether QUIC is tried beside requests over TCP.
    pub(super) is_quic_tried: bool,
    /// How often the server has named new places. Attempts that began before say nothing of them.
    pub(super) generation: u64,
    broken: Option<Broken>,
}

/// QUIC did not get through.
#[derive(Debug, Clone, Copy)]
struct Broken {
    until: Instant,
    times: u32,
}

/// A connection for a request.
pub(super) enum Route {
    Http3(ClientConnection, ConnectionInfo),
    Tcp(TcpConnection, OwnedSemaphorePermit, ConnectionInfo),
}

/// A connection, and what there is to tell of it.
struct Made {
    winner: Winner,
    info: ConnectionInfo,
}

/// What connections begin with.
#[derive(Clone)]
pub(super) struct Transports {
    pub(super) quic: Quic,
    /// Nothing, if HTTP/3 is all that is wanted.
    pub(super) tcp: Option<Tcp>,
    /// Nothing, if DNS is asked for addresses alone.
    pub(super) records: Option<HttpsRecords>,
    pub(super) may_be_early: bool,
}

impl Origin {
    pub(super) fn new(host: String, port: u16) -> Arc<Self> {
        Arc::new(Self {
            host,
            port,
            state: Mutex::default(),
            alternatives: StdMutex::default(),
            tcp_requests: Arc::new(Semaphore::new(TCP_REQUESTS_MAX)),
        })
    }

    /// The way for a request: a connection that is there, or else a new one. Early data is offered for requests that do no harm when they
    /// arrive twice.
    pub(super) async fn route(
        self: &Arc<Self>,
        transports: &Transports,
        is_safe: bool,
    ) -> Result<Route, Error> {
        let mut state = self.state.lock().await;
        if let Some(http3) = state.open_http3() {
            drop(state);
            let is_connected = http3.quic().handshake_time().is_some();
            if !is_safe && !is_connected && !has_arrived(&http3).await {
                return self.instead_of_early(transports, &http3).await;
            }
            let info = info(http3.quic().remote_address(), true);
            return Ok(Route::Http3(http3, info));
        }
        if let Some(connection) = state.tcp.take() {
            return self.over_tcp(state, transports, connection).await;
        }
        let made = self.dial(&mut state, transports, is_safe).await?;
        drop(state);
        self.over(made).await
    }

    /// The way over a connection of TCP that is there. QUIC is tried beside it.
    async fn over_tcp(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, State>,
        transports: &Transports,
        connection: TcpConnection,
    ) -> Result<Route, Error> {
        if !state.is_quic_tried && !state.is_broken() {
            Attempt::begin(self, transports, Vec::new()).go_on_aside(self, &mut state, transports);
        }
        drop(state);
        let info = info(connection.remote, true);
        self.over(Made { winner: Winner::Tcp(connection), info }).await
    }

    /// The way over a connection. One of TCP waits for its turn, and nothing is locked meanwhile: whose turn it is may need the lock.
    async fn over(&self, made: Made) -> Result<Route, Error> {
        let Made { winner, info } = made;
        Ok(match winner {
            Winner::Quic(http3) => Route::Http3(http3, info),
            Winner::Tcp(connection) => Route::Tcp(connection, self.permit().await?, info),
        })
    }

    async fn dial(
        self: &Arc<Self>,
        state: &mut State,
        transports: &Transports,
        is_safe: bool,
    ) -> Result<Made, Error> {
        let begun = now();
        let found = find(transports.records.as_ref(), &self.host, self.port).await?;
        let resolved = now();
        let made = |remote| ConnectionInfo {
            remote,
            resolved_in: resolved - begun,
            connected_in: now() - resolved,
            is_reused: false,
            is_early: false,
        };
        if is_safe
            && transports.may_be_early
            && !state.is_broken()
            && let Some(http3) = self.early(state.last.clone(), transports, &found.quic)
        {
            state.http3 = Some(http3.clone());
            let info = ConnectionInfo { is_early: true, ..made(http3.quic().remote_address()) };
            return Ok(Made { winner: Winner::Quic(http3), info });
        }
        let winner = Race::new(self, state, transports).run(found).await?;
        let info = match &winner {
            Winner::Quic(http3) => {
                state.on_http3(http3.clone());
                made(http3.quic().remote_address())
            }
            Winner::Tcp(connection) => {
                state.http3 = None;
                if let Some(shared) = connection.share() {
                    state.tcp.keep(shared);
                }
                made(connection.remote)
            }
        };
        Ok(Made { winner, info })
    }

    /// A connection on which early data can be sent, if one is possible.
    fn early(
        &self,
        last: Option<(SocketAddr, Option<HeaderValue>)>,
        transports: &Transports,
        addresses: &[SocketAddr],
    ) -> Option<ClientConnection> {
        let (address, alternative) = last.or_else(|| Some((*addresses.first()?, None)))?;
        let has_session = transports.quic.has_session(&self.host, address.port());
        let http3 = has_session.then(|| transports.quic.connect_early(&self.host, address))??;
        Some(http3.at_alternative(alternative))
    }

    /// Another way than a connection that was to carry early data and has not proved in time to reach the server: the race that
    /// was left out for it.
    pub(super) async fn instead_of_early(
        self: &Arc<Self>,
        transports: &Transports,
        early: &ClientConnection,
    ) -> Result<Route, Error> {
        let mut state = self.state.lock().await;
        state.last = None;
        // Another request may have found one meanwhile.
        if let Some(http3) = state.open_http3().filter(|http3| !http3.is_early() && !http3.is_same(early)) {
            let info = info(http3.quic().remote_address(), true);
            return Ok(Route::Http3(http3, info));
        }
        if let Some(connection) = state.tcp.take() {
            return self.over_tcp(state, transports, connection).await;
        }
        let made = self.dial(&mut state, transports, false).await?;
        drop(state);
        self.over(made).await
    }

    /// Keeps a connection over TCP for other requests.
    pub(super) async fn keep(&self, connection: TcpConnection) {
        self.state.lock().await.tcp.keep(connection);
    }

    /// Takes from a response what it says of where else the server is found.
    pub(super) async fn learn(&self, headers: &HeaderMap) {
        let said: Vec<AltSvc> =
            headers.get_all(ALT_SVC).iter().filter_map(|value| AltSvc::parse(value.as_bytes())).collect();
        let Some(said) = merge(said) else { return };
        let has_new = self.alternatives().learn(said, now());
        if has_new {
            // That QUIC has failed elsewhere says nothing of the new place.
            let mut state = self.state.lock().await;
            (state.broken, state.is_quic_tried) = (None, false);
            state.generation += 1;
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.tcp_requests).acquire_owned().await.map_err(Error::tcp)
    }

    pub(super) fn alternatives(&self) -> std::sync::MutexGuard<'_, Known> {
        self.alternatives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection that carries early data proves in time to reach the server.
pub(super) async fn has_arrived(early: &ClientConnection) -> bool {
    matches!(tokio::time::timeout(HEAD_START, early.quic().connected()).await, Ok(Ok(())))
}

/// What several fields say together (RFC 9110 §5.3).
fn merge(said: Vec<AltSvc>) -> Option<AltSvc> {
    said.into_iter().reduce(|all, next| match (all, next) {
        (AltSvc::Services(mut services), AltSvc::Services(more)) => {
            services.extend(more);
            services.truncate(super::alt_svc::ALTERNATIVES_MAX);
            AltSvc::Services(services)
        }
        _ => AltSvc::Clear,
    })
}

fn info(remote: SocketAddr, is_reused: bool) -> ConnectionInfo {
    ConnectionInfo {
        remote,
        resolved_in: Duration::ZERO,
        connected_in: Duration::ZERO,
        is_reused,
        is_early: false,
    }
}

impl State {
    fn open_http3(&mut self) -> Option<ClientConnection> {
        self.http3.take_if(|http3| !http3.is_open());
        self.http3.clone()
    }

    pub(super) fn on_http3(&mut self, http3: ClientConnection) {
        self.broken = None;
        self.last = Some((http3.quic().remote_address(), http3.alternative()));
        self.http3 = Some(http3);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some_and(|broken| now() < broken.until)
    }

    pub(super) fn on_failure(&mut self) {
        let times = self.broken.map_or(0, |broken| broken.times);
        let pause = BROKEN_FIRST.saturating_mul(1 << times.min(16)).min(BROKEN_MAX);
        self.broken = Some(Broken { until: now() + pause, times: times + 1 });
    }
}
