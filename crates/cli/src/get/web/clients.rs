//! The clients of HTTP, one for each server, and what their errors mean to the user.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fulmar::{ConnectionError, ConnectionMetrics, ConnectionStats, Endpoint, SessionStore};
use fulmar_h3::{Body, Client, ConnectionInfo, Error};
use http::{Response, Version};
use tokio::task::JoinSet;

use crate::args::{Cipher, GetArgs, TrustArgs};
use crate::authority::Authority;
use crate::duration::Span;
use crate::failure::Failure;
use crate::get::{HttpArgs, Url, exit};
use crate::net::narration::{certificate, closing, quic_and_tls};
use crate::net::{
    Binds, ConnectionFigures, Family, PathFigures, Transport, for_host, web_client, web_endpoint,
};
use crate::report::Output;
use crate::tls::Refusal;

/// How long the end of the program may be put off to tell the servers of it, and how long it is at least: on a short path a server may be
/// away from its processor for longer than some round trips.
const FAREWELL_MAX: Duration = Duration::from_millis(100);
const FAREWELL_MIN: Duration = Duration::from_millis(5);

/// A client for each server, so that a refused certificate is known to be its.
pub(super) struct Clients {
    /// None where this machine gives no UDP socket: then all goes over TCP.
    endpoint: Option<Endpoint>,
    binds: Binds,
    trust: TrustArgs,
    cipher: Option<Cipher>,
    transport: Transport,
    sessions: Arc<SessionStore>,
    http: HttpArgs,
    made: Mutex<BTreeMap<Authority, (Client, Refusal)>>,
    /// Others, which share no connection with those.
    spare: Mutex<BTreeMap<Authority, (Client, Refusal)>>,
    /// The QUIC connections that were told of.
    told: Mutex<BTreeSet<u64>>,
}

impl Clients {
    /// Opens the socket. Needs a runtime.
    pub(super) fn new(
        args: &GetArgs,
        transport: Transport,
        sessions: Arc<SessionStore>,
        output: Output,
    ) -> Result<Self, Failure> {
        let wanted = &args.paths.bind;
        let (endpoint, binds) = match web_endpoint(&transport) {
            Ok(endpoint) => {
                let binds = Binds::open(&endpoint, wanted, Family::Both)?;
                (Some(endpoint), binds)
            }
            Err(error) if args.http.http3_only => {
                return Err(Failure::NoSocket(error));
            }
            Err(error) => {
                output.narrate(|| format!("{}: all goes over TCP", Failure::NoSocket(error)));
                (None, Binds::without_sockets(wanted))
            }
        };
        if let Some(endpoint) = &endpoint
            && args.paths.multipath
            && wanted.is_empty()
        {
            let host = args.urls.first().and_then(|url| Url::of_user(url).ok()).map(|url| url.authority.host);
            binds.add(endpoint, &for_host(&host.unwrap_or_default()), Family::Both);
        }
        Ok(Self {
            endpoint,
            binds,
            trust: args.trust.clone(),
            cipher: args.cipher,
            transport,
            sessions,
            http: args.http.clone(),
            made: Mutex::default(),
            spare: Mutex::default(),
            told: Mutex::default(),
        })
    }

    /// The client for a server.
    pub(super) fn of(&self, server: &Authority) -> Result<(Client, Refusal), Failure> {
        self.client_in(&self.made, server)
    }

    /// Another client for it, which connects anew.
    pub(super) fn spare(&self, server: &Authority) -> Result<(Client, Refusal), Failure> {
        self.client_in(&self.spare, server)
    }

    /// Uses that one from now on. Of several that ask for it the first one counts.
    pub(super) fn use_spare(&self, server: &Authority) {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
        if let Some(spare) = spare {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(server.clone(), spare);
        }
    }

    fn client_in(
        &self,
        made: &Mutex<BTreeMap<Authority, (Client, Refusal)>>,
        server: &Authority,
    ) -> Result<(Client, Refusal), Failure> {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(server) {
            return Ok(client.clone());
        }
        let endpoint = (self.endpoint.clone(), &self.binds);
        let sessions = Arc::clone(&self.sessions);
        let client = web_client(&self.trust, self.cipher, &self.transport, endpoint, sessions, &self.http)?;
        made.insert(server.clone(), client.clone());
        Ok(client)
    }

