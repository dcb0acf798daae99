//! Two ends of quinn's core, joined by memory in the same way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    MtuDiscoveryConfig, ServerConfig, StreamId, TransportConfig, VarInt,
};

use crate::train::Train;
use crate::{CLIENT, DELAY, PAYLOAD, SEGMENTS, SERVER, WINDOW, tls};

struct Side {
    peer: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    buffer: Vec<u8>,
    /// What this side has sent and the other has not received yet.
    on_the_way: Option<Train>,
}

/// Both sides, connected.
pub struct QuinnPair {
    now: Instant,
    client: Side,
    server: Side,
    chunk: Bytes,
}

impl Side {
    fn new(peer: &str, server: Option<Arc<ServerConfig>>) -> Self {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None);
        let peer = peer.parse().expect("an address");
        Self { peer, endpoint, connection: None, buffer: Vec::new(), on_the_way: None }
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("there is a connection").1
    }

    /// Sends the next train, if one is ready, and takes care of what else the core asks for.
    fn pump(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        self.buffer.clear();
        let transmit = connection.poll_transmit(now, SEGMENTS, &mut self.buffer);
        self.on_the_way =
            transmit.map(|transmit| Train::new(&self.buffer[..transmit.size], transmit.segment_size));
        while connection.poll().is_some() {}
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    fn receive_train(&mut self, now: Instant, train: Option<Train>) {
        let mut answer = Vec::new();
        for datagram in train.into_iter().flatten() {
            match self.endpoint.handle(now, self.peer, None, None, datagram, &mut answer) {
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
            client: Side::new(SERVER, None),
            server: Side::new(CLIENT, Some(Arc::new(server))),
            chunk: Bytes::from(vec![7; 64 * 1024]),
        };
        let connected = pair.client.endpoint.connect(pair.now, client, pair.client.peer, "localhost");
        pair.client.connection = Some(connected.expect("a connection"));
        while pair.client.connection().is_handshaking()
            || pair.server.connection.as_ref().is_none_or(|(_, connection)| connection.is_handshaking())
        {
            pair.step();
        }
        pair
    }

    fn step(&mut self) {
        let trains = (self.client.on_the_way.take(), self.server.on_the_way.take());
        self.server.receive_train(self.now, trains.0);
        self.client.receive_train(self.now, trains.1);
        self.client.pump(self.now);
        self.server.pump(self.now);
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
