//! Draws from distributions, without logarithms, exponentials or sines: the last bits of those differ between
//! machines.

use std::time::Duration;

use fulmar_base::Rng;

/// Exponentially distributed with the given mean, by von Neumann's method: only comparisons of uniform draws.
pub(crate) fn exponential(mean: Duration, rng: &mut Rng) -> Duration {
    // The chance that uniform draws fall for exactly n steps is 1/n! - 1/(n+1)!, so that an odd number of draws
    // in falling order that begins at x has a chance of exp(-x). A failed attempt moves on to the next unit.
    let mut whole = 0_u32;
    loop {
        let first = rng.unit();
        let mut last = first;
        let mut falling = 1_u32;
        loop {
            let next = rng.unit();
            if next >= last {
                break;
            }
            last = next;
            falling += 1;
        }
        if falling % 2 == 1 {
            return scale(mean, f64::from(whole) + first);
        }
        whole += 1;
    }
}

/// Poisson distributed (Knuth's method); `exp_minus_mean` is e to the power of minus the mean.
pub(crate) fn poisson(exp_minus_mean: f64, rng: &mut Rng) -> u32 {
    let mut product = rng.unit();
    let mut count = 0;
    while product > exp_minus_mean {
        product *= rng.unit();
        count += 1;
    }
    count
}

/// A bell curve around zero with a standard deviation of 1: the sum of twelve uniform draws, which ends at
/// six deviations.
pub(crate) fn standard_normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// Any time in `0..=max`, each as likely as the others.
pub(crate) fn uniform(max: Duration, rng: &mut Rng) -> Duration {
    Duration::from_nanos(rng.below(nanos(max).saturating_add(1)))
}

/// A multiple of a duration; a negative one is zero.
pub(crate) fn scale(duration: Duration, factor: f64) -> Duration {
    // A conversion to an integer saturates.
    Duration::from_nanos((nanos(duration) as f64 * factor) as u64)
}

/// Nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
