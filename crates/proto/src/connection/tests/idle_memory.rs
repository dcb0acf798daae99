//! What a connection holds while nothing happens, by owner.
//!
//! What aws-lc allocates is not seen, as it is C: the keys of 1-RTT packets, which take up to 700 bytes for each of the two directions,
//! and as much again for the next key phase. The keys of ring, which some processors use instead, are seen.

use std::time::Duration;

use fulmar_wire::Side;

use super::super::{Connection, HandshakeState};
use super::memory::memory_of;
use super::pair::Pair;
use crate::crypto::AeadBackend;

/// What each owner may hold in the connection itself and beyond, in bytes, on a server. To be lowered with what they hold.
const MAX: [(&str, usize, i64); 17] = [
    ("config, sessions", 16, 0),
    ("rng", 112, 0),
    ("lifecycle", 96, 0),
    ("TLS", 664, 390),
    ("keys", 1_048, 0),
    ("spaces of the handshake", 16, 0),
    ("versions", 80, 4),
    ("limits remembered", 72, 0),
    ("undecryptable packets", 32, 0),
    ("paths", 32, 5_620),
    ("streams", 1_016, 1_040),
    ("datagrams", 240, 0),
    ("extensions", 528, 0),
    ("address tokens", 96, 230),
    ("liveness", 176, 0),
    ("outbox", 64, 0),
    ("telemetry", 168, 0),
];

/// What all of it may be, in bytes.
const TOTAL_MAX: usize = 11_745;

/// The keys of 1-RTT packets in hands of ring: one to send, one to receive, and that to receive in the next key phase.
const KEYS_OF_RING: i64 = 3 * 544;

/// The bytes of a value itself, and those that it holds beyond.
fn held<T>(value: T) -> (usize, i64) {
    (size_of::<T>(), -memory_of(|| drop(value)).kept)
}

/// What is seen of the keys of 1-RTT packets on this processor.
fn seen_keys() -> i64 {
    if AeadBackend::preferred() == AeadBackend::Ring { KEYS_OF_RING } else { 0 }
}

fn total_max() -> usize {
    TOTAL_MAX + usize::try_from(seen_keys()).unwrap()
}

/// A connection over which both ends have sent a little, and then nothing for a while.
fn idle() -> Pair {
    let mut pair = Pair::connected();
    pair.transfer(Side::Client, 5_000, Duration::from_secs(1));
    pair.transfer(Side::Server, 5_000, Duration::from_secs(1));
    pair.run_for(Duration::from_secs(20));
    pair
}

#[test]
fn an_idle_connection_of_a_server_holds_little() {
    // What the connection shares with others stays with the pair.
    let mut pair = idle();
    let Connection {
        side: _,
        config,
        rng,
        lifecycle,
        handshake,
        paths,
        streams,
        datagrams,
        extensions,
        address_tokens,
        sessions,
        liveness,
        outbox,
        telemetry,
    } = pair.server.connection.take().unwrap().1;
    let HandshakeState { tls, keys, spaces, versions, remembered, undecryptable, .. } = handshake;
    let found = [
        held((config, sessions)),
        held(rng),
        held(lifecycle),
        held(tls),
        held(keys),
        held(spaces),
        held(versions),
        held(remembered),
        held(undecryptable),
        held(paths),
        held(streams),
        held(datagrams),
        held(extensions),
        held(address_tokens),
        held(liveness),
        held(outbox),
        held(telemetry),
    ];
    let mut list = String::new();
    let mut is_more = false;
    for ((owner, size_max, heap_max), (size, heap)) in MAX.into_iter().zip(found) {
        let heap_max = if owner == "keys" { heap_max + seen_keys() } else { heap_max };
        is_more |= size > size_max || heap > heap_max;
        list += &format!("{owner}: {size} of {size_max} bytes, and {heap} of {heap_max} beyond\n");
    }
    let beyond: i64 = found.iter().map(|(_, heap)| heap).sum();
    let total = size_of::<Connection>() + usize::try_from(beyond).unwrap();
    let total_max = total_max();
    assert!(!is_more && total <= total_max, "{list}in all {total} of {total_max} bytes");
}

#[test]
fn a_connection_that_was_busy_holds_as_little_afterwards() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Server, 5_000, Duration::from_secs(1));
    // Many packets in flight, then a few: what was needed for the many is given back.
    pair.transfer(Side::Server, 4_000_000, Duration::from_secs(20));
    for _ in 0..3 {
        pair.server.conn().ping();
        pair.run_for(Duration::from_secs(3));
    }
    let connection = pair.server.connection.take().unwrap().1;
    let (size, beyond) = held(connection);
    let total = size + usize::try_from(beyond).unwrap();
    assert!(total <= total_max() + 4_000, "{total} bytes");
}
