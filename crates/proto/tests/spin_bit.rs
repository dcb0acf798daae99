//! The latency spin bit of a connection (RFC 9000 §17.4).

mod pair;

use std::time::Duration;

use fulmar_proto::{SpinBit, TransportConfig};
use pair::{Flying, Pair, Setup};

const MS: Duration = Duration::from_millis(1);

/// The bit of the packets with a short header.
fn bits(sent: &[Vec<u8>]) -> Vec<bool> {
    let short = sent.iter().filter(|payload| payload[0] & 0x80 == 0);
    short.map(|payload| payload[0] & 0x20 != 0).collect()
}

fn turns(bits: &[bool]) -> usize {
    bits.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Both ends ask each other each millisecond for a second, of which the wire of the client makes what it wants.
fn chatting(spin_bit: SpinBit, wire: pair::Wire) -> [Vec<bool>; 2] {
    let config = TransportConfig { spin_bit, ..TransportConfig::default() };
    let mut pair: Pair = Setup { client: config.clone(), server: config, ..Setup::default() }.connect();
    pair.client.wire = wire;
    let before = [pair.client.sent.len(), pair.server.sent.len()];
    for _ in 0..1_000 {
        pair.client.conn().ping();
        pair.server.conn().ping();
        pair.run_for(MS);
    }
    [bits(&pair.client.sent[before[0]..]), bits(&pair.server.sent[before[1]..])]
}

#[test]
fn the_bit_turns_once_a_round_trip_at_both_ends() {
    for bits in chatting(SpinBit::EveryPath, Box::new(|flying| vec![flying])) {
        let turns = turns(&bits);
        assert!((80..=101).contains(&turns), "{turns} turns in a hundred round trips of 10 ms");
    }
}

#[test]
fn a_packet_that_was_overtaken_does_not_turn_the_bit_back() {
    // Every fifth comes later than the next two.
    let mut count = 0;
    let wire = move |flying: Flying| {
        count += 1;
        let late = if count % 5 == 0 { 2 * MS + MS / 2 } else { Duration::ZERO };
        vec![Flying { at: flying.at + late, ..flying }]
    };
    for bits in chatting(SpinBit::EveryPath, Box::new(wire)) {
        let turns = turns(&bits);
        assert!(turns <= 101, "{turns} turns in a hundred round trips of 10 ms");
    }
}

#[test]
fn the_bit_stands_still_where_it_is_off() {
    for bits in chatting(SpinBit::Off, Box::new(|flying| vec![flying])) {
        assert_eq!(turns(&bits), 0);
    }
}
