//! Events for the tests of controllers.

use std::time::Duration;

use fulmar_base::Instant;

use super::{AckEvent, Cause, CongestionEvent, Controller, DeliverySnapshot, LostPacket, SpuriousLoss};
use crate::rtt::Rtt;

/// The datagram size of the tests.
pub(super) const SIZE: u16 = 1_200;

/// A round-trip time that was measured once.
pub(super) fn rtt(time: Duration) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Instant::ZERO, time, Duration::ZERO, None);
    rtt
}

/// The acknowledgement of `bytes`, the newest sent at `sent`, of a sender that used its window.
pub(super) fn ack(bytes: u64, sent: Instant, rtt: &Rtt) -> AckEvent<'_> {
    AckEvent {
        acked_bytes: bytes,
        acked_packets: bytes.div_ceil(u64::from(SIZE)),
        ce_packets: 0,
        largest_sent_time: sent,
        prior_in_flight: bytes,
        bytes_in_flight: 0,
        app_limited: false,
        rtt_sample: None,
        ack_delay: Duration::ZERO,
        detour: Duration::ZERO,
        rate: None,
        snapshot: DeliverySnapshot::NONE,
        total_delivered: 0,
        total_lost: 0,
        rtt,
    }
}

/// The loss of one full packet sent at `sent`.
pub(super) fn loss(sent: Instant) -> CongestionEvent {
    CongestionEvent {
        cause: Cause::Loss,
        lost_bytes: u64::from(SIZE),
        lost_packets: 1,
        largest_sent_time: sent,
        snapshot: DeliverySnapshot::NONE,
        persistent: false,
        bytes_in_flight: 0,
    }
}

/// A controller hears that a full packet sent at `sent` is lost.
pub(super) fn lose(controller: &mut dyn Controller, now: Instant, sent: Instant) {
    lose_all(controller, now, &loss(sent));
}

/// A controller hears of losses, as if they were one packet.
pub(super) fn lose_all(controller: &mut dyn Controller, now: Instant, event: &CongestionEvent) {
    let packet = LostPacket {
        bytes: event.lost_bytes,
        sent_time: event.largest_sent_time,
        snapshot: event.snapshot,
        total_delivered: 0,
        total_lost: 0,
    };
    controller.on_packet_lost(now, &packet);
    controller.on_congestion(now, event);
}

/// The late arrival of one full packet sent at `sent`.
pub(super) fn spurious(sent: Instant) -> SpuriousLoss {
    SpuriousLoss { bytes: u64::from(SIZE), sent_time: sent, dropped_for_mark: false }
}
