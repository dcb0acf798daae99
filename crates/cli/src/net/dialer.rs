//! Connections to a server, over any of its addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulmar::{
    ClientConfig, Connecting, Connection, ConnectionError, Endpoint, Local, SessionStore, happy_eyeballs,
};
use tokio::time::{sleep, timeout};

use super::interfaces;
use super::narration::Narrator;
use super::{Bind, Binds, CLOSE_DONE, Family, PathFigures, Transport, client_config, farewell};
use crate::args::{Cipher, TrustArgs};
use crate::authority::Authority;
use crate::duration::Span;
use crate::failure::{Failure, is_protocol_refusal};
use crate::report::Output;
use crate::tls::Refusal;

/// How long the socket may take to send that a connection is closed, and how often that is looked at.
const HANG_UP_MAX: Duration = Duration::from_millis(100);
const HANG_UP_STEP: Duration = Duration::from_millis(1);

/// Connects to one server, over any of its addresses.
pub(crate) struct Dialer {
    /// `host:port`, for messages.
    pub(crate) peer: String,
    host: String,
    addresses: Vec<SocketAddr>,
    /// With where connections may begin.
    endpoints: Vec<(Endpoint, Binds)>,
    /// Whether paths follow the interfaces of this machine, as none was named.
    follows: bool,
    config: ClientConfig,
    protocol: &'static str,
    refusal: Refusal,
    narrator: Narrator,
}

