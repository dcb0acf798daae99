//! The ACK frequency extension (draft-ietf-quic-ack-frequency-14), in both roles.
//!
//! As a receiver of data this end follows the peer's ACK_FREQUENCY frames. As a sender it requests what suits its window, if
//! the peer has announced `min_ack_delay`. `tuning` decides what to request; `space` sends the ACKs.

mod return_path;
mod tuning;

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{Frame, TransportParameters, VarInt};

pub(crate) use self::tuning::AckFigures;

use self::return_path::ReturnPath;
use self::tuning::{Observed, Request};
use crate::error::TransportError;
use crate::packet::{FrameWriter, SentFrame};
use crate::reliable::Latest;
use crate::space::AckPolicy;

/// The shortest delay that this end lets a peer ask for: timers are not finer.
pub(crate) const MIN_ACK_DELAY: Duration = Duration::from_millis(1);

/// A delay of so much or more is illegal (RFC 9000 §18.2).
const DELAY_LIMIT: Duration = Duration::from_millis(1 << 14);

/// When ACKs come this much later than a second round trip, there was little to acknowledge, and the period is skipped.
const SILENCE: Duration = Duration::from_millis(25);

/// The extension in a connection of an end that supports it.
#[derive(Debug)]
pub(crate) struct AckFrequency {
    receiver: Receiver,
    /// If the peer supports it too.
    sender: Option<Sender>,
}

/// A window that has grown this many times since the last decision is decided about at once, and a pace of more than so many times
/// what ACKs show counts. Slow start doubles (RFC 9002 §7.3.1), and BBR starts at 2.77 times what arrives: this is beyond both.
const JUMP: u64 = 4;

/// The role of the end that receives data, and the peer's frames.
#[derive(Debug)]
struct Receiver {
    min_ack_delay: Duration,
    /// The largest sequence number processed.
    newest: Option<u64>,
}

/// The role of the end that sends data, and asks.
#[derive(Debug)]
struct Sender {
    /// The shortest delay that the peer takes.
    min_ack_delay: Duration,
    /// What was requested of the peer; at first, what it does by itself.
    requested: Latest<Request>,
    next_sequence: u64,
    /// The longest delay by which the peer may be acting now.
    delay_max: Duration,
    period: Option<Period>,
    return_path: ReturnPath,
}

/// What ACK frames have brought since the last decision.
#[derive(Debug, Clone, Copy)]
struct Period {
    start: Instant,
    acks: u32,
    bytes: u64,
    /// The window when it was decided.
    window: u64,
}

impl AckFrequency {
    /// The extension as negotiated, for an end that has announced `min_ack_delay`. It permits the peer to ask
    /// even if the peer takes no requests (draft §3).
    pub(crate) fn new(min_ack_delay: Duration, peer: &TransportParameters) -> Self {
        let sender = peer.min_ack_delay.map(|min_ack_delay| Sender {
            min_ack_delay,
            requested: Latest::new(Request::unprompted(peer.max_ack_delay)),
            next_sequence: 0,
            delay_max: peer.max_ack_delay,
            period: None,
            return_path: ReturnPath::default(),
        });
        Self { receiver: Receiver { min_ack_delay, newest: None }, sender }
    }

    // As a receiver of data.

    /// The peer asks for another policy; `None` if it has asked for a newer one already.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION for a delay that is illegal.
    pub(crate) fn on_frame(
        &mut self,
        frame: &fulmar_wire::AckFrequency,
    ) -> Result<Option<AckPolicy>, TransportError> {
        let delay = Duration::from_micros(frame.max_ack_delay_micros.get());
        // Draft §4. An obsolete frame is ignored, but was illegal all the same.
        if delay < self.receiver.min_ack_delay {
            return Err(TransportError::protocol_violation("a delay below min_ack_delay"));
        }
        if delay >= DELAY_LIMIT {
            return Err(TransportError::protocol_violation("a delay of 2^14 ms or more"));
        }
        let sequence = frame.sequence.get();
        if self.receiver.newest.is_some_and(|newest| sequence <= newest) {
            return Ok(None);
        }
        self.receiver.newest = Some(sequence);
        // The threshold is the number of packets that bring no ACK: the next one does.
        let threshold = u32::try_from(frame.ack_eliciting_threshold.get()).unwrap_or(u32::MAX);
        Ok(Some(AckPolicy {
            ack_eliciting_threshold: threshold.saturating_add(1),
            max_ack_delay: delay,
            reordering_threshold: frame.reordering_threshold.get(),
        }))
    }

