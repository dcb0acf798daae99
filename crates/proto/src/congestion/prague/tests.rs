use std::time::Duration;

use super::super::test_path::{SIZE, ack, lose, loss, rtt, spurious};
use super::marks::{Marks, Round};
use super::*;
use crate::rtt::Rtt;

const WINDOW: u64 = 120_000;

/// A flow with a steady round-trip time, round by round.
struct Rounds {
    prague: Prague,
    rtt: Rtt,
    now: Instant,
}

impl Rounds {
    /// In congestion avoidance, with a window of [`WINDOW`] after a first mark, on a path of `millis`.
    fn new(millis: u64) -> Self {
        let mut rounds = Self::unmarked(millis);
        rounds.round(100, 1, 0);
        assert_eq!(rounds.prague.window(), WINDOW);
        rounds
    }

    /// Before the first mark.
    fn unmarked(millis: u64) -> Self {
        let config = PragueConfig { initial_window: Some(2 * WINDOW) };
        let rtt = rtt(Duration::from_millis(millis));
        Self { prague: Prague::new(&config, SIZE), rtt, now: Instant::from_millis(1) }
    }

    /// A round trip in which of `packets` `marked` were, with `queue` milliseconds more than the shortest
    /// round-trip time.
    fn round(&mut self, packets: u64, marked: u64, queue: u64) {
        self.round_of(packets, marked, queue, false);
    }

    fn round_of(&mut self, packets: u64, marked: u64, queue: u64, app_limited: bool) {
        let sent = self.now + Duration::from_nanos(1);
        let time = self.rtt.min() + Duration::from_millis(queue);
        self.now += time;
        let event = AckEvent {
            ce_packets: marked,
            rtt_sample: Some(time),
            app_limited,
            ..ack(packets * u64::from(SIZE), sent, &self.rtt)
        };
        self.prague.on_ack(self.now, &event);
    }
}

#[test]
fn packets_ask_for_the_low_latency_queue() {
    let prague = Prague::new(&PragueConfig::default(), SIZE);
    assert_eq!(prague.ecn_codepoint(), Ecn::Ect1);
    assert_eq!(prague.window(), 12_000);
    assert_eq!(prague.state(), "slow start");
}

#[test]
fn the_window_shrinks_by_half_the_share_of_marks() {
    let mut rounds = Rounds::new(40);
    // With one packet in ten marked the average comes to a tenth, whatever it was.
    for _ in 0..200 {
        rounds.round(100, 10, 0);
    }
    let before = rounds.prague.window();
    // A sender with little to say does not grow its window, so that only the marks change it.
    rounds.round_of(100, 10, 0, true);
    let lost = before - rounds.prague.window();
    assert!(lost * 20 > before * 8 / 10 && lost * 20 < before * 12 / 10, "{lost} of {before}");
}

#[test]
fn marks_of_one_round_have_one_answer() {
    let mut rounds = Rounds::new(40);
    let sent = rounds.now + Duration::from_nanos(1);
    rounds.now += Duration::from_millis(40);
    let mark = |sent| AckEvent { ce_packets: 1, ..ack(u64::from(SIZE), sent, &rounds.rtt) };
    rounds.prague.on_ack(rounds.now, &mark(sent));
    let after = rounds.prague.window();
    assert!(after < WINDOW);
    rounds.prague.on_ack(rounds.now + Duration::from_millis(5), &mark(sent + Duration::from_millis(5)));
    assert_eq!(rounds.prague.window(), after);
}

#[test]
fn few_marks_are_less_than_a_loss() {
    let mut rounds = Rounds::new(40);
    for _ in 0..100 {
        rounds.round(100, 2, 0);
    }
    let before = rounds.prague.window();
    rounds.round(100, 2, 0);
    assert!(rounds.prague.window() > before * 9 / 10);
    let before = rounds.prague.window();
    rounds.now += Duration::from_millis(100);
    rounds.prague.on_congestion(rounds.now, &loss(rounds.now));
    assert_eq!(rounds.prague.window(), before / 2, "RFC 9331 §4.3: a loss is answered as Reno does");
}

#[test]
fn marks_and_losses_of_a_round_halve_the_window_once() {
    let mut rounds = Rounds::new(40);
    for _ in 0..50 {
        rounds.round(100, 20, 0);
    }
    let before = rounds.prague.window();
    rounds.round(100, 20, 0);
    let marked = rounds.prague.window();
    assert!(marked < before);
    rounds.prague.on_congestion(rounds.now + Duration::from_millis(1), &loss(rounds.now));
    assert_eq!(rounds.prague.window(), before / 2);
}

#[test]
fn a_loss_that_was_none_is_taken_back() {
    let mut rounds = Rounds::new(40);
    rounds.now += Duration::from_millis(100);
    let before = rounds.prague.window();
    let lost = rounds.now;
    lose(&mut rounds.prague, rounds.now, lost);
    assert_eq!(rounds.prague.window(), before / 2);
    rounds.prague.on_spurious_loss(rounds.now, &spurious(lost));
    assert_eq!(rounds.prague.window(), before);
}

