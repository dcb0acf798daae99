//! What a peer can do with forward erasure correction.

use std::time::Duration;

use bytes::Bytes;
use fulmar_fec::{Cauchy, Code as ErasureCode, RepairId, SourceWindow, Xor};
use fulmar_wire::{
    Datagram, Dir, FecRecovered, FecRepair, FecSid, Frame, FrameType, PathChallenge,
    TransportErrorCode as Code, VarInt,
};

use super::super::Connection;
use super::DATA;
use super::pair::{Pair, Setup};
use super::violations::{encode, receive};
use crate::log::{FecEvent, LogEntry, LogEvent, RepairOutcome};
use crate::{FecConfig, TransmitBatch, TransportConfig, TransportError};

fn connected() -> Pair {
    let config = || TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
    Setup { client: config(), server: config(), ..Setup::default() }.connect()
}

fn sid(id: u16) -> Vec<u8> {
    encode(&Frame::FecSid(FecSid { id }))
}

pub(super) fn datagram(data: &[u8]) -> Vec<u8> {
    encode(&Frame::Datagram(Datagram { data }))
}

/// A packet with a source symbol.
fn source(id: u16, frames: &[u8]) -> Vec<u8> {
    [&sid(id), frames].concat()
}

/// A packet with a repair symbol over these source symbols, the first ones of the connection.
fn repair(code: &dyn ErasureCode, scheme: u8, symbols: &[&[u8]], key: u16) -> Vec<u8> {
    let mut window = SourceWindow::new(16);
    for symbol in symbols {
        window.push(symbol).unwrap();
    }
    let (count, mut symbol) = (symbols.len() as u16, Vec::new());
    window.repair(code, &RepairId { first: 0, count, key }, &mut symbol).unwrap();
    encode(&Frame::FecRepair(FecRepair { scheme, first: 0, more: count as u8 - 1, key, symbol: &symbol }))
}

pub(super) fn to_server(pair: &mut Pair, payload: Vec<u8>) -> Result<(), TransportError> {
    receive(&mut pair.server, DATA, payload, pair.now)
}

pub(super) fn datagrams(pair: &mut Pair) -> Vec<Bytes> {
    std::iter::from_fn(|| pair.server.conn().read_datagram()).collect()
}

#[track_caller]
fn refused(payload: Vec<u8>, code: Code, frame: FrameType) {
    let error = to_server(&mut connected(), payload).expect_err("an illegal packet was taken");
    assert_eq!((error.code, error.frame), (code, Some(frame)), "{error}");
}

#[test]
fn frames_of_an_extension_that_is_off_might_as_well_be_unknown() {
    let recovered = Frame::FecRecovered(FecRecovered { first: VarInt::ZERO, more: 0 });
    for (payload, frame) in [
        (source(0, &datagram(b"a")), FrameType::FEC_SID),
        (repair(&Xor, 0, &[b"a"], 0), FrameType::FEC_REPAIR),
        (encode(&recovered), FrameType::FEC_RECOVERED),
    ] {
        let mut pair = Pair::connected();
        let error = to_server(&mut pair, payload).unwrap_err();
        assert_eq!((error.code, error.frame), (Code::FRAME_ENCODING_ERROR, Some(frame)));
    }
}

#[test]
fn a_lost_packet_is_recovered_reported_and_not_acknowledged() {
    let mut pair = connected();
    let (first, second) = (datagram(b"first"), datagram(b"and second"));
    to_server(&mut pair, source(1, &second)).unwrap();
    to_server(&mut pair, repair(&Cauchy, 1, &[&first, &second], 0)).unwrap();
    assert_eq!(datagrams(&mut pair), ["and second", "first"]);
    let stats = pair.server.conn().stats().fec.unwrap();
    assert_eq!((stats.recovered, stats.repairs_received, stats.decoder_off), (1, 1, false));
    // The packet comes late: what is in it has been read.
    to_server(&mut pair, source(0, &first)).unwrap();
    assert!(datagrams(&mut pair).is_empty(), "no datagram comes twice");
}

