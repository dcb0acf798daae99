//! What a peer can do with forward erasure correction in dialect M.

use fulmar_wire::{
    BlockRepair, FecSid, FecWindow, Frame, FrameType, PacketKind, PathChallenge, SourceSymbol,
    TransportErrorCode as Code, VarInt,
};

use super::DATA;
use super::erasure::{datagram, datagrams, to_server};
use super::pair::{Pair, Setup};
use super::violations::{encode, receive_as};
use crate::ext::michel_vectors::{REED_SOLOMON, TEXT, XOR, bytes};
use crate::{FecCode, FecConfig, FecDialects, TransportConfig};

fn connected(code: FecCode) -> Pair {
    let fec = FecConfig { code, dialects: FecDialects::M, ..FecConfig::default() };
    let config = || TransportConfig { fec: Some(fec), ..TransportConfig::default() };
    Setup { client: config(), server: config(), ..Setup::default() }.connect()
}

fn source(id: u64, frames: &[u8]) -> Vec<u8> {
    encode(&Frame::SourceSymbol(SourceSymbol { id: VarInt::saturating(id), frames }))
}

fn repair(block: u64, parity: u64, symbol: &[u8]) -> Vec<u8> {
    let (block, parity) = (VarInt::saturating(block), VarInt::saturating(parity));
    encode(&Frame::BlockRepair(BlockRepair { block, parity, symbol }))
}

/// A repair symbol of XOR over block 0: of this source symbol, and one that is empty or arrived.
fn alone(frames: &[u8]) -> Vec<u8> {
    repair(0, 0, &[frames, &(frames.len() as u16).to_be_bytes()].concat())
}

#[track_caller]
fn refused(payload: Vec<u8>, code: Code, frame: FrameType) {
    let error = to_server(&mut connected(FecCode::Xor), payload).expect_err("an illegal packet was taken");
    assert_eq!((error.code, error.frame), (code, Some(frame)), "{error}");
}

#[test]
fn packets_of_the_fork_are_recovered_with_xor() {
    for lost in 0..2 {
        let mut pair = connected(FecCode::Xor);
        let (block, repair) = &XOR[0];
        to_server(&mut pair, bytes(block[1 - lost].1)).unwrap();
        to_server(&mut pair, bytes(repair)).unwrap();
        let mut read = datagrams(&mut pair);
        assert_eq!(read.len(), 2);
        read.sort();
        assert_eq!(read, ["and second", "first"]);
        assert_eq!(pair.server.conn().stats().fec.unwrap().recovered, 1);
        // The packet comes late: what is in it has been read.
        to_server(&mut pair, bytes(block[lost].1)).unwrap();
        assert!(datagrams(&mut pair).is_empty(), "no datagram comes twice");
    }
    // Several frames in a symbol.
    let mut pair = connected(FecCode::Xor);
    let (block, repair) = &XOR[1];
    to_server(&mut pair, bytes(block[1].1)).unwrap();
    to_server(&mut pair, bytes(repair)).unwrap();
    assert_eq!(datagrams(&mut pair), ["d"]);
    let stream = fulmar_wire::StreamId::new(crate::Side::Client, crate::Dir::Bi, 0);
    let mut data = Vec::new();
    while let Ok(Some(chunk)) = pair.server.conn().streams().recv(stream).read(usize::MAX, true) {
        data.extend_from_slice(&chunk.bytes);
    }
    assert_eq!(data, b"ABCDEF");
}

#[test]
fn packets_of_the_fork_are_recovered_with_reed_solomon() {
    let mut pair = connected(FecCode::ReedSolomon);
    // Every other packet is lost: ten of 20.
    for id in (0..20).step_by(2) {
        to_server(&mut pair, source(id, &datagram(&TEXT[..=id as usize]))).unwrap();
    }
    for frame in REED_SOLOMON {
        assert_eq!(pair.server.conn().stats().fec.unwrap().recovered, 0);
        to_server(&mut pair, bytes(frame)).unwrap();
    }
    assert_eq!(pair.server.conn().stats().fec.unwrap().recovered, 10);
    let mut read = datagrams(&mut pair);
    read.sort();
    assert!(read.iter().eq((1..=20).map(|len| &TEXT[..len]).collect::<Vec<_>>().iter()), "{read:?}");
}

#[test]
fn frames_of_the_other_dialect_might_as_well_be_unknown() {
    let sid = encode(&Frame::FecSid(FecSid { id: 0 }));
    refused([sid, datagram(b"a")].concat(), Code::FRAME_ENCODING_ERROR, FrameType::FEC_SID);
    let window = encode(&Frame::FecWindow(FecWindow { epoch: VarInt::ZERO, size: VarInt::ZERO }));
    for (payload, frame) in [
        (source(0, &datagram(b"a")), FrameType::SOURCE_SYMBOL),
        (alone(&datagram(b"a")), FrameType::REPAIR),
        (window, FrameType::FEC_WINDOW),
        (symbol_ack(0), FrameType::SYMBOL_ACK),
    ] {
        let config = || TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
        for fec in [false, true] {
            let setup = if fec {
                Setup { client: config(), server: config(), ..Setup::default() }
            } else {
                Setup::default()
            };
            let error = to_server(&mut setup.connect(), payload.clone()).unwrap_err();
            assert_eq!((error.code, error.frame), (Code::FRAME_ENCODING_ERROR, Some(frame)), "{fec}");
        }
    }
}

