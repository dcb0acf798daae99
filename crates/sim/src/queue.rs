//! What waits in front of a transmitter, and what is turned away.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use crate::{Context, DropReason, Packet};

/// The most packets that wait in a queue without a limit of its own, so that a simulation that runs away costs
/// packets rather than memory.
const QUEUE_PACKETS_MAX: usize = 1 << 20;

/// How much may wait in front of a transmitter. A packet that finds the transmitter idle never waits, so no
/// limit turns it away. A packet must satisfy both limits; without one, only the
/// simulator's own limit of a million packets holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueLimit {
    /// Payload bytes that may wait, the packet in question included and the one in transmission not.
    pub bytes: Option<u64>,
    /// The longest time a packet may have to wait, at the present rate, until its own transmission begins.
    pub time: Option<Duration>,
}

/// What a queue may know about the transmitter behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmitter {
    /// Whether nothing is being sent, so that a packet would go out at once.
    pub(crate) idle: bool,
    /// How long a packet that is queued now would wait.
    pub(crate) wait: Duration,
}

/// The discipline of a queue: which packets it takes, and which one goes next.
pub(crate) trait Discipline: Debug + Send {
    /// Takes or drops a packet.
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>);
    /// The packet to transmit next.
    fn dequeue(&mut self, cx: &mut Context<'_>) -> Option<Packet>;
    /// Payload bytes that wait.
    fn bytes(&self) -> u64;
    /// New limits; what already waits stays.
    fn set_limit(&mut self, limit: QueueLimit);
}

/// First in, first out; a packet that does not fit is dropped.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<Packet>,
    bytes: u64,
}

impl DropTail {
    pub(crate) const fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    fn has_room(&self, packet: &Packet, transmitter: Transmitter) -> bool {
        let bytes_fit = self.limit.bytes.is_none_or(|limit| self.bytes + packet.size() <= limit);
        let time_fits = self.limit.time.is_none_or(|limit| transmitter.wait <= limit);
        transmitter.idle || (bytes_fit && time_fits)
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>) {
        if self.waiting.len() >= QUEUE_PACKETS_MAX {
            cx.discard(packet, DropReason::Overflow);
        } else if self.has_room(&packet, transmitter) {
            self.bytes += packet.size();
            self.waiting.push_back(packet);
        } else {
            cx.discard(packet, DropReason::QueueFull);
        }
    }

    fn dequeue(&mut self, _cx: &mut Context<'_>) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.size();
        Some(packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }
}
