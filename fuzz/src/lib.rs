//! A client and a server whose handshake is complete, for fuzz targets. Everything about them is fixed, so an
//! input does the same each time.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_lab::crypto;
use fulmar_proto::{
    AddressDiscovery, ClientConfig, Connection, ConnectionHandle, Datagram, Dir, Ecn, Endpoint,
    EndpointConfig, FecConfig, FourTuple, Instant, MultipathConfig, ResetKey, Route, ServerConfig,
    SessionStore, TimeStamps, TransmitBatch, TransportConfig, Version,
};

/// Connections that a target keeps: more than enough, and memory stays bounded.
const CONNECTIONS_MAX: usize = 16;

/// Extensions that are off by default are on, so that each frame has an owner; multipath, which writes frames in
/// another way, if the input says so.
fn transport(fec: FecConfig, multipath: bool) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        address_discovery: Some(AddressDiscovery::Both),
        time_stamps: Some(TimeStamps::Both),
        fec: Some(fec),
        multipath: multipath.then(MultipathConfig::default),
        ..TransportConfig::default()
    })
}

/// A datagram that a host has sent.
pub struct Sent {
    /// Where to, and from which address if the connection has chosen one.
    pub addrs: FourTuple,
    pub payload: Vec<u8>,
}

/// An endpoint and its connections.
pub struct Host {
    pub endpoint: Endpoint,
    pub connections: Vec<(ConnectionHandle, Connection)>,
    addr: SocketAddr,
    batch: TransmitBatch,
}

impl Host {
    fn new(addr: &str, server: Option<Arc<ServerConfig>>) -> Self {
        let config = Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32])));
        Self {
            endpoint: Endpoint::new(config, server, [addr.len() as u8; 32]),
            connections: Vec::new(),
            addr: addr.parse().expect("an address"),
            batch: TransmitBatch::new(4),
        }
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes a datagram from `remote`.
    pub fn receive(&mut self, now: Instant, remote: SocketAddr, payload: &[u8]) {
        self.receive_at(now, None, remote, payload);
    }

    /// Takes a datagram that came from `remote` to one of the addresses of this host.
    pub fn receive_at(&mut self, now: Instant, local: Option<IpAddr>, remote: SocketAddr, payload: &[u8]) {
        let addrs = FourTuple::new(remote, local);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) };
        match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(handle, datagram) => {
                let connection = self.connections.iter_mut().find(|(known, _)| *known == handle);
                connection.expect("a route leads to a connection").1.handle_datagram(now, datagram);
            }
            Route::Incoming(incoming) if self.connections.len() < CONNECTIONS_MAX => {
                self.connections.push(self.endpoint.accept(now, incoming).expect("a server accepts"));
            }
            Route::Incoming(incoming) => self.endpoint.ignore(incoming),
            Route::Reply(_) | Route::Dropped(_) => {}
        }
    }

    /// Takes out everything that the connections have to say; returns the datagrams.
    pub fn drain(&mut self, now: Instant) -> Vec<Sent> {
        let mut out = Vec::new();
        for (handle, connection) in &mut self.connections {
            if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
                connection.handle_timeout(now);
            }
            while let Some(transmit) = connection.poll_transmit(now, &mut self.batch) {
                let segment = transmit.segment_size.unwrap_or(transmit.len);
                let datagrams = self.batch.bytes().chunks(segment);
                out.extend(datagrams.map(|d| Sent { addrs: transmit.addrs, payload: d.to_vec() }));
            }
            while connection.poll_event().is_some() {}
            while let Some(event) = connection.poll_endpoint_event() {
                self.endpoint.handle_event(*handle, event);
            }
        }
        self.connections.retain(|(_, connection)| !connection.is_drained());
        out
    }
}

/// A connected client and server.
pub struct Pair {
    pub now: Instant,
    pub client: Host,
    pub server: Host,
    /// Every datagram of the handshake, for targets that repeat or damage them.
    pub to_server: Vec<Vec<u8>>,
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// Both ends without multipath.
    pub fn new() -> Self {
        Self::with_multipath(false)
    }

    /// Both ends, with multipath or without.
    pub fn with_multipath(multipath: bool) -> Self {
        Self::with(FecConfig::default(), multipath)
    }

    /// A connection whose ends both have erasure correction configured so.
    pub fn with_fec(fec: FecConfig) -> Self {
        Self::with(fec, false)
    }

    fn with(fec: FecConfig, multipath: bool) -> Self {
        let transport = transport(fec, multipath);
        crypto::seed(1);
        let server = ServerConfig::new(Arc::new(crypto::server_config(&[b"fuzz"])))
            .with_transport(transport.clone())
            .expect("a valid configuration");
        let mut pair = Self {
            now: Instant::from_millis(1),
            client: Host::new("10.0.0.1:1000", None),
            server: Host::new("10.0.0.22:443", Some(Arc::new(server))),
            to_server: Vec::new(),
        };
        let client = ClientConfig::new(Arc::new(crypto::client_config(&[b"fuzz"])));
        pair.dial(&client.with_transport(transport).expect("a valid configuration"));
        for _ in 0..10 {
            pair.exchange();
        }
        assert!(!pair.server.connections[0].1.is_handshaking(), "the handshake is complete");
        pair
    }

