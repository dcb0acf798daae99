//! Losses that are no sign of congestion: few of them, without a queue, or as many at a smaller window.
//!
//! A radio link loses packets at random. A controller that takes each loss for congestion is left with a part of the
//! capacity, the smaller the longer the path, since its window needs many round trips to grow back. Two things tell the
//! kinds apart. A queue: that is the idea of TCP Veno (C. P. Fu and S. C. Liew, 2003). And what a reaction brings:
//! a policer, or a queue too short to be seen in the delay, drops what exceeds the capacity, so that a smaller window loses
//! next to nothing. So a reaction is a trial: if the path loses as much after it, it loses at random, the reaction is undone,
//! and so much is tolerated until another trial shows less. The trial is our own.
//!
//! A window of few packets has grown back before so many are lost. What the trials of several reactions have shown is put together then.
//!
//! Flows that overflow one queue together are the hard case: what one of them gives up is a small part of what they send, and the
//! losses that it finds afterwards are those of the others. So what is tolerated is tried again, and later trials ask for more; and losses
//! that come where the delay is large are not taken for chance, see [`super::loss_delay`].
//!
//! No RFC has this exception, so controllers say where they use it.

use std::time::Duration;

use fulmar_base::Instant;

mod trial;

use self::trial::{Counts, RETRIAL_LOSSES, TRIAL_MIN, Trial, trial_length};
use super::AckEvent;
use super::base_rtt::BaseRtt;
use super::delay::{DelayWatch, nanos};
use super::loss_delay::LossDelay;
use crate::packed::packed;

/// One, as a rate of loss.
const ONE: u64 = 1 << 32;

/// What is tolerated beyond the rate that trials have shown: BBR.LossThresh of draft-ietf-ccwg-bbr, which a sender may
/// lose while it probes a path that it shares.
const TOLERANCE: u64 = ONE / 50;

/// A trial shows a rate within a deviation or two, and the least of what was lost since is as far below the mean: so many of them
/// are tolerated, too.
const TOLERATED_DEVIATIONS: u64 = 4;

/// The mean over the latest packets may exceed [`TOLERANCE`] by so many times its deviation, see [`RandomLoss::answering_once`]: that of a
/// path which loses just so much does so once in forty times. With more a policer, which has no queue, drops more (docs/constants.md).
const MEAN_DEVIATIONS: u64 = 2;

/// What is lost of one flight may exceed what is tolerated by so many times the deviation of so few packets, as the mean may by its own.
/// Few losses are spread like those of a Poisson process, which reach (4 - 1) / 6 of a packet further than a bell of that width does
/// (the first term of Cornish and Fisher, with two deviations).
const FLIGHT_DEVIATIONS: u64 = 2;
const FLIGHT_SKEW_DIVISOR: u64 = 2;

/// More is congestion in any case, as BBR version 1 took it for the work of a policer (lt_loss_thresh of Linux, a fifth).
const RATE_MAX: u64 = ONE / 5;

/// The rate is a mean over the latest packets that forgets with this weight: a burst of ten packets is [`TOLERANCE`] of it.
const WEIGHT: u64 = 512;

/// A mean over fewer packets sees heavy losses within a round trip. It may exceed what is tolerated by so many times the deviation
/// that a tolerable rate has in it: chance does that less than once in a million.
const FAST_WEIGHT: u64 = 64;
const FAST_DEVIATIONS: u64 = 5;

/// The mean length of bursts forgets with this weight: a few bursts of an ordinary length.
const BURST_WEIGHT: u64 = 16;

/// After this many packets nothing is left of the means before them.
const MEMORY: u64 = 16 * WEIGHT;

/// What is tolerated is tried again after so many times the packets of a later trial, and after twice as many each time, so many times
/// in a row, as long as the losses stay.
const RETRIAL_AFTER: u64 = 8;
const RETRIAL_DOUBLINGS_MAX: u8 = 3;

