//! How the first rise of the rate goes on long paths: at once to what a train of packets showed, then with caution.

use std::time::Duration;

use fulmar_base::Instant;

use super::bandwidth::{FullPipe, GROWTH_PERCENT};
use super::train::PacketTrain;
use super::units::{percent, volume};
use crate::congestion::AckEvent;

/// Shorter paths find their capacity soon enough, and their acknowledgements are spaced by too much else.
const LONG_RTT: Duration = Duration::from_millis(80);

/// Once the rate of delivery has reached this share of what a train of packets showed, in hundredths, the path
/// may be full.
const REACHED_PERCENT: u64 = 75;

/// From there on the gain of the pace exceeds one by so many hundredths, and by twice as much after each round
/// in which the rate has grown.
const CAUTIOUS_EXCESS: u64 = 25;

/// The excess grows no further; the gain is limited by that of STARTUP.
const MAX_EXCESS: u64 = 200;

/// Twice the half of the estimate, in hundredths, is the pace until its packets are acknowledged.
const ESTIMATE_GAIN: u64 = 200;

/// The estimate of a train of packets and what STARTUP makes of it.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct Ramp {
    train: PacketTrain,
    estimate: Option<Estimate>,
    /// The excess of the gain once the estimate was reached, in hundredths.
    cautious_excess: Option<u64>,
}

/// What a train of packets showed.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    /// Bytes per second.
    rate: u64,
    /// Until then the rest of the train may improve it.
    open_until: Instant,
    /// Until then the rate of delivery does not show it better.
    valid_until: Instant,
    valid: bool,
}

impl Ramp {
    /// The bandwidth that a train showed, halved, until the rate of delivery shows it better.
    pub(in crate::congestion) fn bandwidth(&self) -> u64 {
        self.estimate.filter(|estimate| estimate.valid).map_or(0, |estimate| estimate.rate / 2)
    }

    /// The gain of the pace in hundredths, where `gain` is that of STARTUP.
    pub(in crate::congestion) fn gain(&self, gain: u64, max_bandwidth: u64) -> u64 {
        match self.cautious_excess {
            Some(excess) => (100 + excess).min(gain),
            None if self.bandwidth() > max_bandwidth / 2 => {
                // The pace of the estimate, however much of it was delivered as yet.
                let bandwidth = self.bandwidth().max(max_bandwidth);
                (self.bandwidth() * ESTIMATE_GAIN / bandwidth.max(1)).max(100)
            }
            None => gain,
        }
    }

    /// What counts as growth of the rate in a round: half of what the gain could bring where it is small.
    pub(in crate::congestion) fn growth_percent(&self) -> u64 {
        self.cautious_excess.map_or(GROWTH_PERCENT, |excess| (100 + excess / 2).min(GROWTH_PERCENT))
    }

    /// Takes an acknowledgement in STARTUP. If the train shows a rate, returns the window that it fills in a
    /// round trip: the window need not wait for acknowledgements to grow, since the path is empty, and the
    /// pacer spreads it.
    pub(in crate::congestion) fn on_ack(
        &mut self,
        now: Instant,
        ack: &AckEvent<'_>,
        min_rtt: Option<Duration>,
        packet: u64,
    ) -> Option<u64> {
        let rtt = min_rtt.filter(|&rtt| rtt >= LONG_RTT)?;
        if let Some(estimate) = self.estimate.as_mut().filter(|estimate| now > estimate.open_until) {
            estimate.valid &= now <= estimate.valid_until;
            return None;
        }
        let rate = self.train.on_ack(now, ack.largest_sent_time, ack.acked_bytes, packet)?;
        let estimate = self.estimate.get_or_insert(Estimate {
            rate,
            open_until: now + rtt / 4,
            // Packets leave at the rate for a round trip, their acknowledgements take another one, and the
            // last of them shows the rate.
            valid_until: now + rtt * 2 + rtt / 8,
            valid: true,
        });
        estimate.rate = estimate.rate.max(rate);
        Some(volume(estimate.rate, rtt))
    }

    /// Takes a sample of the rate of delivery in STARTUP.
    ///
    /// When it reaches the estimate, doubling it once more would only fill the queue: on a long path by
    /// thousands of packets before the first of them is missed. If the rate still grows, the estimate was too
    /// low, and the gain rises again.
    pub(in crate::congestion) fn on_rate(&mut self, rate: u64, round_started: bool, full: &mut FullPipe) {
        let Some(estimate) = self.estimate else { return };
        match &mut self.cautious_excess {
            None if rate >= percent(estimate.rate, REACHED_PERCENT) => {
                self.cautious_excess = Some(CAUTIOUS_EXCESS);
                // What the pace until now explains is no growth.
                full.restart(rate.max(estimate.rate));
            }
            Some(excess) if round_started && full.is_growing() => *excess = (*excess * 2).min(MAX_EXCESS),
            _ => {}
        }
    }
}
