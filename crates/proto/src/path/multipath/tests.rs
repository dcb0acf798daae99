use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{PathAbandon, PathStatus, ResetToken, frames};

use super::abandoned::ABANDONED_MAX;
use super::*;
use crate::crypto::ResetKey;
use crate::datagram::Ecn;
use crate::scheduler::{SchedulerFactory, SchedulerKind};
use crate::space::{AckPolicy, NumberSpace};

/// The extension of an end that has so many paths, and whose peer has so many.
fn multipath(paths_max: u32, peer_paths_max: u32) -> (Multipath, Events) {
    let mut events = Events::new();
    let setup = MultipathSetup {
        paths_max,
        scheduler: SchedulerKind::default().build(),
        coupling: None,
        peer_max: initial_max(peer_paths_max),
        handshake_remote: SocketAddr::from(([10, 0, 0, 2], 443)),
        peer_cids_max: 4,
        remote_cids_max: 4,
        config: Arc::new(EndpointConfig::new(ResetKey::new(&[1; 32]))),
        rng: Rng::from_u64(1),
    };
    let mut multipath = Multipath::new(setup, &mut events);
    multipath.dialect = Dialect::Multipath;
    (multipath, events)
}

fn new_id(path: u32, sequence: u32, retire_prior_to: u32) -> NewConnectionId {
    NewConnectionId {
        path: PathId(path),
        sequence: VarInt::from_u32(sequence),
        retire_prior_to: VarInt::from_u32(retire_prior_to),
        cid: ConnectionId::new(&[path as u8, sequence as u8, 7, 7]).unwrap(),
        reset_token: ResetToken([sequence as u8; 16]),
    }
}

/// What is said now, but for new connection IDs.
fn written(multipath: &mut Multipath) -> Vec<Frame<'static>> {
    let payload = vec![0; 4_000].leak();
    let mut out = FrameWriter::new(payload, Dialect::Multipath);
    multipath.write(&mut out);
    let len = out.finish().len;
    let read = frames(&payload[..len], Dialect::Multipath).map(Result::unwrap);
    read.filter(|frame| !matches!(frame, Frame::NewConnectionId(_))).collect()
}

/// As [`Multipath::abandon`], of an open path with connection IDs that drain until `at`. Returns how many these are.
fn abandon(multipath: &mut Multipath, id: u32, at: u64, events: &mut Events) -> usize {
    let local = multipath.entry(PathId(id)).unwrap().local.take().unwrap();
    let numbers = NumberSpace::new(AckPolicy::default(), &mut Rng::from_u64(1));
    let draining = Draining::new(Instant::from_millis(at), false, local, numbers);
    multipath.abandon(PathId(id), VarInt::ZERO, Some(draining), events);
    CIDS_PER_PATH as usize
}

fn retired(events: &mut Events) -> usize {
    events.drain(..).filter(|event| matches!(event, EndpointEventInner::CidRetired(_))).count()
}

#[test]
fn a_path_without_connection_ids_of_the_peer_is_missed_aloud_and_opens_when_they_come() {
    let (mut multipath, mut events) = multipath(3, 3);
    written(&mut multipath);
    assert_eq!(multipath.next_unused(), Err(NoPath::NoCid));
    assert!(multipath.wants_to_send());
    let missed = PathCidsBlocked { path: PathId(1), next_sequence: VarInt::ZERO };
    assert_eq!(written(&mut multipath), [Frame::PathCidsBlocked(missed)]);
    assert!(!multipath.wants_to_send(), "it is said once");
    assert!(multipath.open(PathId(1)).is_none(), "this end's own IDs are not taken in vain");
    multipath.on_new_connection_id(&new_id(1, 0, 0), &mut events).unwrap();
    assert_eq!(multipath.next_unused(), Ok(PathId(1)));
    assert!(multipath.open(PathId(1)).is_some());
}