#[test]
fn a_report_is_repeated_with_an_acknowledgement_and_not_alone() {
    let mut pair = connected();
    pair.server.mute = true;
    let [first, second] = [&b"first"[..], b"and second"].map(datagram);
    to_server(&mut pair, source(1, &second)).unwrap();
    to_server(&mut pair, repair(&Cauchy, 1, &[&first, &second], 0)).unwrap();
    let mut sent_after = |payload: Option<Frame<'_>>| {
        let before = pair.server.sent.len();
        if let Some(frame) = payload {
            to_server(&mut pair, encode(&frame)).unwrap();
        }
        pair.run_for(Duration::from_millis(1));
        pair.server.sent.len() - before
    };
    assert!(sent_after(None) > 0, "it is told");
    assert_eq!(sent_after(Some(Frame::Padding)), 0, "which asks for nothing");
    assert_eq!(sent_after(Some(Frame::Ping)), 1);
}

#[test]
fn the_log_tells_of_repairs_recoveries_and_a_decoder_that_is_off() {
    let fec = Some(FecConfig::default());
    let config = || TransportConfig { fec, log_entries: 1 << 10, ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    let [first, second, third] = [&b"first"[..], b"second", b"third"].map(datagram);
    to_server(&mut pair, source(1, &second)).unwrap();
    to_server(&mut pair, repair(&Cauchy, 1, &[&first, &second], 0)).unwrap();
    to_server(&mut pair, repair(&Cauchy, 1, &[&first, &second], 1)).unwrap();
    to_server(&mut pair, repair(&Cauchy, 1, &[&first, &second, &third, &third], 0)).unwrap();
    // Another third one than that which the repair symbols are of: the fourth makes no sense then.
    to_server(&mut pair, source(2, &datagram(&[7; 900]))).unwrap();
    let of_fec = |entry: &LogEntry| match entry.event {
        LogEvent::Fec(event) => Some(event),
        _ => None,
    };
    let events: Vec<FecEvent> = pair.server.conn().log().unwrap().iter().filter_map(of_fec).collect();
    let received = |count, outcome| FecEvent::RepairReceived { first: 0, count, outcome };
    let expected = [
        received(2, RepairOutcome::Used),
        FecEvent::Recovered { id: 0 },
        received(2, RepairOutcome::Redundant),
        received(4, RepairOutcome::Kept),
        FecEvent::DecoderOff,
    ];
    assert_eq!(events, expected);
}

#[test]
fn padding_behind_a_symbol_is_not_part_of_it() {
    let mut pair = connected();
    let frames = [datagram(b"first\0"), datagram(b"second")];
    to_server(&mut pair, [source(0, &frames[0]), vec![0; 9]].concat()).unwrap();
    to_server(&mut pair, [repair(&Xor, 0, &[&frames[0], &frames[1]], 0), vec![0; 9]].concat()).unwrap();
    assert_eq!(datagrams(&mut pair), [&b"first\0"[..], b"second"]);
}

#[test]
fn what_a_symbol_must_not_carry() {
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data: [1; 8] }));
    refused(source(0, &challenge), Code::PROTOCOL_VIOLATION, FrameType::PATH_CHALLENGE);
    refused(source(0, &sid(1)), Code::PROTOCOL_VIOLATION, FrameType::FEC_SID);
    let inner = repair(&Xor, 0, &[b"a"], 0);
    refused(source(0, &inner), Code::PROTOCOL_VIOLATION, FrameType::FEC_REPAIR);
    // And the same within what was recovered.
    for (frames, frame) in
        [(challenge, FrameType::PATH_CHALLENGE), (vec![0x01], FrameType::PING), (sid(7), FrameType::FEC_SID)]
    {
        refused(repair(&Xor, 0, &[&frames], 0), Code::PROTOCOL_VIOLATION, frame);
    }
    let error = to_server(&mut connected(), repair(&Xor, 0, &[b""], 0)).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "a symbol without frames");
}

#[test]
fn repair_symbols_that_there_cannot_be() {
    let illegal = |scheme, more, key, len: usize| {
        let symbol = vec![1; len];
        let frame = Frame::FecRepair(FecRepair { scheme, first: 0, more, key, symbol: &symbol });
        refused(encode(&frame), Code::FRAME_ENCODING_ERROR, FrameType::FEC_REPAIR);
    };
    illegal(3, 0, 0, 10);
    illegal(0, 0, 1, 10);
    illegal(1, 255, 0, 10);
    illegal(1, 9, 245, 10);
    illegal(1, 0, 0, 1_503);
}

