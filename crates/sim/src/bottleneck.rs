//! A transmitter with a rate, and the queue in front of it.

use std::time::Duration;

use fulmar_base::Instant;

use crate::queue::{Discipline, Transmitter};
use crate::{Change, Context, Element, Packet};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Sends one packet after the other at a rate; a packet is passed on when its last bit is sent.
///
/// Fractions of a nanosecond are carried from packet to packet, so a busy transmitter keeps its rate exactly.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    rate_bps: Option<u64>,
    queue: Box<dyn Discipline>,
    sending: Option<Sending>,
    /// What the last transmission left of a nanosecond, in units of `1 / rate_bps` nanoseconds.
    carry: u64,
}

/// The packet in transmission.
#[derive(Debug)]
struct Sending {
    packet: Packet,
    /// Bits that were left to send at `since`, when the rate was last set.
    bits_left: u64,
    since: Instant,
    ends: Instant,
}

impl Bottleneck {
    pub(crate) const fn new(rate_bps: Option<u64>, queue: Box<dyn Discipline>) -> Self {
        Self { rate_bps, queue, sending: None, carry: 0 }
    }

    /// What a packet that comes now would find.
    fn transmitter(&self, rate_bps: u64, now: Instant) -> Transmitter {
        let Some(sending) = &self.sending else {
            return Transmitter { idle: true, wait: Duration::ZERO };
        };
        let wait = match self.queue.bytes().saturating_mul(8 * NANOS_PER_SECOND).checked_div(rate_bps) {
            Some(nanos) => sending.ends.saturating_since(now) + Duration::from_nanos(nanos),
            None => Duration::MAX,
        };
        Transmitter { idle: false, wait }
    }

    /// Begins with the next packet, if the transmitter is free and there is one.
    fn start_next(&mut self, rate_bps: u64, cx: &mut Context<'_>) {
        if self.sending.is_some() {
            return;
        }
        let Some(packet) = self.queue.dequeue(cx) else {
            self.carry = 0;
            return;
        };
        let bits_left = packet.size() * 8;
        let ends = cx.now() + self.transmission_time(bits_left, rate_bps);
        self.sending = Some(Sending { packet, bits_left, since: cx.now(), ends });
    }

    fn transmission_time(&mut self, bits: u64, rate_bps: u64) -> Duration {
        if rate_bps == 0 {
            return Duration::MAX;
        }
        let total = bits.saturating_mul(NANOS_PER_SECOND).saturating_add(self.carry);
        self.carry = total % rate_bps;
        Duration::from_nanos(total / rate_bps)
    }

    fn set_rate(&mut self, rate_bps: Option<u64>, cx: &mut Context<'_>) {
        let before = self.rate_bps;
        self.rate_bps = rate_bps;
        self.carry = 0;
        match (before, rate_bps) {
            (Some(before), Some(rate_bps)) => self.go_on_at(before, rate_bps, cx.now()),
            (_, None) => self.send_everything(cx),
            // Without a rate nothing waited and nothing was in transmission.
            (None, Some(_)) => {}
        }
    }

    /// The packet in transmission keeps what was sent of it at the old rate.
    fn go_on_at(&mut self, before_bps: u64, rate_bps: u64, now: Instant) {
        let Some(mut sending) = self.sending.take() else { return };
        let elapsed = now.saturating_since(sending.since).as_nanos();
        let sent = elapsed * u128::from(before_bps) / u128::from(NANOS_PER_SECOND);
        sending.bits_left = sending.bits_left.saturating_sub(u64::try_from(sent).unwrap_or(u64::MAX));
        sending.since = now;
        sending.ends = now + self.transmission_time(sending.bits_left, rate_bps);
        self.sending = Some(sending);
    }

    fn send_everything(&mut self, cx: &mut Context<'_>) {
        if let Some(sending) = self.sending.take() {
            cx.pass(sending.packet);
        }
        while let Some(packet) = self.queue.dequeue(cx) {
            cx.pass(packet);
        }
    }
}

impl Element for Bottleneck {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        let Some(rate_bps) = self.rate_bps else {
            cx.pass(packet);
            return;
        };
        let transmitter = self.transmitter(rate_bps, cx.now());
        self.queue.enqueue(packet, transmitter, cx);
        self.start_next(rate_bps, cx);
        let bytes = self.queue.bytes();
        let stats = cx.stats();
        stats.queue_bytes_max = stats.queue_bytes_max.max(bytes);
    }

    fn next_timeout(&self) -> Option<Instant> {
        // A transmitter that stands still has no end in sight.
        self.sending.as_ref().map(|sending| sending.ends).filter(|ends| *ends < Instant::FAR_FUTURE)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        // Several packets are due at one instant if they are empty or the rate is beyond the clock's
        // resolution.
        while let Some(sending) = self.sending.take_if(|sending| sending.ends <= cx.now()) {
            cx.pass(sending.packet);
            if let Some(rate_bps) = self.rate_bps {
                self.start_next(rate_bps, cx);
            }
        }
    }

    fn apply(&mut self, change: &Change, cx: &mut Context<'_>) {
        match change {
            Change::Rate(rate_bps) => self.set_rate(*rate_bps, cx),
            Change::Queue(limit) => self.queue.set_limit(*limit),
            _ => {}
        }
    }
}
