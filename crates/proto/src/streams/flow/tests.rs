use super::*;

const RTT: Duration = Duration::from_millis(100);

#[test]
fn credit_is_reported_once_per_limit() {
    let mut credit = SendCredit::new(0);
    credit.on_blocked();
    assert_eq!(credit.blocked_frame().pending(), Some(0));
    credit.blocked_frame().on_written();
    credit.on_blocked();
    assert_eq!(credit.blocked_frame().pending(), None);
    assert!(credit.raise(10) && !credit.raise(9));
    credit.blocked_frame().on_lost();
    assert_eq!(credit.blocked_frame().pending(), None, "the old limit is no longer of interest");
    credit.spend(10);
    credit.on_blocked();
    assert_eq!((credit.blocked_frame().pending(), credit.available()), (Some(10), 0));
}

#[test]
fn the_limit_moves_when_half_of_the_window_is_consumed() {
    let mut window = ReceiveWindow::new(100, 200);
    assert!(window.allows(100) && !window.allows(101));
    window.receive(60);
    window.consume(49);
    assert!(!window.is_limit_pending() && !window.allows(41));
    window.consume(1);
    assert_eq!(window.limit_frame().pending(), Some(150));
    // As long as the frame waits it tells the newest limit.
    window.consume(5);
    assert_eq!(window.limit_frame().pending(), Some(155));
    assert!(window.allows(95) && !window.allows(96));
}

#[test]
fn the_limit_moves_earlier_when_a_loss_has_let_the_credit_run_low() {
    let mut window = ReceiveWindow::new(100, 200);
    // What follows the loss is there, and only what was lost could be read.
    window.receive(80);
    window.consume(11);
    assert!(!window.is_limit_pending());
    window.consume(2);
    assert_eq!(window.limit_frame().pending(), Some(113));
}

/// Receives and reads one window in steps of a tenth, one step every `step`.
fn consume_a_window(window: &mut ReceiveWindow, from: Instant, step: Duration) -> Instant {
    let share = window.window() / 10;
    let mut now = from;
    for _ in 0..10 {
        now += step;
        window.receive(share);
        window.tune(now, RTT);
        window.consume(share);
    }
    now += step;
    window.tune(now, RTT);
    now
}

#[test]
fn the_window_doubles_only_while_it_is_consumed_fast() {
    let mut window = ReceiveWindow::new(1_000, 4_000);
    let slow = consume_a_window(&mut window, Instant::ZERO, RTT / 2);
    assert_eq!(window.window(), 1_000);
    let later = slow + RTT * 10;
    window.tune(later, RTT);
    // More than a quarter of the window in a round trip, and less than half of it.
    let fast = consume_a_window(&mut window, later, RTT / 4);
    assert_eq!(window.window(), 2_000);
    let faster = consume_a_window(&mut window, fast, RTT / 20);
    consume_a_window(&mut window, faster, RTT / 20);
    assert_eq!(window.window(), 4_000, "never more than the maximum");
}

/// Slow start sends twice as much in each round trip as in the one before.
#[test]
fn slow_start_never_meets_the_window() {
    let mut window = ReceiveWindow::new(1_000, 1 << 40);
    let mut now = Instant::ZERO;
    let mut flight = 100;
    for _ in 0..20 {
        // The credit that was announced until now is what the sender has for the next round trip.
        window.limit_frame().on_written();
        for _ in 0..10 {
            now += RTT / 10;
            assert!(window.allows(flight / 10), "a flight of {flight} with a window of {}", window.window());
            window.receive(flight / 10);
            window.tune(now, RTT);
            window.consume(flight / 10);
        }
        flight *= 2;
    }
}

