//! Controlled Delay.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use super::fifo::Fifo;
use super::{Discipline, QueueLimit, Queued, Transmitter};
use crate::chance::scale;
use crate::{Context, DropReason, Packet};

/// Controlled Delay (RFC 8289).
///
/// When every packet of an `interval` has waited for `target` or longer, one packet is dropped as it leaves the
/// queue, the next one after `interval / sqrt(2)`, then `interval / sqrt(3)` and so on, until a packet has
/// waited for less. A queue of no more than 1,500 bytes is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// The wait that is acceptable.
    pub target: Duration,
    /// How long it may be exceeded; a round-trip time that is long for the link.
    pub interval: Duration,
    /// Whether packets that are ECN-capable are marked rather than dropped.
    pub ecn: bool,
}

impl Default for CoDel {
    /// 5 ms in 100 ms (RFC 8289 §4.2 and §4.3), with marks.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: true }
    }
}

/// A queue of up to one packet of this size is no standing queue.
const PACKET_SIZE_MAX: u64 = 1_500;

/// A queue with [`CoDel`]. The names of the state are those of RFC 8289 §5.
#[derive(Debug)]
pub(super) struct CoDelQueue {
    setting: CoDel,
    limit: QueueLimit,
    fifo: Fifo,
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above_time: Option<Instant>,
    /// When the next packet is due, while dropping.
    drop_next: Instant,
    /// Packets chosen since dropping began.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    dropping: bool,
}

impl CoDelQueue {
    pub(super) fn new(setting: CoDel, limit: QueueLimit) -> Self {
        Self {
            setting,
            limit,
            fifo: Fifo::default(),
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// The next packet, and whether the wait has been too long for long enough.
    fn pop(&mut self, now: Instant) -> Option<(Queued, bool)> {
        let Some(queued) = self.fifo.pop() else {
            self.first_above_time = None;
            return None;
        };
        let wait = now.saturating_since(queued.since);
        if wait < self.setting.target || self.fifo.bytes() <= PACKET_SIZE_MAX {
            self.first_above_time = None;
            return Some((queued, false));
        }
        let above = *self.first_above_time.get_or_insert(now + self.setting.interval);
        Some((queued, above <= now))
    }

    /// RFC 8289 §3.3: the rate of drops rises with their square root.
    fn control_law(&self, from: Instant) -> Instant {
        from + scale(self.setting.interval, 1.0 / f64::from(self.count.max(1)).sqrt())
    }

    /// Marks the packet and returns it, or drops it.
    fn signal(&self, queued: Queued, cx: &mut Context<'_>) -> Option<Queued> {
        let mut queued = queued;
        if self.setting.ecn && queued.packet.ecn.is_capable() {
            cx.mark(&mut queued.packet);
            return Some(queued);
        }
        cx.discard(queued.packet, DropReason::Aqm);
        None
    }

    fn begin_dropping(&mut self, now: Instant) {
        self.dropping = true;
        // RFC 8289 §5.4: if dropping ended not long ago, go on near the rate that was right then.
        let added = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_since(self.drop_next) < self.setting.interval * 16;
        self.count = if added > 1 && recent { added } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.control_law(now);
    }
}

impl Discipline for CoDelQueue {
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>) {
        if let Some(packet) = self.limit.admit(packet, self.fifo.level(), transmitter, cx) {
            self.fifo.push(Queued { since: cx.now(), packet });
        }
    }

    fn dequeue(&mut self, _rate_bps: u64, cx: &mut Context<'_>) -> Option<Queued> {
        let now = cx.now();
        let Some((mut queued, mut too_long)) = self.pop(now) else {
            self.dropping = false;
            return None;
        };
        if !self.dropping {
            if !too_long {
                return Some(queued);
            }
            self.begin_dropping(now);
            return self.signal(queued, cx).or_else(|| self.pop(now).map(|(next, _)| next));
        }
        self.dropping = too_long;
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            if let Some(marked) = self.signal(queued, cx) {
                self.drop_next = self.control_law(self.drop_next);
                return Some(marked);
            }
            let Some(next) = self.pop(now) else {
                self.dropping = false;
                return None;
            };
            (queued, too_long) = next;
            self.dropping = too_long;
            if self.dropping {
                self.drop_next = self.control_law(self.drop_next);
            }
        }
        Some(queued)
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
