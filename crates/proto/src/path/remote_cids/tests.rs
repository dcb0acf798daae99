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
