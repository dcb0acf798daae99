//! A client over a real socket, moved step by step: when it receives, sends and acknowledges is up to its owner.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fulmar_base::Rng;
use fulmar_proto::{
    CipherSuite, ClientConfig, Connection, ConnectionError, ConnectionHandle, Datagram, Dir, Ecn, Endpoint,
    EndpointConfig, Event, FourTuple, ReadError, ResetKey, Route, SessionStore, StreamId, TransmitBatch,
    TransportConfig, VarInt, Version, restrict_suites,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{KeyLog, RootCertStore};

use crate::Result;

/// How long a server may take to answer anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Datagrams that are received in one step.
const DATAGRAMS_PER_STEP: usize = 256;
/// The name in the certificates.
const SERVER_NAME: &str = "localhost";

/// What clients have in common.
#[derive(Clone)]
pub(super) struct Profile {
    tls: Arc<rustls::ClientConfig>,
    transport: Arc<TransportConfig>,
    sessions: Option<Arc<SessionStore>>,
    early_data: bool,
}

impl Profile {
    /// Clients that speak `protocol` and trust the certificates in a file. Their first flight is small, for a key exchange with
    /// elliptic curves alone, and there is one cipher suite, so that those who watch know it.
    pub(super) fn new(authority: &Path, protocol: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let mut provider = restrict_suites(&default_provider(), &[CipherSuite::Aes128Gcm]);
        provider.kx_groups = vec![kx_group::X25519];
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let transport = Arc::new(TransportConfig::default());
        Ok(Self { tls: Arc::new(tls), transport, sessions: None, early_data: false })
    }

    /// Remembers servers.
    pub(super) fn with_sessions(mut self, sessions: Arc<SessionStore>) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Sends requests before the handshake, where the server is remembered.
    pub(super) fn with_early_data(mut self) -> Self {
        self.early_data = true;
        self
    }

    /// Lets the server send so much on each stream.
    pub(super) fn with_window(mut self, stream_bytes: u64, connection_bytes: u64) -> Self {
        self.transport = Arc::new(TransportConfig {
            stream_receive_window: stream_bytes,
            stream_receive_window_max: stream_bytes,
            receive_window: connection_bytes,
            receive_window_max: connection_bytes,
            ..TransportConfig::default()
        });
        self
    }

    /// Notes the secrets of connections.
    pub(super) fn with_secrets(mut self, secrets: Arc<Secrets>) -> Self {
        Arc::make_mut(&mut self.tls).key_log = secrets;
        self
    }

    fn config(&self) -> Result<ClientConfig> {
        let config = ClientConfig::new(self.tls.clone())
            .with_transport(self.transport.clone())?
            .with_early_data(self.early_data);
        Ok(match &self.sessions {
            Some(sessions) => config.with_sessions(sessions.clone()),
            None => config,
        })
    }
}

/// The secrets of the last connection: what protects the packets of the client, then those of the server.
#[derive(Debug, Default)]
pub(super) struct Secrets(Mutex<[Vec<u8>; 2]>);

impl Secrets {
    pub(super) fn last(&self) -> [Vec<u8>; 2] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        let mut secrets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match label {
            "CLIENT_TRAFFIC_SECRET_0" => secrets[0] = secret.to_vec(),
            "SERVER_TRAFFIC_SECRET_0" => secrets[1] = secret.to_vec(),
            _ => {}
        }
    }
}

/// A client with one connection.
pub(super) struct Client {
    socket: UdpSocket,
    server: SocketAddr,
    start: Instant,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    batch: TransmitBatch,
    is_connected: bool,
    is_confirmed: bool,
    lost: Option<ConnectionError>,
    /// The last datagram that was sent.
    last_sent: Vec<u8>,
}

impl Client {
    /// Begins a connection; nothing is sent yet.
    pub(super) fn new(profile: &Profile, server: SocketAddr, rng: &mut Rng) -> Result<Self> {
        let socket = any_socket(rng)?;
        Self::over(socket, profile, server, rng)
    }

