//! First in, first out.

use std::collections::VecDeque;
use std::time::Duration;

use fulmar_base::Instant;

use super::{Discipline, QueueLimit, Queued, Transmitter};
use crate::{Context, Packet};

/// Packets in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<Queued>,
    bytes: u64,
}

impl Fifo {
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many packets wait, and their bytes.
    pub(super) fn level(&self) -> (usize, u64) {
        (self.waiting.len(), self.bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, queued: Queued) {
        self.bytes += queued.packet.size();
        self.waiting.push_back(queued);
    }

    pub(super) fn pop(&mut self) -> Option<Queued> {
        let queued = self.waiting.pop_front()?;
        self.bytes -= queued.packet.size();
        Some(queued)
    }

    /// How long the oldest packet has waited at `now`; zero without one.
    pub(super) fn oldest_wait(&self, now: Instant) -> Duration {
        self.waiting.front().map_or(Duration::ZERO, |queued| now.saturating_since(queued.since))
    }

    pub(super) fn take_all(&mut self) -> VecDeque<Queued> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

/// A queue that only its limit keeps short: a packet that does not fit is dropped.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    fifo: Fifo,
}

impl DropTail {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>) {
        if let Some(packet) = self.limit.admit(packet, self.fifo.level(), transmitter, cx) {
            self.fifo.push(Queued { since: cx.now(), packet });
        }
    }

    fn dequeue(&mut self, _rate_bps: u64, _cx: &mut Context<'_>) -> Option<Queued> {
        self.fifo.pop()
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
