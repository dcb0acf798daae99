//! The trait of everything that can happen to a packet on a link.

use std::fmt::Debug;

use fulmar_base::{Instant, Rng};

use crate::trace::Record;
use crate::{BufferPool, Change, Ecn, LinkStats, Packet};

/// Why a link dropped a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum DropReason {
    /// The payload was larger than the MTU.
    TooLarge,
    /// The queue of the bottleneck was full.
    QueueFull,
    /// The loss model chose the packet.
    Lost,
    /// An element held so many packets that the simulator's own limit was reached.
    Overflow,
    /// The policer had no credit left.
    Policed,
    /// Active queue management chose the packet, as a signal to its sender.
    Aqm,
    /// The packet had an ECN codepoint, and the path drops such packets.
    Ecn,
}

impl DropReason {
    /// All reasons, in the order of their values.
    pub const ALL: [Self; 7] =
        [Self::TooLarge, Self::QueueFull, Self::Lost, Self::Overflow, Self::Policed, Self::Aqm, Self::Ecn];
}

/// One thing that a link does to packets.
///
/// An element gets each packet with [`accept`](Self::accept) and then passes it on, drops it, or holds it
/// until a time that [`next_timeout`](Self::next_timeout) tells. It sees no other element: what it passes
/// goes to the next in the row.
pub trait Element: Debug + Send {
    /// Takes a packet that reaches this element at `cx.now()`.
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>);

    /// Whether `accept` would pass on every packet at once as it is, without a draw or a count, so that it need
    /// not be called. Only `apply` may take that back.
    fn is_transparent(&self) -> bool {
        false
    }

    /// When [`on_timeout`](Self::on_timeout) is wanted; `None` if nothing is held.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    /// Deals with everything that is due at `cx.now()`. Afterwards `next_timeout` is later than that.
    fn on_timeout(&mut self, _cx: &mut Context<'_>) {}

    /// Takes a new value of a setting, if it is this element's.
    fn apply(&mut self, _change: &Change, _cx: &mut Context<'_>) {}
}

/// What an element may use and do while it has the turn.
#[derive(Debug)]
pub struct Context<'a> {
    now: Instant,
    rng: &'a mut Rng,
    passed: &'a mut Vec<Packet>,
    record: &'a mut Record,
    pool: &'a mut BufferPool,
}

impl<'a> Context<'a> {
    pub(crate) const fn new(
        now: Instant,
        rng: &'a mut Rng,
        passed: &'a mut Vec<Packet>,
        record: &'a mut Record,
        pool: &'a mut BufferPool,
    ) -> Self {
        Self { now, rng, passed, record, pool }
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The generator of this element, which no other element draws from.
    pub const fn rng(&mut self) -> &mut Rng {
        self.rng
    }

    /// The counters of this direction of the link.
    pub const fn stats(&mut self) -> &mut LinkStats {
        &mut self.record.stats
    }

    /// Hands a packet to the next element, behind those already passed in this turn.
    pub fn pass(&mut self, packet: Packet) {
        self.passed.push(packet);
    }

    /// Drops a packet and counts it.
    pub fn discard(&mut self, packet: Packet, reason: DropReason) {
        self.record.on_dropped(self.now, &packet, reason);
        self.pool.put(packet.payload);
    }

    /// Marks congestion on a packet whose sender understands that, and counts it. A packet that is
    /// marked already counts too.
    pub fn mark(&mut self, packet: &mut Packet) {
        debug_assert!(packet.ecn.is_capable(), "RFC 3168 §5: only ECN-capable packets are marked");
        packet.ecn = Ecn::Ce;
        self.record.on_marked(self.now, packet);
    }

    /// Tells how many payload bytes wait for the transmitter now.
    pub fn queue_is(&mut self, bytes: u64) {
        self.record.on_queue(self.now, bytes);
    }

    /// A copy of a packet, in a spare buffer.
    pub fn copy_of(&mut self, packet: &Packet) -> Packet {
        Packet { payload: self.pool.copy_of(&packet.payload), is_copy: true, ..*packet }
    }
}
