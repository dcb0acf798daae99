//! What a peer that breaks the rules of several paths is told (RFC 10069 §2.1, §4).

use std::time::Duration;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_wire::{
    ConnectionId, Dialect, Frame, FrameType, MaxPathId, NewConnectionId, PacketKind, PathAbandon,
    PathCidsBlocked, PathId, PathStatus, PathsBlocked, ResetToken, RetireConnectionId, Side,
    TransportErrorCode as Code, VarInt, Writer,
};

use super::by_hand::take;
use super::pair::{Pair, Setup};
use super::violations::varint;
use crate::ids::SpaceId;
use crate::{ConnectionError, FourTuple, MultipathConfig, PathError, TransportConfig, TransportError};

/// The second path, which [`with_two_paths`] opens.
pub(super) const SECOND: PathId = PathId(1);
/// A path that both ends allow, and that has connection IDs, but is not open.
pub(super) const UNUSED: PathId = PathId(2);
/// The smallest path ID that is not allowed.
const ABOVE: PathId = PathId(4);

pub(super) const SIDES: [Side; 2] = [Side::Client, Side::Server];

pub(super) fn config(paths_max: u32) -> TransportConfig {
    let multipath = MultipathConfig { paths_max, ..MultipathConfig::default() };
    TransportConfig { multipath: Some(multipath), ..TransportConfig::default() }
}

/// Both ends after the handshake, with multipath and another address of the client.
pub(super) fn connected() -> Pair {
    let mut pair = Setup { client: config(4), server: config(4), ..Setup::default() }.connect();
    pair.client.more_addrs = vec!["10.0.1.1:1000".parse().unwrap()];
    pair
}

/// Lets the client open one more path, over its other address.
pub(super) fn open_path(pair: &mut Pair) -> PathId {
    let (now, ip) = (pair.now, pair.client.more_addrs[0].ip());
    let addrs = FourTuple::new(pair.server.addr, Some(ip));
    let id = pair.client.conn().open_path(now, addrs).expect("another path is allowed");
    pair.run_for(Duration::from_millis(50));
    id
}

/// The same with a second path that both ends have validated.
pub(super) fn with_two_paths() -> Pair {
    let mut pair = connected();
    assert_eq!(open_path(&mut pair), SECOND);
    pair
}

/// A frame as it is written where both ends have multipath.
pub(super) fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0; frame.encoded_len(Dialect::Multipath)];
    frame.encode(Dialect::Multipath, &mut Writer::new(&mut bytes));
    bytes
}

/// Acknowledges one packet of a path.
pub(super) fn ack(path: PathId, largest: u64) -> Vec<u8> {
    numbers(FrameType::PATH_ACK, &[path.0.into(), largest, 0, 0, 0])
}

/// A frame of nothing but numbers.
pub(super) fn numbers(frame_type: FrameType, numbers: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let mut writer = Writer::new(&mut bytes);
    writer.put_varint(varint(frame_type.0));
    numbers.iter().for_each(|number| writer.put_varint(varint(*number)));
    let len = writer.len();
    bytes.truncate(len);
    bytes
}

/// A connection ID of its own for each number and path.
pub(super) fn cid_of(path: PathId, sequence: u64) -> ConnectionId {
    ConnectionId::new(&[0xee, path.0 as u8, sequence as u8, 1, 2, 3, 4, 5]).unwrap()
}

pub(super) fn new_id_with(path: PathId, sequence: u64, retire_prior_to: u64, cid: ConnectionId) -> Vec<u8> {
    encode(&Frame::NewConnectionId(NewConnectionId {
        path,
        sequence: varint(sequence),
        retire_prior_to: varint(retire_prior_to),
        cid,
        reset_token: ResetToken([sequence as u8; 16]),
    }))
}

pub(super) fn new_id(path: PathId, sequence: u64) -> Vec<u8> {
    new_id_with(path, sequence, 0, cid_of(path, sequence))
}

pub(super) fn retire(path: PathId, sequence: u64) -> Vec<u8> {
    encode(&Frame::RetireConnectionId(RetireConnectionId { path, sequence: varint(sequence) }))
}

pub(super) fn abandon(path: PathId) -> Vec<u8> {
    encode(&Frame::PathAbandon(PathAbandon { path, code: VarInt::ZERO }))
}

fn status(path: PathId, sequence: u64, available: bool) -> Vec<u8> {
    encode(&Frame::PathStatus(PathStatus { path, sequence: varint(sequence), available }))
}

pub(super) fn cids_blocked(path: PathId, next: u64) -> Vec<u8> {
    encode(&Frame::PathCidsBlocked(PathCidsBlocked { path, next_sequence: varint(next) }))
}