    /// Begins a connection over a socket.
    pub(super) fn over(
        socket: UdpSocket,
        profile: &Profile,
        server: SocketAddr,
        rng: &mut Rng,
    ) -> Result<Self> {
        let config = EndpointConfig {
            versions: vec![Version::V1],
            ..EndpointConfig::new(ResetKey::new(&rng.bytes::<32>()))
        };
        let mut endpoint = Endpoint::new(Arc::new(config), None, rng.bytes());
        let addrs = FourTuple::new(server, None);
        let (handle, connection) =
            endpoint.connect(fulmar_base::Instant::ZERO, &profile.config()?, addrs, SERVER_NAME)?;
        Ok(Self {
            socket,
            server,
            start: Instant::now(),
            endpoint,
            handle,
            connection,
            batch: TransmitBatch::new(1),
            is_connected: false,
            is_confirmed: false,
            lost: None,
            last_sent: Vec::new(),
        })
    }

    /// Completes the handshake.
    pub(super) fn dial(profile: &Profile, server: SocketAddr, rng: &mut Rng) -> Result<Self> {
        let mut client = Self::new(profile, server, rng)?;
        client.shake_hands()?;
        Ok(client)
    }

    pub(super) fn shake_hands(&mut self) -> Result<()> {
        match self.wait_until(PATIENCE, |client| client.is_connected)? {
            true => Ok(()),
            false => Err("the server did not complete a handshake in time".into()),
        }
    }

    /// Waits until the server has confirmed the handshake, too.
    pub(super) fn confirm(&mut self) -> Result<()> {
        match self.wait_until(PATIENCE, |client| client.is_confirmed)? {
            true => Ok(()),
            false => Err("the server did not confirm a handshake in time".into()),
        }
    }

    /// All datagrams that it would send now, instead of sending them.
    pub(super) fn take_flight(&mut self) -> Vec<Vec<u8>> {
        let mut flight = Vec::new();
        while self.connection.poll_transmit(self.now(), &mut self.batch).is_some() {
            flight.push(self.batch.bytes().to_vec());
        }
        flight
    }

    /// Asks for something on a stream of its own; `None` while the server lets it open no more.
    pub(super) fn ask(&mut self, request: &[u8], is_all: bool) -> Result<Option<StreamId>> {
        let streams = self.connection.streams();
        let Some(id) = streams.open(Dir::Bi) else { return Ok(None) };
        streams.send(id).write(request)?;
        if is_all {
            streams.send(id).finish()?;
        }
        Ok(Some(id))
    }

    /// Says a little more on a stream.
    pub(super) fn say_more(&mut self, id: StreamId, bytes: &[u8]) {
        // What the server has closed needs no more.
        let _ = self.connection.streams().send(id).write(bytes);
    }

    /// Sends a packet in the newest keys, whatever else there is to send.
    pub(super) fn ping(&mut self) -> Result<()> {
        self.connection.ping();
        self.send()
    }

    /// Gives up both directions of a stream.
    pub(super) fn abandon(&mut self, id: StreamId) {
        let code = VarInt::from_u32(7);
        // What has ended already needs no end.
        let _ = self.connection.streams().send(id).reset(code);
        let _ = self.connection.streams().recv(id).stop(code);
    }