    // As a sender of data.

    /// Whether the peer takes IMMEDIATE_ACK and ACK_FREQUENCY.
    pub(crate) fn may_request(&self) -> bool {
        self.sender.is_some()
    }

    /// An ACK frame of application data has acknowledged `bytes`. Decides once in a round trip whether to request something
    /// else. It decides at once where the window has grown severalfold: the peer would otherwise acknowledge a large window as
    /// it does a small one, for a whole round trip.
    pub(crate) fn on_ack(&mut self, now: Instant, bytes: u64, figures: &AckFigures<'_>) {
        let Some(sender) = &mut self.sender else { return };
        let new_period = Period { start: now, acks: 0, bytes: 0, window: figures.window };
        let Some(period) = &mut sender.period else {
            sender.period = Some(new_period);
            return;
        };
        period.acks += 1;
        period.bytes += bytes;
        let elapsed = now.saturating_since(period.start);
        let has_jumped = figures.window >= period.window.saturating_mul(JUMP);
        // Draft §8.1: not more than once in a round trip.
        if elapsed <= figures.rtt.smoothed() && !has_jumped {
            return;
        }
        let observed = Observed::new(elapsed, period.acks, period.bytes);
        *period = new_period;
        if elapsed > figures.rtt.smoothed() * 2 + SILENCE {
            return;
        }
        let return_delay = sender.return_path.delay(figures.rtt, &observed);
        let wanted = Request::wanted(figures, &observed, sender.min_ack_delay, return_delay);
        let is_time = has_jumped || figures.packets_sent >= tuning::FIRST_PACKETS;
        if is_time && wanted.differs_from(&sender.requested.get()) {
            sender.requested.set(wanted);
        }
    }

    /// Whether there is a request after this many packets. It needs no packet of its own: where no data is sent, nothing has
    /// to be acknowledged.
    #[inline]
    pub(crate) fn wants_to_send(&self, packets_sent: u64) -> bool {
        packets_sent >= tuning::FIRST_PACKETS
            && self.sender.as_ref().is_some_and(|sender| sender.requested.is_pending())
    }

    /// Writes the request.
    pub(crate) fn write(&mut self, out: &mut FrameWriter<'_>) {
        let Some(sender) = &mut self.sender else { return };
        let Some(request) = sender.requested.pending() else { return };
        let sequence = sender.next_sequence;
        let frame = Frame::AckFrequency(request.frame(VarInt::saturating(sequence)));
        if out.write(&frame, SentFrame::AckFrequency { sequence }) {
            sender.next_sequence += 1;
            sender.requested.on_written();
            // Draft §7: until the request is acknowledged, the longer delay counts.
            sender.delay_max = sender.delay_max.max(request.max_ack_delay);
        }
    }

    /// The peer has a request. Of the requests under way only the newest matters.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        let Some(sender) = &mut self.sender else { return };
        if sender.is_newest(sequence) && !sender.requested.is_pending() {
            sender.delay_max = sender.requested.get().max_ack_delay;
            sender.requested.cancel();
        }
    }

    /// A request was lost; it is repeated under a new number unless there is a newer one.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        let Some(sender) = &mut self.sender else { return };
        if sender.is_newest(sequence) {
            sender.requested.on_lost();
        }
    }

    /// The longest that the peer may delay an acknowledgement, if it takes requests.
    pub(crate) fn peer_max_ack_delay(&self) -> Option<Duration> {
        self.sender.as_ref().map(|sender| sender.delay_max)
    }
}

impl Sender {
    fn is_newest(&self, sequence: u64) -> bool {
        sequence + 1 == self.next_sequence
    }
}

#[cfg(test)]
mod tests;