#[test]
fn a_path_that_the_peer_does_not_allow_is_not_opened_whatever_ids_it_has_given_for_it() {
    let (mut multipath, mut events) = multipath(4, 2);
    multipath.on_new_connection_id(&new_id(1, 0, 0), &mut events).unwrap();
    multipath.on_new_connection_id(&new_id(2, 0, 0), &mut events).unwrap();
    assert!(multipath.open(PathId(1)).is_some());
    written(&mut multipath);
    assert_eq!(multipath.next_unused(), Err(NoPath::Limit));
    let blocked = Frame::PathsBlocked(PathsBlocked { max: PathId(1) });
    assert!(multipath.wants_to_send());
    assert_eq!(written(&mut multipath), [blocked]);
    assert_eq!(multipath.next_unused(), Err(NoPath::Limit));
    // The peer repeats itself, which changes nothing.
    multipath.on_max_path_id(&MaxPathId { max: PathId(1) }, PathId(1), &mut events).unwrap();
    assert!(multipath.wants_to_send());
    // A hint that is outdated before it leaves is not given.
    multipath.on_max_path_id(&MaxPathId { max: PathId(2) }, PathId(1), &mut events).unwrap();
    assert_eq!(written(&mut multipath), []);
    assert_eq!(multipath.next_unused(), Ok(PathId(2)));
}

#[test]
fn a_peer_that_allows_more_than_this_end_is_not_told_that_it_blocks() {
    let (mut multipath, mut events) = multipath(2, 4);
    multipath.on_new_connection_id(&new_id(1, 0, 0), &mut events).unwrap();
    assert!(multipath.open(PathId(1)).is_some());
    written(&mut multipath);
    assert_eq!(multipath.next_unused(), Err(NoPath::Limit));
    assert_eq!(written(&mut multipath), []);
}

#[test]
fn a_retirement_that_is_lost_before_its_path_is_open_is_repeated() {
    let (mut multipath, mut events) = multipath(2, 2);
    multipath.on_new_connection_id(&new_id(1, 0, 0), &mut events).unwrap();
    multipath.on_new_connection_id(&new_id(1, 1, 1), &mut events).unwrap();
    assert!(matches!(written(&mut multipath)[..], [Frame::RetireConnectionId(_)]));
    multipath.remote_cids(PathId(1)).unwrap().on_lost(0);
    assert!(multipath.wants_to_send());
    assert!(matches!(written(&mut multipath)[..], [Frame::RetireConnectionId(_)]));
}

#[test]
fn the_ids_of_a_path_that_both_ends_have_abandoned_drain_from_the_first_time_that_the_peer_says_so() {
    let (mut multipath, mut events) = multipath(3, 3);
    abandon(&mut multipath, 1, 30_000, &mut events);
    events.clear();
    for until in [200, 300] {
        multipath.abandoned.on_by_both(PathId(1), Instant::from_millis(until));
        multipath.abandoned.on_by_both(PathId(2), Instant::from_millis(until));
    }
    assert_eq!(multipath.abandoned.next_timeout(), Some(Instant::from_millis(200)));
    multipath.abandoned.on_timeout(Instant::from_millis(200), &mut events);
    assert_eq!(retired(&mut events), CIDS_PER_PATH as usize);
}

#[test]
fn the_ids_of_an_abandoned_path_are_forgotten_after_their_time_and_not_before() {
    let (mut multipath, mut events) = multipath(3, 3);
    events.clear();
    let ids = abandon(&mut multipath, 1, 50, &mut events) + abandon(&mut multipath, 2, 30, &mut events);
    assert_eq!(retired(&mut events), 0);
    assert_eq!(multipath.abandoned.next_timeout(), Some(Instant::from_millis(30)));
    multipath.abandoned.on_timeout(Instant::from_millis(29), &mut events);
    assert_eq!(retired(&mut events), 0);
    multipath.abandoned.on_timeout(Instant::from_millis(30), &mut events);
    assert_eq!(retired(&mut events), ids / 2);
    assert_eq!(multipath.abandoned.next_timeout(), Some(Instant::from_millis(50)));
    multipath.abandoned.on_timeout(Instant::from_millis(50), &mut events);
    assert_eq!((retired(&mut events), multipath.abandoned.next_timeout()), (ids / 2, None));
}

