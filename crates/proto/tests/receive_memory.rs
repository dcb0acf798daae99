//! The memory that all connections of a server have together for what they received and nobody has read.

mod pair;

use std::sync::Arc;
use std::time::Duration;

use fulmar_proto::{
    ConnectionError, Dir, EndpointConfig, EndpointShared, ResetKey, Side, StreamId, TransportConfig,
    TransportErrorCode,
};
use pair::{Pair, Setup, read_available};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// What each connection may hold in any case.
const FLOOR: u64 = 16 * KIB;
/// What all of them may hold beyond that.
const MEMORY: u64 = 4 * MIB;

/// Connections of a server that has [`MEMORY`], and gives each client credit for a quarter of it at once.
struct Crowd {
    shared: Arc<EndpointShared>,
    pairs: Vec<(Pair, StreamId)>,
}

impl Crowd {
    fn new() -> Self {
        let config =
            EndpointConfig { receive_memory: MEMORY, ..EndpointConfig::new(ResetKey::new(&[2; 32])) };
        Self { shared: EndpointShared::new(&config), pairs: Vec::new() }
    }

    fn dial(&self, seed: u8) -> Pair {
        let server = TransportConfig {
            receive_window: MIB,
            receive_window_max: MIB,
            stream_receive_window: MIB,
            stream_receive_window_max: MIB,
            ..TransportConfig::default()
        };
        let mut pair =
            Setup { server, seed, server_shared: Some(self.shared.clone()), ..Setup::default() }.dial();
        pair.run_for(Duration::from_millis(100));
        pair
    }

    /// Another client, which sends a MiB that the server does not read.
    fn join(&mut self) {
        let mut pair = self.dial(self.pairs.len() as u8);
        let id = pair.client.conn().streams().open(Dir::Uni).unwrap();
        send_unread(&mut pair, id, MIB);
        self.pairs.push((pair, id));
    }

    fn reserved(&self) -> u64 {
        self.shared.receive_memory_reserved()
    }
}

/// The client sends bytes that the server does not read.
fn send_unread(pair: &mut Pair, id: StreamId, bytes: u64) {
    let data = vec![7; bytes as usize];
    let mut written = 0;
    for _ in 0..20 {
        while let Ok(n) = pair.client.conn().streams().send(id).write(&data[written..]) {
            written += n;
            if written == data.len() {
                break;
            }
        }
        pair.run_for(Duration::from_millis(100));
    }
}

/// Whether the server has closed the connection for want of memory, and the client knows why. No other end is allowed.
fn ran_out(pair: &mut Pair) -> bool {
    let Some(reason) = pair.lost(Side::Server) else {
        assert_eq!(pair.lost(Side::Client), None);
        return false;
    };
    assert!(reason.to_string().contains("no memory is left"), "{reason}");
    let Some(ConnectionError::ConnectionClosed { code, .. }) = pair.lost(Side::Client) else {
        panic!("{:?}", pair.lost(Side::Client));
    };
    assert_eq!(code, TransportErrorCode::INTERNAL_ERROR);
    true
}

fn was_refused(pair: &mut Pair) -> bool {
    matches!(
        pair.lost(Side::Client),
        Some(ConnectionError::ConnectionClosed { code, .. }) if code == TransportErrorCode::CONNECTION_REFUSED
    )
}

#[test]
fn too_little_memory_ends_some_connections_and_when_it_is_back_all_is_as_before() {
    let mut crowd = Crowd::new();
    let (mut alive, mut ended) = (0, 0);
    // All are let in before the first sends anything, so that all of them have credit.
    for seed in 0..10 {
        let pair = crowd.dial(seed);
        crowd.pairs.push((pair, StreamId::new(Side::Client, Dir::Uni, 0)));
    }
    for index in 0..10 {
        let (pair, id) = &mut crowd.pairs[index];
        *id = pair.client.conn().streams().open(Dir::Uni).unwrap();
        send_unread(pair, *id, MIB);
        if ran_out(pair) {
            ended += 1
        } else {
            alive += 1
        }
        assert!(crowd.reserved() <= MEMORY, "{} bytes", crowd.reserved());
    }
    assert!(alive >= 1 && ended >= 1, "{alive} live and {ended} have ended");

    assert!(was_refused(&mut crowd.dial(10)), "nobody is let in");
    // Those who were there live, and what they sent is there.
    for (pair, id) in &mut crowd.pairs {
        if pair.lost(Side::Server).is_none() {
            let mut read = Vec::new();
            read_available(&mut pair.server, *id, &mut read);
            assert!(read.len() as u64 == MIB && read.iter().all(|byte| *byte == 7), "{}", read.len());
            pair.transfer(Side::Client, 100_000, Duration::from_secs(5));
        }
    }
    crowd.pairs.retain_mut(|(pair, _)| pair.lost(Side::Server).is_none());
    assert!(crowd.reserved() <= alive * FLOOR, "all was given back but a step for each");
    crowd.pairs.clear();

    for _ in 0..2 {
        crowd.join();
        assert!(!ran_out(&mut crowd.pairs.last_mut().unwrap().0), "as the first two times");
    }
}

#[test]
fn a_client_whose_data_is_read_goes_on_without_memory_and_gets_no_credit_to_use_it_up() {
    let mut crowd = Crowd::new();
    let mut reader = crowd.dial(20);
    while crowd.reserved() <= MEMORY / 2 {
        crowd.join();
    }
    assert!(was_refused(&mut crowd.dial(21)), "nobody else is let in");
    reader.transfer(Side::Client, 5_000_000, Duration::from_secs(60));
    // From now on nothing of it is read.
    let before = crowd.reserved();
    let id = reader.client.conn().streams().open(Dir::Uni).unwrap();
    send_unread(&mut reader, id, 5 * MIB);
    assert_eq!((reader.lost(Side::Server), reader.lost(Side::Client)), (None, None));
    assert!(crowd.reserved() <= before.max(MEMORY), "{} bytes, {before} before", crowd.reserved());
    let mut read = Vec::new();
    read_available(&mut reader.server, id, &mut read);
    assert!(read.len() as u64 <= 4 * FLOOR, "{} bytes were let in", read.len());
    reader.server.conn().streams().recv(id).stop(0_u32.into()).unwrap();

    // With the others all limits are gone.
    crowd.pairs.clear();
    reader.transfer(Side::Client, 5_000_000, Duration::from_secs(60));
    let id = reader.client.conn().streams().open(Dir::Uni).unwrap();
    send_unread(&mut reader, id, 5 * MIB);
    let mut read = Vec::new();
    read_available(&mut reader.server, id, &mut read);
    assert!(read.len() as u64 >= MIB / 2, "{} bytes were let in", read.len());
}

#[test]
fn clients_prove_their_address_once_a_quarter_of_the_memory_is_used() {
    let mut crowd = Crowd::new();
    assert_eq!(crowd.dial(20).server.replies, 0);
    crowd.join();
    assert!(crowd.reserved() < MEMORY / 4);
    assert_eq!(crowd.dial(20).server.replies, 0);
    crowd.join();
    let mut late = crowd.dial(20);
    assert!(late.server.replies > 0, "a Retry");
    assert!(late.client.is_connected());
    late.transfer(Side::Client, 10_000, Duration::from_secs(1));
}