/// SYMBOL_ACK of one symbol.
fn symbol_ack(id: u8) -> Vec<u8> {
    [&b"\xc0\x00\x00\x32\xa8\x0f\xec\xac"[..], &[id, 0, 0]].concat()
}

#[test]
fn what_a_symbol_must_not_carry() {
    let challenge = encode(&Frame::PathChallenge(PathChallenge { data: [1; 8] }));
    let nested = source(1, &datagram(b"a"));
    for (frames, frame) in [
        (challenge, FrameType::PATH_CHALLENGE),
        (vec![0x01], FrameType::PING),
        (vec![0x00; 3], FrameType::PADDING),
        (nested, FrameType::SOURCE_SYMBOL),
        (alone(b"a"), FrameType::REPAIR),
    ] {
        refused(source(0, &frames), Code::PROTOCOL_VIOLATION, frame);
        // And the same within what was recovered: the other symbol of the block arrives behind it.
        let (other, mut sum) = (datagram(b""), frames.clone());
        sum.iter_mut().zip(&other).for_each(|(sum, other)| *sum ^= other);
        sum.resize(sum.len().max(other.len()), 0);
        if frames.len() < other.len() {
            sum[frames.len()..].copy_from_slice(&other[frames.len()..]);
        }
        sum.extend_from_slice(&((frames.len() ^ other.len()) as u16).to_be_bytes());
        let recovered = [source(1, &other), repair(0, 0, &sum)].concat();
        refused(recovered, Code::PROTOCOL_VIOLATION, frame);
    }
    let mut pair = connected(FecCode::Xor);
    let error = to_server(&mut pair, source(0, b"")).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION, "a symbol without frames");
    refused(source(0, b"\x20"), Code::FRAME_ENCODING_ERROR, FrameType(0x20));
}

#[test]
fn packets_that_must_not_carry_a_symbol() {
    let mut pair = connected(FecCode::Xor);
    let payload = source(0, &datagram(b"early"));
    let error = receive_as(&mut pair.server, DATA, PacketKind::ZeroRtt, payload, pair.now).unwrap_err();
    assert_eq!((error.code, error.frame), (Code::PROTOCOL_VIOLATION, Some(FrameType::SOURCE_SYMBOL)));
}

#[test]
fn repair_symbols_that_there_cannot_be() {
    for payload in [
        repair(0, 1, &[0; 9]),
        repair(0, 1 << 40, &[0; 9]),
        repair(1 << 61, 0, &[0; 9]),
        repair(VarInt::MAX.get(), 0, &[0; 9]),
    ] {
        refused(payload, Code::FRAME_ENCODING_ERROR, FrameType::REPAIR);
    }
    refused(repair(0, 0, &[0; 1]), Code::FRAME_ENCODING_ERROR, FrameType::REPAIR);
}

#[test]
fn symbols_that_are_too_long_to_be_kept_count_and_are_not_protected() {
    let mut pair = connected(FecCode::Xor);
    let long = [datagram(b"long"), datagram(&[7; 1_600])].concat();
    to_server(&mut pair, source(0, &long)).unwrap();
    to_server(&mut pair, repair(0, 0, &[1; 1_503])).unwrap();
    assert_eq!(datagrams(&mut pair)[0], "long");
    let stats = pair.server.conn().stats().fec.unwrap();
    assert_eq!((stats.recovered, stats.decoder_off), (0, false));
}

#[test]
fn acknowledgements_of_symbols_that_were_never_sent() {
    refused(symbol_ack(9), Code::PROTOCOL_VIOLATION, FrameType::SYMBOL_ACK);
}

#[test]
fn symbols_that_contradict_one_another_switch_the_decoder_off_and_nothing_else() {
    let mut pair = connected(FecCode::Xor);
    let (one, other) = (datagram(b"one"), datagram(b"two"));
    to_server(&mut pair, source(0, &one)).unwrap();
    // A length that is longer than the symbol.
    to_server(&mut pair, repair(0, 0, &[0xff; 9])).unwrap();
    assert!(pair.server.conn().stats().fec.unwrap().decoder_off);
    to_server(&mut pair, source(1, &other)).unwrap();
    assert_eq!(datagrams(&mut pair), ["one", "two"], "the connection goes on");
}

#[test]
fn floods_of_repair_symbols_with_blocks_far_apart_and_repeated_do_nothing() {
    let mut pair = connected(FecCode::ReedSolomon);
    for round in 0..2_000u64 {
        let block = if round % 3 == 0 { round << 40 } else { round };
        to_server(&mut pair, repair(block, round % 10, &[7; 1_200])).unwrap();
        to_server(&mut pair, source(round << 41, &datagram(b"x"))).unwrap();
        datagrams(&mut pair);
    }
    let stats = pair.server.conn().stats().fec.unwrap();
    assert_eq!(stats.repairs_received, 2_000);
    assert!(stats.decoding_work <= 64 << 20, "{}", stats.decoding_work);
    to_server(&mut pair, datagram(b"still there")).unwrap();
    assert_eq!(datagrams(&mut pair), ["still there"]);
}