#[test]
fn reports_of_symbols_that_were_never_sent() {
    let report = encode(&Frame::FecRecovered(FecRecovered { first: VarInt::from_u32(1 << 20), more: 0 }));
    refused(report, Code::PROTOCOL_VIOLATION, FrameType::FEC_RECOVERED);
}

#[test]
fn symbols_that_contradict_one_another_switch_the_decoder_off_and_nothing_else() {
    let mut pair = connected();
    let (told, shown) = (datagram(b"told"), datagram(b"shown"));
    to_server(&mut pair, repair(&Xor, 0, &[&told], 0)).unwrap();
    to_server(&mut pair, source(0, &shown)).unwrap();
    assert!(pair.server.conn().stats().fec.unwrap().decoder_off);
    datagrams(&mut pair);
    to_server(&mut pair, source(1, &datagram(b"more"))).unwrap();
    to_server(&mut pair, repair(&Xor, 0, &[&told, &shown], 0)).unwrap();
    assert_eq!(datagrams(&mut pair), ["more"], "the connection goes on");
}

#[test]
fn floods_of_repair_symbols_with_ids_far_apart_and_repeated_do_nothing() {
    let mut pair = connected();
    let symbol = vec![7; 1_200];
    for round in 0..2_000u16 {
        let first = round.wrapping_mul(if round % 3 == 0 { 40_503 } else { 1 });
        let frame = FecRepair { scheme: 1, first, more: 99, key: round % 100, symbol: &symbol };
        to_server(&mut pair, encode(&Frame::FecRepair(frame))).unwrap();
    }
    let stats = pair.server.conn().stats().fec.unwrap();
    assert_eq!(stats.repairs_received, 2_000);
    assert!(stats.decoding_work <= 64 << 20, "{}", stats.decoding_work);
    to_server(&mut pair, datagram(b"still there")).unwrap();
    assert_eq!(datagrams(&mut pair), ["still there"]);
}

#[test]
fn a_repair_symbol_that_is_replayed_recovers_nothing_twice_and_nor_does_the_late_packet() {
    let mut pair = connected();
    let frames = [datagram(b"first"), datagram(b"second")];
    to_server(&mut pair, source(1, &frames[1])).unwrap();
    let repair = repair(&Xor, 0, &[&frames[0], &frames[1]], 0);
    for _ in 0..3 {
        to_server(&mut pair, repair.clone()).unwrap();
    }
    to_server(&mut pair, source(0, &frames[0])).unwrap();
    assert_eq!(datagrams(&mut pair), ["second", "first"]);
    let stats = pair.server.conn().stats().fec.unwrap();
    assert_eq!((stats.recovered, stats.repairs_redundant, stats.decoder_off), (1, 2, false));
}

#[test]
fn data_goes_before_repairs_that_wait() {
    let mut pair = connected();
    pair.run_for(Duration::from_millis(200));
    let now = pair.now;
    let server = pair.server.conn();
    let write = |server: &mut Connection, len| {
        let streams = server.streams();
        let id = streams.open(Dir::Uni).unwrap();
        assert_eq!(streams.send(id).write(&[1; 6_000][..len]).unwrap(), len);
        streams.send(id).finish().unwrap();
    };
    write(server, 6_000);
    // One packet at a time, until the first of the repair symbols has left.
    let mut batch = TransmitBatch::new(1);
    let sent = |server: &Connection| server.stats().fec.expect("both ends have it").repairs_sent;
    while sent(server) == 0 {
        assert!(server.poll_transmit(now, &mut batch).is_some());
    }
    assert!(server.extensions.fec_sender().unwrap().has_repairs(), "the others wait");
    write(server, 1_000);
    assert!(server.poll_transmit(now, &mut batch).is_some());
    assert!(!server.streams.has_data_to_send());
    assert_eq!(sent(server), 1);
    assert!(server.poll_transmit(now, &mut batch).is_some());
    assert_eq!(sent(server), 2, "they follow");
}
