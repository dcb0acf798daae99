//! A client and a server joined by memory, to measure what the core costs without sockets.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fulmar_proto::{
    ClientConfig, Connection, ConnectionHandle, Datagram, Dir, Ecn, Endpoint, EndpointConfig, FourTuple,
    Instant, ResetKey, Route, ServerConfig, StreamId, TransmitBatch, TransportConfig,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

/// Datagrams in a train, as a kernel with segmentation offload takes them.
const SEGMENTS: usize = 44;
/// How long a train is on its way.
const DELAY: Duration = Duration::from_micros(20);
const ALPN: &[u8] = b"bench";

struct Side {
    addr: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    batch: TransmitBatch,
}

/// Both sides, connected.
pub struct Pair {
    now: Instant,
    client: Side,
    server: Side,
    chunk: Bytes,
}

impl Side {
    fn new(addr: &str, server: Option<Arc<ServerConfig>>) -> Self {
        let config = Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32])));
        Self {
            addr: addr.parse().expect("an address"),
            endpoint: Endpoint::new(config, server, [addr.len() as u8; 32]),
            connection: None,
            batch: TransmitBatch::new(SEGMENTS),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    /// Sends everything that is ready to `peer`; returns whether there was anything.
    fn pump(&mut self, now: Instant, peer: &mut Self) -> bool {
        let mut any = false;
        let Some((handle, connection)) = &mut self.connection else { return false };
        if connection.poll_timeout().is_some_and(|(at, _)| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(transmit) = connection.poll_transmit(now, &mut self.batch) {
            any = true;
            let mut train = BytesMut::from(self.batch.bytes());
            let segment = transmit.segment_size.unwrap_or(transmit.len);
            while !train.is_empty() {
                let payload = train.split_to(segment.min(train.len()));
                let addrs = FourTuple::new(self.addr, None);
                peer.receive(now, Datagram { addrs, ecn: Ecn::NotEct, payload });
            }
        }
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        any
    }

    fn receive(&mut self, now: Instant, datagram: Datagram) {
        match self.endpoint.handle_datagram(now, datagram, &mut self.batch) {
            Route::Connection(_, datagram) => self.connection().handle_datagram(now, datagram),
            Route::Incoming(incoming) => {
                self.connection = Some(self.endpoint.accept(now, incoming).expect("a server"));
            }
            Route::Reply(_) | Route::Dropped(_) => {}
        }
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// Connects a client to a server.
    pub fn new() -> Self {
        Self::with_log(0)
    }

    /// Connects a client to a server, each of which keeps a log of so many entries.
    pub fn with_log(log_entries: usize) -> Self {
        let transport = Arc::new(TransportConfig { log_entries, ..TransportConfig::default() });
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let cert = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions: [&rustls::SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
        let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![cert.clone()], key.into())
            .expect("a key for the certificate");
        server.alpn_protocols = vec![ALPN.to_vec()];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert).expect("a root");
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .expect("TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![ALPN.to_vec()];
        let server_config = ServerConfig::new(Arc::new(server))
            .with_transport(transport.clone())
            .expect("a valid configuration");
        let mut pair = Self {
            now: Instant::from_millis(1),
            client: Side::new("127.0.0.1:1000", None),
            server: Side::new("127.0.0.1:443", Some(Arc::new(server_config))),
            chunk: Bytes::from(vec![7; 64 * 1024]),
        };
        let config =
            ClientConfig::new(Arc::new(client)).with_transport(transport).expect("a valid configuration");
        let addrs = FourTuple::new(pair.server.addr, None);
        let connected = pair.client.endpoint.connect(pair.now, &config, addrs, "localhost");
        pair.client.connection = Some(connected.expect("a connection"));
        while pair.client.connection().is_handshaking() || pair.server.connection().is_handshaking() {
            pair.step();
        }
        pair
    }

    fn step(&mut self) {
        self.client.pump(self.now, &mut self.server);
        self.server.pump(self.now, &mut self.client);
        self.now += DELAY;
    }

    /// Sends `bytes` from the client to the server on a stream of their own.
    pub fn upload(&mut self, bytes: u64) {
        let id = self.client.connection().streams().open(Dir::Uni).expect("a stream");
        let (mut left, mut received) = (bytes, 0);
        while received < bytes {
            self.write(id, &mut left);
            self.step();
            received += self.read(id);
        }
        self.server.connection().streams().accept(Dir::Uni);
    }

    fn write(&mut self, id: StreamId, left: &mut u64) {
        let mut stream = self.client.connection().streams().send(id);
        while *left > 0 {
            let mut chunk = self.chunk.slice(..self.chunk.len().min(*left as usize));
            match stream.write_chunk(&mut chunk) {
                Ok(written) => *left -= written as u64,
                Err(_) => return,
            }
            if *left == 0 {
                let _ = stream.finish();
            }
        }
    }

    fn read(&mut self, id: StreamId) -> u64 {
        let mut stream = self.server.connection().streams().recv(id);
        let mut bytes = 0;
        while let Ok(Some(chunk)) = stream.read(usize::MAX, true) {
            bytes += chunk.bytes.len() as u64;
        }
        bytes
    }
}
