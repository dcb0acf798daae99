//! What `--limit-rate` lets through.

use std::time::{Duration, Instant};

/// Timers wake up as coarsely as this: a shorter wait would take longer than it is asked to.
const RESOLUTION: Duration = Duration::from_millis(2);

/// Bytes on a schedule: so many are due each second since the start. What came too late is made up for.
#[derive(Debug)]
pub(super) struct Pace {
    start: Instant,
    /// Bytes per second.
    rate: f64,
}

impl Pace {
    pub(super) fn new(start: Instant, rate: u64) -> Self {
        Self { start, rate: rate as f64 }
    }

    /// So many bytes are due in the time that a timer can tell.
    pub(super) fn at_once(&self) -> usize {
        (self.rate * RESOLUTION.as_secs_f64()) as usize
    }

    /// How long to wait after `bytes` in all, if they are early by so much that a timer can tell.
    pub(super) fn wait(&self, now: Instant, bytes: u64) -> Option<Duration> {
        let due = Duration::try_from_secs_f64(bytes as f64 / self.rate).unwrap_or(Duration::MAX);
        let early = due.saturating_sub(now.saturating_duration_since(self.start));
        (early >= RESOLUTION).then_some(early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    #[test]
    fn what_is_taken_at_once_makes_up_for_one_tick_of_a_timer() {
        assert_eq!(Pace::new(Instant::now(), 1_000_000).at_once(), 2_000);
        assert_eq!(Pace::new(Instant::now(), 100).at_once(), 0);
    }

    #[test]
    fn it_waits_for_what_is_early_and_for_nothing_else() {
        let start = Instant::now();
        let pace = Pace::new(start, 1_000_000);
        assert_eq!(pace.wait(start, 10_000), Some(10 * MILLI));
        assert_eq!(pace.wait(start + 4 * MILLI, 10_000), Some(6 * MILLI));
        assert_eq!(pace.wait(start + 11 * MILLI, 10_000), None);
    }

    /// Packets come by the kilobyte: a timer for each would be the limit of the rate.
    #[test]
    fn timers_that_wake_up_late_do_not_lower_the_rate() {
        let start = Instant::now();
        let pace = Pace::new(start, 50_000_000);
        let (mut now, mut bytes) = (start, 0);
        while bytes < 50_000_000 {
            bytes += 1_400;
            if let Some(wait) = pace.wait(now, bytes) {
                now += wait + MILLI;
            }
        }
        let took = now - start;
        assert!(took > 990 * MILLI && took < 1_010 * MILLI, "{took:?}");
    }

    #[test]
    fn a_rate_of_next_to_nothing_is_no_error() {
        let start = Instant::now();
        assert!(Pace::new(start, 1).wait(start, u64::MAX) > Some(Duration::from_secs(1 << 60)));
    }
}
