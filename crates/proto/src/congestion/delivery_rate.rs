//! Samples of the rate at which packets are delivered (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each packet carries a snapshot of what was delivered when it was sent. When it is acknowledged, the
//! difference to the present, over the longer of the times that sending and acknowledging took, is the
//! rate: the first bounds it where acknowledgements come in bunches.

use std::time::Duration;

use fulmar_base::Instant;

use crate::packed::packed;

/// The state of delivery at the time a packet was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliverySnapshot {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// When the last of them was acknowledged.
    pub delivered_time: Instant,
    /// When the packet was sent whose acknowledgement was the last then.
    pub first_sent_time: Instant,
    /// Bytes lost until then.
    pub lost: u64,
    /// Bytes in flight, the packet itself included; saturated at 4 GiB.
    pub in_flight: u32,
    /// Whether there was less to send than the window allowed.
    pub app_limited: bool,
}

packed!(DeliverySnapshot { delivered, delivered_time, first_sent_time, lost, in_flight, app_limited });

impl DeliverySnapshot {
    /// The snapshot of a packet that does not count in flight.
    pub const NONE: Self = Self {
        delivered: 0,
        delivered_time: Instant::ZERO,
        first_sent_time: Instant::ZERO,
        lost: 0,
        in_flight: 0,
        app_limited: false,
    };
}

/// What an ACK frame shows about the rate of delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes per second.
    pub delivery_rate: u64,
    /// Bytes that were delivered while the sample was taken.
    pub delivered: u64,
    /// How long the sample was taken.
    pub interval: Duration,
    /// Bytes delivered on the tuple in all.
    pub total_delivered: u64,
    /// Bytes that were lost while the sample was taken.
    pub lost: u64,
    /// The state when the newest packet of the ACK frame was sent.
    pub snapshot: DeliverySnapshot,
}

/// Counts deliveries on a tuple and makes the samples.
#[derive(Debug)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_time: Instant,
    first_sent_time: Instant,
    lost: u64,
    /// Samples are limited by the application until this many bytes are delivered.
    app_limited_until: Option<u64>,
    newest: Option<Newest>,
}

packed!(DeliveryRate { delivered, delivered_time, first_sent_time, lost, app_limited_until, newest });

/// The newest packet of the ACK frame that is being processed.
#[derive(Debug, Clone, Copy)]
struct Newest {
    snapshot: DeliverySnapshot,
    sent_time: Instant,
}

packed!(Newest { snapshot, sent_time });

impl DeliveryRate {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_time: now,
            first_sent_time: now,
            lost: 0,
            app_limited_until: None,
            newest: None,
        }
    }

    /// Notes a packet; `in_flight` are the bytes in flight before it, and `bytes` is its size.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) -> DeliverySnapshot {
        if in_flight == 0 {
            // After silence the time before says nothing.
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            lost: self.lost,
            in_flight: u32::try_from(in_flight.saturating_add(bytes)).unwrap_or(u32::MAX),
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Notes that there is nothing more to send while `in_flight` bytes are under way.
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Notes an acknowledged packet.
    pub(super) fn on_acked(&mut self, bytes: u64, sent_time: Instant, snapshot: &DeliverySnapshot) {
        self.delivered += bytes;
        if self.newest.is_none_or(|newest| sent_time >= newest.sent_time) {
            self.newest = Some(Newest { snapshot: *snapshot, sent_time });
        }
    }

    /// Bytes delivered in all.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes lost in all.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Notes a lost packet.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Ends an ACK frame and makes its sample. There is none if the time is shorter than the minimum
    /// round trip: then acknowledgements were held back and came together.
    pub(super) fn sample(&mut self, now: Instant, min_rtt: Duration) -> Option<RateSample> {
        let Newest { snapshot, sent_time } = self.newest.take()?;
        self.delivered_time = now;
        self.first_sent_time = sent_time;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let send_time = sent_time.saturating_since(snapshot.first_sent_time);
        let ack_time = now.saturating_since(snapshot.delivered_time);
        let interval = send_time.max(ack_time);
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        let delivered = self.delivered.saturating_sub(snapshot.delivered);
        let rate = u128::from(delivered) * 1_000_000_000 / interval.as_nanos();
        Some(RateSample {
            delivery_rate: u64::try_from(rate).unwrap_or(u64::MAX),
            delivered,
            interval,
            total_delivered: self.delivered,
            lost: self.lost.saturating_sub(snapshot.lost),
            snapshot,
        })
    }
}

#[cfg(test)]
mod tests;
