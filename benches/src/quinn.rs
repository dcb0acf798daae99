//! Two ends of quinn's core, joined by memory in the same way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    MtuDiscoveryConfig, ServerConfig, StreamId, Transmit, TransportConfig, VarInt,
};

use crate::{DELAY, PAYLOAD, SEGMENTS, WINDOW, tls};

struct Side {
    addr: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    buffer: Vec<u8>,
}

/// Both sides, connected.
pub struct QuinnPair {
    now: Instant,
    client: Side,
    server: Side,
    chunk: Bytes,
}

impl Side {
    fn new(addr: &str, server: Option<Arc<ServerConfig>>) -> Self {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None);
        Self { addr: addr.parse().expect("an address"), endpoint, connection: None, buffer: Vec::new() }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    /// Sends everything that is ready to `peer`.
    fn pump(&mut self, now: Instant, peer: &mut Self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        loop {
            self.buffer.clear();
            let Some(transmit) = connection.poll_transmit(now, SEGMENTS, &mut self.buffer) else { break };
            peer.receive(now, self.addr, &transmit, &self.buffer);
        }
        while connection.poll().is_some() {}
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, transmit: &Transmit, bytes: &[u8]) {
        let mut train = BytesMut::from(&bytes[..transmit.size]);
        let segment = transmit.segment_size.unwrap_or(transmit.size);
        let mut answer = Vec::new();
        while !train.is_empty() {
            let datagram = train.split_to(segment.min(train.len()));
            match self.endpoint.handle(now, from, None, None, datagram, &mut answer) {
                Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
                Some(DatagramEvent::NewConnection(incoming)) => {
                    let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                    self.connection = Some(accepted.unwrap_or_else(|error| panic!("{}", error.cause)));
                }
                Some(DatagramEvent::Response(_)) | None => {}
            }
        }
    }
}

impl Default for QuinnPair {
    fn default() -> Self {
        Self::new()
    }
}

impl QuinnPair {
    /// Connects a client to a server.
    pub fn new() -> Self {
        let transport = Arc::new(transport());
        let (server, client) = tls::configs(rustls::crypto::aws_lc_rs::default_provider());
        let server = QuicServerConfig::try_from(server).expect("a suite for Initial packets");
        let mut server = ServerConfig::with_crypto(Arc::new(server));
        server.transport_config(transport.clone());
        let client = QuicClientConfig::try_from(client).expect("a suite for Initial packets");
        let mut client = ClientConfig::new(Arc::new(client));
        client.transport_config(transport);
        let mut pair = Self {
            now: Instant::now(),
            client: Side::new("127.0.0.1:1000", None),
            server: Side::new("127.0.0.1:443", Some(Arc::new(server))),
            chunk: Bytes::from(vec![7; 64 * 1024]),
        };
        let connected = pair.client.endpoint.connect(pair.now, client, pair.server.addr, "localhost");
        pair.client.connection = Some(connected.expect("a connection"));
        while pair.client.connection().is_handshaking()
            || pair.server.connection.as_ref().is_none_or(|(_, connection)| connection.is_handshaking())
        {
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
        let mut stream = self.client.connection().send_stream(id);
        while *left > 0 {
            let mut chunks = [self.chunk.slice(..self.chunk.len().min(*left as usize))];
            match stream.write_chunks(&mut chunks) {
                Ok(written) => *left -= written.bytes as u64,
                Err(_) => return,
            }
            if *left == 0 {
                let _ = stream.finish();
            }
        }
    }

    fn read(&mut self, id: StreamId) -> u64 {
        let mut stream = self.server.connection().recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return 0 };
        let mut bytes = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            bytes += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
        bytes
    }
}

fn transport() -> TransportConfig {
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(PAYLOAD);
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(u64::from(WINDOW))
        .initial_mtu(PAYLOAD)
        .mtu_discovery_config(Some(discovery));
    transport
}
