//! How the program sets up the crate `fulmar`: what listens, what dials, and the figures of a connection.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fulmar::{
    AddressDiscovery, AddressValidation, AeadBackend, CipherSuite, ClientConfig, ConfigError,
    CongestionControl, Connecting, Connection, ConnectionError, Dscp, Endpoint, EndpointBuilder,
    EndpointConfig, Incoming, KeyUpdatePolicy, ReadError, RecvStream, ResetKey, ServerConfig, SessionStore,
    TimeStamps, TokenKeys, TransportConfig, VarInt, Version,
};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::args::{AeadName, Cipher, CongestionName, DiscoveryRole, TransportArgs, TrustArgs, VersionName};
use crate::authority::Authority;
use crate::failure::{Failure, is_protocol_refusal};
use crate::qlog::{self, QlogDir};
use crate::report::Listening;
use crate::tls::{self, Identity, Refusal};

/// The application error code of a connection that ends because all is done.
pub(crate) const CLOSE_DONE: VarInt = VarInt::from_u32(0);

/// How long one address of a server may stay silent before the next one is tried as well (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// How many TLS sessions a server remembers, each of some hundred bytes.
const SESSIONS_MAX: usize = 10_000;
/// How many addresses of a server are tried.
const ADDRESSES_MAX: usize = 8;
/// How long the end of the program may be put off to tell the peers of it.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// How many chunks are taken from a stream at once. Each is a datagram's share, so together they are what a batch of
/// the socket brings.
const CHUNKS_MAX: usize = 64;

/// A runtime with one thread for everything but files and names.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::io("cannot start the runtime"))
}

/// What the command line asks of the transport.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    config: Arc<TransportConfig>,
    aead: AeadBackend,
    logs: Option<Arc<QlogDir>>,
    versions: Vec<Version>,
    initial_version: Option<Version>,
    dscp: Dscp,
}

impl Default for Transport {
    /// What users of the library get who configure nothing.
    fn default() -> Self {
        Self {
            config: Arc::default(),
            aead: AeadBackend::preferred(),
            versions: vec![Version::V1, Version::V2],
            initial_version: None,
            dscp: Dscp::default(),
            logs: None,
        }
    }
}

impl Transport {
    /// The default, but with new keys after so many packets.
    pub(crate) fn with_key_update_after(packets: u64) -> Self {
        let key_update = KeyUpdatePolicy { packets: Some(packets), ..KeyUpdatePolicy::default() };
        let config = TransportConfig { key_update, ..TransportConfig::default() };
        Self { config: Arc::new(config), ..Self::default() }
    }

    /// Fails if the options contradict each other.
    pub(crate) fn from_args(args: &TransportArgs) -> Result<Self, Failure> {
        let default = TransportConfig::default();
        let config = TransportConfig {
            congestion: match args.cc {
                CongestionName::Newreno => CongestionControl::NewReno(Default::default()),
                CongestionName::Cubic => CongestionControl::Cubic(Default::default()),
                CongestionName::Bbr => CongestionControl::Bbr(Default::default()),
                CongestionName::Bbr1 => CongestionControl::Bbr1(Default::default()),
                CongestionName::Prague => CongestionControl::Prague(Default::default()),
            },
            max_idle_timeout: Some(args.idle_timeout).filter(|timeout| !timeout.is_zero()),
            handshake_timeout: args.handshake_timeout,
            keep_alive_interval: args.keep_alive,
            key_update: KeyUpdatePolicy { packets: args.key_update, bytes: None },
            mtu_max: args.mtu_max.unwrap_or(default.mtu_max),
            time_stamps: args.time_stamps.then_some(TimeStamps::Both),
            address_discovery: args.address_discovery.map(|role| match role {
                DiscoveryRole::Provide => AddressDiscovery::Provide,
                DiscoveryRole::Receive => AddressDiscovery::Receive,
                DiscoveryRole::Both => AddressDiscovery::Both,
            }),
            ..default
        };
        config.validate().map_err(unusable)?;
        let aead = match args.aead {
            AeadName::Auto => AeadBackend::preferred(),
            AeadName::Ring => AeadBackend::Ring,
            AeadName::AwsLc => AeadBackend::AwsLc,
        };
        let version = |name: &VersionName| match name {
            VersionName::V1 => Version::V1,
            VersionName::V2 => Version::V2,
        };
        let versions = args.versions.iter().map(version).collect();
        let initial_version = args.initial_version.as_ref().map(version);
        // Values above 63 are refused with the arguments.
        let dscp = Dscp::new(args.dscp).unwrap_or_default();
        Ok(Self { config: Arc::new(config), aead, versions, initial_version, dscp, logs: None })
    }

