//! The QUIC bit before the ends know each other's parameters (RFC 9287 §3.1).

use std::time::Duration;

use fulmar_base::Rng;
use fulmar_wire::Side;

use super::pair::Setup;
use crate::TransportConfig;
use crate::ext::QuicBit;

/// Fulmar's clients do not remember that a server takes any value; those of others may.
#[test]
fn a_client_that_remembers_the_server_may_clear_the_bit_from_its_first_packet_on() {
    let mut cleared = 0;
    for seed in 0..20 {
        let mut pair = Setup { seed, ..Setup::default() }.dial();
        pair.client.conn().extensions.quic_bit = Some(QuicBit::new(Rng::from_u64(seed.into())));
        pair.run_for(Duration::from_millis(200));
        assert!(pair.client.is_connected() && pair.server.is_connected(), "{seed}");
        assert!(pair.server.dropped.is_empty(), "{seed}: {:?}", pair.server.dropped);
        cleared += u32::from(pair.client.sent[0][0] & 0x40 == 0);
        pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
    }
    assert!((5..=15).contains(&cleared), "{cleared}");
}

#[test]
fn a_server_that_takes_set_bits_only_does_not_see_such_a_client() {
    let server = TransportConfig { grease_quic_bit: false, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.dial();
    // The seed decides the bits. These clear that of each datagram of the first flight.
    let clears = |seed: &u64| {
        let mut bit = QuicBit::new(Rng::from_u64(*seed));
        (0..3).all(|_| !bit.next())
    };
    let seed = (0..).find(clears).unwrap();
    pair.client.conn().extensions.quic_bit = Some(QuicBit::new(Rng::from_u64(seed)));
    pair.run_for(Duration::from_millis(20));
    assert!(pair.client.sent.iter().all(|datagram| datagram[0] & 0x40 == 0));
    assert!(!pair.server.dropped.is_empty());
    assert!(pair.server.dropped.iter().all(|reason| *reason == crate::DropReason::Malformed));
    assert!(pair.server.connection.is_none());
}
