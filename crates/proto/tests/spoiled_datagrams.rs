//! Datagrams that were damaged, cut, made up or repeated: none does any harm.

mod pair;

use std::time::Duration;

use fulmar_proto::{DropReason, Instant, Rng, Side};
use pair::{CLIENT, Flying, Pair, SERVER, Setup};

/// How long a handshake and transfer may take although much is lost.
const PATIENCE: Duration = Duration::from_secs(60);

fn handshake_and_transfers(pair: &mut Pair) {
    let connected = |pair: &mut Pair| pair.client.is_connected() && pair.server.is_connected();
    assert!(pair.run_while_waiting(PATIENCE, connected), "{:?} {:?}", pair.client.lost(), pair.server.lost());
    pair.transfer(Side::Client, 20_000, PATIENCE);
    pair.transfer(Side::Server, 20_000, PATIENCE);
}

/// Spoils the wire in both directions.
fn spoil(pair: &mut Pair, spoil: impl Fn(&Flying) -> Vec<Flying> + Clone + 'static) {
    for side in [Side::Client, Side::Server] {
        let spoil = spoil.clone();
        pair.end(side).wire = Box::new(move |flying| spoil(&flying));
    }
}

fn replaced(flying: &Flying, payload: Vec<u8>) -> Flying {
    Flying { payload, ..flying.clone() }
}

#[test]
fn a_datagram_damaged_at_every_byte_before_the_original_arrives() {
    let mut pair = Setup::default().dial();
    spoil(&mut pair, |flying| {
        let damaged = (0..flying.payload.len()).map(|at| {
            let mut payload = flying.payload.clone();
            // Another bit each time, so that every bit of every kind of field is hit somewhere.
            payload[at] ^= 1 << (at % 8);
            replaced(flying, payload)
        });
        damaged.chain([flying.clone()]).collect()
    });
    handshake_and_transfers(&mut pair);
    assert!(pair.server.conn().stats().packets_unauthenticated > 10_000);
    pair.close_and_forget();
}

#[test]
fn a_datagram_cut_at_every_length_before_the_original_arrives() {
    let mut pair = Setup::default().dial();
    spoil(&mut pair, |flying| {
        let cut = (0..flying.payload.len()).map(|len| replaced(flying, flying.payload[..len].to_vec()));
        cut.chain([flying.clone()]).collect()
    });
    handshake_and_transfers(&mut pair);
    assert!(pair.server.conn().stats().packets_unauthenticated > 10_000);
    pair.close_and_forget();
}

#[test]
fn a_datagram_extended_by_garbage_or_repeated() {
    let mut pair = Setup::default().dial();
    spoil(&mut pair, |flying| {
        let mut rng = Rng::from_u64(flying.payload.len() as u64);
        let mut garbage = vec![0; 100];
        rng.fill(&mut garbage);
        let coalesced = replaced(flying, [&flying.payload[..], &garbage].concat());
        vec![coalesced, flying.clone(), flying.clone()]
    });
    handshake_and_transfers(&mut pair);
    let stats = pair.server.conn().stats();
    assert!(stats.packets_dropped >= stats.packets_received, "the copies are recognised: {stats:?}");
    assert_eq!((stats.packets_lost, stats.pto_count), (0, 0));
    pair.close_and_forget();
}

#[test]
fn datagrams_damaged_or_cut_instead_of_arriving() {
    for seed in 0..200 {
        let mut pair = Setup::default().dial();
        for side in [Side::Client, Side::Server] {
            let mut rng = Rng::from_u64(2 * seed + u64::from(side.is_server()));
            pair.end(side).wire = Box::new(move |mut flying| {
                let at = rng.below(flying.payload.len() as u64) as usize;
                match rng.below(8) {
                    0 => flying.payload[at] = !flying.payload[at],
                    1 => flying.payload.truncate(at),
                    _ => {}
                }
                vec![flying]
            });
        }
        handshake_and_transfers(&mut pair);
    }
}

#[test]
fn random_datagrams_to_a_client_and_a_server_with_a_connection() {
    let mut pair = Pair::connected();
    let mut rng = Rng::from_u64(5);
    let cids = [pair.client.sent.last(), pair.server.sent.last()].map(|sent| sent.unwrap()[1..9].to_vec());
    for round in 0..20_000 {
        let mut payload = vec![0; rng.below(1_500) as usize];
        rng.fill(&mut payload);
        // Half of them look like packets of the connection.
        let (to, from, cid) = match round % 2 {
            0 => (Side::Server, CLIENT, &cids[0]),
            _ => (Side::Client, SERVER, &cids[1]),
        };
        if payload.len() > 20 && rng.below(2) == 0 {
            payload[0] = 0x40 | payload[0] & 0x3f;
            payload[1..9].copy_from_slice(cid);
        }
        pair.inject(to, from.parse().unwrap(), payload);
    }
    pair.transfer(Side::Client, 20_000, PATIENCE);
    pair.transfer(Side::Server, 20_000, PATIENCE);
    pair.close_and_forget();
}

#[test]
fn empty_and_tiny_datagrams() {
    let mut pair = Pair::connected();
    for len in 0..21 {
        for first in [0x00, 0x40, 0xc0, 0xff] {
            for to in [Side::Client, Side::Server] {
                pair.inject(to, "10.0.0.9:9".parse().unwrap(), vec![first; len]);
            }
        }
    }
    assert_eq!((pair.client.replies, pair.server.replies), (0, 0), "nothing so short is answered");
    assert!(pair.server.dropped.contains(&DropReason::Malformed));
    pair.close_and_forget();
}

#[test]
fn datagrams_of_another_connection_do_no_harm() {
    let mut donor = Setup { seed: 9, ..Setup::default() }.connect();
    donor.transfer(Side::Client, 20_000, PATIENCE);
    let mut pair = Pair::connected();
    let sent = [donor.client.sent.clone(), donor.server.sent.clone()].concat();
    for payload in sent {
        for to in [Side::Client, Side::Server] {
            pair.inject(to, "10.0.0.9:9".parse().unwrap(), payload.clone());
            pair.now = Instant::from_nanos(pair.now.as_nanos() + 1);
        }
    }
    handshake_and_transfers(&mut pair);
}
