//! The part of the delay that differs from packet to packet.

use std::time::Duration;

use fulmar_base::Rng;

use crate::chance::{exponential, nanos, poisson, scale, standard_normal, uniform};

/// What is added to the delay of each packet, drawn anew for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Nothing.
    #[default]
    None,
    /// Any time in `0..=max`, each as likely as the others.
    Uniform {
        /// The longest time.
        max: Duration,
    },
    /// A bell curve, cut at zero. It is the sum of twelve uniform draws, which ends at six deviations.
    Normal {
        /// The middle.
        mean: Duration,
        /// The standard deviation.
        deviation: Duration,
    },
    /// The time until the next event of a Poisson process: most are short, and one in 150 is five times the
    /// mean or longer.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// A bad Wi-Fi, as measured by the author of picoquic and modelled in its simulator: the sum of
    ///
    /// - attempts at the medium: a Poisson number (mean 1) of milliseconds, less a uniform part of the last
    ///   one;
    /// - stops: with a probability of `(mean - 1 ms) / 84 ms`, a Poisson number (mean 12) of slots of 7.5 ms,
    ///   less a uniform part of the last one if there is more than one. That is 86 ms or so.
    ///
    /// The mean of the sum is within 0.4 ms of `mean` for means of 1 to 85 ms; it is never less than 0.7 ms and
    /// never more than 87 ms.
    Wifi {
        /// The mean; more than [`Jitter::WIFI_MEAN_MAX`] counts as that.
        mean: Duration,
    },
}

/// How often [`Jitter::mean_in_order`] draws a flight.
const MEAN_DRAWS: u32 = 100;
/// Packets of a flight that it draws at most: the last ones.
const MEAN_PACKETS_MAX: u32 = 1_000;

/// e to the power of -1 and of -12, for the Poisson draws of [`Jitter::Wifi`].
const EXP_MINUS_1: f64 = 0.367_879_441_171_442_33;
const EXP_MINUS_12: f64 = 6.144_212_353_328_21e-6;

impl Jitter {
    /// The largest mean that [`Jitter::Wifi`] has: each packet stops then.
    pub const WIFI_MEAN_MAX: Duration = Duration::from_millis(85);

    /// A bell curve with a deviation of a third of its middle.
    pub fn bell(mean: Duration) -> Self {
        Self::Normal { mean, deviation: mean / 3 }
    }

    /// How much later than without jitter the last of `packets` comes that leave one by one in this distance, where
    /// their order is kept, in the mean. It is drawn by lot, always with the same draws, and good to some percent.
    pub fn mean_in_order(self, spacing: Duration, packets: u32) -> Duration {
        let mut rng = Rng::from_u64(0);
        let packets = packets.clamp(1, MEAN_PACKETS_MAX);
        let mut sum = Duration::ZERO;
        for _ in 0..MEAN_DRAWS {
            // An earlier packet can hold up the last one by what it is late beyond its lead.
            let delays = (0..packets).map(|before| self.draw(&mut rng).saturating_sub(spacing * before));
            sum += delays.max().unwrap_or_default();
        }
        sum / MEAN_DRAWS
    }

    pub(crate) fn draw(self, rng: &mut Rng) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform { max } => uniform(max, rng),
            Self::Normal { mean, deviation } => {
                let drawn = nanos(mean) as f64 + standard_normal(rng) * nanos(deviation) as f64;
                Duration::from_nanos(drawn.max(0.0) as u64)
            }
            Self::Exponential { mean } => exponential(mean, rng),
            Self::Wifi { mean } => wifi(mean, rng),
        }
    }
}

fn wifi(mean: Duration, rng: &mut Rng) -> Duration {
    let attempt = Duration::from_millis(1);
    let slot = Duration::from_micros(7_500);
    let attempts = poisson(EXP_MINUS_1, rng);
    let mut drawn = attempt * attempts;
    if attempts > 0 {
        drawn -= scale(attempt, rng.unit());
    }
    let stop_probability = mean.saturating_sub(attempt).as_secs_f64() / 0.084;
    if rng.chance(stop_probability) {
        let slots = poisson(EXP_MINUS_12, rng);
        drawn += slot * slots;
        if slots > 1 {
            drawn -= scale(slot, rng.unit());
        }
    }
    drawn
}

#[cfg(test)]
mod tests;
