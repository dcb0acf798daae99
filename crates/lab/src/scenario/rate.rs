//! When links were used at their full rate, of several in a row that of the narrowest.
//!
//! What is measured are the packets that arrive. A rate is full if 95 % of it arrive, so that single losses do not
//! count, over a time in which the sender can have heard how its packets fare.

use std::time::Duration;

use fulmar_base::Instant;

use super::figures::Way;
use super::link::LinkEvent;

/// The share of the rate that counts as all of it.
const FULL: f64 = 0.95;
/// The share that counts as nearly all, where a path has come back.
const NEARLY_FULL: f64 = 0.9;
/// How long a rate has to last at the start of a connection, in round trips.
const START_ROUNDS: u32 = 1;
/// The same after a stop, where a link that is as short as a Wi-Fi is and drains its queue.
const STOP_ROUNDS: u32 = 10;

/// The packets that arrived in one direction, and what could arrive.
#[derive(Debug)]
pub(crate) struct Rate<'a> {
    arrivals: &'a [(Instant, u32)],
    way: Way,
    round: Duration,
}

impl<'a> Rate<'a> {
    /// `None` if there is no round trip to measure by.
    pub(crate) fn new(arrivals: &'a [(Instant, u32)], way: Way, round: Duration) -> Option<Self> {
        (!round.is_zero()).then_some(Self { arrivals, way, round })
    }

    /// Round trips from `first` until a whole one begins in which the rate is full. A sender that never gets there
    /// has no figure.
    pub(crate) fn full_after_rtts(&self, first: Instant) -> Option<f64> {
        let at = self.full_from(first, Instant::FAR_FUTURE, self.round * START_ROUNDS)?;
        Some(self.rounds(at - first))
    }

    /// Round trips from the end of a stop until the rate is full again: the longest of all stops. Where the next
    /// stop, or the end of the run, comes first, the time until then counts. `None` without a stop.
    pub(crate) fn back_after_rtts(&self, events: &[LinkEvent]) -> Option<f64> {
        let last = self.arrivals.last()?.0;
        let lasting = self.round * STOP_ROUNDS;
        let concerned = events.iter().enumerate().filter(|(_, event)| event.end + lasting < last);
        let back = concerned.map(|(number, event)| {
            let next = events.get(number + 1).map_or(last, |next| next.start);
            let from = self.full_from(event.end, next, lasting);
            self.rounds(from.unwrap_or(next).saturating_since(event.end))
        });
        back.max_by(f64::total_cmp)
    }

    /// Seconds from `repaired` until the rate is nearly full, for as long as after a stop.
    pub(crate) fn nearly_full_after_s(&self, repaired: Instant) -> Option<f64> {
        let length = self.round * STOP_ROUNDS;
        let from = self.share_from(NEARLY_FULL, repaired, Instant::FAR_FUTURE, length)?;
        Some((from - repaired).as_secs_f64())
    }

    fn full_from(&self, first: Instant, end: Instant, length: Duration) -> Option<Instant> {
        self.share_from(FULL, first, end, length)
    }

    /// When the first time of this length begins in which this share of the rate arrives, from `first` on and before `end`.
    fn share_from(&self, share: f64, first: Instant, end: Instant, length: Duration) -> Option<Instant> {
        let mut start = self.arrivals.partition_point(|(at, _)| *at < first);
        let (mut behind, mut bytes) = (start, 0_u64);
        let mut from = first;
        loop {
            while let Some((_, size)) = self.arrivals.get(behind).filter(|(at, _)| *at < from + length) {
                bytes += u64::from(*size);
                behind += 1;
            }
            // Where nothing can arrive no rate is reached.
            let wanted = (self.way.between(from, from + length)? * share) as u64;
            if wanted > 0 && bytes >= wanted {
                return Some(from);
            }
            let (at, size) = *self.arrivals.get(start)?;
            if start == behind {
                // Nothing arrived for so long: what comes next is the first that can count.
                from = at;
            } else {
                // The sum can only grow when something leaves it and time for something new is won. What is wanted changes with the
                // rates alone: it is looked at anew whenever something arrives.
                from = (at + Duration::from_nanos(1)).max(from);
                bytes -= u64::from(size);
                start += 1;
            }
            if from > end {
                return None;
            }
        }
    }

    fn rounds(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.round.as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
