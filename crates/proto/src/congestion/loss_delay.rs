//! Tells losses that come where the delay is large from losses that come at any time.
//!
//! A queue loses packets when it is full, so that a packet beside a lost one was delayed more than most; chance knows nothing of the
//! delay. That holds for whoever shares the queue, however small the own part of what fills it, and for a queue of any length. The idea
//! is old (S. Cen, P. C. Cosman and G. M. Voelker, End-to-end differentiation of congestion and wireless losses, 2003); the measure is
//! our own: the rank of the delay beside a loss among the latest delays. Of losses by chance it is a half in the mean, whatever the delays are.

use std::time::Duration;

use fulmar_base::Instant;

use crate::packed::packed;

/// So many delays are compared, one in each sixteenth of a round trip: those of two round trips before a loss and of two after it, so
/// that a delay which only grows, or only falls, shows nothing.
const DELAYS: usize = 64;
const DELAYS_PER_ROUND_TRIP: u32 = 16;

/// A queue overflows for about a round trip, and that is one sign, not one for each packet: of the losses of half a round trip one counts.
const DELAYS_PER_LOSS: usize = 8;

/// Delays count as different in full from this part of the round-trip time on, and not at all up to half of it: less is no queue, but where
/// in a train a packet was, or the granularity of timers. A sample that exceeds the smallest one of BBR by no more confirms it, too.
const EVEN_DIVISOR: u32 = 64;

/// One, as a rank.
const ONE: u32 = 1 << 16;

/// The mean rank forgets with this weight. By chance alone it varies by 0.026.
const WEIGHT: u32 = 64;

/// The variance of a rank that is chance: all are equally likely.
const RANK_VARIANCE: u64 = (ONE as u64) * (ONE as u64) / 12;

/// A mean rank of 0.6 is no chance: that would be four deviations. docs/constants.md has what was seen.
const FULL_RANK: u32 = ONE / 10 * 6;

/// The delays beside the losses of a path. Nothing is kept before the first of them.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct LossDelay(Option<Box<Seen>>);

packed!(LossDelay);

#[derive(Debug, Clone)]
struct Seen {
    delays: [Delay; DELAYS],
    count: usize,
    /// How many there were when a loss last counted.
    counted: usize,
    /// When the next delay is remembered.
    next: Instant,
    /// The delays of the present sixteenth of a round trip.
    open: Delays,
    /// When the packets of the last two acknowledgements were sent, and their delays in microseconds.
    latest: [(Instant, u32); 2],
    /// The mean rank of the delays beside losses.
    rank: u32,
    /// The sum of the ranks since [`LossDelay::restart`], and how many they are. Only those count whose delay is of the same sixteenth of
    /// a round trip as the loss: a short queue has filled and emptied within a few of them.
    sum: u64,
    count_of_sum: u64,
}

packed!(Seen { delays, count, counted, next, open, latest, rank, sum, count_of_sum });

/// The sum of some delays in microseconds. The first one after a gap is that of the head of a train, which has waited for nothing, and chance
/// takes any packet of it: so the mean of all is what is usual.
#[derive(Debug, Clone, Copy, Default)]
struct Delays {
    sum: u64,
    count: u32,
}

packed!(Delays { sum, count });

impl Delays {
    fn and(self, delay: u32) -> Self {
        Self { sum: self.sum.saturating_add(delay.into()), count: self.count.saturating_add(1) }
    }

    fn mean(self) -> u32 {
        u32::try_from(self.sum / u64::from(self.count.max(1))).unwrap_or(u32::MAX)
    }
}

/// A delay in microseconds, and the one beside a packet that was lost at about the same time.
#[derive(Debug, Clone, Copy, Default)]
struct Delay {
    usual: u32,
    beside_loss: Option<Beside>,
}

packed!(Delay { usual, beside_loss });

/// The delay of the packet that was sent nearest to a lost one, and whether that was within a sixteenth of a round trip.
#[derive(Debug, Clone, Copy)]
struct Beside {
    delay: u32,
    is_near: bool,
}

packed!(Beside { delay, is_near });

