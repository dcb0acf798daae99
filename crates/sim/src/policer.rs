//! A policer: it delays nothing and drops what exceeds a rate.

use fulmar_base::Instant;

use crate::{Change, Context, DropReason, Element, Packet};

/// What a policer lets through: a leaky bucket used as a meter.
///
/// The bucket holds credit. It is full in the beginning, fills at `rate_bps` up to `bucket_bytes`, and a packet
/// takes as much as it has payload bytes; a packet that finds less is dropped and takes nothing. A packet larger
/// than the bucket never passes.
///
/// It stands ahead of the queue, as policers do at the edge of a network, so that it meets bursts before the
/// link's own rate has spread them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Payload bits per second at which the bucket fills.
    pub rate_bps: u64,
    /// The most credit, in payload bytes: the longest burst.
    pub bucket_bytes: u64,
}

/// The size of a packet where a bucket is given in packets.
const PACKET_SIZE: u64 = 1_500;
/// Credit is counted in these parts of a byte, so that no nanosecond's credit is rounded.
const PARTS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl Policer {
    /// A bucket for `packets` packets of 1,500 bytes.
    pub const fn packets(rate_bps: u64, packets: u64) -> Self {
        Self { rate_bps, bucket_bytes: packets.saturating_mul(PACKET_SIZE) }
    }

    fn full(self) -> u128 {
        u128::from(self.bucket_bytes) * PARTS_PER_BYTE
    }
}

/// Drops packets as a [`Policer`] says.
#[derive(Debug)]
pub(crate) struct Policing {
    setting: Option<Policer>,
    credit: u128,
    updated: Instant,
}

impl Policing {
    pub(crate) fn new(setting: Option<Policer>) -> Self {
        Self { setting, credit: setting.map_or(0, Policer::full), updated: Instant::ZERO }
    }

    fn lets_through(&mut self, policer: Policer, size: u64, now: Instant) -> bool {
        let elapsed = now.saturating_since(self.updated).as_nanos();
        self.updated = now;
        // At most 2^64 ns x 2^64 bit/s.
        let earned = elapsed.saturating_mul(u128::from(policer.rate_bps));
        self.credit = self.credit.saturating_add(earned).min(policer.full());
        let cost = u128::from(size) * PARTS_PER_BYTE;
        let enough = self.credit >= cost;
        if enough {
            self.credit -= cost;
        }
        enough
    }
}

impl Element for Policing {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let setting = self.setting;
        if setting.is_none_or(|policer| self.lets_through(policer, packet.size(), cx.now())) {
            cx.pass(packet);
        } else {
            cx.discard(packet, DropReason::Policed);
        }
    }

    fn is_transparent(&self) -> bool {
        self.setting.is_none()
    }

    fn apply(&mut self, change: &Change, cx: &mut Context<'_>) {
        if let Change::Policer(setting) = change {
            *self = Self { updated: cx.now(), ..Self::new(*setting) };
        }
    }
}
