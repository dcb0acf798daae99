//! The datagrams of a handshake in every order, and every frame in every kind of packet at every stage.

use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    CloseCode, ConnectionClose, ConnectionId, Crypto, DataBlocked, Dir, Frame, FrameType, MaxData,
    MaxStreamData, MaxStreams, NewConnectionId, NewToken, PacketKind, PathChallenge, PathId, PathResponse,
    ResetStream, ResetToken, RetireConnectionId, Side, StopSending, Stream, StreamDataBlocked, StreamId,
    StreamsBlocked, TransportErrorCode as Code, VarInt, read_packet,
};

use super::super::Connection;
use super::DATA;
use super::by_hand::{CLIENT_CID, ORIGINAL_DCID, cid, client, deliver, exchange, lost, sent, server, take};
use super::conformance::in_the_handshake;
use super::pair::Pair;
use super::violations::encode;
use crate::ids::SpaceId;

/// All orders of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1);
    let with = |order: &Vec<usize>, at| {
        let mut order = order.clone();
        order.insert(at, count - 1);
        order
    };
    shorter.iter().flat_map(|order| (0..count).map(move |at| with(order, at))).collect()
}

/// The packets of these datagrams, each in a datagram of its own.
fn apart(datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for datagram in datagrams {
        let mut rest = &datagram[..];
        while let Ok(packet) = read_packet(rest, CLIENT_CID.len()) {
            let (bytes, behind) = rest.split_at(packet.len);
            packets.push(bytes.to_vec());
            rest = behind;
        }
    }
    packets
}

/// Lets a server's first flight arrive in an order, each part of it so often, and the handshake end after that.
fn arrive(order: &[usize], copies: usize, split: bool) -> usize {
    let now = Instant::from_millis(1);
    let mut client = client(now, |_| {}, &[]);
    let mut server = server(now, cid(ORIGINAL_DCID), |_| {}, &[]);
    // What a lost datagram would have said is not said again: the address counts as proven.
    server.on_address_validated();
    for datagram in sent(&mut client, now) {
        deliver(&mut server, now, &datagram);
    }
    let flight = sent(&mut server, now);
    let flight = if split { apart(&flight) } else { flight };
    for part in order.iter().filter_map(|part| flight.get(*part)) {
        for _ in 0..copies {
            deliver(&mut client, now, part);
        }
    }
    exchange(&mut client, &mut server, now);
    // What came too early and was dropped comes again after a timeout.
    let mut later = now;
    for _ in 0..5 {
        later += Duration::from_millis(700);
        exchange(&mut client, &mut server, later);
    }
    assert_eq!((lost(&mut client), lost(&mut server)), (None, None), "{order:?}");
    assert!(client.handshake.is_confirmed() && server.handshake.is_confirmed(), "{order:?}");
    flight.len()
}

#[test]
fn the_flight_of_a_server_in_every_order() {
    let count = arrive(&[], 1, false);
    assert!((3..=8).contains(&count), "{count} datagrams");
    for order in orders(count.min(5)) {
        arrive(&order, 1, false);
    }
    let count = arrive(&[], 1, true);
    for first in 0..count {
        for second in 0..count {
            arrive(&[first, second], 3, true);
        }
    }
}

/// Every frame, with the packets that may carry it (RFC 9000 §12.4, table 3): I, H, 0 and 1.
fn frames() -> Vec<(Vec<u8>, &'static str)> {
    let zero = VarInt::ZERO;
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let close = |code| Frame::ConnectionClose(ConnectionClose { code, reason: b"why" });
    let frame_type = FrameType::PADDING;
    let frames = [
        (Frame::Padding, "IH01"),
        (Frame::Ping, "IH01"),
        (Frame::ResetStream(ResetStream { id, error_code: zero, final_size: zero }), "01"),
        (Frame::StopSending(StopSending { id, error_code: zero }), "01"),
        (Frame::Crypto(Crypto { offset: VarInt::from_u32(30_000), data: b"x" }), "IH1"),
        (Frame::NewToken(NewToken { token: b"token" }), "1"),
        (Frame::Stream(Stream { id, offset: zero, fin: false, data: b"x" }), "01"),
        (Frame::MaxData(MaxData { maximum: zero }), "01"),
        (Frame::MaxStreamData(MaxStreamData { id, maximum: zero }), "01"),
        (Frame::MaxStreams(MaxStreams { dir: Dir::Bi, maximum: zero }), "01"),
        (Frame::DataBlocked(DataBlocked { limit: zero }), "01"),
        (Frame::StreamDataBlocked(StreamDataBlocked { id, limit: zero }), "01"),
        (Frame::StreamsBlocked(StreamsBlocked { dir: Dir::Bi, limit: zero }), "01"),
        (
            Frame::NewConnectionId(NewConnectionId {
                path: PathId::ZERO,
                sequence: VarInt::from_u32(9),
                retire_prior_to: zero,
                cid: ConnectionId::new(&[7; 8]).unwrap(),
                reset_token: ResetToken([1; 16]),
            }),
            "01",
        ),
        (
            Frame::RetireConnectionId(RetireConnectionId {
                path: PathId::ZERO,
                sequence: VarInt::from_u32(1),
            }),
            "1",
        ),
        (Frame::PathChallenge(PathChallenge { data: [1; 8] }), "01"),
        (Frame::PathResponse(PathResponse { data: [1; 8] }), "1"),
        (close(CloseCode::Transport { code: Code::NO_ERROR, frame: frame_type }), "IH01"),
        (close(CloseCode::Application(zero)), "01"),
        (Frame::HandshakeDone, "1"),
    ];
    let mut frames: Vec<_> = frames.iter().map(|(frame, packets)| (encode(frame), *packets)).collect();
    // An ACK of packet 0, without and with counts of marks.
    frames.push((vec![2, 0, 0, 0, 0], "IH1"));
    frames.push((vec![3, 0, 0, 0, 0, 0, 0, 0], "IH1"));
    frames
}

