//! How often the peer should acknowledge.
//!
//! Often enough for the window to move smoothly: four times in a window, and four times in a round trip. Rarely enough for a
//! narrow return path, and for the processors of both ends: usually not for every packet or two. Pure functions of the
//! figures of the path.

use std::time::Duration;

use super::JUMP;
use crate::rtt::Rtt;
use crate::space::YOUNG_PACKETS;
use fulmar_wire::VarInt;

/// While the window is young every second packet is acknowledged, as slow start counts on it.
pub(super) const FIRST_PACKETS: u64 = YOUNG_PACKETS as u64;

/// ACKs in a window, and in a round trip: what picoquic takes ("Managing QUIC ACKs in picoquic", Huitema, 2022). An ACK is late
/// by a quarter of a round trip at most.
pub(super) const ACKS_PER_ROUND: u32 = 4;

/// The fewest packets to an ACK: what RFC 9000 §13.2.2 recommends.
const GAP_MIN: u64 = 2;

/// The most packets to an ACK where ACKs clock out the packets: bursts stay short. As in picoquic.
const GAP_MAX: u64 = 32;

/// The most packets to an ACK where a controller paces by itself, and the packets in a window that gain one
/// more to the gap beyond [`GAP_MAX`]. As in picoquic.
const GAP_MAX_PACED: u64 = 64;
const PACED_SLOPE: u64 = 8;

/// The longest delay that is requested, unless the return path is congested: it lengthens every probe timeout (RFC 9002
/// §6.2.1). Paths of four times as long and more have it, with more ACKs in a round trip. As in picoquic.
const DELAY_MAX: Duration = Duration::from_millis(10);

/// A new value is requested when it differs from the old one by a quarter of the larger.
const CHANGE: u128 = 4;

/// The figures of the path that decide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckFigures<'a> {
    pub(crate) rtt: &'a Rtt,
    /// The congestion window in bytes.
    pub(crate) window: u64,
    /// The size of a full datagram.
    pub(crate) mtu: u16,
    /// The rate that the controller sets, in bytes per second, if it does.
    pub(crate) pace: Option<u64>,
    /// Packets sent in the packet number space.
    pub(crate) packets_sent: u64,
    /// How many later packets must be acknowledged before one is lost.
    pub(crate) packet_threshold: u64,
}

/// What ACK frames have shown during about a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed {
    /// The rate of delivery in bytes per second.
    rate: u64,
    /// The time from one ACK to the next.
    interval: Duration,
}

impl Observed {
    pub(super) fn new(elapsed: Duration, acks: u32, bytes: u64) -> Self {
        let nanos = elapsed.as_nanos().max(1);
        let rate = u128::from(bytes) * 1_000_000_000 / nanos;
        Self { rate: u64::try_from(rate).unwrap_or(u64::MAX), interval: elapsed / acks.max(1) }
    }

    /// The time from one ACK to the next.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// The bytes that are delivered in `time`.
    fn bytes_in(&self, time: Duration) -> u64 {
        bytes_in(self.rate, time)
    }
}

/// What is requested of the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// The packets to an ACK.
    pub(super) gap: u64,
    pub(super) max_ack_delay: Duration,
    pub(super) reordering_threshold: u64,
}

impl Request {
    /// What a peer does by itself (RFC 9000 §13.2).
    pub(super) fn unprompted(max_ack_delay: Duration) -> Self {
        Self { gap: GAP_MIN, max_ack_delay, reordering_threshold: 1 }
    }

    /// What suits the path. `min_ack_delay` is the shortest delay that the peer takes, `return_delay` the shortest
    /// that does not congest the return path.
    pub(super) fn wanted(
        figures: &AckFigures<'_>,
        observed: &Observed,
        min_ack_delay: Duration,
        return_delay: Duration,
    ) -> Self {
        let delay = (figures.rtt.min() / ACKS_PER_ROUND).min(DELAY_MAX).max(min_ack_delay);
        // The packets of that time, or the gap would bring ACKs before the delay does.
        let returned = observed.bytes_in(return_delay).div_ceil(u64::from(figures.mtu.max(1)));
        let gap = gap(figures, observed).max(returned.min(GAP_MAX));
        Self {
            gap,
            max_ack_delay: delay.max(return_delay),
            // Draft §9: an ACK before a packet can be declared lost is of no use, a later one delays that.
            reordering_threshold: figures.packet_threshold,
        }
    }

    /// Whether the difference is worth a frame.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let far = |a: u128, b: u128| a.abs_diff(b) * CHANGE >= a.max(b) && a != b;
        self.reordering_threshold != other.reordering_threshold
            || far(self.gap.into(), other.gap.into())
            || far(self.max_ack_delay.as_micros(), other.max_ack_delay.as_micros())
    }

    /// The frame, which counts the packets that bring no ACK.
    pub(super) fn frame(&self, sequence: VarInt) -> fulmar_wire::AckFrequency {
        let micros = u64::try_from(self.max_ack_delay.as_micros()).unwrap_or(u64::MAX);
        fulmar_wire::AckFrequency {
            sequence,
            ack_eliciting_threshold: VarInt::saturating(self.gap - 1),
            max_ack_delay_micros: VarInt::saturating(micros),
            reordering_threshold: VarInt::saturating(self.reordering_threshold),
        }
    }
}

/// The bytes that `rate` bytes per second are in `time`.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// The rate to which acknowledgements have to suit, in bytes per second: what they show. Where packets leave more than
/// [`JUMP`] times as fast, faster than the start of a connection accounts for, ACKs will show it a round trip later.
fn rate(figures: &AckFigures<'_>, observed: &Observed) -> u64 {
    observed.rate.max(figures.pace.unwrap_or(0) / JUMP)
}

/// A quarter of the packets in a window, within limits. It changes with the figures of the path without a step.
fn gap(figures: &AckFigures<'_>, observed: &Observed) -> u64 {
    let packets = packets_in_window(figures, observed);
    let quarter = packets.div_ceil(ACKS_PER_ROUND.into());
    let max = match figures.pace.is_some() {
        true => {
            let beyond = packets.saturating_sub(GAP_MAX * u64::from(ACKS_PER_ROUND));
            (GAP_MAX + beyond / PACED_SLOPE).min(GAP_MAX_PACED)
        }
        false => GAP_MAX,
    };
    quarter.clamp(GAP_MIN, max)
}

/// The packets that have to be under way. A controller that paces keeps more in its window than the path
/// needs, so there the rate decides.
fn packets_in_window(figures: &AckFigures<'_>, observed: &Observed) -> u64 {
    let bytes = match figures.pace {
        Some(_) => figures.window.min(bytes_in(rate(figures, observed), figures.rtt.min())),
        None => figures.window,
    };
    bytes / u64::from(figures.mtu.max(1))
}

#[cfg(test)]
mod tests;