#[test]
fn a_loss_in_each_round_trip_does_not_keep_the_window_small() {
    let mut window = ReceiveWindow::new(1_000, 16_000);
    let mut now = Instant::ZERO;
    for _ in 0..20 {
        // Everything waits for the first packet, which is repeated a round trip later.
        let flight = window.window() / 2;
        for _ in 0..10 {
            now += RTT / 10;
            window.receive(flight / 10);
            window.tune(now, RTT);
        }
        now += RTT;
        window.tune(now, RTT);
        window.consume(window.unconsumed());
    }
    assert_eq!(window.window(), 16_000);
}

#[test]
fn late_reading_is_not_taken_for_fast_reading() {
    let mut window = ReceiveWindow::new(1_000, 4_000);
    window.receive(1_000);
    window.tune(Instant::ZERO, RTT);
    // The application reads everything, much later; the next data comes a round trip after that.
    window.consume(1_000);
    window.tune(Instant::ZERO + RTT * 10, RTT);
    assert_eq!(window.window(), 1_000);
}

#[test]
fn a_window_that_cannot_grow_moves_its_limit_more_often() {
    let mut window = ReceiveWindow::new(80, 80);
    window.receive(80);
    window.consume(9);
    assert!(!window.is_limit_pending());
    window.consume(1);
    assert_eq!(window.limit_frame().pending(), Some(90));
}

#[test]
fn the_window_opens_to_what_the_round_trip_time_asks_for_once_data_comes() {
    let mut window = ReceiveWindow::new(1 << 20, 1 << 30);
    window.receive(OPENING_BYTES - 1);
    window.tune(Instant::ZERO, RTT);
    assert!(!window.is_limit_pending(), "a short exchange needs no more");
    window.receive(1);
    window.tune(Instant::ZERO, RTT);
    // A tenth of a second at 1 Gbit/s.
    assert_eq!((window.window(), window.limit_frame().pending()), (12_500_000, Some(12_500_000)));
    // Later round-trip times, which a peer can pretend, open nothing.
    window.tune(Instant::ZERO, RTT * 100);
    assert_eq!(window.window(), 12_500_000);
}

#[test]
fn the_window_of_the_connection_leaves_room_beyond_that_of_a_stream() {
    for initial in [1 << 20, 3 << 19, 2_200_000, 3_000_000] {
        for millis in [17, 20, 25, 100] {
            let (now, rtt) = (Instant::ZERO, Duration::from_millis(millis));
            let mut stream = ReceiveWindow::new(1 << 20, 1 << 30);
            let mut all = ReceiveWindow::new(initial, 1 << 30);
            for bytes in [OPENING_BYTES - 1, 1] {
                assert!(!all.is_limit_pending(), "a short exchange needs no more");
                for window in [&mut stream, &mut all] {
                    window.receive(bytes);
                    window.tune(now, rtt);
                }
                all.keep_beyond(&stream);
            }
            assert!(all.window() >= stream.window() / 2 * 3);
            assert!(all.limit() >= stream.limit(), "{all:?} {stream:?}");
        }
    }
}

#[test]
fn the_window_of_the_connection_stays_within_what_memory_allows() {
    let mut stream = ReceiveWindow::new(1 << 20, 1 << 30);
    let mut all = ReceiveWindow::new(1 << 20, 1 << 22);
    all.set_window_limit(2_000_000);
    for window in [&mut stream, &mut all] {
        window.receive(OPENING_BYTES);
        window.tune(Instant::ZERO, RTT);
    }
    all.keep_beyond(&stream);
    assert!(stream.window() > 1 << 22 && all.limit() <= 2_000_000);
    all.set_window_limit(u64::MAX);
    all.keep_beyond(&stream);
    assert_eq!(all.limit(), 1 << 22);
}

#[test]
fn the_maximum_bounds_what_a_peer_can_send_unread_however_far_away_it_claims_to_be() {
    let mut window = ReceiveWindow::new(10_000, 40_000);
    window.receive(OPENING_BYTES);
    window.tune(Instant::ZERO, Duration::MAX);
    assert_eq!(window.limit(), 40_000);
    assert!(window.allows(40_000 - OPENING_BYTES) && !window.allows(40_001 - OPENING_BYTES));
}