const KINDS: [(char, SpaceId, PacketKind); 4] = [
    ('I', SpaceId::Initial, PacketKind::Initial),
    ('H', SpaceId::Handshake, PacketKind::Handshake),
    ('0', DATA, PacketKind::ZeroRtt),
    ('1', DATA, PacketKind::OneRtt),
];

/// Gives payloads to connections of both sides before, in and behind the handshake.
fn at_each_stage(mut test: impl FnMut(&mut Connection, &str)) {
    let now = Instant::from_millis(1);
    test(&mut client(now, |_| {}, &[]), "a client at the start");
    test(&mut server(now, cid(ORIGINAL_DCID), |_| {}, &[]), "a server at the start");
    let (mut client, mut server) = in_the_handshake(now);
    test(&mut client, "a client in the handshake");
    test(&mut server, "a server in the handshake");
    let mut pair = Pair::connected();
    test(pair.client.conn(), "a client");
    test(pair.server.conn(), "a server");
}

/// Whether packets of a kind can be opened at a stage.
fn is_reachable(letter: char, stage: &str) -> bool {
    match letter {
        // The names of the others say when.
        '1' => stage == "a client" || stage == "a server",
        '0' => stage.contains("server"),
        _ => true,
    }
}

#[test]
fn every_frame_in_every_packet_at_every_stage() {
    let now = Instant::from_millis(500);
    for (frame, packets) in frames() {
        for (letter, space, kind) in KINDS {
            at_each_stage(|connection, stage| {
                if !is_reachable(letter, stage) {
                    return;
                }
                let result = take(connection, now, (space, kind), &Bytes::from(frame.clone()));
                if !packets.contains(letter) {
                    let code = result.err().map(|error| error.code);
                    assert_eq!(code, Some(Code::PROTOCOL_VIOLATION), "{frame:?} in {kind:?} to {stage}");
                }
                sent(connection, now);
                connection.handle_timeout(now);
            });
        }
    }
}

#[test]
fn every_two_frames_of_the_handshake_one_after_the_other() {
    let now = Instant::from_millis(500);
    let frames: Vec<Vec<u8>> =
        frames().into_iter().filter(|(_, packets)| packets.contains('H')).map(|(frame, _)| frame).collect();
    for first in &frames {
        for second in &frames {
            for (_, space, kind) in &KINDS[..2] {
                let (mut client, mut server) = in_the_handshake(Instant::from_millis(1));
                for connection in [&mut client, &mut server] {
                    let payload = Bytes::from([&first[..], second].concat());
                    if let Err(error) = take(connection, now, (*space, *kind), &payload) {
                        assert_ne!(error.code, Code::INTERNAL_ERROR);
                        connection.close_on_error(now, error);
                    }
                    sent(connection, now);
                    connection.handle_timeout(now);
                }
            }
        }
    }
}

#[test]
fn the_handshake_is_declared_done_too_early_or_by_the_wrong_end() {
    let now = Instant::from_millis(500);
    let done = Bytes::from(encode(&Frame::HandshakeDone));
    for (letter, space, kind) in KINDS {
        at_each_stage(|connection, stage| {
            if !is_reachable(letter, stage) {
                return;
            }
            match take(connection, now, (space, kind), &done) {
                Ok(()) => assert_eq!((letter, stage), ('1', "a client")),
                Err(error) => {
                    assert_ne!((letter, stage), ('1', "a client"), "{error}");
                    assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "{stage}");
                }
            }
        });
    }
    // Again and again it says nothing new.
    let mut pair = Pair::connected();
    for _ in 0..10_000 {
        take(pair.client.conn(), now, (DATA, PacketKind::OneRtt), &done).unwrap();
    }
    assert!(!pair.client.conn().is_closed() && pair.client.conn().handshake.is_confirmed());
}
