//! A client and a server, joined by a perfect wire of 5 ms in each direction.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use fulmar_proto::{
    ClientConfig, Connection, ConnectionHandle, Datagram, Endpoint, EndpointConfig, Event, FourTuple,
    Instant, ResetKey, Route, ServerConfig, Side, Transmit, TransmitBatch, TransportConfig,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

pub const CLIENT: &str = "10.0.0.1:1000";
pub const SERVER: &str = "10.0.0.2:443";
pub const ALPN: &[u8] = b"test";
const DELAY: Duration = Duration::from_millis(5);
/// More does not happen at one instant.
const STEPS_AT_ONCE_MAX: u32 = 100;

/// One end: its endpoint and its connection.
pub struct End {
    pub side: Side,
    pub addr: SocketAddr,
    pub endpoint: Endpoint,
    pub connection: Option<(ConnectionHandle, Connection)>,
    pub events: Vec<Event>,
    /// Datagrams on their way here, with their time of arrival.
    pub inbox: VecDeque<(Instant, Vec<u8>)>,
    /// Whether what this end sends is lost.
    pub mute: bool,
    batch: TransmitBatch,
    pub sent: Vec<Vec<u8>>,
}

impl End {
    fn new(side: Side, addr: &str, server: Option<Arc<ServerConfig>>, reset_key: u8) -> Self {
        let config = Arc::new(EndpointConfig::new(ResetKey::new(&[reset_key; 32])));
        Self {
            side,
            addr: addr.parse().unwrap(),
            endpoint: Endpoint::new(config, server, [side.is_server() as u8; 32]),
            connection: None,
            events: Vec::new(),
            inbox: VecDeque::new(),
            mute: false,
            batch: TransmitBatch::new(10),
            sent: Vec::new(),
        }
    }

    pub fn conn(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    fn receive(&mut self, now: Instant, payload: &[u8], from: SocketAddr) -> Option<Transmit> {
        let addrs = FourTuple { remote: from, local_ip: None };
        let datagram = Datagram { addrs, ecn: fulmar_proto::Ecn::NotEct, payload: BytesMut::from(payload) };
        match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(handle, datagram) => {
                let (known, connection) = self.connection.as_mut().expect("routed to a connection");
                assert_eq!(*known, handle);
                connection.handle_datagram(now, datagram);
            }
            Route::Incoming(incoming) => {
                self.connection = Some(self.endpoint.accept(now, incoming).expect("accepted"));
            }
            Route::Reply(transmit) => return Some(transmit),
            Route::Dropped(_) => {}
        }
        None
    }

    /// Takes out what the connection has to say; returns datagrams.
    fn drain(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let Some((handle, connection)) = &mut self.connection else { return out };
        if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(transmit) = connection.poll_transmit(now, &mut self.batch) {
            let segment = transmit.segment_size.unwrap_or(transmit.len);
            out.extend(self.batch.bytes().chunks(segment).map(<[u8]>::to_vec));
        }
        while let Some(event) = connection.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        self.sent.extend(out.iter().cloned());
        if self.mute { Vec::new() } else { out }
    }
}

/// Both ends and the time.
pub struct Pair {
    pub now: Instant,
    pub client: End,
    pub server: End,
}

impl Pair {
    pub fn new(client: TransportConfig, server: TransportConfig) -> Self {
        let server = ServerConfig::new(Arc::new(server_tls())).with_transport(Arc::new(server)).unwrap();
        let mut pair = Self {
            now: Instant::from_millis(1),
            client: End::new(Side::Client, CLIENT, None, 1),
            server: End::new(Side::Server, SERVER, Some(Arc::new(server)), 2),
        };
        pair.dial(client);
        pair
    }

    pub fn connected() -> Self {
        let mut pair = Self::new(TransportConfig::default(), TransportConfig::default());
        pair.run_for(Duration::from_millis(100));
        pair
    }

    fn dial(&mut self, transport: TransportConfig) {
        let config = ClientConfig::new(Arc::new(client_tls())).with_transport(Arc::new(transport)).unwrap();
        let addrs = FourTuple { remote: self.server.addr, local_ip: None };
        let connection = self.client.endpoint.connect(self.now, &config, addrs, "localhost").unwrap();
        self.client.connection = Some(connection);
    }

    /// Lets the time pass.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        let mut steps_at_once = 0;
        while self.now < end {
            let before = self.now;
            self.step();
            let next = [&self.client, &self.server]
                .into_iter()
                .flat_map(|e| {
                    let timer = e.connection.as_ref().and_then(|(_, c)| c.poll_timeout()).map(|(at, _)| at);
                    timer.into_iter().chain(e.inbox.front().map(|(at, _)| *at))
                })
                .min();
            match next {
                Some(at) if at <= end => self.now = at.max(self.now),
                _ => self.now = end,
            }
            steps_at_once = if self.now == before { steps_at_once + 1 } else { 0 };
            assert!(steps_at_once < STEPS_AT_ONCE_MAX, "a timer rings without end at {:?}", self.now);
        }
        self.step();
    }

    /// Delivers what has arrived and sends what is ready.
    fn step(&mut self) {
        let now = self.now;
        for (to, from) in [(&mut self.client, self.server.addr), (&mut self.server, CLIENT.parse().unwrap())]
        {
            while to.inbox.front().is_some_and(|(at, _)| *at <= now) {
                let (_, payload) = to.inbox.pop_front().unwrap();
                to.receive(now, &payload, from);
            }
        }
        for datagram in self.client.drain(now) {
            self.server.inbox.push_back((now + DELAY, datagram));
        }
        for datagram in self.server.drain(now) {
            self.client.inbox.push_back((now + DELAY, datagram));
        }
    }
}

fn certificate() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    (certified.cert.der().clone(), key.into())
}

thread_local! {
    static CERTIFICATE: (CertificateDer<'static>, PrivateKeyDer<'static>) = certificate();
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

pub fn server_tls() -> rustls::ServerConfig {
    let (cert, key) = CERTIFICATE.with(|(cert, key)| (cert.clone(), key.clone_key()));
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}

pub fn client_tls() -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    CERTIFICATE.with(|(cert, _)| roots.add(cert.clone()).unwrap());
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config
}