impl LossDelay {
    /// Takes the round-trip time of a packet that was sent at `sent`; `min_rtt` is the smallest of the path.
    pub(super) fn on_sample(&mut self, now: Instant, sent: Instant, rtt: Duration, min_rtt: Duration) {
        let Some(seen) = &mut self.0 else { return };
        let delay = micros(rtt);
        seen.latest = [seen.latest[1], (sent, delay)];
        seen.open = seen.open.and(delay);
        if now >= seen.next {
            seen.next = now + min_rtt / DELAYS_PER_ROUND_TRIP;
            let usual = std::mem::take(&mut seen.open).mean();
            seen.remember(usual, micros(min_rtt / (2 * EVEN_DIVISOR)));
        }
    }

    /// Packets were found to be lost, the newest of them sent at `sent`; `min_rtt` is the smallest round-trip time of the path.
    pub(super) fn on_loss(&mut self, sent: Instant, min_rtt: Duration) {
        let Some(seen) = &mut self.0 else {
            self.0 = Some(Box::new(Seen::new()));
            return;
        };
        let distance = |at: Instant| at.saturating_since(sent).max(sent.saturating_since(at));
        let [previous, last] = seen.latest;
        // The packets of a train leave at the same time. A loss is found by packets that follow it, of which the earlier one is nearer: the
        // later one has waited for more of its train.
        let (at, delay) = if distance(previous.0) <= distance(last.0) { previous } else { last };
        let is_near = distance(at) <= min_rtt / DELAYS_PER_ROUND_TRIP;
        seen.delays[seen.count % DELAYS].beside_loss = Some(Beside { delay, is_near });
    }

    /// From now on [`is_by_chance`](Self::is_by_chance) goes by the losses that come.
    pub(super) fn restart(&mut self) {
        if let Some(seen) = &mut self.0 {
            (seen.sum, seen.count_of_sum) = (0, 0);
        }
    }

    /// Whether enough losses have shown since the last restart that they come at any delay: their mean rank is below that of a full queue
    /// by more than its standard deviation.
    pub(super) fn is_by_chance(&self) -> bool {
        self.0.as_ref().filter(|seen| seen.count_of_sum > 0).is_some_and(|seen| {
            let deviation = (RANK_VARIANCE / seen.count_of_sum).isqrt();
            seen.sum / seen.count_of_sum + deviation < u64::from(FULL_RANK)
        })
    }

    /// Whether losses come where the delay is large.
    pub(super) fn shows_full_queue(&self) -> bool {
        self.0.as_ref().is_some_and(|seen| seen.rank > FULL_RANK)
    }
}

impl Seen {
    fn new() -> Self {
        Self {
            delays: [Delay::default(); DELAYS],
            count: 0,
            counted: 0,
            next: Instant::ZERO,
            open: Delays::default(),
            latest: [(Instant::ZERO, 0); 2],
            rank: ONE / 2,
            sum: 0,
            count_of_sum: 0,
        }
    }

    /// Closes the present sixteenth of a round trip with this delay, and looks at the losses of the one in the middle of all.
    /// Delays that differ by up to `even` are equal.
    fn remember(&mut self, delay: u32, even: u32) {
        self.delays[self.count % DELAYS].usual = delay;
        self.count += 1;
        let middle = self.delays[(self.count + DELAYS / 2) % DELAYS].beside_loss;
        if let Some(beside) = middle.filter(|_| self.count >= (self.counted + DELAYS_PER_LOSS).max(DELAYS)) {
            self.counted = self.count;
            let rank = self.rank_of(beside.delay, even);
            if beside.is_near {
                self.sum += u64::from(rank);
                self.count_of_sum += 1;
            }
            self.rank = (self.rank * (WEIGHT - 1) + rank) / WEIGHT;
        }
        self.delays[self.count % DELAYS].beside_loss = None;
    }

    /// Which part of the delays is smaller than this one; of those that are equal half counts.
    fn rank_of(&self, delay: u32, even: u32) -> u32 {
        let (delay, even) = (i64::from(delay), i64::from(even).max(1));
        let halves = |usual: i64| {
            let beyond = (delay - usual).abs() - even;
            even + (delay - usual).signum() * beyond.clamp(0, even)
        };
        let sum: i64 = self.delays.iter().map(|it| halves(it.usual.into())).sum();
        u32::try_from(sum * i64::from(ONE) / (2 * even * DELAYS as i64)).unwrap_or(ONE)
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
