//! What waits in front of a transmitter, and what is turned away.

mod codel;
mod dualq;
mod fifo;
mod red;

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use fulmar_base::Instant;

use crate::{Context, DropReason, Packet};

pub use codel::CoDel;
pub use dualq::DualQ;
pub use red::Red;

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
    /// The longest time a packet may have to wait, at the present rate, until its own transmission begins. While the link stands
    /// still (a rate of 0) it is the time at the last rate above 0; before the first such rate no limit of time holds.
    pub time: Option<Duration>,
}

/// How a queue drops and marks. The [`QueueLimit`] holds for each of them: what exceeds it is dropped as
/// [`DropReason::QueueFull`], what the discipline itself chooses as [`DropReason::Aqm`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Aqm {
    /// First in, first out; nothing is dropped or marked before the limit.
    #[default]
    DropTail,
    /// Random Early Detection: acts on the average length.
    Red(Red),
    /// Controlled Delay: acts on the time that packets wait.
    CoDel(CoDel),
    /// Two queues, one for L4S traffic, whose signals are coupled.
    DualQ(DualQ),
}

impl Aqm {
    /// An empty queue.
    pub(crate) fn queue(self, limit: QueueLimit) -> Box<dyn Discipline> {
        match self {
            Self::DropTail => Box::new(fifo::DropTail::new(limit)),
            Self::Red(red) => Box::new(red::RedQueue::new(red, limit)),
            Self::CoDel(codel) => Box::new(codel::CoDelQueue::new(codel, limit)),
            Self::DualQ(dualq) => Box::new(dualq::DualQueue::new(dualq, limit)),
        }
    }
}

impl QueueLimit {
    /// The packet, if it may wait behind `bytes` in `packets` others. If not, it is dropped.
    fn admit(
        &self,
        packet: Packet,
        (packets, bytes): (usize, u64),
        transmitter: Transmitter,
        cx: &mut Context<'_>,
    ) -> Option<Packet> {
        let bytes_fit = self.bytes.is_none_or(|limit| bytes + packet.size() <= limit);
        let time_fits = self.time.is_none_or(|limit| transmitter.wait <= limit);
        if packets >= QUEUE_PACKETS_MAX {
            cx.discard(packet, DropReason::Overflow);
            None
        } else if transmitter.idle || (bytes_fit && time_fits) {
            Some(packet)
        } else {
            cx.discard(packet, DropReason::QueueFull);
            None
        }
    }
}

/// What a queue may know about the transmitter behind it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmitter {
    /// Whether nothing is being sent, so that a packet would go out at once.
    pub(crate) idle: bool,
    /// How long a packet that is queued now would wait.
    pub(crate) wait: Duration,
    /// The present rate; 0 if it stands still.
    pub(crate) rate_bps: u64,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) since: Instant,
    pub(crate) packet: Packet,
}

/// The discipline of a queue: which packets it takes, and which one goes next.
pub(crate) trait Discipline: Debug + Send {
    /// Takes or drops a packet.
    fn enqueue(&mut self, packet: Packet, transmitter: Transmitter, cx: &mut Context<'_>);
    /// The packet to transmit next, at `rate_bps`.
    fn dequeue(&mut self, rate_bps: u64, cx: &mut Context<'_>) -> Option<Queued>;
    /// Payload bytes that wait.
    fn bytes(&self) -> u64;
    /// New limits; what already waits stays.
    fn set_limit(&mut self, limit: QueueLimit);
    /// Gives up all that waits, the oldest first.
    fn take_all(&mut self) -> VecDeque<Queued>;
    /// Takes over a packet that waits already, whatever the limits say.
    fn adopt(&mut self, queued: Queued);
}