/// Tells random losses from congestion.
#[derive(Debug, Clone, Default)]
pub(in crate::congestion) struct RandomLoss {
    rate: u64,
    fast_rate: u64,
    /// The part of the mean that packets have filled: all of it after some times [`WEIGHT`].
    filled: u64,
    /// How many packets were found to be lost together with a lost one, in the mean, less one; in parts of [`ONE`].
    burst: u64,
    /// What the path loses whatever is sent, as far as trials have shown it.
    ambient: u64,
    trial: Option<Trial>,
    /// What became of the packets of trials that ended before they had shown anything, since one has.
    unfinished: Counts,
    /// Packets since the last trial, and how many times the wait for the next has doubled.
    since_trial: u32,
    retrial_doublings: u8,
    /// Whether a trial has shown random losses.
    is_lossy: bool,
    delay: DelayWatch,
    /// Whether losses come where the delay is large.
    beside: LossDelay,
    /// Whether what was lost before a reaction is no reason for another, and the mean may exceed [`TOLERANCE`] by its deviation.
    answers_once: bool,
    /// The smallest round-trip time so far, in nanoseconds.
    min_rtt: u64,
    /// The one without a queue, once there was a sample.
    base: Option<BaseRtt>,
}

packed!(RandomLoss {
    rate,
    fast_rate,
    filled,
    burst,
    ambient,
    trial,
    unfinished,
    since_trial,
    retrial_doublings,
    is_lossy,
    delay,
    beside,
    answers_once,
    min_rtt,
    base,
});

impl RandomLoss {
    /// For a controller that lowers its bounds once more in each round with losses: what has been answered, and chance that makes the mean
    /// exceed what is tolerated for a while, would cost it a large part of its rate. One that reduces its window then loses more in a
    /// queue that it shares.
    pub(in crate::congestion) fn answering_once() -> Self {
        Self { answers_once: true, ..Self::default() }
    }

    /// Takes an ACK frame.
    pub(in crate::congestion) fn on_ack(&mut self, now: Instant, ack: &AckEvent<'_>) {
        self.min_rtt = nanos(ack.rtt.min());
        let base = self.base.get_or_insert_with(|| BaseRtt::new(now, ack.rtt.min()));
        if let Some(sample) = ack.rtt_sample {
            base.on_sample(sample);
            self.delay.on_sample(now, sample, self.min_rtt());
            self.beside.on_sample(now, ack.largest_sent_time, ack.without_ack_delay(sample), self.min_rtt());
        }
        for _ in 0..ack.acked_packets.min(MEMORY) {
            self.rate -= self.rate / WEIGHT;
            self.filled += (ONE - self.filled) / WEIGHT;
            self.fast_rate -= self.fast_rate / FAST_WEIGHT;
        }
        self.since_trial =
            self.since_trial.saturating_add(u32::try_from(ack.acked_packets).unwrap_or(u32::MAX));
        // At random no more is lost than is lost at all: a trial beside another flow that starts as well may have shown too much.
        // A mean that is less than half filled goes by too few packets.
        if self.ambient > 0 && self.filled > ONE / 2 {
            self.ambient = self.ambient.min(self.mean());
        }
        if let Some(trial) = self.trial.as_mut().filter(|trial| ack.largest_sent_time > trial.since) {
            trial.counts = trial.counts.and(Counts::acked(ack.acked_packets));
        }
    }

    /// The rate of loss of the latest packets. At first the mean is mostly empty.
    fn mean(&self) -> u64 {
        let rate = u128::from(self.rate) * u128::from(ONE) / u128::from(self.filled.max(1));
        u64::try_from(rate).unwrap_or(ONE)
    }

    /// How many packets a mean with this weight is worth: it varies as one of twice the weight does, once it is filled.
    fn packets(&self, weight: u64) -> u32 {
        let filled = u128::from(2 * WEIGHT) * u128::from(self.filled) / u128::from(ONE);
        u32::try_from(filled.clamp(1, u128::from(2 * weight))).unwrap_or(u32::MAX)
    }

    /// Looks at the trial after an ACK frame; `window` is the controller's. Returns whether it has ended and the path has lost as
    /// much as before: the last reaction had no cause.
    pub(in crate::congestion) fn trial_was_in_vain(&mut self, window: u64) -> bool {
        if self.trial.is_some_and(|trial| window >= trial.window_max) {
            self.end_trial();
        }
        let Some(trial) = self.trial else { return false };
        if trial.is_over(self.burst) {
            return self.judge(trial);
        }
        let all = Trial { counts: trial.counts.and(self.unfinished), ..trial };
        let shows_chance = self.unfinished.packets() > 0
            && self.beside.is_by_chance()
            && all.is_over(self.burst)
            && all.was_in_vain(self.burst);
        shows_chance && self.judge(all)
    }

    fn forget_unfinished(&mut self) {
        self.unfinished = Counts::default();
        self.beside.restart();
    }