    /// Begins a connection of the client.
    fn dial(&mut self, config: &ClientConfig) {
        let addrs = FourTuple::new(self.server.addr, None);
        let connection = self.client.endpoint.connect(self.now, config, addrs, crypto::SERVER_NAME);
        self.client.connections.push(connection.expect("a connection"));
    }

    /// Carries what both have to say to the other, and lets 10 ms pass.
    pub fn exchange(&mut self) {
        for Sent { addrs, payload } in self.client.drain(self.now) {
            let from =
                SocketAddr::new(addrs.local_ip.unwrap_or(self.client.addr.ip()), self.client.addr.port());
            self.server.receive(self.now, from, &payload);
            self.to_server.push(payload);
        }
        for Sent { addrs, payload } in self.server.drain(self.now) {
            self.client.receive_at(self.now, Some(addrs.remote.ip()), self.server.addr, &payload);
        }
        self.now += Duration::from_millis(10);
    }

    /// Opens two more paths, where there is multipath, and lets one of them prove itself.
    pub fn open_paths(&mut self) {
        for n in 1..=2 {
            let addrs = FourTuple::new(self.server.addr, Some(IpAddr::from([10, 0, n, 1])));
            let opened = self.client.connections[0].1.open_path(self.now, addrs);
            opened.expect("there are path IDs and connection IDs for it");
            if n == 1 {
                for _ in 0..4 {
                    self.exchange();
                }
            }
        }
    }

    /// Opens streams on both ends, so that frames meet something.
    pub fn open_streams(&mut self) {
        for host in [&mut self.client, &mut self.server] {
            let streams = host.connections[0].1.streams();
            for dir in [Dir::Bi, Dir::Uni] {
                let id = streams.open(dir).expect("the peer allows streams");
                streams.send(id).write(b"some bytes").expect("there is room");
            }
        }
        self.exchange();
    }

    pub fn client_addr(&self) -> SocketAddr {
        self.client.addr
    }
}

/// A server that has given a client a token, and is shown others.
pub struct TokenServer {
    pair: Pair,
    client: ClientConfig,
    genuine: Vec<u8>,
    shown: bool,
}

impl Default for TokenServer {
    fn default() -> Self {
        Self::new()
    }
}

impl TokenServer {
    pub fn new() -> Self {
        let mut pair = Pair::new();
        let client = ClientConfig::new(Arc::new(crypto::client_config(&[b"fuzz"])));
        let store = SessionStore::new(1);
        pair.client.connections.clear();
        pair.dial(&client.clone().with_sessions(store.clone()));
        for _ in 0..10 {
            pair.exchange();
        }
        // The file ends with the last token and the empty path.
        let file = store.to_bytes();
        let genuine = file[file.len() - 2 - TOKEN_LEN..file.len() - 2].to_vec();
        Self { pair, client, genuine, shown: false }
    }

    /// Shows a token, made up or damaged as the bytes say, from the host that it was given to or from another.
    pub fn try_token(&mut self, kind: u8, bytes: &[u8]) {
        let mut token = if kind & 1 == 0 { bytes.to_vec() } else { self.genuine.clone() };
        if kind & 1 == 1 {
            for change in bytes.chunks_exact(2) {
                token[usize::from(change[0]) % TOKEN_LEN] ^= change[1];
            }
        }
        token.truncate(400);
        let store = SessionStore::new(1);
        store.add_bytes(&session_file(&token)).expect("a file as the store writes it");
        self.pair.client.connections.clear();
        self.pair.dial(&self.client.clone().with_sessions(store));
        let Some(first) = self.pair.client.drain(self.pair.now).into_iter().next() else { return };
        let first = first.payload;
        let stolen = kind & 2 != 0;
        let remote = if stolen { SocketAddr::from(([10, 0, 0, 9], 1000)) } else { self.pair.client.addr };
        let addrs = FourTuple::new(remote, None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(&first[..]) };
        let server = &mut self.pair.server;
        if let Route::Incoming(incoming) =
            server.endpoint.handle_datagram(self.pair.now, datagram, &mut server.batch)
        {
            let is_good = token == self.genuine && !stolen && !std::mem::replace(&mut self.shown, true);
            assert_eq!(
                incoming.is_validated(),
                is_good,
                "a token that was not given to this host proves nothing"
            );
            server.endpoint.ignore(incoming);
        }
    }
}

/// What a token for later connections has: kind, key, salt, time, format, credit, tag.
const TOKEN_LEN: usize = 1 + 4 + 16 + 8 + 1 + 16 + 16;

/// A file of sessions with one token for the server.
fn session_file(token: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| (bytes.len() as u16).to_be_bytes();
    let name = crypto::SERVER_NAME.as_bytes();
    let version = Version::V1.0.to_be_bytes();
    let token_len = len(token);
    [
        &b"fulmar\x00\x02"[..],
        &len(name),
        name,
        &443_u16.to_be_bytes(),
        &[u8::from(!token.is_empty())],
        if token.is_empty() { &[] } else { &version },
        if token.is_empty() { &[] } else { &token_len },
        token,
        &[0, 0],
    ]
    .concat()
}
