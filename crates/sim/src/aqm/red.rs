//! Random Early Detection.

use std::collections::VecDeque;

use fulmar_base::Instant;

use super::fifo::Fifo;
use super::{Discipline, QueueLimit, Queued, Transmitter};
use crate::{Context, DropReason, Packet};

/// Random Early Detection (Floyd and Jacobson 1993), in bytes.
///
/// Each packet that arrives moves an average of the queue's length towards the present length by `weight`. Below
/// `min_bytes` nothing happens; between the thresholds a packet is chosen with a probability that rises to
/// `probability_max`, and rises further with each packet that was not chosen, so that the choices are spread
/// evenly; from `max_bytes` on every packet is dropped. While the transmitter is idle the average falls as
/// if packets of 1,500 bytes had found an empty queue at its rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// The average length in payload bytes from which on packets are chosen.
    pub min_bytes: u64,
    /// The average length from which on all packets are dropped.
    pub max_bytes: u64,
    /// The probability just below `max_bytes`.
    pub probability_max: f64,
    /// The weight of the present length in the average, in `0.0..=1.0`.
    pub weight: f64,
    /// Whether chosen packets that are ECN-capable are marked rather than dropped (RFC 3168 §5). Above `max_bytes`
    /// they are dropped all the same.
    pub ecn: bool,
    /// Whether the probability is the very share of packets that are chosen: it adds up from packet to packet, and
    /// whenever it exceeds 1 a packet is chosen. Else the choices are spread as the paper has it, which makes them up
    /// to twice as many as the probability says.
    pub exact_share: bool,
}

const IDLE_PACKET_BITS: u64 = 1_500 * 8;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Red {
    /// The thresholds, with a probability of at most 0.1, the classic weight of 0.002, and drops only.
    pub const fn between(min_bytes: u64, max_bytes: u64) -> Self {
        Self { min_bytes, max_bytes, probability_max: 0.1, weight: 0.002, ecn: false, exact_share: false }
    }
}

/// A queue with [`Red`].
#[derive(Debug)]
pub(super) struct RedQueue {
    setting: Red,
    limit: QueueLimit,
    fifo: Fifo,
    average: f64,
    /// Packets since the last one that was chosen.
    spared: u32,
    /// [`Red::exact_share`]: what has added up since the last choice.
    due: f64,
    /// When the queue was last found empty by the transmitter.
    idle_since: Option<Instant>,
}

/// What happens to a packet that arrives.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Signal,
    Drop,
}

impl RedQueue {
    pub(super) fn new(setting: Red, limit: QueueLimit) -> Self {
        Self { setting, limit, fifo: Fifo::default(), average: 0.0, spared: 0, due: 0.0, idle_since: None }
    }

    fn update_average(&mut self, transmitter: Transmitter, now: Instant) {
        if let Some(since) = self.idle_since.take()
            && transmitter.idle
        {
            let nanos = now.saturating_since(since).as_nanos();
            let packets = nanos * u128::from(transmitter.rate_bps) / NANOS_PER_SECOND;
            let packets = packets / u128::from(IDLE_PACKET_BITS);
            self.average *= power(1.0 - self.setting.weight, packets);
        }
        self.average += self.setting.weight * (self.fifo.bytes() as f64 - self.average);
    }

    fn verdict(&mut self, cx: &mut Context<'_>) -> Verdict {
        let Red { min_bytes, max_bytes, probability_max, .. } = self.setting;
        let (min, max) = (min_bytes as f64, max_bytes as f64);
        if self.average >= max {
            self.spared = 0;
            return Verdict::Drop;
        }
        if self.average < min {
            self.spared = 0;
            return Verdict::Keep;
        }
        let base = probability_max * (self.average - min) / (max - min);
        if self.setting.exact_share {
            self.due += base;
            if self.due <= 1.0 {
                return Verdict::Keep;
            }
            self.due -= 1.0;
            return Verdict::Signal;
        }
        let left = 1.0 - f64::from(self.spared) * base;
        // Without anything left the packet is due.
        let probability = if left > 0.0 { base / left } else { 1.0 };
        if cx.rng().chance(probability) {
            self.spared = 0;
            Verdict::Signal
        } else {
            self.spared += 1;
            Verdict::Keep
        }
    }
}

/// `base` to the power of `exponent`, by squaring: the same bits on every machine.
fn power(mut base: f64, mut exponent: u128) -> f64 {
    let mut result = 1.0;
    while exponent > 0 && result > 0.0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

impl Discipline for RedQueue {
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>) {
        self.update_average(transmitter, cx.now());
        let verdict = self.verdict(cx);
        let marks = verdict == Verdict::Signal && self.setting.ecn && packet.ecn.is_capable();
        if verdict != Verdict::Keep && !marks {
            cx.discard(packet, DropReason::Aqm);
        } else if let Some(mut packet) = self.limit.admit(packet, self.fifo.level(), transmitter, cx) {
            if marks {
                cx.mark(&mut packet);
            }
            self.fifo.push(Queued { since: cx.now(), packet });
        }
    }

    fn dequeue(&mut self, _rate_bps: u64, cx: &mut Context<'_>) -> Option<Queued> {
        let queued = self.fifo.pop();
        if queued.is_none() {
            self.idle_since.get_or_insert(cx.now());
        }
        queued
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    fn take_all(&mut self) -> VecDeque<Queued> {
        self.fifo.take_all()
    }

    fn adopt(&mut self, queued: Queued) {
        self.fifo.push(queued);
    }
}
