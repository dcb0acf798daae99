//! What a connection holds while nothing happens, by owner.
//!
//! What the libraries hold of the keys of 1-RTT packets is given back by then, and made again with the next packet.

use crate::connection::Resting;
use std::time::Duration;

use fulmar_wire::Side;

use super::super::{Connection, HandshakeState};
use super::memory::memory_of;
use super::pair::Pair;

/// What each owner may hold in the connection itself and beyond, in bytes, on a server. To be lowered with what they hold.
const MAX: [(&str, usize, i64); 17] = [
    ("config, sessions", 16, 0),
    ("rng", 48, 0),
    ("lifecycle", 24, 0),
    ("TLS", 272, 262),
    ("keys", 432, 0),
    ("spaces of the handshake", 16, 0),
    ("versions", 48, 4),
    ("limits remembered", 8, 0),
    ("undecryptable packets", 32, 0),
    ("paths", 48, 901),
    ("streams", 952, 0),
    ("datagrams", 184, 0),
    ("extensions", 272, 0),
    ("address tokens", 96, 17),
    ("liveness", 120, 0),
    ("outbox", 64, 0),
    ("telemetry", 168, 0),
];

/// What all of it may be, in bytes.
const TOTAL_MAX: usize = 4_008;

/// The bytes of a value itself, and those that it holds beyond.
fn held<T>(value: T) -> (usize, i64) {
    (size_of::<T>(), -memory_of(|| drop(value)).kept)
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
    let Resting { connection, paths: packed } = pair.server.connection.take().unwrap().1.rest();
    let Connection {
        side: _,
        unsent: _,
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
    } = connection;
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
        held((paths, packed)),
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
        is_more |= size > size_max || heap > heap_max;
        list += &format!("{owner}: {size} of {size_max} bytes, and {heap} of {heap_max} beyond\n");
    }
    let beyond: i64 = found.iter().map(|(_, heap)| heap).sum();
    let total = size_of::<Resting>() + usize::try_from(beyond).unwrap();
    assert!(!is_more && total <= TOTAL_MAX, "{list}in all {total} of {TOTAL_MAX} bytes");
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
    let resting = pair.server.connection.take().unwrap().1.rest();
    let (size, beyond) = held(resting);
    let total = size + usize::try_from(beyond).unwrap();
    // What is packed takes more bytes where there are larger numbers in it.
    assert!(total <= TOTAL_MAX + 128, "{total} bytes");
}

/// Both ends rest, and wake.
fn rest(pair: &mut Pair) {
    for node in [&mut pair.client, &mut pair.server] {
        let (handle, connection) = node.connection.take().unwrap();
        node.connection = Some((handle, connection.rest().wake()));
    }
}

#[test]
fn a_connection_may_rest_at_any_time() {
    let mut pair = Pair::connected();
    for round in 0..40 {
        pair.transfer(
            if round % 2 == 0 { Side::Client } else { Side::Server },
            30_000,
            Duration::from_secs(2),
        );
        // In the middle of acknowledgements, of an update of the keys, and after a while.
        if round % 8 == 5 {
            pair.client.conn().update_keys();
        }
        for step in 0..3 {
            rest(&mut pair);
            pair.run_for(Duration::from_millis(7 * step * (round % 5)));
        }
    }
    assert!(pair.server.conn().stats().key_updates > 2);
    assert_eq!(pair.client.conn().stats().packets_unauthenticated, 0);
    assert_eq!(pair.server.conn().stats().packets_unauthenticated, 0);
}

#[test]
fn what_is_sent_does_not_depend_on_rest() {
    let run = |rests: bool| {
        let mut pair = Pair::connected();
        for _ in 0..20 {
            pair.transfer(Side::Server, 40_000, Duration::from_secs(2));
            for _ in 0..30 {
                pair.run_for(Duration::from_millis(11));
                if rests {
                    rest(&mut pair);
                }
            }
            pair.server.conn().ping();
        }
        let now = pair.now;
        [pair.client.conn().stats(), pair.server.conn().stats()].map(|stats| format!("{now:?} {stats:?}"))
    };
    assert_eq!(run(true), run(false));
}
