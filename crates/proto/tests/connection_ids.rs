//! Connection IDs that are made twice.

mod pair;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use fulmar_proto::{
    CidGenerator, Connection, ConnectionHandle, Datagram, Ecn, Endpoint, EndpointConfig, FourTuple, Incoming,
    Instant, RandomCids, ResetKey, Rng, Route, ServerConfig, TransmitBatch,
};
use fulmar_wire::{ConnectionId, read_packet};
use pair::Setup;

const NOW: Instant = Instant::from_millis(1);
const SAME: [u8; 8] = [0x5a; 8];

/// Connection IDs of which the next ones are the same.
#[derive(Debug, Default)]
struct SameCids(AtomicUsize);

impl CidGenerator for SameCids {
    fn generate(&self, rng: &mut Rng) -> ConnectionId {
        let same = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match same {
            Ok(_) => ConnectionId::new(&SAME).expect("eight bytes"),
            Err(_) => RandomCids::new(8).generate(rng),
        }
    }

    fn cid_len(&self) -> usize {
        8
    }
}

/// A server without a wire.
struct Server {
    cids: Arc<SameCids>,
    endpoint: Endpoint,
    batch: TransmitBatch,
}

impl Server {
    fn new() -> Self {
        let cids = Arc::new(SameCids::default());
        let config =
            EndpointConfig { cid_generator: cids.clone(), ..EndpointConfig::new(ResetKey::new(&[2; 32])) };
        let server = Arc::new(ServerConfig::new(Arc::new(pair::server_tls())));
        Self {
            cids,
            endpoint: Endpoint::new(Arc::new(config), Some(server), [1; 32]),
            batch: TransmitBatch::new(1),
        }
    }

    fn receive(&mut self, payload: &[u8]) -> Route {
        let addrs = FourTuple::new(pair::CLIENT.parse().expect("an address"), None);
        let datagram = Datagram { addrs, ecn: Ecn::NotEct, payload: BytesMut::from(payload) };
        self.endpoint.handle_datagram(NOW, datagram, &mut self.batch)
    }

    /// An attempt of a client, for which the next so many connection IDs are the same.
    #[track_caller]
    fn incoming(&mut self, seed: u8, same: usize) -> Incoming {
        let mut pair = Setup { seed, ..Setup::default() }.dial();
        pair.run_for(Duration::from_millis(1));
        match self.receive(&pair.client.sent[0]) {
            Route::Incoming(incoming) => {
                self.cids.0.store(same, Ordering::Relaxed);
                incoming
            }
            other => panic!("{other:?}"),
        }
    }

    /// A connection, and the ID that it tells its client.
    #[track_caller]
    fn accept(&mut self, seed: u8, same: usize) -> (ConnectionHandle, Connection, ConnectionId) {
        let incoming = self.incoming(seed, same);
        let (handle, mut connection) = self.endpoint.accept(NOW, incoming).expect("accepted");
        let transmit = connection.poll_transmit(NOW, &mut self.batch).expect("an answer");
        let packet = read_packet(&self.batch.bytes()[..transmit.len], 8).expect("a packet");
        (handle, connection, packet.src)
    }
}

#[test]
fn an_id_that_is_in_use_is_given_to_no_other_connection() {
    let mut server = Server::new();
    let (first, _connection, first_cid) = server.accept(1, 1);
    assert_eq!(first_cid.as_bytes(), SAME);
    let (second, _other, second_cid) = server.accept(2, 2);
    assert_ne!(second_cid, first_cid);
    for (cid, handle) in [(first_cid, first), (second_cid, second)] {
        let packet = [&[0x40][..], cid.as_bytes(), &[0; 30]].concat();
        assert!(matches!(server.receive(&packet), Route::Connection(to, _) if to == handle));
    }
    // Who follows a Retry begins with an ID of the server.
    let third = server.incoming(3, 1);
    let retry = server.endpoint.retry(NOW, third, &mut server.batch).expect("the first").expect("a server");
    let packet = read_packet(&server.batch.bytes()[..retry.len], 8).expect("a packet");
    assert_ne!(packet.src, first_cid);
}
