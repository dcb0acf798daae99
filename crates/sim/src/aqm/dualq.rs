//! Two queues with coupled signals, for L4S.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use super::fifo::Fifo;
use super::{Discipline, QueueLimit, Queued, Transmitter};
use crate::chance::nanos;
use crate::{Context, DropReason, Ecn, Packet};

/// DualPI2 (RFC 9332, Appendix A): a queue for L4S packets, which are ECT(1) or CE, and one for the others.
///
/// A PI controller looks at the longer of the waits of the two oldest packets every
/// `min(target, rtt_max / 3)`, and sets a probability `p` (gains as in RFC 9332, A.1).
///
/// - The classic queue drops, or marks if the packet is ECN-capable, with probability `p²`.
/// - The L4S queue marks every packet that waited for `l4s_threshold` or longer (or for the transmission of two
///   packets of 1,500 bytes at the present rate, if that is longer), and any with probability
///   `coupling * p`.
/// - When `p²` exceeds `1 / coupling²`, ECN does not suffice any more: both queues drop with `p²`.
///
/// The transmitter takes from the L4S queue first, but the classic one gets `classic_share` of the bytes while
/// both have packets. The queue limit holds for both together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DualQ {
    /// The wait that the classic queue is kept at.
    pub target: Duration,
    /// The longest round-trip time that is expected.
    pub rtt_max: Duration,
    /// By how much more often L4S packets are marked, relative to `p`.
    pub coupling: f64,
    /// The wait from which on every L4S packet is marked.
    pub l4s_threshold: Duration,
    /// The least share of the bytes for the classic queue, in `0.0..=1.0`.
    pub classic_share: f64,
}

impl Default for DualQ {
    /// 15 ms, 100 ms, a coupling of 2, 1 ms, and 10 %.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            rtt_max: Duration::from_millis(100),
            coupling: 2.0,
            l4s_threshold: Duration::from_millis(1),
            classic_share: 0.1,
        }
    }
}

const PACKET_BITS: u64 = 1_500 * 8;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A pair of queues with [`DualQ`].
#[derive(Debug)]
pub(super) struct DualQueue {
    setting: DualQ,
    limit: QueueLimit,
    l4s: Fifo,
    classic: Fifo,
    /// Bytes that the classic queue has been kept from sending while both had packets.
    classic_credit: f64,
    controller: Controller,
}

/// The PI controller of the base probability.
#[derive(Debug)]
struct Controller {
    probability: f64,
    wait_before: Duration,
    next_update: Instant,
}

impl DualQueue {
    pub(super) fn new(setting: DualQ, limit: QueueLimit) -> Self {
        let controller =
            Controller { probability: 0.0, wait_before: Duration::ZERO, next_update: Instant::ZERO };
        Self {
            setting,
            limit,
            l4s: Fifo::default(),
            classic: Fifo::default(),
            classic_credit: 0.0,
            controller,
        }
    }

    fn queue_of(&mut self, ecn: Ecn) -> &mut Fifo {
        // RFC 9332 §2.3: CE packets may have been ECT(1).
        if matches!(ecn, Ecn::Ect1 | Ecn::Ce) { &mut self.l4s } else { &mut self.classic }
    }

    /// Makes the updates that were due since the last packet came or went. In between the queues did not
    /// change, so nothing is lost by being late.
    fn update_probability(&mut self, now: Instant) {
        let DualQ { target, rtt_max, .. } = self.setting;
        let period = target.min(rtt_max / 3).max(Duration::from_micros(1));
        let alpha = 0.1 * period.as_secs_f64() / (rtt_max.as_secs_f64() * rtt_max.as_secs_f64());
        let beta = 0.3 / rtt_max.as_secs_f64();
        while self.controller.next_update <= now {
            let at = self.controller.next_update;
            let wait = self.l4s.oldest_wait(at).max(self.classic.oldest_wait(at));
            let controller = &mut self.controller;
            let change = alpha * difference(wait, target) + beta * difference(wait, controller.wait_before);
            controller.probability = (controller.probability + change).clamp(0.0, 1.0);
            controller.wait_before = wait;
            controller.next_update = at + period;
            if controller.probability == 0.0 && self.l4s.is_empty() && self.classic.is_empty() {
                // Nothing changes any more until a packet comes.
                controller.next_update = controller.next_update.max(now + period);
            }
        }
    }