/// Every frame that names a path which must be allowed, with its type.
fn frames_of(path: PathId) -> Vec<(FrameType, Vec<u8>)> {
    let blocked = Frame::PathsBlocked(PathsBlocked { max: path });
    vec![
        (FrameType::PATH_ACK, ack(path, 0)),
        (FrameType::PATH_ACK_ECN, numbers(FrameType::PATH_ACK_ECN, &[path.0.into(), 0, 0, 0, 0, 0, 0, 0])),
        (FrameType::PATH_ABANDON, abandon(path)),
        (FrameType::PATH_STATUS_AVAILABLE, status(path, 1, true)),
        (FrameType::PATH_STATUS_BACKUP, status(path, 1, false)),
        (FrameType::PATH_NEW_CONNECTION_ID, new_id(path, 0)),
        (FrameType::PATH_RETIRE_CONNECTION_ID, retire(path, 0)),
        (FrameType::PATHS_BLOCKED, encode(&blocked)),
        (FrameType::PATH_CIDS_BLOCKED, cids_blocked(path, 0)),
    ]
}

/// Every frame of RFC 10069.
fn all_frames() -> Vec<(FrameType, Vec<u8>)> {
    let max = encode(&Frame::MaxPathId(MaxPathId { max: PathId(9) }));
    [frames_of(PathId::ZERO), vec![(FrameType::MAX_PATH_ID, max)]].concat()
}

/// Hands the payload of an authentic packet of path 0 to an end.
pub(super) fn receive(pair: &mut Pair, to: Side, payload: Vec<u8>) -> Result<(), TransportError> {
    receive_in(pair, to, PacketKind::OneRtt, payload)
}

fn receive_in(pair: &mut Pair, to: Side, kind: PacketKind, payload: Vec<u8>) -> Result<(), TransportError> {
    let space = match kind {
        PacketKind::Initial => SpaceId::Initial,
        PacketKind::Handshake => SpaceId::Handshake,
        PacketKind::ZeroRtt | PacketKind::OneRtt => super::DATA,
    };
    let now = pair.now;
    take(pair.end(to).conn(), now, (space, kind), &Bytes::from(payload))
}

#[track_caller]
pub(super) fn is_refused(result: Result<(), TransportError>, code: Code, frame: FrameType) {
    let error = result.expect_err("an illegal packet was taken");
    assert_eq!((error.code, error.frame), (code, Some(frame)), "{error}");
}

/// Gives a payload to each end of a connection with two paths, and expects that it closes with this code because of
/// this frame.
#[track_caller]
pub(super) fn refused_by_both(payload: &[u8], code: Code, frame: FrameType) {
    for side in SIDES {
        is_refused(receive(&mut with_two_paths(), side, payload.to_vec()), code, frame);
    }
}

/// Gives a payload to each end of a connection with two paths, and expects that it goes on with both of them.
#[track_caller]
pub(super) fn taken_by_both(payload: &[u8]) {
    for side in SIDES {
        let mut pair = with_two_paths();
        receive(&mut pair, side, payload.to_vec()).unwrap_or_else(|error| panic!("{side:?}: {error}"));
        let connection = pair.end(side).conn();
        assert!(!connection.is_closed() && connection.paths().count() == 2, "{side:?}");
    }
}

#[test]
fn path_ids_above_the_limit() {
    for path in [ABOVE, PathId(u32::MAX)] {
        for (frame, payload) in frames_of(path) {
            refused_by_both(&payload, Code::PROTOCOL_VIOLATION, frame);
        }
    }
}

#[test]
fn path_ids_that_no_nonce_can_hold() {
    for (frame, payload) in all_frames() {
        let type_len = varint(frame.0).size();
        let behind = &payload[type_len + 1..];
        let payload = [&payload[..type_len], &(0xc000_0000_0000_0000 | 1_u64 << 32).to_be_bytes(), behind];
        refused_by_both(&payload.concat(), Code::PROTOCOL_VIOLATION, frame);
    }
}

#[test]
fn frames_of_paths_in_other_packets_than_those_of_the_1_rtt_keys() {
    for kind in [PacketKind::Initial, PacketKind::Handshake, PacketKind::ZeroRtt] {
        for (frame, payload) in all_frames() {
            for side in SIDES {
                let result = receive_in(&mut with_two_paths(), side, kind, payload.clone());
                is_refused(result, Code::PROTOCOL_VIOLATION, frame);
            }
        }
    }
}

#[test]
fn frames_of_paths_where_one_end_has_no_multipath_are_unknown() {
    let plain = TransportConfig::default;
    for (frame, payload) in all_frames() {
        for (client, server) in [(config(4), plain()), (plain(), config(4)), (plain(), plain())] {
            let mut pair = Setup { client, server, ..Setup::default() }.connect();
            for side in SIDES {
                is_refused(receive(&mut pair, side, payload.clone()), Code::FRAME_ENCODING_ERROR, frame);
            }
        }
        let mut pair = Pair::connected();
        let result = receive_in(&mut pair, Side::Server, PacketKind::Initial, payload);
        is_refused(result, Code::FRAME_ENCODING_ERROR, frame);
    }
}

#[test]
fn frames_of_paths_that_end_too_early() {
    for (frame, payload) in all_frames() {
        for len in varint(frame.0).size()..payload.len() {
            refused_by_both(&payload[..len], Code::FRAME_ENCODING_ERROR, frame);
        }
    }
}

