//! On paths of microseconds, the rate of delivery tells when a window is large enough. No RFC has this.
//!
//! On loopback and in a rack the delay comes from the scheduling of threads, and queues are so long that the first loss comes
//! when the window is absurd. There, a window that grows while the rate does not grow only makes a queue.

use std::time::Duration;

use fulmar_base::Instant;

use super::AckEvent;
use super::hystart::MEANINGLESS_RTT;

/// The rate has grown if it is larger by this part of the best one.
const GROWTH_DIVISOR: u64 = 16;

/// This many rounds without that end slow start, in which each round doubles the window.
const SLOW_START_ROUNDS: u32 = 3;

/// This many end the growth by a packet in a round.
const AVOIDANCE_ROUNDS: u32 = 16;

/// After this time the path may be another one, and is tried anew.
const MEMORY: Duration = Duration::from_secs(1);

/// Watches the rate of delivery, round by round.
#[derive(Debug, Clone)]
pub(super) struct RateWatch {
    /// When the round began; it ends when a packet sent later is acknowledged.
    round_start: Instant,
    round_rate: u64,
    best_rate: u64,
    stale_rounds: u32,
    since: Instant,
}

impl RateWatch {
    pub(super) fn new() -> Self {
        Self {
            round_start: Instant::ZERO,
            round_rate: 0,
            best_rate: 0,
            stale_rounds: 0,
            since: Instant::ZERO,
        }
    }

    /// Begins anew, because the window has become smaller.
    pub(super) fn restart(&mut self, now: Instant) {
        *self = Self { round_start: now, since: now, ..Self::new() };
    }

    /// Takes an acknowledgement of a window that was used, and says whether the window may grow by it.
    pub(super) fn may_grow(&mut self, now: Instant, ack: &AckEvent<'_>, slow_start: bool) -> bool {
        if ack.rtt.min() > MEANINGLESS_RTT {
            return true;
        }
        if now.saturating_since(self.since) > MEMORY {
            self.restart(now);
        }
        if let Some(rate) = ack.rate {
            self.round_rate = self.round_rate.max(rate.delivery_rate);
        }
        if ack.largest_sent_time >= self.round_start {
            self.end_round(now);
        }
        self.stale_rounds < if slow_start { SLOW_START_ROUNDS } else { AVOIDANCE_ROUNDS }
    }

    fn end_round(&mut self, now: Instant) {
        if self.round_rate > self.best_rate + self.best_rate / GROWTH_DIVISOR {
            self.best_rate = self.round_rate;
            self.stale_rounds = 0;
        } else {
            self.stale_rounds = self.stale_rounds.saturating_add(1);
        }
        self.round_start = now;
        self.round_rate = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_path::{ack, rtt};
    use super::super::{DeliverySnapshot, RateSample};
    use super::*;

    /// Rounds of `micros` with a rate each; returns after how many of them the window may not grow.
    fn rounds_of_growth(micros: u64, slow_start: bool, rate: impl Fn(u64) -> u64) -> Option<u64> {
        let time = Duration::from_micros(micros);
        let (rtt, mut watch, mut now) = (rtt(time), RateWatch::new(), Instant::from_millis(1));
        (0..100).find(|&round| {
            let sent = now + Duration::from_nanos(1);
            now += time;
            let sample = RateSample {
                delivery_rate: rate(round),
                delivered: 12_000,
                interval: time,
                total_delivered: 0,
                lost: 0,
                snapshot: DeliverySnapshot::NONE,
            };
            let event = AckEvent { rate: Some(sample), ..ack(12_000, sent, &rtt) };
            !watch.may_grow(now, &event, slow_start)
        })
    }

    #[test]
    fn a_rate_that_stays_the_same_ends_growth() {
        assert_eq!(rounds_of_growth(20, true, |_| 125_000_000), Some(3));
        assert_eq!(rounds_of_growth(128, false, |_| 125_000_000), Some(16));
    }

    #[test]
    fn a_rate_that_grows_by_less_than_a_sixteenth_is_the_same() {
        assert_eq!(rounds_of_growth(20, true, |round| 1_000_000 + 10_000 * round), Some(3));
    }

    #[test]
    fn a_rate_that_grows_does_not() {
        assert_eq!(rounds_of_growth(20, true, |round| 1_000_000 << round.min(40)), Some(43));
        assert_eq!(rounds_of_growth(20, false, |round| 1_000_000 * (10 + round)), None);
    }

    #[test]
    fn where_delay_says_something_the_rate_is_not_asked() {
        assert_eq!(rounds_of_growth(129, true, |_| 125_000_000), None);
    }

    #[test]
    fn after_a_reaction_and_after_a_while_growth_is_tried_again() {
        let (rtt, mut watch) = (rtt(Duration::from_micros(20)), RateWatch::new());
        let mut now = Instant::from_millis(1);
        let mut grow = |watch: &mut RateWatch, pause: Duration| {
            now += pause;
            watch.may_grow(now, &ack(1_200, now, &rtt), true)
        };
        let step = Duration::from_micros(20);
        while grow(&mut watch, step) {}
        assert!(!grow(&mut watch, step));
        assert!(grow(&mut watch, MEMORY));
        while grow(&mut watch, step) {}
        watch.restart(Instant::from_millis(5_000));
        assert!(grow(&mut watch, step));
    }

    #[test]
    fn what_left_before_a_reaction_ends_no_round_after_it() {
        let (rtt, mut watch) = (rtt(Duration::from_micros(20)), RateWatch::new());
        let reaction = Instant::from_millis(5);
        watch.restart(reaction);
        let after = |micros| reaction + Duration::from_micros(micros);
        assert!(watch.may_grow(after(1), &ack(1_200, Instant::from_millis(4), &rtt), true));
        let mut left = (1..9).map(|round| {
            let sent = after(20 * round);
            watch.may_grow(sent + Duration::from_micros(19), &ack(1_200, sent, &rtt), true)
        });
        assert!(left.by_ref().take(2).all(|grows| grows));
        assert_eq!(left.next(), Some(false), "three rounds without growth");
    }
}