impl Dialer {
    /// Looks up the addresses of `server` and binds a socket for each family of addresses it has.
    pub(crate) async fn new(
        server: &Authority,
        trust: &TrustArgs,
        cipher: Option<Cipher>,
        protocol: &'static str,
        (transport, wanted): (&Transport, &[Bind]),
        output: Output,
    ) -> Result<Self, Failure> {
        let (config, refusal) = client_config(trust, cipher, protocol, transport.clone())?;
        let start = Instant::now();
        let mut addresses = resolve(server).await?;
        output.narrate(|| {
            let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            format!("{server} is {} (found in {})", list.join(", "), Span(start.elapsed()))
        });
        let follows = wanted.is_empty() && config.transport().multipath.is_some();
        let mut endpoints = Vec::new();
        for any in
            [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))]
        {
            if addresses.iter().any(|address| address.is_ipv4() == any.is_ipv4()) {
                let endpoint = transport.endpoint().bind(any);
                let endpoint = endpoint.map_err(Failure::NoSocket)?;
                let family = if any.is_ipv4() { Family::V4 } else { Family::V6 };
                let binds = Binds::open(&endpoint, wanted, family)?;
                if follows {
                    let servers =
                        addresses.iter().copied().filter(|address| address.is_ipv4() == any.is_ipv4());
                    binds.add(&endpoint, &interfaces::leading_to(&servers.collect::<Vec<_>>()), family);
                }
                endpoints.push((endpoint, binds));
            }
        }
        let can_reach = |address: &SocketAddr| !of_family(&endpoints, *address).1.locals().is_empty();
        addresses.retain(can_reach);
        if addresses.is_empty() {
            let from = wanted.iter().map(Bind::to_string).collect::<Vec<_>>().join(" or ");
            return Err(Failure::NoWay { from, peer: server.to_string() });
        }
        let (peer, host) = (server.to_string(), server.name().to_owned());
        let narrator = Narrator {
            output,
            peer: peer.clone(),
            first_version: transport.first_version(),
            trust: trust.clone(),
        };
        Ok(Self { peer, host, addresses, endpoints, follows, config, protocol, refusal, narrator })
    }

    /// Connects over the address that answers first. Each one gets a head start over the next, so that a silent
    /// one costs a moment and not the whole handshake timeout.
    pub(crate) async fn dial(&self) -> Result<Connection, Failure> {
        let (start, targets) = (Instant::now(), self.targets());
        let attempts = happy_eyeballs::first(&targets, |(address, local)| {
            let connecting = self.connect(self.config.clone(), address, local)?;
            Ok(async { connecting.await.map_err(|error| self.judge(error)) })
        });
        let connection = attempts.await.map_err(|failures| {
            let first = failures.into_iter().next();
            first.unwrap_or_else(|| self.judge(ConnectionError::HandshakeTimedOut))
        })?;
        self.narrator.connected(&connection, start.elapsed());
        self.keep_paths(&connection);
        Ok(connection)
    }

    /// Remembers what servers give away, in `sessions`.
    pub(crate) fn remember(&mut self, sessions: Arc<SessionStore>) {
        self.config = self.config.clone().with_sessions(sessions);
    }

    /// Connects like [`Dialer::dial`], but if a session can be resumed, returns at once: what is sent then is early data.
    pub(crate) async fn dial_early(&self) -> Result<Connection, Failure> {
        let resumable = |address: &&SocketAddr| {
            self.config.sessions().is_some_and(|store| store.has_session(&self.host, address.port()))
        };
        let Some(&address) = self.addresses.iter().find(resumable) else { return self.dial().await };
        let config = self.config.clone().with_early_data(true);
        let start = Instant::now();
        let (_, binds) = self.from(address);
        match self.connect(config, address, binds.locals()[0])?.into_0rtt() {
            Ok(connection) => {
                self.keep_paths(&connection);
                let narrator = self.narrator.clone();
                let early = connection.clone();
                tokio::spawn(async move {
                    if early.connected().await.is_ok() {
                        narrator.connected(&early, start.elapsed());
                    }
                });
                Ok(connection)
            }
            Err(connecting) => {
                let connection = connecting.await.map_err(|error| self.judge(error))?;
                self.narrator.connected(&connection, start.elapsed());
                Ok(connection)
            }
        }
    }

    /// Closes a connection because all is done, and waits until the peer was told: once, for a program that has nothing more to do
    /// shall not wait for what may have been lost. A peer that was told in vain gives up in its own time.
    pub(crate) async fn hang_up(&self, connection: &Connection) {
        if connection.close_reason().is_some() {
            return;
        }
        self.narrator.closing(connection);
        let before = connection.stats().packets_sent;
        connection.close(CLOSE_DONE, b"");
        let told = async {
            while connection.stats().packets_sent == before {
                sleep(HANG_UP_STEP).await;
            }
        };
        let _ = timeout(HANG_UP_MAX, told).await;
    }

    /// The endpoint that reaches an address.
    fn from(&self, address: SocketAddr) -> &(Endpoint, Binds) {
        of_family(&self.endpoints, address)
    }

    /// Each address of the server from each place where connections may begin.
    fn targets(&self) -> Vec<(SocketAddr, Local)> {
        let from = |address: &SocketAddr| {
            let address = *address;
            self.from(address).1.locals().into_iter().map(move |local| (address, local))
        };
        self.addresses.iter().flat_map(from).collect()
    }

    /// Opens further paths, if there are several places where they may begin.
    fn keep_paths(&self, connection: &Connection) {
        let (endpoint, binds) = self.from(connection.remote_address());
        let locals = binds.locals();
        if locals.len() > 1 && self.config.transport().multipath.is_some() {
            endpoint.keep_paths(connection, &locals);
        }
        if self.follows {
            let family = if connection.remote_address().is_ipv4() { Family::V4 } else { Family::V6 };
            tokio::spawn(interfaces::follow(endpoint.clone(), connection.clone(), binds.clone(), family));
        }
    }

    /// The figures of the paths of a connection; none if the ends have not agreed on multipath.
    pub(crate) fn path_figures(&self, connection: &Connection) -> Vec<PathFigures> {
        if !connection.is_multipath() {
            return Vec::new();
        }
        let (_, binds) = self.from(connection.remote_address());
        connection.paths().iter().filter_map(|path| Some(binds.figures(&path.stats()?))).collect()
    }

    fn connect(
        &self,
        config: ClientConfig,
        address: SocketAddr,
        local: Local,
    ) -> Result<Connecting, Failure> {
        let (endpoint, _) = self.from(address);
        self.narrator.output.narrate(|| format!("trying {address}"));
        endpoint
            .connect_from(config, local, address, &self.host)
            .map_err(|error| Failure::Connect { peer: self.peer.clone(), error })
    }

    /// Gives the sockets a moment to tell the peers surely that their connections are closed.
    pub(crate) async fn farewell(&self) {
        for (endpoint, _) in &self.endpoints {
            farewell(endpoint).await;
        }
    }

    /// Why a handshake failed, in the user's terms.
    fn judge(&self, error: ConnectionError) -> Failure {
        let peer = self.peer.clone();
        if let Some(why) = self.refusal.reason() {
            Failure::Certificate { peer, why }
        } else if is_protocol_refusal(&error) {
            Failure::Protocol { peer, protocol: self.protocol }
        } else {
            Failure::Connection { peer, error }
        }
    }
}

/// The one of these endpoints that has the family of an address.
fn of_family(endpoints: &[(Endpoint, Binds)], address: SocketAddr) -> &(Endpoint, Binds) {
    let same_family = |(endpoint, _): &&(Endpoint, Binds)| {
        endpoint.local_addr().is_ok_and(|local| local.is_ipv4() == address.is_ipv4())
    };
    endpoints.iter().find(same_family).unwrap_or(&endpoints[0])
}

/// The addresses of `server`, the system's favourite first, the families in turn.
pub(crate) async fn resolve(server: &Authority) -> Result<Vec<SocketAddr>, Failure> {
    let no_address = |error| Failure::NoAddress { host: server.host.clone(), error };
    let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await.map_err(no_address)?;
    let addresses = happy_eyeballs::in_turn(found);
    if addresses.is_empty() {
        return Err(no_address(std::io::Error::other("the name server knows none")));
    }
    Ok(addresses)
}