#[test]
fn an_acknowledgement_that_is_due_for_an_abandoned_path_waits_for_no_timer() {
    let (mut multipath, mut events) = multipath(3, 3);
    abandon(&mut multipath, 1, 500, &mut events);
    let (at, abandoned) = (Instant::from_millis, &mut multipath.abandoned);
    abandoned.on_received(at(100), PathId(1), 0, true, Ecn::NotEct);
    let due = at(100) + AckPolicy::default().max_ack_delay;
    assert_eq!((abandoned.needs_ack(at(100)), abandoned.next_timeout()), (false, Some(due)));
    abandoned.on_timeout(due, &mut events);
    assert_eq!((abandoned.needs_ack(due), abandoned.next_timeout()), (true, Some(at(500))));
}

#[test]
fn of_many_abandoned_paths_the_oldest_is_forgotten_with_its_ids() {
    let (mut multipath, mut events) = multipath(2, 1_000);
    for id in 1..=ABANDONED_MAX as u32 {
        abandon(&mut multipath, id, 50, &mut events);
        assert_eq!(retired(&mut events), 0, "path {id}");
    }
    let ids = abandon(&mut multipath, ABANDONED_MAX as u32 + 1, 50, &mut events);
    assert_eq!(retired(&mut events), ids);
    assert_eq!(multipath.abandoned.oldest(), Some(PathId(2)));
}

#[test]
fn that_a_path_is_abandoned_is_said_until_it_is_acknowledged() {
    let (mut multipath, mut events) = multipath(2, 2);
    multipath.abandon(PathId(1), VarInt::from_u32(7), None, &mut events);
    let said = [
        Frame::PathAbandon(PathAbandon { path: PathId(1), code: VarInt::from_u32(7) }),
        Frame::MaxPathId(MaxPathId { max: PathId(2) }),
    ];
    assert_eq!(written(&mut multipath), said);
    assert!(!multipath.wants_to_send());
    multipath.on_delivery(&SentFrame::PathAbandon(PathId(1)), false);
    assert!(multipath.wants_to_send());
    assert_eq!(written(&mut multipath), said[..1]);
    multipath.on_delivery(&SentFrame::MaxPathId, false);
    assert_eq!(written(&mut multipath), said[1..]);
    for (token, acked) in [(SentFrame::MaxPathId, true), (SentFrame::PathAbandon(PathId(1)), true)] {
        multipath.on_delivery(&token, acked);
    }
    multipath.on_delivery(&SentFrame::PathAbandon(PathId(1)), false);
    assert!(!multipath.wants_to_send() && multipath.abandoned.oldest().is_none());
}

#[test]
fn what_is_wanted_of_a_path_is_said_again_only_when_it_is_lost_or_another_thing() {
    let (mut multipath, _) = multipath(2, 2);
    written(&mut multipath);
    let said = |sequence, available| {
        let sequence = VarInt::from_u32(sequence);
        [Frame::PathStatus(PathStatus { path: PathId(1), sequence, available })]
    };
    // The first word is said although it is what the peer assumes.
    multipath.set_status(PathId(1), true);
    assert!(multipath.wants_to_send());
    assert_eq!(written(&mut multipath), said(1, true));
    multipath.set_status(PathId(1), true);
    assert_eq!(written(&mut multipath), []);
    multipath.set_status(PathId(1), false);
    assert_eq!(written(&mut multipath), said(2, false));
    assert_eq!(multipath.status(PathId(1)), (false, true));
    multipath.on_delivery(&SentFrame::PathStatus(PathId(1)), true);
    assert_eq!(written(&mut multipath), []);
    multipath.on_delivery(&SentFrame::PathStatus(PathId(1)), false);
    assert_eq!(written(&mut multipath), said(2, false));
}