#[test]
fn acknowledgements_of_paths_that_never_were_and_of_packets_that_were_never_sent() {
    refused_by_both(&ack(UNUSED, 0), Code::PROTOCOL_VIOLATION, FrameType::PATH_ACK);
    refused_by_both(&ack(SECOND, 1_000_000), Code::PROTOCOL_VIOLATION, FrameType::PATH_ACK);
    // Errors name what concerns path 0 by the type that is the same without several paths.
    refused_by_both(&ack(PathId::ZERO, 1_000_000), Code::PROTOCOL_VIOLATION, FrameType::ACK);
}

#[test]
fn an_ack_without_a_path_is_for_the_first_one() {
    // RFC 10069 §2.3: it MUST be processed.
    taken_by_both(&numbers(FrameType::ACK, &[0, 0, 0, 0]));
    let never_sent = numbers(FrameType::ACK, &[1_000_000, 0, 0, 0]);
    refused_by_both(&never_sent, Code::PROTOCOL_VIOLATION, FrameType::ACK);
}

#[test]
fn limits_of_paths_that_fall_below_the_first_one() {
    let max = |max| encode(&Frame::MaxPathId(MaxPathId { max: PathId(max) }));
    refused_by_both(&max(2), Code::PROTOCOL_VIOLATION, FrameType::MAX_PATH_ID);
    // RFC 10069 §4.6: one that does not raise the limit is ignored.
    taken_by_both(&[max(9), max(3), max(8), max(u32::MAX)].concat());
}

#[test]
fn statements_about_the_use_of_a_path_that_are_repeated_or_outdated_are_ignored() {
    for side in SIDES {
        let mut pair = with_two_paths();
        let payload = [
            status(SECOND, 7, false),
            status(SECOND, 7, true),
            status(SECOND, 6, true),
            status(UNUSED, VarInt::MAX.get(), false),
        ];
        receive(&mut pair, side, payload.concat()).unwrap();
        let uses: Vec<_> = pair.end(side).conn().paths().map(|path| path.remote_use).collect();
        assert_eq!(uses, [crate::PathUse::Available, crate::PathUse::Backup]);
    }
}

#[test]
fn the_last_path_is_abandoned() {
    for side in SIDES {
        let frame = FrameType::PATH_ABANDON;
        is_refused(receive(&mut connected(), side, abandon(PathId::ZERO)), Code::NO_VIABLE_PATH, frame);
        let mut pair = with_two_paths();
        receive(&mut pair, side, abandon(PathId::ZERO)).unwrap();
        let now = pair.now;
        let code = Code::NO_ERROR;
        assert_eq!(pair.end(side).conn().abandon_path(now, SECOND, code), Err(PathError::LastPath));
        let payload = Bytes::from(abandon(SECOND));
        let kind = (SpaceId::Data(SECOND), PacketKind::OneRtt);
        let result = take(pair.end(side).conn(), now, kind, &payload);
        is_refused(result, Code::NO_VIABLE_PATH, frame);
    }
}

#[test]
fn a_peer_that_abandons_the_last_path_is_told_why_the_connection_ends() {
    for side in SIDES {
        let mut pair = connected();
        let error = receive(&mut pair, side, abandon(PathId::ZERO)).unwrap_err();
        let now = pair.now;
        pair.end(side).conn().close_on_error(now, error);
        pair.run_for(Duration::from_secs(5));
        match pair.lost(!side) {
            Some(ConnectionError::ConnectionClosed { code, frame, .. }) => {
                assert_eq!((code, frame), (Code::NO_VIABLE_PATH, Some(FrameType::PATH_ABANDON)));
            }
            other => panic!("{other:?}"),
        }
        assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
    }
}

#[test]
fn what_is_said_of_a_path_that_is_gone_means_nothing() {
    for gone in [SECOND, UNUSED] {
        for side in SIDES {
            let mut pair = with_two_paths();
            receive(&mut pair, side, abandon(gone)).unwrap();
            let paths = pair.end(side).conn().paths().count();
            // Whatever the numbers: the state that they could be compared with may be gone.
            let more = [ack(gone, 1_000_000), retire(gone, 100), cids_blocked(gone, 100), new_id(gone, 100)];
            for payload in frames_of(gone).into_iter().map(|(_, payload)| payload).chain(more) {
                receive(&mut pair, side, payload).unwrap();
            }
            assert_eq!(pair.end(side).conn().paths().count(), paths);
        }
    }
}

#[test]
fn the_first_limit_of_paths_is_too_large_for_the_nonce() {
    let now = Instant::from_millis(1);
    let too_large = [&[0x3e, 8][..], &(0xc000_0000_0000_0000 | 1_u64 << 32).to_be_bytes()].concat();
    let mut client = super::by_hand::client(now, |_| {}, &too_large);
    let mut server =
        super::by_hand::server(now, super::by_hand::cid(super::by_hand::ORIGINAL_DCID), |_| {}, &[]);
    super::by_hand::exchange(&mut client, &mut server, now);
    match super::by_hand::lost(&mut server) {
        Some(ConnectionError::Transport(error)) => assert_eq!(error.code, Code::TRANSPORT_PARAMETER_ERROR),
        other => panic!("{other:?}"),
    }
}
