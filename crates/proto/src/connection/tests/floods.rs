//! Frames in such numbers that only their work or their answers could hurt.

use std::time::Duration;

use bytes::Bytes;
use fulmar_wire::{Frame, PacketKind, PathChallenge, Side, VarInt, Writer};

use super::DATA;
use super::by_hand::take;
use super::pair::{End, Pair};
use super::violations::encode;
use crate::TransportError;

/// Hands the payload of the next authentic packet to one end.
pub(super) fn receive(end: &mut End, payload: &Bytes, now: crate::Instant) -> Result<(), TransportError> {
    take(end.conn(), now, (DATA, PacketKind::OneRtt), payload)
}

#[test]
fn a_flood_of_challenges_is_answered_by_one_full_datagram() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let payload: Vec<u8> =
        (0..100).flat_map(|n| encode(&Frame::PathChallenge(PathChallenge { data: [n; 8] }))).collect();
    let payload = Bytes::from(payload);
    for _ in 0..1_000 {
        receive(&mut pair.server, &payload, now).unwrap();
    }
    let before = pair.server.sent.len();
    pair.run_for(Duration::from_millis(1));
    // RFC 9000 §8.2.2: the answer shows that the path carries such datagrams.
    let [answer] = &pair.server.sent[before..] else {
        panic!("{} datagrams", pair.server.sent.len() - before)
    };
    assert_eq!(answer.len(), 1_200);
}

/// An ACK of as many single packets as a payload holds, from `largest` down.
fn ack_with_ranges(largest: u64, ranges: u64) -> Bytes {
    let mut bytes = vec![0; 1_400];
    let mut w = Writer::new(&mut bytes);
    let varint = |value| VarInt::try_from(value).unwrap();
    w.put_u8(2);
    w.put_varint(varint(largest));
    w.put_varint(VarInt::ZERO);
    w.put_varint(varint(ranges));
    w.put_varint(VarInt::ZERO);
    for _ in 0..2 * ranges {
        // A gap of one packet, then a range of one.
        w.put_varint(VarInt::ZERO);
    }
    let len = w.len();
    bytes.truncate(len);
    bytes.into()
}

#[test]
fn ten_thousand_acknowledgements_with_many_ranges() {
    let mut pair = Pair::connected();
    pair.transfer(Side::Client, 12_000_000, Duration::from_secs(60));
    pair.run_for(Duration::from_secs(1));
    let now = pair.now;
    let stats = pair.client.conn().stats();
    let sent = pair.client.sent.len();
    let largest = pair.client.conn().paths.primary_mut().space.largest_acked().unwrap();
    // As many ranges as fit without one that names a skipped packet number, which is refused.
    let acks = (0..200).flat_map(|back| {
        (300..=600).rev().step_by(20).map(move |ranges| ack_with_ranges(largest - 20 * back, ranges))
    });
    let ack = acks.into_iter().find(|ack| receive(&mut pair.client, ack, now).is_ok()).unwrap();
    assert!(ack.len() > 500);
    for _ in 0..10_000 {
        receive(&mut pair.client, &ack, now).unwrap();
    }
    pair.run_for(Duration::from_millis(100));
    let after = pair.client.conn().stats();
    assert_eq!(pair.client.sent.len(), sent, "acknowledgements are not acknowledged");
    assert_eq!((after.packets_lost, after.packets_spurious), (stats.packets_lost, stats.packets_spurious));
    assert_eq!(after.cwnd, stats.cwnd, "what was acknowledged before is no news");
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
}

#[test]
fn packets_from_a_thousand_addresses_leave_a_handful_of_tuples() {
    let mut pair = Pair::connected();
    for n in 0..1_000_u16 {
        pair.client.conn().ping();
        pair.client.mute = true;
        let before = pair.client.sent.len();
        pair.run_for(Duration::from_millis(1));
        for payload in pair.client.sent.split_off(before) {
            pair.inject(
                Side::Server,
                std::net::SocketAddr::from(([203, 0, 113, n as u8], 1_000 + n)),
                payload,
            );
        }
        assert!(pair.server.conn().paths.primary_mut().off_path().len() <= 3);
        pair.strays.clear();
    }
    pair.client.mute = false;
    pair.transfer(Side::Client, 10_000, Duration::from_secs(20));
    assert_eq!(pair.server.conn().remote_address(), pair.client.addr);
}
