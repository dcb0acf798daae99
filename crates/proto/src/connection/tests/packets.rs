//! Packets that are authentic and yet not taken.

use std::sync::Arc;
use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Dialect, Frame, FrameType, PacketKind, PathId, Side,
    TransportErrorCode, Version,
};

use super::super::Connection;
use super::by_hand::{
    CLIENT_CID, ORIGINAL_DCID, SERVER_CID, cid, client, deliver, exchange, lost, sent, server,
};
use super::conformance::in_the_handshake;
use crate::crypto::{AeadBackend, Keys};
use crate::packet::{HeaderFields, OpenPacket, Sealer};
use crate::{ConnectionError, TransportConfig};

/// A packet with these frames and padding, `len` bytes long.
pub(super) fn packet(
    keys: &Keys,
    (kind, token): (PacketKind, &[u8]),
    (dst, src): (ConnectionId, ConnectionId),
    number: u64,
    frames: &[Frame<'_>],
    len: usize,
) -> Vec<u8> {
    let mut buffer = vec![0; 1_500];
    let header = HeaderFields::Long { kind, version: Version::V1, dst, src, token };
    let limit = buffer.len();
    let name = (PathId::ZERO, number);
    let mut packet = OpenPacket::begin(&mut buffer, 0, limit, &header, name, None).unwrap();
    let mut writer = packet.frames(&mut buffer, Dialect::SinglePath);
    for frame in frames {
        assert!(writer.write_untracked(frame));
    }
    let payload = writer.finish();
    packet.end_payload(&mut buffer, &payload);
    packet.pad_until(&mut buffer, len);
    let len = packet.seal(&mut buffer, Sealer::Fixed(&keys.local));
    buffer.truncate(len);
    buffer
}

/// A 1-RTT packet of `from` with these frames and nothing else; `quic_bit` is the bit of its header.
pub(super) fn short_packet(
    from: &mut Connection,
    number: u64,
    frames: &[Frame<'_>],
    quic_bit: bool,
) -> Vec<u8> {
    let dst = from.paths.primary().remote_cids.active();
    let keys = from.handshake.keys.one_rtt_mut().unwrap();
    let key_phase = keys.key_phase();
    let header = HeaderFields::Short { dst, spin: false, key_phase, whole_number: false };
    let mut buffer = vec![0; 1_500];
    let limit = buffer.len();
    let mut packet = OpenPacket::begin(&mut buffer, 0, limit, &header, (PathId::ZERO, number), None).unwrap();
    if !quic_bit {
        packet.clear_quic_bit(&mut buffer);
    }
    let mut writer = packet.frames(&mut buffer, Dialect::SinglePath);
    for frame in frames {
        assert!(writer.write_untracked(frame));
    }
    let payload = writer.finish();
    packet.end_payload(&mut buffer, &payload);
    let len = packet.seal(&mut buffer, Sealer::OneRtt(keys));
    buffer.truncate(len);
    buffer
}

fn close<'a>() -> Frame<'a> {
    let code = CloseCode::Transport { code: TransportErrorCode::INTERNAL_ERROR, frame: FrameType::PADDING };
    Frame::ConnectionClose(ConnectionClose { code, reason: &[] })
}

/// An Initial packet that ends the connection of the server that takes it.
fn closing_initial(src: [u8; 8], number: u64, len: usize) -> Vec<u8> {
    let keys = Keys::initial(Version::V1, &cid(ORIGINAL_DCID), Side::Client, AeadBackend::default());
    packet(&keys, (PacketKind::Initial, &[]), (cid(ORIGINAL_DCID), cid(src)), number, &[close()], len)
}

#[test]
fn an_initial_packet_in_a_small_datagram() {
    // RFC 9000 §14.1.
    let now = Instant::from_millis(1);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    deliver(&mut server, now, &closing_initial(CLIENT_CID, 0, 1_199));
    assert_eq!(lost(&mut server), None);
    deliver(&mut server, now, &closing_initial(CLIENT_CID, 0, 1_200));
    assert!(matches!(lost(&mut server), Some(ConnectionError::ConnectionClosed { .. })));
}

#[test]
fn an_initial_packet_of_a_server_with_a_token() {
    // RFC 9000 §17.2.2.
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let keys = Keys::initial(Version::V1, &cid(ORIGINAL_DCID), Side::Server, AeadBackend::default());
    let initial = |token: &[u8]| {
        packet(&keys, (PacketKind::Initial, token), (cid(CLIENT_CID), cid(SERVER_CID)), 0, &[close()], 1_200)
    };
    deliver(&mut client, now, &initial(b"token"));
    assert_eq!(lost(&mut client), None);
    deliver(&mut client, now, &initial(b""));
    assert!(matches!(lost(&mut client), Some(ConnectionError::ConnectionClosed { .. })));
}

#[test]
fn a_packet_with_another_source_than_the_first() {
    // RFC 9000 §7.2.
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    deliver(&mut server, now, &sent(&mut client, now)[0]);
    deliver(&mut server, now, &closing_initial([9; 8], 10, 1_200));
    assert_eq!(lost(&mut server), None);
    deliver(&mut server, now, &closing_initial(CLIENT_CID, 10, 1_200));
    assert!(matches!(lost(&mut server), Some(ConnectionError::ConnectionClosed { .. })));
}

#[test]
fn a_packet_to_another_connection_id_than_the_first_of_its_datagram() {
    // RFC 9000 §12.2.
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    let now = exchange(&mut client, &mut server, now);
    client.ping();
    let [ping] = &sent(&mut client, now)[..] else { panic!("no ping") };
    let keys = Keys::initial(Version::V1, &cid(ORIGINAL_DCID), Side::Client, AeadBackend::default());
    let first = |dst| {
        packet(&keys, (PacketKind::Handshake, &[]), (cid(dst), cid(CLIENT_CID)), 0, &[Frame::Ping], 100)
    };
    let received = server.stats().packets_received;
    deliver(&mut server, now, &[first(ORIGINAL_DCID), ping.clone()].concat());
    assert_eq!(server.stats().packets_received, received);
    deliver(&mut server, now, &[first(SERVER_CID), ping.clone()].concat());
    assert_eq!(server.stats().packets_received, received + 1);
}

#[test]
fn packets_that_waited_for_keys_after_one_that_closed() {
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    for datagram in sent(&mut client, now) {
        deliver(&mut server, now, &datagram);
    }
    let flight = sent(&mut server, now);
    let keys = server.handshake.keys.handshake().unwrap();
    for number in 50..60 {
        let ids = (cid(CLIENT_CID), cid(SERVER_CID));
        deliver(&mut client, now, &packet(keys, (PacketKind::Handshake, &[]), ids, number, &[close()], 100));
    }
    assert_eq!(lost(&mut client), None, "they wait");
    for datagram in flight {
        deliver(&mut client, now, &datagram);
    }
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    client.handle_timeout(now + Duration::from_secs(10));
    assert!(client.is_drained());
}

#[test]
fn the_answer_to_a_handshake_packet_without_data_ends_the_probes_for_credit() {
    // RFC 9002 §6.2.2.1: whatever is acknowledged in a Handshake packet, the server has validated the address.
    let now = Instant::from_millis(1);
    // Only the start of the server's flight has arrived: the client has Handshake keys and nothing to say with them.
    let (mut client, mut server) = in_the_handshake(now);
    assert!(!client.handshake.is_complete());
    sent(&mut client, now);
    let (at, ..) = client.pto_deadline().unwrap();
    client.handle_timeout(at);
    for datagram in sent(&mut client, at) {
        deliver(&mut server, at, &datagram);
    }
    assert!(!client.handshake.peer_validated_address());
    let answers = sent(&mut server, at);
    deliver(&mut client, at, &answers[0]);
    assert!(client.handshake.peer_validated_address());
}

#[test]
fn a_packet_without_the_quic_bit_for_who_does_not_take_it() {
    // RFC 9287 §3: it is taken by who has said so. RFC 9000 §17.3.1: and by nobody else, authentic as it may be.
    for taken in [false, true] {
        let now = Instant::from_millis(1);
        let mut client = client(now, |_| {}, &[]);
        let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
        let config = TransportConfig { grease_quic_bit: taken, ..TransportConfig::default() };
        server.config = Arc::new(config);
        let now = exchange(&mut client, &mut server, now);
        let received = server.stats().packets_received;
        deliver(&mut server, now, &short_packet(&mut client, 1_000, &[Frame::Ping], false));
        assert_eq!(server.stats().packets_received - received, u64::from(taken));
        deliver(&mut server, now, &short_packet(&mut client, 1_001, &[Frame::Ping], true));
        assert_eq!(server.stats().packets_received - received, 1 + u64::from(taken));
    }
}
