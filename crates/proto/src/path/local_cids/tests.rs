use fulmar_wire::{Dialect, frames};

use super::*;
use crate::crypto::ResetKey;

fn ids(limit: u64) -> (LocalCids, VecDeque<EndpointEventInner>) {
    let config = Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32])));
    let mut rng = Rng::from_u64(1);
    let first = config.cid_generator.generate(&mut rng);
    let mut ids = LocalCids::new(PathId::ZERO, first, config, rng);
    let mut events = VecDeque::new();
    ids.set_peer_limit(limit, &mut events);
    written(&mut ids);
    (ids, events)
}

/// Sequence number and Retire Prior To of what is announced now.
fn written(ids: &mut LocalCids) -> Vec<(u64, u64)> {
    let mut payload = [0; 1_000];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    ids.write(&mut out);
    let len = out.finish().len;
    frames(&payload[..len], Dialect::SinglePath)
        .filter_map(|frame| match frame {
            Ok(Frame::NewConnectionId(new)) => Some((new.sequence.get(), new.retire_prior_to.get())),
            _ => None,
        })
        .collect()
}

fn other() -> ConnectionId {
    ConnectionId::new(&[0xee; 8]).unwrap()
}

#[test]
fn a_peer_that_may_have_used_up_its_ids_gets_new_ones_for_the_oldest() {
    let (mut ids, mut events) = ids(4);
    for _ in 0..3 {
        assert!(ids.prepare_move(&mut events));
        assert!(!ids.wants_to_send(), "the peer has an ID left");
    }
    assert!(ids.prepare_move(&mut events));
    assert_eq!(written(&mut ids), [(4, 2), (5, 2)]);
    // RFC 9000 §5.1.2: no more until it has retired those.
    assert!(!ids.prepare_move(&mut events));
    for sequence in [0, 1] {
        ids.on_retire(sequence, &other(), &mut events).unwrap();
    }
    assert!(!ids.wants_to_send(), "their places are taken");
    assert!(ids.prepare_move(&mut events));
    assert_eq!(written(&mut ids), [(6, 4), (7, 4)]);
}

#[test]
fn retirements_settle_the_moves() {
    let (mut ids, mut events) = ids(4);
    for sequence in 0..100 {
        assert!(ids.prepare_move(&mut events));
        ids.on_retire(sequence, &other(), &mut events).unwrap();
        assert_eq!(written(&mut ids), [(sequence + 4, 0)]);
    }
}

#[test]
fn two_ids_suffice_as_long_as_the_peer_obeys() {
    let (mut ids, mut events) = ids(2);
    assert!(ids.prepare_move(&mut events) && !ids.wants_to_send());
    for oldest in (0..20).step_by(2) {
        assert!(ids.prepare_move(&mut events));
        assert_eq!(written(&mut ids), [(oldest + 2, oldest + 2), (oldest + 3, oldest + 2)]);
        assert!(ids.issued.len() <= 4);
        for sequence in [oldest, oldest + 1] {
            ids.on_retire(sequence, &other(), &mut events).unwrap();
        }
    }
}

#[test]
fn announcements_under_way_are_made_again_after_a_move_and_known_ones_are_not() {
    let (mut ids, _) = ids(4);
    ids.on_acked(1);
    ids.repeat_announcements();
    assert_eq!(written(&mut ids), [(2, 0), (3, 0)]);
}
