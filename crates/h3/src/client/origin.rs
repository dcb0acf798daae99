//! A server as the client knows it: its connections, where else it is found, and whether QUIC reaches it.

mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::{AGE, ALT_SVC};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) use self::state::State;
use super::alt_svc::{AltSvc, Known, Used, seconds};
use super::connection::ClientConnection;
use super::dial::{Dial, Made};
use super::dns::Names;
use super::info::ConnectionInfo;
use super::network::Vantage;
use super::quic::Quic;
use super::race::{Attempt, Race, Winner};
use super::tcp::{Tcp, TcpConnection};
use crate::error::Error;
use crate::shared::now;

/// How long QUIC has to connect before TCP is tried beside it. Both handshakes need a round trip or more, so where QUIC gets through it
/// is first on any path; where it does not, this is what it costs, once.
pub(super) const HEAD_START: Duration = Duration::from_millis(200);

/// How many requests to a server are under way at once over TCP. The next ones wait until the body of one was read or dropped.
pub(super) const TCP_REQUESTS_MAX: usize = 100;

/// How many connections to a server are being made at once, where each request needs one of its own.
const DIALS_MAX: usize = 6;

/// A server.
#[derive(Debug)]
pub(super) struct Origin {
    /// What it has to prove to be.
    pub(super) host: String,
    /// Where it is found: the same, with its zone.
    pub(super) place: String,
    pub(super) port: u16,
    state: Mutex<State>,
    alternatives: Mutex<Known>,
    tcp_requests: Arc<Semaphore>,
    dials: Semaphore,
}

/// A connection for a request.
pub(super) enum Route {
    Http3(ClientConnection, ConnectionInfo),
    Tcp(TcpConnection, OwnedSemaphorePermit, ConnectionInfo),
}

/// What connections begin with.
#[derive(Clone)]
pub(super) struct Transports {
    pub(super) quic: Quic,
    /// Nothing, if HTTP/3 is all that is wanted.
    pub(super) tcp: Option<Tcp>,
    pub(super) names: Names,
    pub(super) may_be_early: bool,
}

impl Origin {
    pub(super) fn new(host: String, zone: Option<&str>, port: u16) -> Arc<Self> {
        let place = zone.map_or_else(|| host.clone(), |zone| format!("{host}%{zone}"));
        Arc::new(Self {
            host,
            place,
            port,
            state: Mutex::default(),
            alternatives: Mutex::default(),
            tcp_requests: Arc::new(Semaphore::new(TCP_REQUESTS_MAX)),
            dials: Semaphore::new(DIALS_MAX),
        })
    }

    /// The way for a request: a connection that is there, or else a new one. Early data is offered for requests that do no harm when they
    /// arrive twice.
    pub(super) async fn route(
        self: &Arc<Self>,
        transports: &Transports,
        is_safe: bool,
    ) -> Result<Route, Error> {
        let made = self.reach(transports, is_safe, None).await?;
        let early = match &made.winner {
            Winner::Quic(http3) if !is_safe && http3.quic().handshake_time().is_none() => Some(http3.clone()),
            _ => None,
        };
        if let Some(early) = early
            && !has_arrived(&early).await
        {
            return self.instead_of_early(transports, &early).await;
        }
        self.over(made).await
    }

    /// Another way than a connection that was to carry early data and has not proved in time to reach the server: the race that
    /// was left out for it.
    pub(super) async fn instead_of_early(
        self: &Arc<Self>,
        transports: &Transports,
        early: &ClientConnection,
    ) -> Result<Route, Error> {
        self.state().give_up_early(early);
        let made = self.reach(transports, false, Some(early)).await?;
        self.over(made).await
    }

    /// The way over a connection. One of TCP waits for its turn, and nothing is locked meanwhile: whose turn it is may need the lock.
    async fn over(&self, made: Made) -> Result<Route, Error> {
        let Made { winner, info } = made;
        Ok(match winner {
            Winner::Quic(http3) => Route::Http3(http3, info),
            Winner::Tcp(connection) => Route::Tcp(connection, self.permit().await?, info),
        })
    }

    /// A connection that is there, or else a new one, which all who want one meanwhile wait for, if they can share it. Where it is to be
    /// taken instead of one with early data, that is one which has proved to reach the server.
    async fn reach(
        self: &Arc<Self>,
        transports: &Transports,
        may_be_early: bool,
        instead_of: Option<&ClientConnection>,
    ) -> Result<Made, Error> {
        let is_good = |http3: &ClientConnection| {
            instead_of.is_none_or(|early| !http3.is_early() && !http3.is_same(early))
        };
        loop {
            let dial = {
                let mut state = self.state();
                match self.at_hand(&mut state, transports, is_good) {
                    Some(made) => return Ok(made),
                    None => self.dial(&mut state, transports, may_be_early),
                }
            };
            match dial.made().await? {
                Some(Made { winner: Winner::Quic(http3), .. }) if !is_good(&http3) => {}
                Some(made) => return Ok(made),
                // Somebody else has it. If requests can share it, it is at hand.
                None => {}
            }
        }
    }