    fn takes_classic(&self) -> bool {
        !self.classic.is_empty() && (self.l4s.is_empty() || self.classic_credit > 0.0)
    }

    /// The next packet, and whether it comes from the classic queue.
    fn pop(&mut self) -> Option<(Queued, bool)> {
        let classic = self.takes_classic();
        let queued = if classic { self.classic.pop() } else { self.l4s.pop() }?;
        if self.l4s.is_empty() || self.classic.is_empty() {
            self.classic_credit = 0.0;
        } else {
            let share = self.setting.classic_share;
            self.classic_credit += queued.packet.size() as f64 * if classic { share - 1.0 } else { share };
        }
        Some((queued, classic))
    }

    fn threshold(&self, rate_bps: u64) -> Duration {
        let two_packets = (2 * PACKET_BITS * NANOS_PER_SECOND).checked_div(rate_bps);
        self.setting.l4s_threshold.max(two_packets.map_or(Duration::MAX, Duration::from_nanos))
    }

    /// What becomes of a packet that leaves its queue.
    fn fate(&self, queued: &Queued, classic: bool, rate_bps: u64, cx: &mut Context<'_>) -> Fate {
        let DualQ { coupling, .. } = self.setting;
        let base = self.controller.probability;
        let classic_probability = base * base;
        let overload = classic_probability > 1.0 / (coupling * coupling);
        if classic || overload {
            let chosen = cx.rng().chance(classic_probability);
            let marks = queued.packet.ecn.is_capable() && !overload;
            if chosen {
                return if marks { Fate::Mark } else { Fate::Drop };
            }
            if classic {
                return Fate::Send;
            }
        }
        let waited = cx.now().saturating_since(queued.since);
        if waited >= self.threshold(rate_bps) || cx.rng().chance(coupling * base) {
            Fate::Mark
        } else {
            Fate::Send
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Fate {
    Send,
    Mark,
    Drop,
}

/// Seconds from `b` to `a`; negative if `b` is longer.
fn difference(a: Duration, b: Duration) -> f64 {
    (nanos(a) as f64 - nanos(b) as f64) / NANOS_PER_SECOND as f64
}

impl Discipline for DualQueue {
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>) {
        self.update_probability(cx.now());
        let ((l4s, l4s_bytes), (classic, classic_bytes)) = (self.l4s.level(), self.classic.level());
        let level = (l4s + classic, l4s_bytes + classic_bytes);
        if let Some(packet) = self.limit.admit(packet, level, transmitter, cx) {
            self.queue_of(packet.ecn).push(Queued { since: cx.now(), packet });
        }
    }

    fn dequeue(&mut self, rate_bps: u64, cx: &mut Context<'_>) -> Option<Queued> {
        self.update_probability(cx.now());
        while let Some((mut queued, classic)) = self.pop() {
            match self.fate(&queued, classic, rate_bps, cx) {
                Fate::Send => return Some(queued),
                Fate::Mark => {
                    cx.mark(&mut queued.packet);
                    return Some(queued);
                }
                Fate::Drop => cx.discard(queued.packet, DropReason::Aqm),
            }
        }
        None
    }

    fn bytes(&self) -> u64 {
        self.l4s.bytes() + self.classic.bytes()
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    fn take_all(&mut self) -> VecDeque<Queued> {
        let mut all: Vec<_> = self.classic.take_all().into_iter().chain(self.l4s.take_all()).collect();
        all.sort_by_key(|queued| queued.since);
        all.into()
    }

    fn adopt(&mut self, queued: Queued) {
        self.queue_of(queued.packet.ecn).push(queued);
    }
}