#[test]
fn what_the_peer_says_of_a_path_is_news_when_it_differs() {
    let (mut multipath, _) = multipath(2, 2);
    let status = |sequence: u32, available| PathStatus {
        path: PathId(1),
        sequence: VarInt::from_u32(sequence),
        available,
    };
    let said = [(1, true), (2, false), (2, true), (1, true), (3, false), (4, true)];
    let news = said.map(|(sequence, available)| multipath.on_status(&status(sequence, available)).unwrap());
    assert_eq!(news, [false, true, false, false, false, true]);
    assert_eq!(multipath.status(PathId(1)), (true, true));
}

#[test]
fn a_quicker_way_back_is_taken_for_no_quicker_than_it_is() {
    let ms = Duration::from_millis;
    for (own, waited, later) in [(125, 25, 0), (300, 0, 400)] {
        let (mut multipath, _) = multipath(2, 2);
        let mut sample = |at, over, rtt, waited| {
            let now = Instant::from_millis(at);
            multipath.on_way_back(now, [PathId::ZERO, PathId(over)], ms(rtt), ms(waited));
            multipath.steady_rtt(PathId::ZERO)
        };
        sample(100, 0, 100, 0);
        // The peer has waited, or a queue stood there that has drained since.
        sample(1_000, 0, own, waited);
        sample(1_010 + later, 1, 60, 0);
        assert_eq!(sample(1_020 + later, 0, 100, 0), Some(ms(60)), "{own} ms");
    }
}

#[test]
fn what_is_left_is_told_as_if_the_quicker_way_back_were_there() {
    let ms = Duration::from_millis;
    let (mut multipath, _) = multipath(2, 2);
    let sample = |multipath: &mut Multipath, over, rtt| {
        multipath.on_way_back(Instant::ZERO, [PathId::ZERO, PathId(over)], ms(rtt), Duration::ZERO);
        multipath.steady_rtt(PathId::ZERO)
    };
    for (over, rtt) in [(0, 100), (1, 60), (0, 100)] {
        sample(&mut multipath, over, rtt);
    }
    multipath.abandon(PathId(1), VarInt::from_u32(0), None, &mut Events::default());
    assert_eq!(sample(&mut multipath, 0, 100), Some(ms(60)));
    assert_eq!(sample(&mut multipath, 0, 120), Some(ms(80)), "a queue");
}

#[test]
fn a_way_back_that_changes_does_not_change_the_round_trip_that_controllers_see() {
    let ms = Duration::from_millis;
    let (mut multipath, _) = multipath(2, 2);
    let mut sample = |over, rtt_ms| {
        multipath.on_way_back(Instant::ZERO, [PathId::ZERO, PathId(over)], ms(rtt_ms), Duration::ZERO);
        multipath.steady_rtt(PathId::ZERO)
    };
    assert_eq!(sample(0, 100), None);
    assert_eq!(sample(1, 60), Some(ms(60)));
    assert_eq!(sample(0, 100), Some(ms(60)), "its own way back");
    assert_eq!(sample(1, 75), Some(ms(75)), "a queue");
    assert_eq!(sample(0, 115), Some(ms(75)));
    multipath.forget_ways(PathId::ZERO);
    // The other way was full when it brought the first one, and brings nothing in time any more.
    let mut sample = |over, rtt_ms| {
        multipath.on_way_back(Instant::ZERO, [PathId::ZERO, PathId(over)], ms(rtt_ms), Duration::ZERO);
        multipath.steady_rtt(PathId::ZERO)
    };
    assert_eq!(sample(1, 97), None);
    for _ in 0..3 {
        assert_eq!(sample(0, 134), Some(ms(97)), "no queue has come");
    }
    multipath.forget_ways(PathId::ZERO);
    assert_eq!(multipath.steady_rtt(PathId::ZERO), None);
}