    /// Tells in words of the connection over which a response came, if it is the first one.
    pub(super) fn about(&self, peer: &Authority, response: &Response<Body>, refusal: &Refusal) -> String {
        let Some(info) = response.extensions().get::<ConnectionInfo>() else { return String::new() };
        let how = match response.version() {
            Version::HTTP_3 => match self.untold(info.remote) {
                Some(stats) => quic_and_tls(&stats, self.transport.first_version(), "h3"),
                None => return String::new(),
            },
            _ if info.is_reused => return String::new(),
            Version::HTTP_2 => "TCP and TLS, ALPN h2".to_owned(),
            _ => "TCP and TLS, HTTP/1.1".to_owned(),
        };
        let when = match info.is_reused {
            // It was made while a request went over TCP.
            true => String::new(),
            false => format!(" in {}, after {} to find it", Span(info.connected_in), Span(info.resolved_in)),
        };
        let mut lines = vec![format!("connected to {peer} at {}{when}", info.remote), how];
        lines.extend(info.is_early.then(|| "the request left as early data (0-RTT)".to_owned()));
        lines.extend(refusal.certificate().map(|found| certificate(&found, &self.trust)));
        lines.join("\n")
    }

    /// A connection to this address that was not told of.
    fn untold(&self, remote: SocketAddr) -> Option<ConnectionStats> {
        let same = |other: SocketAddr| {
            other.port() == remote.port() && other.ip().to_canonical() == remote.ip().to_canonical()
        };
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        // Others to the same address may be on their way, or have failed.
        let is_complete = |stats: &ConnectionStats| stats.key_exchange.is_some();
        let mut connections = self.connections().into_iter();
        let connection = connections
            .find(|found| same(found.remote) && is_complete(&found.stats) && told.insert(found.id))?;
        Some(connection.stats)
    }

    /// The QUIC connections that there are.
    fn connections(&self) -> Vec<ConnectionMetrics> {
        self.endpoint.as_ref().map(|endpoint| endpoint.metrics().connections).unwrap_or_default()
    }

    /// The figures of the QUIC connections at their end, in words.
    pub(super) fn closing(&self) -> String {
        let connections = self.connections();
        connections.iter().map(|connection| closing(&connection.stats)).collect::<Vec<_>>().join("\n")
    }

    /// The figures of the QUIC connections that are there.
    pub(super) fn connection_figures(&self) -> Vec<ConnectionFigures> {
        self.connections().iter().map(ConnectionFigures::of).collect()
    }

    /// The figures of all paths of connections that have several.
    pub(super) fn path_figures(&self) -> Vec<PathFigures> {
        let connections = self.connections().into_iter();
        let several = connections.filter(|connection| connection.paths.len() > 1);
        several.flat_map(|connection| connection.paths).map(|path| self.binds.figures(&path)).collect()
    }

    /// Closes all connections, and gives the servers a moment to learn of it.
    pub(super) async fn close(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let mut closing = JoinSet::new();
        for (client, _) in made.into_values() {
            closing.spawn(async move { client.close().await });
        }
        let _ = tokio::time::timeout(self.farewell_time(), closing.join_all()).await;
    }

    /// Two round trips. What a server sends meanwhile is answered with the same again, and one that sends nothing would not be told again
    /// however long one waits.
    fn farewell_time(&self) -> Duration {
        let connections = self.connections().into_iter();
        let rtt = connections.map(|connection| connection.stats.rtt).max().unwrap_or_default();
        (rtt * 2).clamp(FAREWELL_MIN, FAREWELL_MAX)
    }
}

/// An error in the user's terms, with what to do.
pub(super) fn judge(error: &Error, refusal: &Refusal, url: &Url) -> Failure {
    let peer = &url.authority;
    let (exit, why) = match error {
        _ if refusal.reason().is_some() => {
            let why = refusal.reason().unwrap_or_default();
            (exit::CERTIFICATE, format!("the certificate of {peer} was refused: {why}"))
        }
        Error::Resolve(error) => (exit::NO_ADDRESS, format!("{} has no address: {error}", peer.host)),
        Error::Unreachable { quic, tcp } => {
            let tried =
                format!("{peer} cannot be reached, neither by QUIC ({quic}) nor by TCP ({})", cause(tcp));
            // Where nothing was sent, the server is not the one to ask about.
            let is_unsent = matches!(**quic, Error::Connection(ConnectionError::Unsent(_)));
            let question = if is_unsent { "has this machine a route to it?" } else { "is a server there?" };
            (exit::NOT_CONNECTED, format!("{tried}; {question}"))
        }
        Error::Connection(error) if exit::is_before_handshake(error) => (
            exit::NOT_CONNECTED,
            format!("{peer} cannot be reached by QUIC: {error} (TCP is tried without --http3-only)"),
        ),
        Error::Connect(error) => (exit::NOT_CONNECTED, format!("{peer} cannot be reached: {error}")),
        Error::Body(error) => (exit::NOT_READ, format!("what was to be sent failed: {error}")),
        error => (exit::BROKEN, error.to_string()),
    };
    Failure::Http { what: url.to_string(), why, exit }
}

/// What went wrong over TCP, without the words that say so.
fn cause(error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix("over TCP: ").map(str::to_owned).unwrap_or(text)
}