    /// Throws away what has arrived on a stream, at most so many bytes; gives how many there were, and whether that was all.
    pub(super) fn drain(&mut self, id: StreamId, max: usize) -> Result<(usize, bool)> {
        let mut len = 0;
        while len < max {
            match self.connection.streams().recv(id).read(max - len, true) {
                Ok(Some(chunk)) => len += chunk.bytes.len(),
                Ok(None) => return Ok((len, true)),
                Err(ReadError::Blocked) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok((len, false))
    }

    /// Sends what is due, waits at most so long for an answer, and takes what has come.
    pub(super) fn step(&mut self, patience: Duration) -> Result<()> {
        self.send()?;
        let now = self.now();
        let timer = self.connection.poll_timeout().map(|(at, _)| at.saturating_since(now));
        let wait = timer.map_or(patience, |timer| timer.min(patience));
        if !wait.is_zero() {
            wait_readable(&self.socket, wait)?;
        }
        self.receive()?;
        let now = self.now();
        if self.connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.connection.handle_timeout(now);
        }
        self.take_events();
        self.send()
    }

    /// Goes on until something is so or the time is over; gives whether it is.
    pub(super) fn wait_until(
        &mut self,
        patience: Duration,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> Result<bool> {
        let deadline = Instant::now() + patience;
        loop {
            if is_so(self) {
                return Ok(true);
            }
            if let Some(lost) = &self.lost {
                return Err(format!("the connection has ended: {lost}").into());
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(false);
            }
            self.step(deadline - now)?;
        }
    }

    /// Says goodbye and tells nobody whether it was heard.
    pub(super) fn close(&mut self) -> Result<()> {
        let now = self.now();
        self.connection.close(now, VarInt::from_u32(0), Bytes::new());
        self.send()
    }

    /// Why the connection has ended, if it has.
    pub(super) fn lost(&self) -> Option<&ConnectionError> {
        self.lost.as_ref()
    }

    /// The socket and the last datagram that was sent over it, for somebody who goes on in the name of this client.
    pub(super) fn into_parts(self) -> (UdpSocket, Vec<u8>) {
        (self.socket, self.last_sent)
    }

    fn now(&self) -> fulmar_base::Instant {
        fulmar_base::Instant::ZERO + self.start.elapsed()
    }

    fn send(&mut self) -> Result<()> {
        let now = self.now();
        while self.connection.poll_transmit(now, &mut self.batch).is_some() {
            send_to(&self.socket, self.batch.bytes(), self.server)?;
            self.last_sent.clear();
            self.last_sent.extend_from_slice(self.batch.bytes());
        }
        self.take_events();
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        let mut buffer = [0; 2048];
        for _ in 0..DATAGRAMS_PER_STEP {
            let Some((len, remote)) = receive_from(&self.socket, &mut buffer)? else { return Ok(()) };
            let addrs = FourTuple::new(remote, None);
            let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&buffer[..len]) };
            let now = self.now();
            if let Route::Connection(_, datagram) =
                self.endpoint.handle_datagram(now, datagram, &mut self.batch)
            {
                self.connection.handle_datagram(now, datagram);
            }
        }
        Ok(())
    }

    fn take_events(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_event() {
            self.endpoint.handle_event(self.handle, event);
        }
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::HandshakeConfirmed => self.is_confirmed = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                _ => {}
            }
        }
    }
}

/// A socket with an address of the loopback network that is likely to be new.
pub(super) fn any_socket(rng: &mut Rng) -> Result<UdpSocket> {
    let [a, b] = rng.bytes();
    socket_at(Ipv4Addr::new(127, 1, a, b.clamp(1, 254)))
}

/// A socket of a host of the loopback network.
pub(super) fn socket_at(host: Ipv4Addr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((host, 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Sends a datagram. What the system does not take is lost, as on any other way.
pub(super) fn send_to(socket: &UdpSocket, datagram: &[u8], server: SocketAddr) -> Result<()> {
    use std::io::ErrorKind::{ConnectionRefused, WouldBlock};
    match socket.send_to(datagram, server) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), WouldBlock | ConnectionRefused) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes a datagram, if there is one.
pub(super) fn receive_from(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
    use std::io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if matches!(error.kind(), WouldBlock | ConnectionRefused | Interrupted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Waits at most so long for a datagram.
pub(super) fn wait_readable(socket: &UdpSocket, patience: Duration) -> Result<()> {
    let timeout = Timespec::try_from(patience)?;
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