    fn judge(&mut self, trial: Trial) -> bool {
        self.trial = None;
        self.forget_unfinished();
        let in_vain = trial.was_in_vain(self.burst);
        let random = in_vain && self.is_empty() && !self.beside.shows_full_queue();
        self.is_lossy |= random;
        self.since_trial = 0;
        if !random {
            self.retrial_doublings = 0;
        }
        if !in_vain && self.answers_once {
            // What was lost before the reaction has been answered: it is no reason for another.
            self.rate = self.rate.min(trial.rate().max(TOLERANCE) * self.filled / ONE);
        }
        self.ambient = if random {
            self.ambient.max(trial.rate())
        } else if trial.again && !in_vain {
            // What has been taken for random is so in part at most.
            self.ambient.min(trial.rate()) / 2
        } else {
            // A reaction that has helped shows what is lost without it.
            self.ambient.min(trial.rate())
        };
        random
    }

    /// Whether what is tolerated shall be tried again: the next loss is a reason to react. What is tolerated in any case need not be.
    pub(in crate::congestion) fn is_retrial_due(&self) -> bool {
        if self.ambient == 0 || self.trial.is_some() {
            return false;
        }
        let rate = self.mean();
        let wait = (RETRIAL_AFTER << self.retrial_doublings) * trial_length(RETRIAL_LOSSES, rate);
        rate > TOLERANCE && u64::from(self.since_trial) >= wait
    }

    /// Whether the last reaction is still on trial.
    pub(in crate::congestion) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// How many bytes of a flight of so many may be lost at random.
    pub(in crate::congestion) fn tolerated_of(&self, flight: u64) -> u64 {
        part_of(flight, self.tolerated())
    }

    /// How many bytes more it may be by chance, with packets of `packet` bytes: of few packets chance takes a larger part now and then.
    /// A queue says that it need not be chance, and so does a mean that is more than is tolerated.
    pub(in crate::congestion) fn chance_of(&self, flight: u64, packet: u64) -> u64 {
        let is_usual = self.mean() <= self.tolerated_mean(self.tolerated());
        if self.beside.shows_full_queue() || !self.is_empty() || !is_usual {
            return 0;
        }
        let packets = (flight / packet.max(1)).max(1);
        let deviation = deviation(TOLERANCE + self.ambient, self.burst, packets);
        part_of(flight, FLIGHT_DEVIATIONS * deviation).saturating_add(packet / FLIGHT_SKEW_DIVISOR)
    }

    /// The smallest round-trip time of the path so far.
    pub(in crate::congestion) fn min_rtt(&self) -> Duration {
        Duration::from_nanos(self.min_rtt)
    }

    /// The controller reacts to losses: what is lost from now on, until the window grows to `window_max`, shows whether that
    /// helps. A trial that was under way shows nothing any more.
    pub(in crate::congestion) fn on_reaction(&mut self, now: Instant, window_max: u64) {
        // Heavy losses are recent, and far above the mean of what was sent so far.
        let rate = self.mean();
        let is_heavy = self.fast_rate > rate + self.deviation(TOLERANCE);
        let before = if is_heavy { self.fast_rate } else { rate };
        let packets_before = self.packets(if is_heavy { FAST_WEIGHT } else { WEIGHT });
        let again = self.is_lossy;
        if self.is_retrial_due() {
            self.retrial_doublings = (self.retrial_doublings + 1).min(RETRIAL_DOUBLINGS_MAX);
            self.since_trial = 0;
        }
        let trial =
            Trial { since: now, before, packets_before, counts: Counts::default(), window_max, again };
        self.end_trial();
        // Others may keep a queue as well, which is no part of the path. What is lost in it is lost where the delay is large.
        if let Some(base) = self.base.as_mut().filter(|_| !self.beside.shows_full_queue()) {
            base.on_reaction(now);
        }
        self.trial = self.is_empty().then_some(trial);
    }

    /// What was lost until now beyond what trials have shown was dropped for another reason than chance or congestion.
    pub(in crate::congestion) fn forget_losses(&mut self) {
        let left = |mean: u64, part: u64| mean.min(part_of(self.ambient, part));
        (self.rate, self.fast_rate) = (left(self.rate, self.filled), left(self.fast_rate, ONE));
        self.burst = 0;
        self.trial = None;
        self.forget_unfinished();
    }

    /// What was lost until now says nothing about the reaction yet.
    pub(in crate::congestion) fn restart_trial(&mut self, now: Instant) {
        if let Some(trial) = &mut self.trial {
            *trial = Trial { since: now, counts: Counts::default(), ..*trial };
        }
    }

