use super::*;

#[test]
fn opening_stops_at_the_limit_and_goes_on_beyond_it() {
    let mut streams = OutgoingStreams::new();
    assert!(!streams.raise(2));
    assert_eq!((streams.open(), streams.open(), streams.open()), (Some(0), Some(1), None));
    assert_eq!(streams.blocked_frame().pending(), Some(2));
    assert!(!streams.raise(1), "an old limit changes nothing");
    assert!(streams.raise(3), "the application waited");
    assert_eq!(streams.blocked_frame().pending(), None);
    assert_eq!(streams.open(), Some(2));
    assert!(streams.was_opened(2) && !streams.was_opened(3));
}

#[test]
fn who_waits_to_open_is_told_when_early_streams_begin_anew_under_a_higher_limit() {
    let mut streams = OutgoingStreams::new();
    streams.raise(1);
    assert_eq!((streams.open(), streams.open()), (Some(0), None));
    assert!(!streams.restart(1), "there are no more than before");
    assert_eq!(streams.blocked_frame().pending(), Some(1));
    assert!(streams.restart(2));
    assert_eq!(streams.blocked_frame().pending(), None);
    assert!(!streams.restart(3), "nobody waits any more");
    // Under a lower limit there is nothing to open, and it stays so.
    assert_eq!((streams.open(), streams.open(), streams.open()), (Some(1), Some(2), None));
    assert_eq!(streams.ahead(), 3..3);
    assert!(!streams.restart(2) && !streams.allows(2));
    assert_eq!(streams.ahead(), 2..3);
    assert_eq!(streams.blocked_frame().pending(), Some(2));
    assert!(!streams.raise(3), "all of them are open");
    assert!(streams.raise(4), "the application waited");
}

#[test]
fn implicit_streams_cost_ranges_and_not_states() {
    let mut streams = IncomingStreams::new(1 << 40);
    assert_eq!(streams.touch((1 << 40) - 1), Touch::Create { news: true });
    assert_eq!(streams.untouched.len(), 1);
    assert_eq!(streams.touch(1 << 40), Touch::BeyondLimit);
    assert_eq!(streams.touch(1 << 20), Touch::Create { news: false });
    assert_eq!(streams.touch(1 << 20), Touch::Known);
    assert_eq!(streams.untouched.len(), 2);
    assert_eq!(streams.accept(), Some((0, true)));
    assert_eq!(streams.touch(0), Touch::Known);
}

#[test]
fn streams_are_accepted_in_order_and_once() {
    let mut streams = IncomingStreams::new(3);
    assert_eq!(streams.accept(), None);
    streams.touch(1);
    assert_eq!(streams.accept(), Some((0, true)));
    assert_eq!(streams.accept(), Some((1, false)));
    assert_eq!(streams.accept(), None);
}

#[test]
fn credit_returns_in_halves() {
    let mut streams = IncomingStreams::new(10);
    for _ in 0..4 {
        streams.on_closed();
    }
    assert_eq!(streams.limit_frame().pending(), None);
    streams.on_closed();
    assert_eq!(streams.limit_frame().pending(), Some(15));
    let mut one = IncomingStreams::new(1);
    one.on_closed();
    assert_eq!(one.limit_frame().pending(), Some(2), "a single stream returns at once");
}

#[test]
fn more_streams_at_once_are_told_at_once() {
    let mut streams = IncomingStreams::new(10);
    streams.set_concurrent_max(11);
    assert_eq!(streams.limit_frame().pending(), Some(11));
    assert_eq!(streams.touch(10), Touch::Create { news: true });
}

#[test]
fn fewer_streams_at_once_wait_for_those_that_are_open() {
    let mut streams = IncomingStreams::new(10);
    streams.set_concurrent_max(4);
    assert_eq!(streams.limit_frame().pending(), None);
    assert_eq!(streams.touch(9), Touch::Create { news: true }, "what was allowed stays allowed");
    for _ in 0..6 {
        streams.on_closed();
    }
    assert_eq!(streams.limit_frame().pending(), None, "four are open");
    streams.on_closed();
    assert_eq!(streams.limit_frame().pending(), Some(11), "the peer has none left, and waits for the fourth");
}

#[test]
fn streams_that_stay_open_do_not_keep_the_others_from_the_peer() {
    let mut streams = IncomingStreams::new(4);
    streams.touch(3);
    streams.on_closed();
    assert_eq!(streams.limit_frame().pending(), Some(5), "three of four stay open");
    // What was held back while the peer had others left is told when it has opened them.
    let mut streams = IncomingStreams::new(8);
    streams.touch(4);
    streams.on_closed();
    streams.on_closed();
    assert_eq!(streams.limit_frame().pending(), None, "it may open three without them");
    streams.touch(5);
    assert_eq!(streams.limit_frame().pending(), Some(10));
}

#[test]
fn a_limit_that_is_not_higher_is_not_told() {
    let mut streams = IncomingStreams::new(10);
    streams.set_concurrent_max(10);
    assert_eq!(streams.limit_frame().pending(), None);
    streams.set_concurrent_max(0);
    for _ in 0..10 {
        streams.on_closed();
    }
    assert_eq!(streams.limit_frame().pending(), None, "none may be open any more");
    streams.set_concurrent_max(1);
    assert_eq!(streams.limit_frame().pending(), Some(11));
}

#[test]
fn a_limit_that_waits_to_be_told_is_the_newest_one() {
    let mut streams = IncomingStreams::new(10);
    (0..6).for_each(|index| assert!(matches!(streams.touch(index), Touch::Create { .. })));
    let told = [(); 6].map(|()| {
        streams.on_closed();
        streams.limit_frame().pending()
    });
    assert_eq!(told, [None, None, None, Some(14), Some(15), Some(16)]);
}

#[test]
fn where_the_limit_was_lost_that_was_told_the_newest_is_told() {
    let mut streams = IncomingStreams::new(10);
    (0..6).for_each(|index| assert!(matches!(streams.touch(index), Touch::Create { .. })));
    (0..4).for_each(|_| streams.on_closed());
    assert_eq!(streams.limit_frame().pending(), Some(14));
    streams.limit_frame().on_written();
    streams.on_closed();
    assert_eq!(streams.limit_frame().pending(), None, "too little is gained");
    streams.on_limit_lost();
    assert_eq!(streams.limit_frame().pending(), Some(15));
}