#[test]
fn a_deep_queue_that_marks_is_a_classic_one() {
    let mut rounds = Rounds::new(40);
    for _ in 0..5 {
        rounds.round(100, 1, 20);
    }
    assert_eq!(rounds.prague.state(), "classic congestion avoidance");
    let before = rounds.prague.window();
    rounds.round_of(100, 1, 20, true);
    assert_eq!(rounds.prague.window(), before.div_ceil(2), "a mark is answered like a loss");
    for _ in 0..40 {
        rounds.round(100, 1, 1);
    }
    assert_eq!(rounds.prague.state(), "congestion avoidance");
}

#[test]
fn a_classic_queue_that_is_short_for_a_round_is_one_still() {
    let mut rounds = Rounds::new(40);
    for _ in 0..8 {
        rounds.round(100, 1, 20);
    }
    rounds.round(100, 1, 1);
    assert_eq!(rounds.prague.state(), "classic congestion avoidance");
}

#[test]
fn a_shallow_queue_is_never_taken_for_a_classic_one() {
    let mut rounds = Rounds::new(40);
    for queue in (0..400).map(|round| round % 4) {
        rounds.round(100, 5, queue);
        assert_eq!(rounds.prague.state(), "congestion avoidance");
    }
}

#[test]
fn rounds_without_marks_say_nothing_of_the_queue() {
    let mut rounds = Rounds::new(40);
    // Somebody else's queue, or a longer path.
    for _ in 0..20 {
        rounds.round(100, 0, 20);
    }
    assert_eq!(rounds.prague.state(), "congestion avoidance");
    for _ in 0..5 {
        rounds.round(100, 1, 20);
    }
    for _ in 0..20 {
        rounds.round(100, 0, 0);
    }
    assert_eq!(rounds.prague.state(), "classic congestion avoidance", "nothing has marked since");
}

#[test]
fn the_first_mark_halves_the_window_however_many_rounds_had_none() {
    let mut rounds = Rounds::unmarked(40);
    for _ in 0..20 {
        rounds.round_of(100, 0, 0, true);
    }
    let before = rounds.prague.window();
    rounds.round_of(100, 1, 0, true);
    assert_eq!(rounds.prague.window(), before / 2);
}

#[test]
fn in_the_first_rounds_of_a_short_path_each_adds_a_datagram() {
    let mut rounds = Rounds::new(5);
    for _ in 0..10 {
        let packets = rounds.prague.window() / u64::from(SIZE);
        rounds.round(packets, 0, 0);
    }
    let grown = (rounds.prague.window() - WINDOW) / u64::from(SIZE);
    assert!((9..=10).contains(&grown), "{grown} datagrams");
}

#[test]
fn after_many_rounds_the_growth_is_that_of_a_longer_path() {
    /// Bytes that the window grows by in a second.
    fn growth(millis: u64) -> u64 {
        let mut rounds = Rounds::new(millis);
        let full = |rounds: &Rounds| rounds.prague.window() / u64::from(SIZE);
        for _ in 0..600 {
            let packets = full(&rounds);
            rounds.round(packets, packets / 8, 0);
        }
        let (before, end) = (rounds.prague.window(), rounds.now + Duration::from_secs(1));
        while rounds.now < end {
            let packets = full(&rounds);
            rounds.round(packets, 0, 0);
        }
        rounds.prague.window() - before
    }
    // RFC 9331 §4.3: as much more per second in the rate, that is in window by round-trip time, at 5 and 25 ms.
    let (short, long) = (growth(5) * 5, growth(25));
    assert!(short * 10 > long * 8 && short * 10 < long * 12, "{short} and {long}");
}

#[test]
fn a_round_of_marks_ends_with_a_packet_that_left_in_it() {
    let (mut marks, rtt) = (Marks::new(), rtt(Duration::from_millis(40)));
    let at = Instant::from_millis;
    let mut ends = |now, sent| {
        let round = Round { time: Duration::from_millis(40), min_rtt: rtt.min() };
        marks.on_ack(at(now), &ack(12_000, at(sent), &rtt), round)
    };
    assert!(ends(100, 60));
    assert!(!ends(140, 99), "it left before the round began");
    assert!(!ends(139, 100), "a round trip has not passed");
    assert!(ends(140, 100));
}

#[test]
fn what_may_leave_at_once_is_what_the_window_gives_in_a_quarter_of_a_millisecond() {
    let mut rounds = Rounds::unmarked(40);
    assert_eq!(rounds.prague.burst(), Some(0));
    rounds.round(10, 0, 0);
    assert_eq!(rounds.prague.burst(), Some(rounds.prague.window() / 160));
}
