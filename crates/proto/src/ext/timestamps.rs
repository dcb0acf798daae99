//! Timestamps (draft-huitema-quic-ts-08), in both roles: packets with an ACK say when they were sent, so that the delay of
//! each direction can be measured.
//!
//! The clocks of the two ends have nothing in common but, roughly, their speed. So the variation of each direction is
//! measured: how much longer a packet took than the fastest one lately. For an absolute figure both directions of an empty
//! path are taken to be equally long, as in the draft (§2.6). The result is for statistics; the connection does not depend
//! on it.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Frame, TimeStamps, Timestamp, TransportParameters, VarInt};

use crate::error::TransportError;
use crate::ids::TupleId;
use crate::packet::FrameWriter;
use crate::space::RttSample;

/// The smallest delays count for between one and two times as long: clocks drift apart by a few milliseconds
/// in a minute.
const BASELINE: Duration = Duration::from_secs(30);

/// The delays of the two directions of a path, by the last packet that showed them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OneWayDelays {
    /// How much longer than at best packets took to the peer lately: the time in queues.
    pub forward_queue: Duration,
    /// How much longer than at best acknowledgements took to come back.
    pub return_queue: Duration,
    /// From this end to the peer, if the directions of the empty path are alike.
    pub forward: Duration,
    /// From the peer to this end, likewise.
    pub back: Duration,
}

/// The extension in a connection of an end that has announced it.
#[derive(Debug)]
pub(crate) struct Timestamps {
    /// Whether this end sends them, to a peer that wants them.
    sends: bool,
    /// Whether this end has asked for them.
    receives: bool,
    /// The beginning of this end's count.
    epoch: Instant,
    /// By how much the peer scales its timestamps down.
    exponent: u8,
    /// The largest timestamp of the packet that is being processed, in nanoseconds.
    stamp: Option<u64>,
    /// What its ACK frame has measured.
    sample: Option<RttSample>,
    directions: Option<Directions>,
}

/// What is known of the two directions of a tuple.
#[derive(Debug)]
struct Directions {
    tuple: TupleId,
    forward: Baseline,
    back: Baseline,
    latest: OneWayDelays,
}

/// The smallest of the values of the last while.
#[derive(Debug, Clone, Copy)]
struct Baseline {
    current: i64,
    previous: i64,
    since: Instant,
}

impl Timestamps {
    /// The extension, for an end that has announced `local`; `None` if it has not.
    pub(crate) fn new(now: Instant, local: Option<TimeStamps>, peer: &TransportParameters) -> Option<Self> {
        let local = local?;
        Some(Self {
            sends: local.sends() && peer.time_stamps.is_some_and(TimeStamps::receives),
            receives: local.receives(),
            epoch: now,
            exponent: peer.ack_delay_exponent,
            stamp: None,
            sample: None,
            directions: None,
        })
    }

    /// Writes the time into a packet with an acknowledgement, where `exponent` is that of this end.
    pub(crate) fn write(&self, now: Instant, exponent: u8, out: &mut FrameWriter<'_>) {
        if self.sends {
            let micros = now.saturating_since(self.epoch).as_micros() as u64;
            let time = VarInt::saturating(micros >> exponent);
            out.write_untracked(&Frame::Timestamp(Timestamp { time }));
        }
    }

    /// The peer says when it has sent the packet that is being processed.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if this end has not asked for it.
    pub(crate) fn on_frame(&mut self, frame: &Timestamp) -> Result<(), TransportError> {
        if !self.receives {
            return Err(unrequested_timestamp());
        }
        // A value that leaves the range is from no clock.
        let nanos =
            frame.time.get().checked_mul(1_000).and_then(|nanos| nanos.checked_mul(1 << self.exponent));
        if let Some(nanos) = nanos.filter(|nanos| *nanos <= i64::MAX as u64) {
            // Draft §2.2: of several, the largest.
            self.stamp = self.stamp.max(Some(nanos));
        }
        Ok(())
    }

    /// An ACK frame of the packet has measured the round-trip time.
    pub(crate) fn on_rtt_sample(&mut self, sample: RttSample) {
        self.sample = Some(sample);
    }

    /// The packet ends. If it had a timestamp and a round-trip time was measured, the delays follow (draft §2.6). `rtt_min` is
    /// that of the tuple it was sent on. Returns whether there are new delays.
    pub(crate) fn end_packet(&mut self, now: Instant, rtt_min: Duration) -> bool {
        let (Some(stamp), Some(sample)) = (self.stamp.take(), self.sample.take()) else {
            (self.stamp, self.sample) = (None, None);
            return false;
        };
        let nanos = |instant: Instant| i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX);
        let span = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        // The peer says how long it has waited with the acknowledgement; it cannot have waited longer than all of it took.
        let waited = span(sample.ack_delay.min(sample.rtt));
        let sent = nanos(now).saturating_sub(span(sample.rtt));
        let forward = (stamp as i64).saturating_sub(waited).saturating_sub(sent);
        let back = nanos(now).saturating_sub(stamp as i64);
        if self.directions.as_ref().is_none_or(|directions| directions.tuple != sample.tuple) {
            self.directions = Some(Directions {
                tuple: sample.tuple,
                forward: Baseline::new(now, forward),
                back: Baseline::new(now, back),
                latest: OneWayDelays::default(),
            });
        }
        if let Some(directions) = &mut self.directions {
            let forward_queue = directions.forward.excess(now, forward);
            let return_queue = directions.back.excess(now, back);
            directions.latest = OneWayDelays {
                forward_queue,
                return_queue,
                forward: rtt_min / 2 + forward_queue,
                back: rtt_min / 2 + return_queue,
            };
        }
        true
    }

    /// The delays of a tuple, once they were measured.
    pub(crate) fn delays(&self, tuple: TupleId) -> Option<OneWayDelays> {
        self.directions.as_ref().filter(|directions| directions.tuple == tuple).map(|d| d.latest)
    }
}

impl Baseline {
    fn new(now: Instant, value: i64) -> Self {
        Self { current: value, previous: value, since: now }
    }

    /// How far a value is above the smallest one, which it may be itself.
    fn excess(&mut self, now: Instant, value: i64) -> Duration {
        if now.saturating_since(self.since) >= BASELINE {
            (self.previous, self.current, self.since) = (self.current, value, now);
        }
        self.current = self.current.min(value);
        let excess = value.saturating_sub(self.current.min(self.previous));
        Duration::from_nanos(u64::try_from(excess).unwrap_or(0))
    }
}

/// Draft §2.1: no timestamps without a request.
pub(crate) fn unrequested_timestamp() -> TransportError {
    TransportError::protocol_violation("a timestamp that nobody has asked for")
}

#[cfg(test)]
mod tests;
