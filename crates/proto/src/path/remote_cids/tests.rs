use fulmar_wire::{Dialect, frames};

use super::*;

const MAX: u64 = 4;

fn cid(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

fn frame(sequence: u32, retire_prior_to: u32) -> NewConnectionId {
    NewConnectionId {
        path: PathId::ZERO,
        sequence: VarInt::from_u32(sequence),
        retire_prior_to: VarInt::from_u32(retire_prior_to),
        cid: cid(sequence as u8),
        reset_token: ResetToken([sequence as u8; 16]),
    }
}

fn ids() -> (RemoteCids, VecDeque<EndpointEventInner>) {
    (RemoteCids::new(PathId::ZERO, cid(0), MAX), VecDeque::new())
}

#[test]
fn retirement_moves_to_the_next_id_and_is_announced() {
    let (mut ids, mut events) = ids();
    ids.on_new_connection_id(&frame(1, 0), &mut events).unwrap();
    assert_eq!(ids.active(), cid(0));
    ids.on_new_connection_id(&frame(2, 1), &mut events).unwrap();
    assert_eq!(ids.active(), cid(1));
    assert!(ids.wants_to_send());
    // RFC 9000 §10.3.1: the token of an ID counts once the ID is used.
    assert!(ids.is_reset_token(&ResetToken([1; 16])) && !ids.is_reset_token(&ResetToken([2; 16])));
}

#[test]
fn a_repeated_frame_changes_nothing_and_a_contradiction_is_an_error() {
    let (mut ids, mut events) = ids();
    ids.on_new_connection_id(&frame(1, 0), &mut events).unwrap();
    ids.on_new_connection_id(&frame(1, 0), &mut events).unwrap();
    assert_eq!(ids.ids.len(), 2);
    let lie = NewConnectionId { cid: cid(7), ..frame(1, 0) };
    let error = ids.on_new_connection_id(&lie, &mut events).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn too_many_ids_are_an_error() {
    let (mut ids, mut events) = ids();
    for n in 1..MAX as u32 {
        ids.on_new_connection_id(&frame(n, 0), &mut events).unwrap();
    }
    let error = ids.on_new_connection_id(&frame(MAX as u32, 0), &mut events).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
}

#[test]
fn a_flood_of_retirements_without_acknowledgements_is_an_error() {
    let (mut ids, mut events) = ids();
    let mut sequence = 0;
    let error = loop {
        sequence += 1;
        if let Err(error) = ids.on_new_connection_id(&frame(sequence, sequence), &mut events) {
            break error;
        }
        assert!(sequence < 1_000, "the flood was never stopped");
    };
    assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
    assert!(ids.retire_pending.len() <= RETIREMENTS_MAX + 1);
}

/// Sequence numbers of the retirements that are announced now.
fn written(ids: &mut RemoteCids) -> Vec<u64> {
    let mut payload = [0; 1_000];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    ids.write(&mut out);
    let len = out.finish().len;
    frames(&payload[..len], Dialect::SinglePath)
        .filter_map(|frame| match frame {
            Ok(Frame::RetireConnectionId(retire)) => Some(retire.sequence.get()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_spare_id_is_one_that_nobody_has_taken_and_the_last_one_can_be_left() {
    let (mut ids, mut events) = ids();
    assert!(!ids.has_spare());
    assert_eq!((ids.take_spare(), ids.take_spare_but_one()), (None, None));
    ids.on_new_connection_id(&frame(1, 0), &mut events).unwrap();
    assert!(ids.has_spare());
    assert_eq!(ids.take_spare_but_one(), None);
    for n in [2, 3] {
        ids.on_new_connection_id(&frame(n, 0), &mut events).unwrap();
    }
    assert_eq!((ids.take_spare_but_one(), ids.take_spare_but_one()), (Some(1), Some(2)));
    assert_eq!((ids.take_spare_but_one(), ids.has_spare()), (None, true));
    assert_eq!((ids.take_spare(), ids.has_spare()), (Some(3), false));
}

#[test]
fn an_id_below_the_bound_that_comes_late_is_retired_at_once_and_one_at_the_bound_is_kept() {
    let (mut ids, mut events) = ids();
    ids.on_new_connection_id(&frame(4, 3), &mut events).unwrap();
    ids.on_new_connection_id(&frame(3, 0), &mut events).unwrap();
    ids.on_new_connection_id(&frame(2, 0), &mut events).unwrap();
    assert_eq!((ids.get(2), ids.get(3), ids.get(4)), (None, Some(cid(3)), Some(cid(4))));
    assert_eq!(written(&mut ids), [0, 2]);
}

#[test]
fn the_token_of_two_ids_in_use_counts_as_well() {
    let (mut ids, mut events) = ids();
    for n in [1, 2] {
        let same = NewConnectionId { reset_token: ResetToken([9; 16]), ..frame(n, 0) };
        ids.on_new_connection_id(&same, &mut events).unwrap();
        ids.take_spare().unwrap();
    }
    assert!(ids.is_reset_token(&ResetToken([9; 16])));
}

#[test]
fn no_id_is_given_up_on_our_own_account_while_too_many_retirements_wait() {
    let (mut ids, mut events) = ids();
    for n in 1..=RETIREMENTS_MAX as u32 {
        ids.on_new_connection_id(&frame(n, n), &mut events).unwrap();
    }
    ids.on_new_connection_id(&frame(33, 32), &mut events).unwrap();
    assert!(ids.has_spare() && ids.has_many_retirements() && !ids.rotate(&mut events));
    // On their way they wait as well, until the peer has acknowledged one.
    assert_eq!(written(&mut ids), (0..32).collect::<Vec<u64>>());
    assert!(!ids.rotate(&mut events));
    ids.on_acked(7);
    assert!(ids.rotate(&mut events));
    assert_eq!((ids.active(), written(&mut ids)), (cid(33), vec![32]));
}

#[test]
fn a_peer_without_connection_ids_has_none_to_go_over_to() {
    let mut ids = RemoteCids::new(PathId::ZERO, ConnectionId::new(&[]).unwrap(), MAX);
    assert!(!ids.rotate(&mut VecDeque::new()));
    // Its only one serves every tuple.
    assert_eq!((ids.has_spare(), ids.take_spare(), ids.take_spare_but_one()), (true, Some(0), Some(0)));
}

#[test]
fn a_retirement_is_repeated_until_it_is_acknowledged() {
    let (mut ids, mut events) = ids();
    ids.on_new_connection_id(&frame(1, 1), &mut events).unwrap();
    assert_eq!(written(&mut ids), [0]);
    assert!(!ids.wants_to_send());
    ids.on_lost(0);
    assert!(ids.wants_to_send());
    assert_eq!(written(&mut ids), [0]);
    ids.on_acked(0);
    ids.on_lost(0);
    assert!(!ids.wants_to_send());
}

#[test]
fn what_is_acknowledged_is_not_repeated_and_the_rest_is() {
    let (mut ids, mut events) = ids();
    ids.on_new_connection_id(&frame(2, 0), &mut events).unwrap();
    ids.on_new_connection_id(&frame(3, 3), &mut events).unwrap();
    assert_eq!(written(&mut ids), [0, 2]);
    ids.repeat_retirements();
    ids.on_acked(0);
    assert_eq!(written(&mut ids), [2]);
}

#[test]
fn gaps_in_the_sequence_are_limited() {
    let (mut ids, mut events) = ids();
    let mut skipping = |n: u32| {
        let result = ids.on_new_connection_id(&frame(2 * n, 2 * n), &mut events);
        written(&mut ids).into_iter().for_each(|sequence| ids.on_acked(sequence));
        result
    };
    for n in 1..RETIREMENTS_MAX as u32 {
        skipping(n).unwrap();
    }
    let error = skipping(RETIREMENTS_MAX as u32).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
}
