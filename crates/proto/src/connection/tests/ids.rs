//! Connection IDs that are given and retired without end (RFC 9000 §5.1, §19.15, §19.16).

use std::time::Duration;

use bytes::Bytes;
use fulmar_wire::{
    ConnectionId, Frame, NewConnectionId, PathId, ResetToken, RetireConnectionId, Side,
    TransportErrorCode as Code, VarInt,
};

use super::floods::receive;
use super::memory::memory_of;
use super::pair::Pair;
use super::violations::{encode, varint};

/// What IDs may take at most, whatever is done with them: those of both ends, and the events about them.
const MEMORY_MAX: u64 = 512 << 10;

fn new_id(sequence: u64, retire_prior_to: u64) -> Vec<u8> {
    encode(&Frame::NewConnectionId(NewConnectionId {
        path: PathId::ZERO,
        sequence: varint(sequence),
        retire_prior_to: varint(retire_prior_to),
        cid: ConnectionId::new(&sequence.to_be_bytes()).unwrap(),
        reset_token: ResetToken([sequence as u8; 16]),
    }))
}

fn retire_id(sequence: u64) -> Vec<u8> {
    encode(&Frame::RetireConnectionId(RetireConnectionId { path: PathId::ZERO, sequence: varint(sequence) }))
}

/// Takes out what an end has to say, and forgets it: the other end never hears of it.
fn drain(pair: &mut Pair, side: Side) {
    let now = pair.now;
    let end = pair.end(side);
    super::by_hand::sent(end.conn(), now);
    while end.conn().poll_event().is_some() {}
    let handle = end.connection.as_ref().unwrap().0;
    while let Some(event) = end.conn().poll_endpoint_event() {
        end.endpoint.handle_event(handle, event);
    }
}

#[test]
fn ids_that_retire_each_other_while_acknowledgements_are_withheld() {
    let mut pair = Pair::connected();
    let mut closed = None;
    let mut count = 0;
    let memory = memory_of(|| {
        for sequence in 10..10_000 {
            let payload = Bytes::from(new_id(sequence, sequence));
            let now = pair.now;
            if let Err(error) = receive(&mut pair.client, &payload, now) {
                closed = Some(error.code);
                return;
            }
            count += 1;
            drain(&mut pair, Side::Client);
            pair.now += Duration::from_millis(1);
        }
    });
    assert_eq!(closed, Some(Code::CONNECTION_ID_LIMIT_ERROR), "after {count}");
    assert!(count < 100, "{count} retirements wait");
    assert!(memory.peak < MEMORY_MAX, "{memory:?}");
}

#[test]
fn ids_that_retire_each_other_are_followed_as_long_as_the_peer_listens() {
    let mut pair = Pair::connected();
    // The real server takes retirements of IDs that it never gave for a violation: its ear is shut for them, and its
    // acknowledgements are made here.
    let memory = memory_of(|| {
        for sequence in 10..20_000 {
            let payload = Bytes::from(new_id(sequence, sequence));
            let now = pair.now;
            receive(&mut pair.client, &payload, now).unwrap();
            let first = pair.client.conn().paths.primary_mut().space.next_number();
            drain(&mut pair, Side::Client);
            let next = pair.client.conn().paths.primary_mut().space.next_number();
            assert!(next > first, "the retirement is told");
            acknowledge(&mut pair, first);
            pair.now += Duration::from_millis(1);
        }
    });
    assert!(memory.kept < MEMORY_MAX as i64 && memory.peak < MEMORY_MAX, "{memory:?}");
}

/// Tells the client that its packet with this number arrived, and no other.
fn acknowledge(pair: &mut Pair, number: u64) {
    let mut bytes = vec![0; 20];
    let mut w = fulmar_wire::Writer::new(&mut bytes);
    w.put_u8(2);
    w.put_varint(varint(number));
    for _ in 0..3 {
        w.put_varint(VarInt::ZERO);
    }
    let len = w.len();
    bytes.truncate(len);
    let now = pair.now;
    receive(&mut pair.client, &bytes.into(), now).unwrap();
}

#[test]
fn a_client_that_retires_each_id_as_soon_as_it_has_it() {
    let mut pair = Pair::connected();
    let mut answers = 0;
    let memory = memory_of(|| {
        // It may guess the sequence numbers of IDs that it has not been told of yet.
        for sequence in 1..100_000 {
            let payload = Bytes::from(retire_id(sequence));
            let now = pair.now;
            receive(&mut pair.server, &payload, now).unwrap();
            let before = pair.server.conn().paths.primary_mut().space.next_number();
            drain(&mut pair, Side::Server);
            answers += pair.server.conn().paths.primary_mut().space.next_number() - before;
            pair.now += Duration::from_micros(10);
        }
    });
    assert!(memory.peak < MEMORY_MAX, "{memory:?}");
    assert!(answers <= 100_000, "{answers} packets for 100,000");
}

#[test]
fn packets_full_of_retirements() {
    let mut pair = Pair::connected();
    let mut sequence = 1;
    let memory = memory_of(|| {
        for _ in 0..200 {
            let payload: Vec<u8> = (0..400).flat_map(|n| retire_id(sequence + n)).collect();
            sequence += 400;
            let now = pair.now;
            receive(&mut pair.server, &payload.into(), now).unwrap();
            drain(&mut pair, Side::Server);
        }
    });
    assert!(memory.peak < 2 * MEMORY_MAX, "{memory:?}");
    assert!(!pair.server.conn().is_closed());
}

#[test]
fn retirements_of_everything() {
    for (payload, code) in [
        (new_id(9, 9), None),
        ([new_id(9, 9), new_id(10, 10), new_id(11, 11)].concat(), None),
        // Those that are retired come behind those that retire them.
        ([new_id(20, 20), new_id(19, 0), new_id(18, 5), new_id(17, 17)].concat(), None),
        // The same again, and once more with another retirement.
        ([new_id(9, 9), new_id(9, 9), new_id(9, 0)].concat(), None),
        (new_id(VarInt::MAX.get(), VarInt::MAX.get()), None),
        ((20..60).rev().flat_map(|n| new_id(n, n)).collect(), Some(Code::CONNECTION_ID_LIMIT_ERROR)),
        ((20..60).flat_map(|n| new_id(n, n)).collect(), Some(Code::CONNECTION_ID_LIMIT_ERROR)),
    ] {
        let mut pair = Pair::connected();
        let now = pair.now;
        let result = receive(&mut pair.client, &payload.into(), now);
        assert_eq!(result.err().map(|error| error.code), code);
        drain(&mut pair, Side::Client);
    }
}
