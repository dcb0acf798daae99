//! What a congestion controller hears.

use std::time::Duration;

use fulmar_base::Instant;

use super::{DeliverySnapshot, RateSample};
use crate::rtt::Rtt;

/// A packet that counts in flight was sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Sent {
    /// Its number in its packet number space.
    pub packet_number: u64,
    /// Its size.
    pub bytes: u64,
    /// Bytes in flight on the tuple, this packet included.
    pub bytes_in_flight: u64,
    /// Whether there was less to send than the window allows.
    pub app_limited: bool,
}

/// One ACK frame acknowledged packets that counted in flight.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AckEvent<'a> {
    /// Their bytes.
    pub acked_bytes: u64,
    /// Their number.
    pub acked_packets: u64,
    /// How many more packets the peer reports to have met congestion, for controllers that react to their share.
    /// [`Controller::on_congestion`](super::Controller::on_congestion) tells of them, too.
    pub ce_packets: u64,
    /// When the one sent last was sent.
    pub largest_sent_time: Instant,
    /// Bytes in flight on the tuple before this ACK frame.
    pub prior_in_flight: u64,
    /// Bytes in flight on the tuple after it.
    pub bytes_in_flight: u64,
    /// Whether there was less to send than the window allows: the window was not tested, and should not
    /// grow (RFC 9002 §7.8).
    pub app_limited: bool,
    /// The round-trip time that this ACK frame showed, if it did, acknowledgement delay included.
    pub rtt_sample: Option<Duration>,
    /// For how long the peer says that it has kept the acknowledgement which showed it. Nothing in the handshake (RFC 9002 §5.3).
    pub ack_delay: Duration,
    /// How much later it came than by the shortest way back that acknowledgements of the path have had: another path has brought it, or has
    /// brought others. `rtt_sample` is without it.
    pub detour: Duration,
    /// What it says about the rate of delivery, if it says anything.
    pub rate: Option<RateSample>,
    /// The state of delivery when the packet sent last of them was sent.
    pub snapshot: DeliverySnapshot,
    /// Bytes delivered on the tuple in all, those of this ACK frame included.
    pub total_delivered: u64,
    /// Bytes lost on the tuple in all, without those that this ACK frame shows to be lost.
    pub total_lost: u64,
    /// The round-trip time of the tuple, `rtt_sample` included.
    pub rtt: &'a Rtt,
}

impl AckEvent<'_> {
    /// A round-trip time that this ACK frame showed without the time for which the peer has kept it (RFC 9002 §5.3): a delay that would
    /// take it below the smallest of the path is not believed.
    pub(super) fn without_ack_delay(&self, sample: Duration) -> Duration {
        sample.checked_sub(self.ack_delay).filter(|adjusted| *adjusted >= self.rtt.min()).unwrap_or(sample)
    }
}

/// A packet was declared lost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LostPacket {
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent_time: Instant,
    /// The state of delivery when it was sent.
    pub snapshot: DeliverySnapshot,
    /// Bytes delivered on the tuple in all.
    pub total_delivered: u64,
    /// Bytes lost on the tuple in all, this packet included.
    pub total_lost: u64,
}

/// Why a controller should slow down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Packets were lost.
    Loss,
    /// Packets arrived with the mark "congestion experienced".
    Ecn {
        /// How many more than before.
        ce: u64,
    },
}

/// Congestion was noticed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CongestionEvent {
    /// Why this is congestion.
    pub cause: Cause,
    /// Bytes that were lost; zero for [`Cause::Ecn`].
    pub lost_bytes: u64,
    /// Packets that were lost; zero for [`Cause::Ecn`].
    pub lost_packets: u64,
    /// When the newest of the lost packets was sent; for [`Cause::Ecn`], the newest of the packets that the
    /// ACK frame acknowledged.
    pub largest_sent_time: Instant,
    /// The state of delivery when that packet was sent.
    pub snapshot: DeliverySnapshot,
    /// Whether nothing at all got through for long (RFC 9002 §7.6).
    pub persistent: bool,
    /// Bytes in flight on the tuple, without the lost ones.
    pub bytes_in_flight: u64,
}

/// A packet that was declared lost was no sign of congestion: it has arrived after all, or was dropped for its mark.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SpuriousLoss {
    /// Its size.
    pub bytes: u64,
    /// When it was sent.
    pub sent_time: Instant,
    /// Whether it did not arrive, since the path has come to drop all packets with an ECN mark. Marking ends with that, so this happens
    /// once on a tuple, to all packets that it concerns.
    pub dropped_for_mark: bool,
}