    /// The window changes for another reason than losses: what is lost from now on shows nothing about the last reaction.
    /// What was lost until now counts for the next one.
    pub(in crate::congestion) fn end_trial(&mut self) {
        let Some(trial) = self.trial.take() else { return };
        self.unfinished = self.unfinished.and(trial.counts);
        if self.unfinished.packets() > MEMORY {
            self.forget_unfinished();
        }
    }

    /// Counts the loss of `packets`, the newest of them sent at `sent`, and returns whether they may be random and need no
    /// reaction. A queue says that they are not, unless the sender has just made it itself, to probe the path (`own_queue`).
    pub(in crate::congestion) fn tolerates(&mut self, packets: u64, sent: Instant, own_queue: bool) -> bool {
        for _ in 0..packets.min(MEMORY) {
            self.rate += (ONE - self.rate) / WEIGHT;
            self.filled += (ONE - self.filled) / WEIGHT;
            self.fast_rate += (ONE - self.fast_rate) / FAST_WEIGHT;
        }
        if let Some(trial) = self.trial.as_mut().filter(|trial| sent > trial.since) {
            trial.counts = trial.counts.and(Counts::lost(packets));
        }
        let retrial = !own_queue && self.is_retrial_due();
        // One reaction to a trial: what it brings is not known yet.
        let usual = self.tolerated();
        let tolerated = self.trial.map_or(usual, |trial| (2 * trial.before).clamp(usual, RATE_MAX));
        // What was lost before a reaction is no reason for another.
        let exceeds = match self.trial.filter(|trial| self.answers_once && sent > trial.since) {
            Some(trial) => trial.counts.packets() >= TRIAL_MIN && trial.rate() > tolerated,
            None => self.rate > self.tolerated_mean(tolerated),
        };
        let is_heavy = exceeds || self.fast_rate > tolerated + self.deviation(tolerated);
        !is_heavy && !retrial && (own_queue || self.is_empty())
    }

    /// Takes the number of packets that were found to be lost together, the newest of them sent at `sent`.
    pub(in crate::congestion) fn on_burst(&mut self, packets: u64, sent: Instant) {
        self.beside.on_loss(sent, self.min_rtt());
        for _ in 0..packets.min(MEMORY) {
            self.burst -= self.burst / BURST_WEIGHT;
            self.burst += (packets.min(FAST_WEIGHT) - 1) * (ONE / BURST_WEIGHT);
        }
    }

    /// How far the mean over few packets may exceed this rate by chance.
    fn deviation(&self, rate: u64) -> u64 {
        FAST_DEVIATIONS * deviation(rate, self.burst, 2 * FAST_WEIGHT)
    }

    /// The rate of loss that is tolerated.
    fn tolerated(&self) -> u64 {
        if self.beside.shows_full_queue() {
            return TOLERANCE;
        }
        let deviation = deviation(self.ambient, self.burst, 2 * WEIGHT);
        (TOLERANCE + self.ambient + TOLERATED_DEVIATIONS * deviation).min(RATE_MAX)
    }

    /// What the mean may be where this rate is tolerated. That of a path which loses just so much is above it half of the time, and chance
    /// would be answered again and again.
    fn tolerated_mean(&self, tolerated: u64) -> u64 {
        if !self.answers_once || self.beside.shows_full_queue() {
            return tolerated;
        }
        tolerated.max(TOLERANCE + MEAN_DEVIATIONS * deviation(TOLERANCE, 0, 2 * WEIGHT))
    }

    /// Whether no more is lost than is tolerated in any case.
    pub(in crate::congestion) fn is_tolerable(&self) -> bool {
        self.mean() <= self.tolerated_mean(TOLERANCE)
    }

    /// Whether the delay shows no queue.
    pub(in crate::congestion) fn is_empty(&self) -> bool {
        !self.delay.shows_queue(self.base.map_or(self.min_rtt(), |base| base.get()))
    }
}

/// So many bytes at this rate.
fn part_of(bytes: u64, rate: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(rate) / u128::from(ONE)).unwrap_or(u64::MAX)
}

/// The standard deviation of the rate of loss in so many packets. Of losses one by one it is the root of the rate by the number of
/// packets, and where `burst` packets more than one are lost together (in parts of [`ONE`]) it grows with the root of their length.
fn deviation(rate: u64, burst: u64, packets: u64) -> u64 {
    let square = u128::from(rate) * u128::from(ONE + burst) / u128::from(packets);
    u64::try_from(square.isqrt()).unwrap_or(ONE)
}

#[cfg(test)]
mod tests;
