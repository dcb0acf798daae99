//! Connections to a server, over any of its addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fulmar::{ClientConfig, Connecting, Connection, ConnectionError, Endpoint, SessionStore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::narration::Narrator;
use super::{CLOSE_DONE, Transport, client_config, farewell};
use crate::args::{Cipher, TrustArgs};
use crate::authority::Authority;
use crate::duration::Span;
use crate::failure::{Failure, is_protocol_refusal};
use crate::report::Output;
use crate::tls::Refusal;

/// How long one address of a server may stay silent before the next one is tried as well (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How many addresses of a server are tried.
const ADDRESSES_MAX: usize = 8;
/// How long the socket may take to send that a connection is closed, and how often that is looked at.
const HANG_UP_MAX: Duration = Duration::from_millis(100);
const HANG_UP_STEP: Duration = Duration::from_millis(1);

/// Connects to one server, over any of its addresses.
pub(crate) struct Dialer {
    /// `host:port`, for messages.
    pub(crate) peer: String,
    host: String,
    addresses: Vec<SocketAddr>,
    endpoints: Vec<Endpoint>,
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
        transport: &Transport,
        output: Output,
    ) -> Result<Self, Failure> {
        let (config, refusal) = client_config(trust, cipher, protocol, transport.clone())?;
        let start = Instant::now();
        let addresses = resolve(server).await?;
        output.narrate(|| {
            let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            format!("{server} is {} (found in {})", list.join(", "), Span(start.elapsed()))
        });
        let mut endpoints = Vec::new();
        for any in
            [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))]
        {
            if addresses.iter().any(|address| address.is_ipv4() == any.is_ipv4()) {
                let endpoint = transport.endpoint().bind(any);
                endpoints.push(endpoint.map_err(Failure::io("cannot open a UDP socket"))?);
            }
        }
        let (peer, host) = (server.to_string(), server.host.clone());
        let narrator = Narrator {
            output,
            peer: peer.clone(),
            first_version: transport.first_version(),
            trust: trust.clone(),
        };
        Ok(Self { peer, host, addresses, endpoints, config, protocol, refusal, narrator })
    }

    /// Connects over the address that answers first. Each one gets a head start over the next, so that a silent
    /// one costs a moment and not the whole handshake timeout.
    pub(crate) async fn dial(&self) -> Result<Connection, Failure> {
        let start = Instant::now();
        let mut waiting = self.addresses.iter();
        let mut attempts = JoinSet::new();
        let mut first_failure = None;
        loop {
            if let Some(&address) = waiting.next() {
                match self.start(address) {
                    Ok(connecting) => drop(attempts.spawn(connecting)),
                    Err(failure) => drop(first_failure.get_or_insert(failure)),
                }
            }
            tokio::select! {
                Some(result) = attempts.join_next() => match result {
                    Ok(Ok(connection)) => {
                        self.narrator.connected(&connection, start.elapsed());
                        return Ok(connection);
                    }
                    Ok(Err(error)) => drop(first_failure.get_or_insert(self.judge(error))),
                    Err(_) => drop(first_failure.get_or_insert(Failure::Thread("handshake"))),
                },
                () = sleep(ATTEMPT_DELAY), if waiting.len() > 0 => {}
                else => {}
            }
            if attempts.is_empty() && waiting.len() == 0 {
                return Err(first_failure.unwrap_or_else(|| self.judge(ConnectionError::HandshakeTimedOut)));
            }
        }
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
        match self.connect(config, address)?.into_0rtt() {
            Ok(connection) => {
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

    fn connect(&self, config: ClientConfig, address: SocketAddr) -> Result<Connecting, Failure> {
        let same_family = |endpoint: &&Endpoint| {
            endpoint.local_addr().is_ok_and(|local| local.is_ipv4() == address.is_ipv4())
        };
        let endpoint = self.endpoints.iter().find(same_family).unwrap_or(&self.endpoints[0]);
        self.narrator.output.narrate(|| format!("trying {address}"));
        endpoint
            .connect_with(config, address, &self.host)
            .map_err(|error| Failure::Connect { peer: self.peer.clone(), error })
    }

    /// Gives the sockets a moment to tell the peers surely that their connections are closed.
    pub(crate) async fn farewell(&self) {
        for endpoint in &self.endpoints {
            farewell(endpoint).await;
        }
    }

    fn start(
        &self,
        address: SocketAddr,
    ) -> Result<impl Future<Output = Result<Connection, ConnectionError>> + Send + 'static, Failure> {
        self.connect(self.config.clone(), address)
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

/// The addresses of `server`, the system's favourite first.
pub(crate) async fn resolve(server: &Authority) -> Result<Vec<SocketAddr>, Failure> {
    let no_address = |error| Failure::NoAddress { host: server.host.clone(), error };
    let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await.map_err(no_address)?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < ADDRESSES_MAX {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(no_address(std::io::Error::other("the name server knows none")));
    }
    Ok(addresses)
}