    /// Lets connections write down what they do.
    pub(crate) fn with_logs(mut self, logs: Option<Arc<QlogDir>>) -> Self {
        let log_entries = if logs.is_some() { qlog::LOG_ENTRIES } else { 0 };
        self.config = Arc::new(TransportConfig { log_entries, ..TransportConfig::clone(&self.config) });
        Self { logs, ..self }
    }

    /// The beginnings of an endpoint.
    pub(crate) fn endpoint(&self) -> EndpointBuilder {
        let mut builder = Endpoint::builder().versions(self.versions.clone()).dscp(self.dscp);
        if let Some(logs) = &self.logs {
            builder = builder.log_sink(logs.clone(), logs.delivery());
        }
        match self.initial_version {
            Some(version) => builder.initial_version(version),
            None => builder,
        }
    }
}

fn unusable(error: ConfigError) -> Failure {
    Failure::Usage(format!("the transport cannot be configured so: {error}"))
}

/// What a server needs to listen.
pub(crate) struct Listen<'a> {
    /// Where; `None` for all addresses of the machine at `default_port`.
    pub(crate) addr: Option<SocketAddr>,
    pub(crate) default_port: u16,
    pub(crate) identity: &'a Identity,
    pub(crate) protocol: &'static str,
    pub(crate) transport: &'a Transport,
    pub(crate) reset_key: Option<[u8; 32]>,
    pub(crate) validation: AddressValidation,
    /// Keys with which TLS sessions are sealed, instead of being kept.
    pub(crate) sealed_tickets: Option<TokenKeys>,
    /// Whether early data is taken.
    pub(crate) early_data: bool,
}

impl Listen<'_> {
    /// How connections are taken.
    pub(crate) fn config(&self) -> Result<ServerConfig, Failure> {
        let tls = tls::server_config(self.identity, self.protocol)?;
        let config =
            ServerConfig::new(tls).with_stored_sessions(SESSIONS_MAX).with_early_data(self.early_data);
        match &self.sealed_tickets {
            Some(keys) => config.with_sealed_tickets(keys.clone()),
            None => config,
        }
        .with_aead(self.transport.aead)
        .with_transport(self.transport.config.clone())
        .and_then(|config| config.with_address_validation(self.validation.clone()))
        .map_err(unusable)
    }

    /// Binds the socket, and tells the address it really has. Needs a runtime.
    pub(crate) fn bind(&self) -> Result<(Endpoint, Listening), Failure> {
        let config = self.config()?;
        let bind = |addr: SocketAddr| {
            let builder = self.transport.endpoint().server_config(config.clone());
            match &self.reset_key {
                Some(key) => builder.config(EndpointConfig::new(ResetKey::new(key))).bind(addr),
                None => builder.bind(addr),
            }
        };
        let endpoint = match self.addr {
            Some(addr) => bind(addr).map_err(Failure::io(format!("cannot listen on {addr}")))?,
            // Without IPv6 on the machine, IPv4 has to do.
            None => bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, self.default_port)))
                .or_else(|_| bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.default_port))))
                .map_err(Failure::io(format!("cannot listen on port {}", self.default_port)))?,
        };
        let listening =
            endpoint.local_addr().map_err(Failure::io("cannot tell the address of the socket"))?;
        Ok((endpoint, Listening { listening, fingerprint: self.identity.fingerprint().to_string() }))
    }
}

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
}

impl Dialer {
    /// Looks up the addresses of `server` and binds a socket for each family of addresses it has.
    pub(crate) async fn new(
        server: &Authority,
        trust: &TrustArgs,
        cipher: Option<Cipher>,
        protocol: &'static str,
        transport: &Transport,
    ) -> Result<Self, Failure> {
        let (config, refusal) = client_config(trust, cipher, protocol, transport.clone())?;
        let addresses = resolve(server).await?;
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
        Ok(Self { peer, host, addresses, endpoints, config, protocol, refusal })
    }

