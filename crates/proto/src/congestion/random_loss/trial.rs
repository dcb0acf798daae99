//! A trial of a reaction to losses: what the path loses after it.

use fulmar_base::Instant;

use super::{FAST_WEIGHT, ONE, RATE_MAX, WEIGHT, deviation};
use crate::packed::packed;

/// A trial is long enough to lose this many packets at the rate before it, so that half of them are told from all, within
/// bounds of one window of the smallest mean and four of the largest. Where it seems then that the reaction has helped, it goes on
/// for as long again, and as many times longer as losses come together: chance spares so many packets more often than it loses them.
const TRIAL_LOSSES: u64 = 8;
pub(super) const TRIAL_MIN: u64 = FAST_WEIGHT;
const TRIAL_MAX: u64 = 4 * WEIGHT;

/// Where many flows overflow one queue, what one of them gives up changes little. So trials that follow the first one lose more packets,
/// and have to keep more of the losses; a short transfer could not wait for that.
pub(super) const RETRIAL_LOSSES: u64 = 32;

/// How many packets lose so many at this rate, within the bounds of a trial.
pub(super) fn trial_length(losses: u64, rate: u64) -> u64 {
    (losses * ONE / rate.max(1)).clamp(TRIAL_MIN, TRIAL_MAX)
}

/// What a path loses after a reaction to losses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    pub(super) since: Instant,
    /// The rate of loss before it.
    pub(super) before: u64,
    /// How many packets that is the mean of.
    pub(super) packets_before: u32,
    pub(super) counts: Counts,
    /// It shows nothing more once the window has grown to this.
    pub(super) window_max: u64,
    /// Whether another one has shown random losses before.
    pub(super) again: bool,
}

packed!(Trial { since, before, packets_before, counts, window_max, again });

impl Trial {
    /// Whether it is known what it has shown, where losses come together by `burst` packets more than one, in parts of [`ONE`].
    pub(super) fn is_over(&self, burst: u64) -> bool {
        let losses = if self.again { RETRIAL_LOSSES } else { TRIAL_LOSSES };
        let length = trial_length(losses, self.before);
        let longest = length.saturating_mul(2 * (ONE + burst)) / ONE;
        let packets = self.counts.packets();
        packets >= longest || packets >= length && self.was_in_vain(burst)
    }

    /// The rate of loss since the reaction.
    pub(super) fn rate(&self) -> u64 {
        u64::from(self.counts.lost) * ONE / self.counts.packets().max(1)
    }

    /// Whether the reaction has brought nothing: half of the losses are still there, or three quarters in a later trial. That they are
    /// fewer than are tolerated in any case is no reason to keep it: chance alone makes more than that of a path which loses a little
    /// less. And a reaction follows where chance has lost more than usual, so that the rate before it is taken for a standard deviation
    /// less than was seen.
    pub(super) fn was_in_vain(&self, burst: u64) -> bool {
        let deviation = deviation(self.before, burst, self.packets_before.into());
        let before = self.before.saturating_sub(deviation);
        let kept = if self.again { before - before / 4 } else { before / 2 };
        self.rate() < RATE_MAX && self.rate() >= kept
    }
}

/// What became of packets that were sent after reactions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) acked: u32,
    pub(super) lost: u32,
}

packed!(Counts { acked, lost });

impl Counts {
    pub(super) fn packets(self) -> u64 {
        u64::from(self.acked) + u64::from(self.lost)
    }

    /// These and others.
    pub(super) fn and(self, other: Self) -> Self {
        let (acked, lost) = (self.acked.saturating_add(other.acked), self.lost.saturating_add(other.lost));
        Self { acked, lost }
    }

    pub(super) fn acked(packets: u64) -> Self {
        Self { acked: u32::try_from(packets).unwrap_or(u32::MAX), lost: 0 }
    }

    pub(super) fn lost(packets: u64) -> Self {
        Self { acked: 0, lost: u32::try_from(packets).unwrap_or(u32::MAX) }
    }
}
