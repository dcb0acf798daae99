//! Seeded randomness that forks.

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng};

/// A cryptographically strong generator with a seed that the caller gives.
///
/// On a real wire the seed comes from the operating system; in the lab it comes from the scenario. A
/// component takes a generator of its own with [`Rng::fork`], so that one more draw in one component does
/// not shift what the others see.
#[derive(Debug, Clone)]
pub struct Rng(ChaCha12Rng);

impl Rng {
    /// A generator with a full 256-bit seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    /// A generator for a simulation, from a small seed.
    pub fn from_u64(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    /// An independent generator, derived from the next draw of this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.bytes())
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.fill(&mut out);
        out
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }

    /// A random 64-bit number.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `0..bound`, each as likely as the others.
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no members");
        // Lemire's method: multiply, and reject the few draws that would make low results more likely.
        loop {
            let product = u128::from(self.u64()) * u128::from(bound);
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with the given probability; values at or below 0 never, at or above 1 always.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let mut a = Rng::from_u64(7);
        let mut b = Rng::from_u64(7);
        assert_eq!(a.bytes::<40>(), b.bytes::<40>());
        let mut fork = a.fork();
        b.fork().u64();
        assert_ne!(fork.u64(), a.u64());
        b.u64();
        assert_eq!(a.u64(), b.u64());
    }

    #[test]
    fn below_stays_below_and_reaches_every_member() {
        let mut rng = Rng::from_u64(1);
        let mut seen = [false; 7];
        for _ in 0..1_000 {
            seen[rng.below(7) as usize] = true;
        }
        assert!(seen.iter().all(|&s| s));
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
