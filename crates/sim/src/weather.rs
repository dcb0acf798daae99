//! A good and a bad state that take turns in the time of the link.

use std::time::Duration;

use fulmar_base::{Instant, Rng};

use crate::chance::exponential;

/// After how many stays without a packet the state is drawn anew instead of followed from stay to stay. By
/// then it does not depend on what it was.
const STAYS_FOLLOWED_MAX: u32 = 1_000;

/// A continuous-time chain of two states. Each stay is exponentially distributed.
#[derive(Debug)]
pub(crate) struct Weather {
    good_mean: Duration,
    bad_mean: Duration,
    bad: bool,
    /// When the present stay ends.
    changes: Instant,
}

impl Weather {
    /// A chain that enters the good state now.
    pub(crate) fn new(good_mean: Duration, bad_mean: Duration, now: Instant, rng: &mut Rng) -> Self {
        let shortest = Duration::from_nanos(1);
        let (good_mean, bad_mean) = (good_mean.max(shortest), bad_mean.max(shortest));
        Self { good_mean, bad_mean, bad: false, changes: now + exponential(good_mean, rng) }
    }

    /// Whether it is bad now. Time must not go back between calls.
    pub(crate) fn is_bad(&mut self, now: Instant, rng: &mut Rng) -> bool {
        let mut stays = 0;
        while self.changes <= now {
            if stays == STAYS_FOLLOWED_MAX {
                let bad_share = self.bad_mean.as_secs_f64() / (self.bad_mean + self.good_mean).as_secs_f64();
                self.enter(rng.chance(bad_share), now, rng);
                stays = 0;
            } else {
                self.enter(!self.bad, self.changes, rng);
                stays += 1;
            }
        }
        self.bad
    }

    fn enter(&mut self, bad: bool, at: Instant, rng: &mut Rng) {
        self.bad = bad;
        self.changes = at + exponential(if bad { self.bad_mean } else { self.good_mean }, rng);
    }
}

#[cfg(test)]
mod tests;