    /// A connection that takes a request now. QUIC is tried beside one of TCP.
    fn at_hand(
        self: &Arc<Self>,
        state: &mut State,
        transports: &Transports,
        is_good: impl Fn(&ClientConnection) -> bool,
    ) -> Option<Made> {
        if let Some(http3) = state.open_http3().filter(is_good) {
            let info = info(http3.quic().remote_address(), true);
            return Some(Made { winner: Winner::Quic(http3), info });
        }
        let connection = state.tcp.take()?;
        if state.may_try_quic() && state.dial_under_way().is_none() {
            let attempt = Attempt::begin(self, transports, Vec::new(), state.generation);
            attempt.go_on_aside(self, state, transports);
        }
        let info = info(connection.remote, true);
        Some(Made { winner: Winner::Tcp(connection), info })
    }

    /// The attempt to connect that is under way and will do for this request as well, or a new one.
    fn dial(self: &Arc<Self>, state: &mut State, transports: &Transports, may_be_early: bool) -> Arc<Dial> {
        if let Some(dial) = state.dial_under_way().filter(|_| !state.is_unshared) {
            return dial;
        }
        let attempt = Arc::clone(self).connect(transports.clone(), may_be_early);
        let dial = Dial::begin(attempt, transports.quic.closing.closed());
        state.dial = Arc::downgrade(&dial);
        dial
    }

    async fn connect(self: Arc<Self>, transports: Transports, may_be_early: bool) -> Result<Made, Error> {
        let _turn = self.dials.acquire().await.map_err(Error::tcp)?;
        // While this one had to wait for its turn, another request may have left its connection.
        if let Some(connection) = self.state().tcp.take() {
            let info = info(connection.remote, true);
            return Ok(Made { winner: Winner::Tcp(connection), info });
        }
        let begun = now();
        let found = transports.names.find(&self.place, self.port).await?;
        self.look_around(&found.tcp);
        let resolved = now();
        let made = |winner: Winner| {
            let info = ConnectionInfo {
                remote: winner.remote(),
                resolved_in: resolved - begun,
                connected_in: now() - resolved,
                is_reused: false,
                is_early: false,
            };
            Made { winner, info }
        };
        if may_be_early
            && transports.may_be_early
            && let Some(http3) = self.early(&transports, &found.quic)
        {
            return Ok(made(Winner::Quic(http3)));
        }
        let winner = Race::new(&self, &transports).run(found).await?;
        self.state().on_winner(&winner);
        Ok(made(winner))
    }

    /// A connection on which early data can be sent, if one is possible. Other requests take it as well.
    fn early(&self, transports: &Transports, addresses: &[SocketAddr]) -> Option<ClientConnection> {
        let last = {
            let state = self.state();
            if state.is_broken() {
                return None;
            }
            state.last.clone()
        };
        // An alternative that its server has taken back, or whose time is over, is none any more (RFC 7838 §2.2, §3.1).
        let known = self.alternatives().at(now());
        let is_known = |used: &Arc<Used>| known.iter().any(|place| place.is_at(&used.place));
        let last = last.filter(|(_, used)| used.as_ref().is_none_or(is_known));
        let (address, alternative) = last.or_else(|| Some((*addresses.first()?, None)))?;
        let has_session = transports.quic.has_session(&self.host, address.port());
        let http3 = has_session.then(|| transports.quic.connect_early(&self.host, address))??;
        let http3 = http3.at_alternative(alternative);
        self.state().http3 = Some(http3.clone());
        Some(http3)
    }

    /// Notices that this end has moved to another network since it last connected. What was found out before about ways to the server
    /// does not hold there: that QUIC does not get through, and alternative services (RFC 7838 §2.2).
    fn look_around(&self, addresses: &[SocketAddr]) {
        let vantage = Vantage::towards(addresses);
        let mut state = self.state();
        let before = state.vantage.unwrap_or(vantage);
        if vantage.is_elsewhere(before) {
            tracing::debug!(host = self.host, ?vantage, "another network");
            state.vantage = Some(vantage);
            state.forget_failures();
            drop(state);
            self.alternatives().on_new_network();
        } else {
            state.vantage = Some(vantage.or(before));
        }
    }

    /// Keeps a connection over TCP for other requests.
    pub(super) fn keep(&self, connection: TcpConnection) {
        self.state().tcp.keep(connection);
    }

    /// Takes from a response what it says of where else the server is found.
    pub(super) fn learn(&self, headers: &HeaderMap) {
        let said: Vec<AltSvc> =
            headers.get_all(ALT_SVC).iter().filter_map(|value| AltSvc::parse(value.as_bytes())).collect();
        let Some(said) = merge(said) else { return };
        let age = headers.get(AGE).and_then(|age| seconds(age.as_bytes())).unwrap_or_default();
        let has_new = self.alternatives().learn(said.aged(age), now());
        if has_new {
            // That QUIC has failed elsewhere says nothing of the new place.
            self.state().forget_failures();
        }
    }

    /// A response of status 421 has come over a connection. If that leads to an alternative service, it is none of this server, and
    /// forgotten (RFC 7838 §6). Returns whether it does.
    pub(super) fn on_misdirected(&self, connection: &ClientConnection) -> bool {
        let Some(used) = connection.alternative() else { return false };
        self.alternatives().forget(&used.place);
        let mut state = self.state();
        state.last.take_if(|(_, of)| of.as_ref().is_some_and(|of| of.place.is_at(&used.place)));
        state.http3.take_if(|http3| http3.is_same(connection));
        true
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.tcp_requests).acquire_owned().await.map_err(Error::tcp)
    }

    /// What is known of it. It is locked for a moment only, never while something is waited for.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn alternatives(&self) -> MutexGuard<'_, Known> {
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
