//! What each of many clients of a server makes it keep.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fulmar_proto::{
    Connection, ConnectionHandle, Datagram, Ecn, Endpoint, EndpointConfig, FourTuple, Instant, ResetKey,
    Route, ServerConfig, TransmitBatch,
};
use pair::Setup;

/// A server and those of its connections that it has not forgotten.
struct Server {
    endpoint: Endpoint,
    connections: Vec<Option<Connection>>,
    batch: TransmitBatch,
}

impl Server {
    fn new() -> Self {
        let config = EndpointConfig::new(ResetKey::new(&[2; 32]));
        let server = ServerConfig::new(Arc::new(pair::server_tls()));
        let endpoint = Endpoint::new(Arc::new(config), Some(Arc::new(server)), [1; 32]);
        Self { endpoint, connections: Vec::with_capacity(CLIENTS.into()), batch: TransmitBatch::new(16) }
    }

    fn receive(&mut self, payload: &[u8], port: u16) {
        let addrs = FourTuple::new(([10, 0, 0, 9], port).into(), None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) };
        let ConnectionHandle(place) =
            match self.endpoint.handle_datagram(Instant::ZERO, datagram, &mut self.batch) {
                Route::Connection(handle, datagram) => {
                    self.connection(handle.0).handle_datagram(Instant::ZERO, datagram);
                    handle
                }
                Route::Incoming(incoming) => {
                    let (handle, connection) = self.endpoint.accept(Instant::ZERO, incoming).unwrap();
                    self.connections.resize_with(self.connections.len().max(handle.0 + 1), || None);
                    self.connections[handle.0] = Some(connection);
                    handle
                }
                other => panic!("{other:?}"),
            };
        while self.connections[place]
            .as_mut()
            .unwrap()
            .poll_transmit(Instant::ZERO, &mut self.batch)
            .is_some()
        {}
        let Self { endpoint, connections, .. } = self;
        let connection = connections[place].as_mut().unwrap();
        while connection.poll_event().is_some() {}
        while let Some(event) = connection.poll_endpoint_event() {
            endpoint.handle_event(ConnectionHandle(place), event);
        }
    }

    fn connection(&mut self, place: usize) -> &mut Connection {
        self.connections[place].as_mut().unwrap()
    }
}

/// How many clients there are.
const CLIENTS: u8 = 50;
/// What may be left of each beside the connection itself, in bytes: its path with its controller, and its place in tables.
const LEFT_MAX: i64 = 8 << 10;

/// The datagrams that a client sends.
struct Client {
    /// Before it hears anything.
    hello: Vec<Vec<u8>>,
    /// When it gives up.
    goodbye: Vec<Vec<u8>>,
}

fn clients() -> Vec<Client> {
    (0..CLIENTS)
        .map(|seed| {
            let mut pair = Setup { seed, ..Setup::default() }.dial();
            pair.server.mute = true;
            pair.run_for(Duration::from_millis(1));
            let hello = std::mem::take(&mut pair.client.sent);
            let now = pair.now;
            pair.client.conn().close(now, 0_u32.into(), Bytes::new());
            pair.run_for(Duration::from_millis(1));
            Client { hello, goodbye: std::mem::take(&mut pair.client.sent) }
        })
        .collect()
}

#[test]
fn a_client_that_gives_up_leaves_little_until_it_is_forgotten() {
    let mut server = Server::new();
    let clients = clients();
    let begun = allocation_counter::measure(|| {
        for (port, client) in (0..).zip(&clients) {
            client.hello.iter().for_each(|datagram| server.receive(datagram, port));
        }
    });
    let given_up = allocation_counter::measure(|| {
        for (port, client) in (0..).zip(&clients) {
            client.goodbye.iter().for_each(|datagram| server.receive(datagram, port));
        }
    });
    // They are remembered for late packets (RFC 9000 §10.2.2), but without TLS, keys, messages and records of packets.
    assert_eq!(server.endpoint.open_connections(), usize::from(CLIENTS));
    assert!(server.connections.iter().flatten().all(Connection::is_closed));
    let of_each = |bytes: i64| bytes / i64::from(CLIENTS);
    let left = of_each(begun.bytes_current + given_up.bytes_current);
    assert!(left < LEFT_MAX, "{left} bytes of each");
    assert!(of_each(-given_up.bytes_current) > LEFT_MAX, "{given_up:?}");
}