    /// Connects over the address that answers first. Each one gets a head start over the next, so that a silent
    /// one costs a moment and not the whole handshake timeout.
    pub(crate) async fn dial(&self) -> Result<Connection, Failure> {
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
                    Ok(Ok(connection)) => return Ok(connection),
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
        match self.connect(config, address)?.into_0rtt() {
            Ok(connection) => Ok(connection),
            Err(connecting) => connecting.await.map_err(|error| self.judge(error)),
        }
    }

    fn connect(&self, config: ClientConfig, address: SocketAddr) -> Result<Connecting, Failure> {
        let same_family = |endpoint: &&Endpoint| {
            endpoint.local_addr().is_ok_and(|local| local.is_ipv4() == address.is_ipv4())
        };
        let endpoint = self.endpoints.iter().find(same_family).unwrap_or(&self.endpoints[0]);
        endpoint
            .connect_with(config, address, &self.host)
            .map_err(|error| Failure::Connect { peer: self.peer.clone(), error })
    }

    /// Gives the sockets a moment to tell the peers that their connections are closed.
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

/// What connections need that begin here. Why a certificate was refused can be read from the `Refusal`.
pub(crate) fn client_config(
    trust: &TrustArgs,
    cipher: Option<Cipher>,
    protocol: &'static str,
    transport: Transport,
) -> Result<(ClientConfig, Refusal), Failure> {
    let (tls, refusal) = tls::client_config(trust, cipher, protocol)?;
    let config = ClientConfig::new(tls).with_transport(transport.config.clone()).map_err(unusable)?;
    Ok((config.with_aead(transport.aead), refusal))
}

/// Completes the handshake with a client.
pub(crate) async fn accept(incoming: Incoming) -> Result<Connection, Failure> {
    let peer = incoming.remote_address().to_string();
    begin(incoming)?.await.map_err(Failure::connection(&peer))
}

/// Takes a client's connection at once, so that its early data is answered without waiting for the end of the handshake.
/// What is asked may have been asked before by the same client: this is for servers that do no harm by answering twice.
pub(crate) async fn accept_early(incoming: Incoming) -> Result<Connection, Failure> {
    let peer = incoming.remote_address().to_string();
    match begin(incoming)?.into_0rtt() {
        Ok(connection) => Ok(connection),
        Err(connecting) => connecting.await.map_err(Failure::connection(&peer)),
    }
}

fn begin(incoming: Incoming) -> Result<Connecting, Failure> {
    let peer = incoming.remote_address().to_string();
    incoming.accept().map_err(|error| Failure::Accept { peer, error })
}

/// Gives `endpoint` a moment to tell the peers that their connections are closed.
pub(crate) async fn farewell(endpoint: &Endpoint) {
    let _ = timeout(FAREWELL_MAX, endpoint.wait_idle()).await;
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

/// The figures of a connection that this program prints.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    pub(crate) rtt: Duration,
    pub(crate) rtt_min: Duration,
    pub(crate) window_bytes: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_lost: u64,
    /// The name that TLS has for the cipher suite, once there is one.
    pub(crate) cipher_suite: Option<&'static str>,
}

impl Figures {
    pub(crate) fn of(connection: &Connection) -> Self {
        let stats = connection.stats();
        Self {
            rtt: stats.rtt,
            rtt_min: stats.rtt_min.unwrap_or_default(),
            window_bytes: stats.cwnd,
            packets_sent: stats.packets_sent,
            packets_lost: stats.packets_lost,
            cipher_suite: stats.cipher_suite.map(|suite| match suite {
                CipherSuite::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
                CipherSuite::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
                CipherSuite::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
            }),
        }
    }
}

/// Takes what a stream has, many chunks at a time and without copying.
#[derive(Debug)]
pub(crate) struct Inbox([Bytes; CHUNKS_MAX]);

impl Inbox {
    pub(crate) fn new() -> Self {
        Self([const { Bytes::new() }; CHUNKS_MAX])
    }

    /// Waits for bytes and hands over those that are there; false at the end of the stream.
    pub(crate) async fn take(
        &mut self,
        recv: &mut RecvStream,
        mut each: impl FnMut(Bytes),
    ) -> Result<bool, ReadError> {
        let Some(count) = recv.read_chunks(&mut self.0).await? else { return Ok(false) };
        // Taken out and not just looked at: a chunk that is kept would keep its receive buffer from being reused.
        self.0[..count].iter_mut().map(std::mem::take).for_each(&mut each);
        Ok(true)
    }
}
