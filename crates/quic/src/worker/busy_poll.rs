//! How the worker waits for the next datagram: asleep, or looking at its socket.
//!
//! To sleep and to be woken costs some microseconds, on a virtual machine twenty, and as much again at the other end, whose system
//! call has to wake this one. Where datagrams come sooner than that is worth, the worker keeps looking at its socket instead.
//!
//! Whether they do is not known while it sleeps, since most of such a wait may be the sleeping itself, at either end. So the worker
//! tries it, with a credit of time: a look costs the time that it took, and earns what sleeping would have cost. When the credit is
//! used up the worker sleeps again, and each such try in vain doubles the number of waits until the next one. So looking costs next to
//! nothing where it does not help: with both ends on one processor, on networks with longer round trips, or with an application that
//! takes its time.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_proto::ConnectionHandle;

/// A batch of more bytes than this, half of the largest, is bulk: nobody waits for its single datagrams, and whoever sleeps finds larger
/// batches, which cost less for each byte.
const BULK_BYTES: usize = 32_768;
/// So many waits that belong to one connection come before a try, at first and at most.
const WAITS_MIN: u32 = 16;
const WAITS_MAX: u32 = 16_384;
/// Waits as long as so many looks are none that could become short.
const LOOKS_PER_WAIT_MAX: u32 = 10;
/// What a try may cost, and what is saved up at most, in looks of full length.
const TRY_LOOKS: u32 = 16;
const CREDIT_LOOKS_MAX: u32 = 32;
/// What a wait asleep is taken to cost, as a part of the longest look.
const WORTH: u32 = 2;

/// What the worker has seen of its latest waits.
pub(super) struct BusyPoll {
    /// The longest time that the worker keeps looking; zero if it always sleeps.
    look_max: Duration,
    /// Whose datagrams it waits for.
    partner: Option<ConnectionHandle>,
    /// Since when there is nothing to do.
    waits_since: Option<Instant>,
    /// Whether it has looked and found nothing. What is there at the first look would not have been slept for.
    has_looked: bool,
    /// Waits for datagrams of one connection through which the worker slept, since the last try.
    slept: u32,
    /// How long these waits are, smoothed.
    slept_for: Duration,
    /// So many are asked for.
    slept_min: u32,
    /// Whether bulk was sent or received since the last wait.
    is_bulk: bool,
    /// While the worker keeps looking: what looking may cost more than sleeping would.
    credit: Option<Duration>,
}

impl BusyPoll {
    /// Asleep at first.
    pub(super) fn new(look_max: Duration) -> Self {
        Self {
            look_max,
            partner: None,
            waits_since: None,
            has_looked: false,
            slept: 0,
            slept_for: Duration::ZERO,
            slept_min: WAITS_MIN,
            is_bulk: false,
            credit: None,
        }
    }

    /// So many bytes were received.
    pub(super) fn on_received(&mut self, now: Instant, bytes: usize) {
        self.is_bulk |= bytes > BULK_BYTES;
        let Some(since) = self.waits_since.take() else { return };
        let wait = now.saturating_since(since);
        if self.credit.is_none() {
            self.on_slept(wait);
        } else if self.has_looked {
            self.charge(wait.min(self.look_max));
        }
        self.is_bulk = false;
    }

    /// The worker slept through a wait.
    fn on_slept(&mut self, wait: Duration) {
        if wait > self.look_max.saturating_mul(LOOKS_PER_WAIT_MAX) {
            self.slept = 0;
            return;
        }
        self.slept_for = if self.slept == 0 { wait } else { (self.slept_for * 7 + wait) / 8 };
        self.slept += 1;
        if self.slept >= self.slept_min {
            self.credit = Some(self.look_max.saturating_mul(TRY_LOOKS));
        }
    }

    /// What was received is for this connection. With several there is always one that may come, so that waits are short because
    /// there is much to do.
    pub(super) fn on_delivered(&mut self, to: ConnectionHandle) {
        if self.partner.replace(to) != Some(to) {
            self.slept = 0;
            self.credit = None;
        }
    }

    /// A batch of so many bytes is sent.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        self.is_bulk |= bytes > BULK_BYTES;
        self.on_work();
    }

    /// There is something to do before the next datagram: the wait for it begins anew.
    pub(super) fn on_work(&mut self) {
        self.waits_since = None;
    }

    /// There is nothing to do. Returns whether to look again at once instead of sleeping.
    pub(super) fn keeps_looking(&mut self, now: Instant) -> bool {
        self.has_looked = self.waits_since.is_some();
        let since = *self.waits_since.get_or_insert(now);
        if self.credit.is_none() {
            return false;
        }
        let looks = now.saturating_since(since) < self.look_max;
        if !looks {
            self.waits_since = None;
            self.charge(self.look_max);
        }
        looks
    }

    /// Looking took so long.
    fn charge(&mut self, looked: Duration) {
        let Some(credit) = self.credit else { return };
        let max = self.look_max.saturating_mul(CREDIT_LOOKS_MAX);
        let earned = credit.saturating_add(self.worth());
        self.credit = earned.checked_sub(looked).map(|credit| credit.min(max));
        match self.credit {
            Some(credit) if credit == max => self.slept_min = WAITS_MIN,
            Some(_) => {}
            None => {
                self.slept = 0;
                self.slept_min = (2 * self.slept_min).min(WAITS_MAX);
            }
        }
    }

    /// For how long to look is worth it, instead of sleeping.
    fn worth(&self) -> Duration {
        if self.is_bulk {
            return Duration::ZERO;
        }
        // Nothing is won where waits do not become shorter, as with both ends on one processor.
        (self.look_max / WORTH).min(self.slept_for * 7 / 8)
    }
}

#[cfg(test)]
mod tests;
