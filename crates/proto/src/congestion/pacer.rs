//! The pacer: spreads a window over a round trip (RFC 9002 §7.7).

use std::time::Duration;

use fulmar_base::Instant;

use crate::packed::packed;

/// The pacer's rate is that of a window per smoothed round trip, times 5/4: with the exact rate, a delayed
/// timer would leave a part of the window unused (RFC 9002 §7.7).
const GAIN: (u64, u64) = (5, 4);

/// After silence this many packets may leave at once: the initial window, and enough for the kernel to segment.
const BURST_PACKETS: u64 = 10;

/// While packets are in flight this many may leave at once: what one acknowledgement tells of (RFC 9000 §13.2.2). A sender that
/// saves up more while it waits for acknowledgements sends bursts that a short queue drops, of a window that the path holds.
const BUSY_PACKETS: u64 = 2;

/// At high rates the burst after silence is what the rate gives in this time.
const BURST_TIME: Duration = Duration::from_millis(2);

/// The pacer never asks to be woken sooner than after this time, but for a single packet: the timers of many
/// runtimes are no finer, and each wake-up costs some system calls. What the rate gives in this time leaves together, and no more of it
/// is saved up while packets are in flight.
const WAKE_INTERVAL: Duration = Duration::from_millis(1);

/// A timer that rings up to so much too late costs no rate: what the rate gave meanwhile may leave.
const LATENESS: Duration = Duration::from_millis(8);

/// What was saved up at a higher rate may leave as far as the present one gives it in this time.
const SAVED_TIME: Duration = Duration::from_millis(50);

/// What ignores the pacer is paid for afterwards, but leaves no more of a debt than the present rate pays in [`SAVED_TIME`], or so many
/// packets: probes that are sent faster than the rate must not silence the sender for long after them.
const DEBT_PACKETS: u64 = 2;

/// Tokens are counted in bytes times nanoseconds per second, so that adding them needs no division and
/// loses no fraction.
const NANOS: u64 = 1_000_000_000;

/// The most bytes that the bucket can hold, whatever the rate, so that tokens fit in 64 bits.
const MAX_CAPACITY: u64 = 4_000_000_000;

/// A bucket that fills with the rate and from which packets are paid.
///
/// The bucket is small after silence (a burst hurts queues), smaller while acknowledgements are awaited, and larger while the sender
/// waits for it: a sender that is woken late is owed what it was kept from sending. Packets that ignore the pacer, such as
/// probes, may take the bucket below zero.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    /// Bytes per second.
    rate: u64,
    max_datagram_size: u16,
    tokens: i64,
    updated: Instant,
    /// Bytes lent to a packet train and not paid back, and until when.
    lent: u64,
    lent_until: Instant,
    /// Whether the sender waits for tokens.
    waiting: bool,
    /// Whether acknowledgements are awaited, which set the pace.
    busy: bool,
    /// What may leave at once after silence, if the controller says.
    burst: Option<u64>,
}

packed!(Pacer { rate, max_datagram_size, tokens, updated, lent, lent_until, waiting, busy, burst });

impl Pacer {
    /// A full bucket.
    pub(super) fn new(now: Instant, rate: u64, max_datagram_size: u16) -> Self {
        let mut pacer = Self {
            rate,
            max_datagram_size,
            tokens: 0,
            updated: now,
            lent: 0,
            lent_until: now,
            waiting: false,
            busy: false,
            burst: None,
        };
        pacer.tokens = scaled(pacer.capacity(BURST_TIME));
        pacer
    }

    /// The rate, in bytes per second, that sends `window` in a round trip, with some reserve.
    pub(super) fn rate_for(window: u64, smoothed_rtt: Duration) -> u64 {
        let micros = u64::try_from(smoothed_rtt.as_micros()).unwrap_or(u64::MAX).max(1);
        let per_second = u128::from(window) * 1_000_000 * u128::from(GAIN.0) / u128::from(GAIN.1);
        u64::try_from(per_second / u128::from(micros)).unwrap_or(u64::MAX)
    }

    /// Changes the rate, in bytes per second. What came in until `now` came at the old one.
    pub(super) fn set_rate(&mut self, now: Instant, rate: u64) {
        self.refill(now);
        self.rate = rate;
        // What a much higher rate has saved up must not leave as a long train.
        self.tokens = self.tokens.min(self.limit(SAVED_TIME));
    }

    /// Changes how many bytes may leave at once after silence; two full packets at least. Without a value, the
    /// rate and the initial window decide.
    pub(super) fn set_burst(&mut self, now: Instant, burst: Option<u64>) {
        if self.burst == burst {
            return;
        }
        self.refill(now);
        self.burst = burst;
        self.tokens = self.tokens.min(self.limit(self.saving_time()));
    }

