//! A transmitter with a rate, and the queue in front of it.

use std::time::Duration;

use fulmar_base::Instant;

use crate::aqm::{Discipline, Queued, Transmitter};
use crate::{Aqm, Change, Context, Element, Packet, QueueLimit};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Sends one packet after the other at a rate; a packet is passed on when its last bit is sent.
///
/// Fractions of a nanosecond are carried from packet to packet, so a busy transmitter keeps its rate exactly.
#[derive(Debug)]
pub(crate) struct Bottleneck {
    rate_bps: Option<u64>,
    /// The last rate above 0: what a queue holds does not shrink while the transmitter stands still.
    moving_bps: Option<u64>,
    limit: QueueLimit,
    queue: Box<dyn Discipline>,
    sending: Option<Sending>,
    /// The end of a suspension; cleared when it is over.
    paused_until: Option<Instant>,
    /// What the last transmission left of a nanosecond, in units of `1 / rate_bps` nanoseconds.
    carry: u64,
}

/// The packet in transmission.
#[derive(Debug)]
struct Sending {
    packet: Packet,
    /// Bits that were left to send at `since`, when the rate was last set or a suspension will end.
    bits_left: u64,
    since: Instant,
    ends: Instant,
}

impl Bottleneck {
    pub(crate) fn new(rate_bps: Option<u64>, limit: QueueLimit, aqm: Aqm) -> Self {
        let queue = aqm.queue(limit);
        let moving_bps = rate_bps.filter(|rate_bps| *rate_bps > 0);
        Self { rate_bps, moving_bps, limit, queue, sending: None, paused_until: None, carry: 0 }
    }

    /// What a packet that comes now would find.
    fn transmitter(&self, now: Instant) -> Transmitter {
        let rate_bps = self.rate_bps.unwrap_or(u64::MAX);
        let own_end = match (&self.sending, self.paused_until) {
            (Some(sending), _) => match self.rate_bps {
                Some(0) => self.time_at_moving_rate(sending.bits_left),
                _ => sending.ends.saturating_since(now),
            },
            (None, Some(until)) => until.saturating_since(now),
            (None, None) => return Transmitter { idle: true, wait: Duration::ZERO, rate_bps },
        };
        let wait = own_end + self.time_at_moving_rate(self.queue.bytes().saturating_mul(8));
        Transmitter { idle: false, wait, rate_bps }
    }

    /// How long so many bits take at the rate, or at the last one above 0. Before the first one nobody can say, and there is no
    /// limit of time.
    fn time_at_moving_rate(&self, bits: u64) -> Duration {
        let rate_bps = match self.rate_bps {
            None => u64::MAX,
            Some(_) => self.moving_bps.unwrap_or(u64::MAX),
        };
        Duration::from_nanos(bits.saturating_mul(NANOS_PER_SECOND) / rate_bps)
    }

    /// Begins with the next packet, if the transmitter is free and there is one. Without a rate, everything
    /// goes out.
    fn start_next(&mut self, cx: &mut Context<'_>) {
        if self.sending.is_some() || self.paused_until.is_some() {
            return;
        }
        let Some(rate_bps) = self.rate_bps else {
            self.send_everything(cx);
            return;
        };
        let Some(Queued { since, packet }) = self.queue.dequeue(rate_bps, cx) else {
            self.carry = 0;
            return;
        };
        if packet.filler == 0 {
            let waited = cx.now().saturating_since(since);
            cx.stats().queue_delays.note(waited);
        }
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
        self.moving_bps = rate_bps.filter(|rate_bps| *rate_bps > 0).or(self.moving_bps);
        self.carry = 0;
        match (before, rate_bps) {
            (Some(before), Some(rate_bps)) => self.go_on(before, rate_bps, cx.now()),
            (Some(before), None) => {
                self.go_on(before, u64::MAX, cx.now());
                self.on_timeout(cx);
            }
            // Without a rate nothing was in transmission.
            (None, _) => {}
        }
    }

    /// The packet in transmission keeps what was sent of it at the old rate, and the rest of it begins now or
    /// when the suspension ends.
    fn go_on(&mut self, before_bps: u64, rate_bps: u64, now: Instant) {
        let Some(mut sending) = self.sending.take() else { return };
        let elapsed = now.saturating_since(sending.since).as_nanos();
        let sent = elapsed * u128::from(before_bps) / u128::from(NANOS_PER_SECOND);
        sending.bits_left = sending.bits_left.saturating_sub(u64::try_from(sent).unwrap_or(u64::MAX));
        sending.since = self.paused_until.map_or(now, |until| until.max(now));
        sending.ends = sending.since + self.transmission_time(sending.bits_left, rate_bps);
        self.sending = Some(sending);
    }

    fn send_everything(&mut self, cx: &mut Context<'_>) {
        if let Some(sending) = self.sending.take() {
            cx.pass(sending.packet);
        }
        while let Some(queued) = self.queue.dequeue(u64::MAX, cx) {
            cx.pass(queued.packet);
        }
    }

    fn suspend(&mut self, until: Instant, now: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
        // A packet whose last bit leaves at this very instant has left.
        let in_transmission = self.sending.as_ref().is_some_and(|sending| sending.ends > now);
        if let Some(rate_bps) = self.rate_bps
            && in_transmission
        {
            self.go_on(rate_bps, rate_bps, now);
        }
    }

    /// What waits goes over to another discipline.
    fn set_aqm(&mut self, aqm: Aqm) {
        let waiting = self.queue.take_all();
        self.queue = aqm.queue(self.limit);
        for queued in waiting {
            self.queue.adopt(queued);
        }
    }
}

impl Element for Bottleneck {
    fn accept(&mut self, packet: Packet, cx: &mut Context<'_>) {
        if self.rate_bps.is_none() && self.paused_until.is_none_or(|until| until <= cx.now()) {
            self.on_timeout(cx);
            cx.pass(packet);
            return;
        }
        self.queue.enqueue(packet, self.transmitter(cx.now()), cx);
        self.start_next(cx);
        cx.queue_is(self.queue.bytes());
    }

    fn next_timeout(&self) -> Option<Instant> {
        let busy_until = match &self.sending {
            Some(sending) => Some(sending.ends),
            None => self.paused_until,
        };
        // A transmitter that stands still has no end in sight.
        busy_until.filter(|ends| *ends < Instant::FAR_FUTURE)
    }

    fn on_timeout(&mut self, cx: &mut Context<'_>) {
        let was = self.queue.bytes();
        if self.paused_until.is_some_and(|until| until <= cx.now()) {
            self.paused_until = None;
            self.start_next(cx);
        }
        // Several packets are due at one instant if they are empty or the rate is beyond the clock's
        // resolution.
        while let Some(sending) = self.sending.take_if(|sending| sending.ends <= cx.now()) {
            cx.pass(sending.packet);
            self.start_next(cx);
        }
        if self.queue.bytes() != was {
            cx.queue_is(self.queue.bytes());
        }
    }

    fn apply(&mut self, change: &Change, cx: &mut Context<'_>) {
        match change {
            Change::Rate(rate_bps) => self.set_rate(*rate_bps, cx),
            Change::Queue(limit) => {
                self.limit = *limit;
                self.queue.set_limit(*limit);
            }
            Change::Aqm(aqm) => self.set_aqm(*aqm),
            Change::Suspend(suspension) if suspension.side.stops_sending() => {
                self.suspend(cx.now() + suspension.duration, cx.now());
            }
            _ => {}
        }
    }
}
