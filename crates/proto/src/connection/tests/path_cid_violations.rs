//! What a peer is told that breaks the rules of the connection IDs of several paths (RFC 10069 §3.2.1, §4).

use fulmar_wire::{FrameType, PathId, Side, TransportErrorCode as Code};

use super::pair::Setup;
use super::path_violations::{
    SECOND, SIDES, UNUSED, cid_of, cids_blocked, config, is_refused, new_id, new_id_with, numbers, receive,
    refused_by_both, retire, taken_by_both, with_two_paths,
};

#[test]
fn one_connection_id_for_several_paths() {
    // RFC 10069 §3.2.1: no connection ID is issued more than once, whatever its path.
    let frame = FrameType::PATH_NEW_CONNECTION_ID;
    let shared = cid_of(SECOND, 9);
    for (first, second) in [(SECOND, UNUSED), (UNUSED, SECOND), (UNUSED, PathId(3))] {
        let payload = [new_id_with(first, 2, 0, shared), new_id_with(second, 2, 0, shared)].concat();
        refused_by_both(&payload, Code::PROTOCOL_VIOLATION, frame);
    }
    for side in SIDES {
        let mut pair = with_two_paths();
        let of_handshake = pair.end(side).conn().paths.primary_mut().remote_cids.active();
        let result = receive(&mut pair, side, new_id_with(SECOND, 2, 0, of_handshake));
        is_refused(result, Code::PROTOCOL_VIOLATION, frame);
    }
}

#[test]
fn connection_ids_that_contradict_each_other() {
    let frame = FrameType::PATH_NEW_CONNECTION_ID;
    for path in [SECOND, UNUSED] {
        let (first, other) = (new_id(path, 5), new_id_with(path, 5, 0, cid_of(path, 6)));
        taken_by_both(&[first.clone(), first.clone()].concat());
        refused_by_both(&[first.clone(), other].concat(), Code::PROTOCOL_VIOLATION, frame);
        let renumbered = new_id_with(path, 6, 0, cid_of(path, 5));
        refused_by_both(&[first, renumbered].concat(), Code::PROTOCOL_VIOLATION, frame);
    }
}

#[test]
fn more_connection_ids_for_a_path_than_were_asked_for() {
    for (path, frame) in [
        (PathId::ZERO, FrameType::NEW_CONNECTION_ID),
        (SECOND, FrameType::PATH_NEW_CONNECTION_ID),
        (UNUSED, FrameType::PATH_NEW_CONNECTION_ID),
    ] {
        let payload: Vec<u8> = (10..30).flat_map(|sequence| new_id(path, sequence)).collect();
        refused_by_both(&payload, Code::CONNECTION_ID_LIMIT_ERROR, frame);
    }
}

#[test]
fn connection_ids_of_a_path_that_retire_themselves_or_have_no_legal_length() {
    let frame = FrameType::PATH_NEW_CONNECTION_ID;
    for path in [SECOND, UNUSED] {
        let id = numbers(frame, &[path.0.into(), 5]);
        let token = [7; 16];
        let with = |retire_prior_to: u8, len: u8| {
            [&id[..], &[retire_prior_to, len], &[3; 255][..len.into()], &token].concat()
        };
        taken_by_both(&with(0, 8));
        for illegal in [with(6, 8), with(0, 0), with(0, 21), with(0, 255)] {
            refused_by_both(&illegal, Code::FRAME_ENCODING_ERROR, frame);
        }
    }
}

#[test]
fn retirements_of_connection_ids_that_were_never_issued_or_are_in_use() {
    for path in [SECOND, UNUSED] {
        let frame = FrameType::PATH_RETIRE_CONNECTION_ID;
        refused_by_both(&retire(path, 100), Code::PROTOCOL_VIOLATION, frame);
    }
    // The packet that carries the second one was sent to it.
    for sequence in [100, 0] {
        let frame = FrameType::RETIRE_CONNECTION_ID;
        refused_by_both(&retire(PathId::ZERO, sequence), Code::PROTOCOL_VIOLATION, frame);
    }
    taken_by_both(&retire(SECOND, 1));
    taken_by_both(&[retire(UNUSED, 0), retire(UNUSED, 1)].concat());
}

#[test]
fn retirements_for_a_path_that_only_one_end_allows() {
    // It allows four paths, and its peer two: it has never given it connection IDs for the others.
    let mut pair = Setup { client: config(2), server: config(4), ..Setup::default() }.connect();
    let result = receive(&mut pair, Side::Server, retire(UNUSED, 0));
    is_refused(result, Code::PROTOCOL_VIOLATION, FrameType::PATH_RETIRE_CONNECTION_ID);
}

#[test]
fn connection_ids_that_are_missed_and_were_never_issued() {
    let frame = FrameType::PATH_CIDS_BLOCKED;
    // Both have two IDs.
    for path in [SECOND, UNUSED] {
        taken_by_both(&cids_blocked(path, 2));
        refused_by_both(&cids_blocked(path, 3), Code::PROTOCOL_VIOLATION, frame);
    }
    let mut pair = Setup { client: config(2), server: config(4), ..Setup::default() }.connect();
    receive(&mut pair, Side::Server, cids_blocked(UNUSED, 0)).unwrap();
    is_refused(receive(&mut pair, Side::Server, cids_blocked(UNUSED, 1)), Code::PROTOCOL_VIOLATION, frame);
}