    /// Whether packets are in flight whose acknowledgements set the pace. Then nothing is saved up for a burst.
    pub(super) fn set_busy(&mut self, now: Instant, busy: bool) {
        if self.busy != busy {
            self.refill(now);
            self.busy = busy;
        }
    }

    /// The rate in bytes per second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    /// The size of a full packet in bytes.
    pub(super) fn packet(&self) -> u64 {
        u64::from(self.max_datagram_size)
    }

    /// Changes the size of a full packet.
    pub(super) fn set_max_datagram_size(&mut self, size: u16) {
        self.max_datagram_size = size;
    }

    /// The bytes that may leave now.
    pub(super) fn budget(&mut self, now: Instant) -> u64 {
        self.refill(now);
        u64::try_from(self.tokens).unwrap_or(0) / NANOS
    }

    /// Lets a packet train of `bytes` leave at once, ahead of the rate. The bytes are paid back as soon as they have left, or
    /// when less than a packet of them is unused. So a pause follows, which keeps the average rate, and keeps the train apart
    /// from what comes after it. After `time` they are paid back in any case: a sender without room in its window cannot use
    /// the train, and it would leave later, as a burst.
    pub(super) fn lend(&mut self, now: Instant, bytes: u64, time: Duration) {
        self.refill(now);
        let bytes = bytes.min(MAX_CAPACITY / 2);
        self.lent = self.lent.saturating_add(bytes);
        self.lent_until = now + time;
        self.tokens = self.tokens.saturating_add(scaled(bytes));
    }

    /// Bytes have left.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.refill(now);
        self.waiting = false;
        let debt_max = scaled(bytes_in(SAVED_TIME, self.rate).max(DEBT_PACKETS * self.packet()));
        self.tokens = self.tokens.saturating_sub(scaled(bytes)).max(self.tokens.min(-debt_max));
        if self.lent > 0 && self.tokens < scaled(self.packet()) {
            self.pay_back();
        }
    }

    /// When to try again, for a sender that wants to send `bytes` and has not the budget.
    ///
    /// At high rates that is when enough has come together to be worth the waking, see [`WAKE_INTERVAL`].
    pub(super) fn next_time(&mut self, now: Instant, bytes: u64) -> Instant {
        self.refill(now);
        self.waiting = true;
        let worthwhile = bytes_in(WAKE_INTERVAL, self.rate).min(self.capacity(self.saving_time()));
        let missing = scaled(bytes.max(worthwhile)).saturating_sub(self.tokens);
        let missing = u64::try_from(missing).unwrap_or(0);
        now + Duration::from_nanos(missing.div_ceil(self.rate.max(1)))
    }

    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.updated);
        if elapsed.is_zero() && self.lent == 0 {
            // Another packet of the same instant.
            return;
        }
        self.updated = self.updated.max(now);
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let gained = i64::try_from(self.rate.saturating_mul(elapsed)).unwrap_or(i64::MAX);
        let limit = self.limit(self.saving_time()).max(self.tokens);
        self.tokens = self.tokens.saturating_add(gained).min(limit);
        if self.lent > 0 && now >= self.lent_until {
            self.pay_back();
        }
    }

    fn pay_back(&mut self) {
        self.tokens = self.tokens.saturating_sub(scaled(std::mem::take(&mut self.lent)));
    }

    /// The most tokens that may be there, where the rate may be saved up for `time`.
    fn limit(&self, time: Duration) -> i64 {
        scaled(self.capacity(time).saturating_add(self.lent))
    }

    /// How long the rate may be saved up.
    fn saving_time(&self) -> Duration {
        match (self.waiting, self.burst) {
            (true, _) => LATENESS,
            (false, None) if self.busy => WAKE_INTERVAL,
            (false, None) => BURST_TIME,
            (false, Some(_)) => Duration::ZERO,
        }
    }

    /// The bytes that the bucket holds if it saves the rate up for `time`.
    fn capacity(&self, time: Duration) -> u64 {
        let packets = if self.busy { BUSY_PACKETS } else { BURST_PACKETS };
        let burst = self
            .burst
            .map_or(packets * self.packet(), |burst| burst.max(2 * self.packet()))
            .min(MAX_CAPACITY);
        bytes_in(time, self.rate).clamp(burst, MAX_CAPACITY)
    }
}

/// The bytes that `rate` gives in `time`.
fn bytes_in(time: Duration, rate: u64) -> u64 {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    rate.saturating_mul(micros) / 1_000_000
}

/// Tokens for this many bytes.
fn scaled(bytes: u64) -> i64 {
    i64::try_from(bytes.saturating_mul(NANOS)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
