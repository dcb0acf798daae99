//! HyStart++: leaving slow start before packets are lost (RFC 9406).

use std::time::Duration;

use fulmar_base::Instant;

use super::AckEvent;

/// The rise of the round-trip time that ends slow start is an eighth of it, within these bounds.
const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);

/// The upper bound is at least this part of the round-trip time: on paths of seconds, 16 ms are less than the delay of
/// an acknowledgement.
const LONG_RTT_DIVISOR: u32 = 64;
const RTT_DIVISOR: u32 = 8;

/// Samples that a round needs before its delay counts as risen.
const SAMPLES_PER_ROUND: u32 = 8;

/// Rounds of conservative slow start before congestion avoidance.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// The growth of conservative slow start is that of slow start divided by this.
const CONSERVATIVE_DIVISOR: u64 = 4;

/// Up to this round-trip time delay comes from the scheduling of threads, not from a queue.
pub(super) const MEANINGLESS_RTT: Duration = Duration::from_micros(128);

/// How the window may grow in slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    /// By the bytes acknowledged.
    Full,
    /// By a quarter of the bytes acknowledged: delay has risen, and it is not sure why.
    Conservative,
    /// Slow start is over.
    Exit,
}

/// Watches the round-trip time in the first slow start of a tuple.
#[derive(Debug, Clone)]
pub(super) struct HyStart {
    /// The round ends when a packet sent from then on is acknowledged.
    round_start: Instant,
    last_round_min: Option<Duration>,
    current_round_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
    exit: Option<Exit>,
}

/// The phase of conservative slow start.
#[derive(Debug, Clone)]
struct Conservative {
    /// The round-trip time that ended slow start. A smaller one shows that it was a passing delay.
    baseline: Duration,
    rounds: u32,
}

/// The end of slow start by a rise of the delay.
#[derive(Debug, Clone)]
struct Exit {
    /// The round-trip time that ended it.
    baseline: Duration,
    /// Since when all of the window is in use, which keeps up the queue that there was.
    used_since: Instant,
    /// When something was acknowledged last.
    latest_ack: Instant,
}

impl HyStart {
    /// Begins with the first round: the first acknowledgement ends the round before it.
    pub(super) fn new() -> Self {
        Self {
            round_start: Instant::ZERO,
            last_round_min: None,
            current_round_min: None,
            samples: 0,
            conservative: None,
            exit: None,
        }
    }

    /// Whether delay has risen and the window grows with caution.
    pub(super) fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }

    /// Grows `window` by an ACK frame in slow start, and sets `ssthresh` where slow start ends.
    ///
    /// RFC 9406 §4.3: delay is watched in the first slow start only; later ones end at the threshold that
    /// the first one found.
    pub(super) fn grow(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        window: &mut u64,
        ssthresh: &mut Option<u64>,
    ) {
        if let Some(ssthresh) = *ssthresh {
            *window = (*window + ack.acked_bytes).min(ssthresh);
            return;
        }
        match self.on_ack(now, ack.largest_sent_time, ack.rtt_sample, ack.rtt.min()) {
            Growth::Full => *window += ack.acked_bytes,
            Growth::Conservative => *window += ack.acked_bytes / CONSERVATIVE_DIVISOR,
            Growth::Exit => {
                *ssthresh = Some(*window);
                let baseline = self.conservative.as_ref().map(|conservative| conservative.baseline);
                self.on_exit(now, baseline);
            }
        }
    }

    /// Slow start ends, since the delay has risen to this.
    pub(super) fn on_exit(&mut self, now: Instant, baseline: Option<Duration>) {
        self.exit = baseline.map(|baseline| Exit { baseline, used_since: now, latest_ack: now });
    }

    /// There is a better reason than the delay to be out of slow start.
    pub(super) fn confirm_exit(&mut self) {
        self.exit = None;
    }

    /// The window is not in use.
    pub(super) fn on_unused(&mut self, now: Instant) {
        if let Some(exit) = &mut self.exit {
            exit.used_since = now;
            exit.latest_ack = now;
        }
    }

    /// Takes an ACK frame in congestion avoidance, for a window that is in use. Returns whether slow start goes on, since the delay that
    /// has ended it was a passing one.
    ///
    /// A departure from the RFC, where the same sign counts for [`CONSERVATIVE_ROUNDS`] only: a radio may throw the delays about for
    /// longer, and congestion avoidance from a fraction of what the path holds takes minutes. A queue that the window itself has
    /// filled is not gone while the window is in use. Where the path was silent for a round trip, all of the window has arrived, so
    /// that it was not in use.
    pub(super) fn resumes(&mut self, now: Instant, ack: &AckEvent<'_>) -> bool {
        let Some(exit) = &mut self.exit else { return false };
        if now.saturating_since(exit.latest_ack) > ack.rtt.smoothed() {
            exit.used_since = now;
        }
        exit.latest_ack = now;
        let has_passed = ack.rtt_sample.is_some_and(|sample| sample < exit.baseline);
        if !has_passed || ack.largest_sent_time < exit.used_since + ack.rtt.smoothed() {
            return false;
        }
        *self = Self { round_start: now, ..Self::new() };
        true
    }

    /// Takes an ACK frame and says how the window may grow by it. `sent_time` is that of the newest packet
    /// it acknowledges.
    fn on_ack(
        &mut self,
        now: Instant,
        sent_time: Instant,
        sample: Option<Duration>,
        min_rtt: Duration,
    ) -> Growth {
        if let Some(sample) = sample {
            self.current_round_min = Some(self.current_round_min.map_or(sample, |min| min.min(sample)));
            self.samples += 1;
        }
        self.judge_round(min_rtt);
        if sent_time >= self.round_start && self.end_round(now) {
            return Growth::Exit;
        }
        if self.conservative.is_some() { Growth::Conservative } else { Growth::Full }
    }

    fn judge_round(&mut self, min_rtt: Duration) {
        let Some(current) = self.current_round_min else { return };
        if let Some(conservative) = &self.conservative {
            // Few samples are enough, where RFC 9406 §4.2 waits for as many as a rise needs: more of them make the smallest no larger.
            // With an acknowledgement for many packets, no round has as many, and caution would end slow start in any case.
            if current < conservative.baseline {
                self.conservative = None;
            }
        } else if let Some(last) = self.last_round_min.filter(|_| self.samples >= SAMPLES_PER_ROUND) {
            let max = MAX_RTT_THRESHOLD.max(last / LONG_RTT_DIVISOR);
            let threshold = (last / RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, max);
            if min_rtt > MEANINGLESS_RTT && current >= last + threshold {
                self.conservative = Some(Conservative { baseline: current, rounds: 0 });
            }
        }
    }

    /// Begins a round; returns whether conservative slow start has lasted long enough.
    fn end_round(&mut self, now: Instant) -> bool {
        self.round_start = now;
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
        let Some(conservative) = &mut self.conservative else { return false };
        conservative.rounds += 1;
        conservative.rounds >= CONSERVATIVE_ROUNDS
    }
}

#[cfg(test)]
mod tests;
