//! A receiver that lies about what has arrived, and how (RFC 9000 §13.4.2, §21.4, §21.10).

use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{PacketKind, Side, StreamId, TransportErrorCode as Code, VarInt, Writer};

use super::super::Connection;
use super::DATA;
use super::by_hand::take;
use super::conformance::in_the_handshake;
use super::floods::receive;
use super::pair::{Pair, Setup};
use super::violations::varint;
use crate::TransportConfig;
use crate::congestion::{CongestionControl, CubicConfig};
use crate::ids::SpaceId;
use crate::log::EcnState;

/// An ACK of the packets from `first` to `last`, with counts of marks: ECT(0), ECT(1), CE.
fn ack(first: u64, last: u64, marks: Option<[u64; 3]>) -> Bytes {
    let mut bytes = vec![0; 64];
    let mut w = Writer::new(&mut bytes);
    w.put_u8(if marks.is_some() { 3 } else { 2 });
    for value in [last, 0, 0, last - first].into_iter().chain(marks.into_iter().flatten()) {
        w.put_varint(varint(value));
    }
    let len = w.len();
    bytes.truncate(len);
    bytes.into()
}

/// A server whose packets nobody hears, and a stream on which it writes as much as it may.
fn speaking_server() -> (Pair, StreamId) {
    let mut pair = Pair::connected();
    pair.server.mute = true;
    let id = pair.server.conn().streams().open(fulmar_wire::Dir::Uni).unwrap();
    speak(&mut pair, id);
    (pair, id)
}

/// Lets the server write what it may now.
fn speak(pair: &mut Pair, id: StreamId) {
    while pair.server.conn().streams().send(id).write(&[1; 10_000]).is_ok() {}
}

#[test]
fn who_acknowledges_what_it_has_not_received_is_caught_soon() {
    let mut caught = Vec::new();
    for _ in 0..20 {
        let (mut pair, id) = speaking_server();
        let from = pair.server.conn().paths.primary_mut().space.next_number();
        let error = loop {
            speak(&mut pair, id);
            pair.run_for(Duration::from_millis(1));
            let next = pair.server.conn().paths.primary_mut().space.next_number();
            assert!(next < from + 1_000, "a thousand packets that nobody has received");
            let now = pair.now;
            if let Err(error) = receive(&mut pair.server, &ack(0, next - 1, None), now) {
                break error;
            }
        };
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
        caught.push(pair.server.conn().paths.primary_mut().space.next_number() - from);
    }
    // RFC 9000 §21.4: often enough to be a risk for who tries.
    assert!(caught.iter().sum::<u64>() / 20 < 200, "{caught:?}");
}

#[test]
fn a_number_that_was_skipped_or_is_still_to_come_at_each_level() {
    let now = Instant::from_millis(2);
    let refuses = |connection: &mut Connection, level, number: u64| {
        let error = take(connection, now, level, &ack(number, number, None)).expect_err("it was taken");
        assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "{number} at {level:?}");
    };
    for ahead in [0, 1, 1_000, 1 << 40] {
        let (mut client, mut server) = in_the_handshake(now);
        for level in [(SpaceId::Initial, PacketKind::Initial), (SpaceId::Handshake, PacketKind::Handshake)] {
            for connection in [&mut client, &mut server] {
                let next = connection.handshake.spaces.get(level.0).unwrap().next_number();
                refuses(connection, level, next + ahead);
            }
        }
        let mut pair = Pair::connected();
        let next = pair.server.conn().paths.primary_mut().space.next_number();
        refuses(pair.server.conn(), (DATA, PacketKind::OneRtt), next + ahead);
    }
    let mut pair = Pair::connected();
    let mut last = pair.client.conn().paths.primary_mut().space.next_number();
    loop {
        pair.client.conn().ping();
        let sent = pair.client.sent.len();
        pair.run_for(Duration::from_millis(1));
        let next = pair.client.conn().paths.primary_mut().space.next_number();
        if next == last + 2 && pair.client.sent.len() == sent + 1 {
            return refuses(pair.client.conn(), (DATA, PacketKind::OneRtt), last + 1);
        }
        assert!(next < 500, "no number was skipped");
        last = next;
    }
}

#[test]
fn counts_of_marks_that_cannot_be_true_end_the_marking_and_nothing_else() {
    let most = VarInt::MAX.get();
    for marks in [[most, 0, 0], [0, most, 0], [0, 0, most], [most; 3], [0, 0, 0]] {
        let mut pair = Pair::connected();
        pair.transfer(Side::Server, 100_000, Duration::from_secs(1));
        assert_eq!(pair.server.conn().paths.primary_mut().tuple.ecn.state(), EcnState::Capable);
        pair.server.conn().ping();
        let number = pair.server.conn().paths.primary_mut().space.next_number();
        pair.client.mute = true;
        pair.run_for(Duration::from_millis(1));
        let now = pair.now;
        receive(&mut pair.server, &ack(number, number, Some(marks)), now).unwrap();
        assert_eq!(pair.server.conn().paths.primary_mut().tuple.ecn.state(), EcnState::Failed, "{marks:?}");
        pair.client.mute = false;
        pair.transfer(Side::Server, 100_000, Duration::from_secs(10));
    }
}

#[test]
fn a_receiver_that_calls_everything_congested_slows_down_itself_alone() {
    // With CUBIC: BBR does not go below what the path delivers, and this one delivers everything.
    let congestion = CongestionControl::Cubic(CubicConfig::default());
    let server = TransportConfig { congestion, ..TransportConfig::default() };
    let mut pair = Setup { server, ..Setup::default() }.connect();
    pair.server.wire = Box::new(|mut flying| {
        if flying.ecn != crate::Ecn::NotEct {
            flying.ecn = crate::Ecn::Ce;
        }
        vec![flying]
    });
    pair.transfer(Side::Server, 300_000, Duration::from_secs(60));
    let stats = pair.server.conn().stats();
    // RFC 9002 §7.2: two datagrams are always allowed.
    assert!(stats.cwnd >= 2 * 1_200 && stats.cwnd < 50_000, "{}", stats.cwnd);
}

#[test]
fn delays_that_cannot_be_true_change_little() {
    let mut pair = Pair::connected();
    let before = pair.server.conn().paths.primary_mut().tuple.rtt.smoothed();
    for _ in 0..100 {
        pair.server.conn().ping();
        let number = pair.server.conn().paths.primary_mut().space.next_number();
        pair.client.mute = true;
        pair.run_for(Duration::from_millis(10));
        let mut bytes = vec![2];
        bytes.extend((number | 3 << 62).to_be_bytes());
        // The longest delay that there is; no more ranges; one packet.
        bytes.extend([0xff; 8]);
        bytes.extend([0, 0]);
        let now = pair.now;
        receive(&mut pair.server, &bytes.into(), now).unwrap();
    }
    let after = pair.server.conn().paths.primary_mut().tuple.rtt.smoothed();
    assert!(after < 2 * before && 2 * after > before, "{before:?}, then {after:?}");
}
