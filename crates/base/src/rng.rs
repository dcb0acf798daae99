//! Seeded randomness that forks.

use std::fmt;

use rand_chacha::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng};

/// Words that are made at a time: a block of ChaCha.
const BLOCK_WORDS: usize = 16;

type Block = [u32; BLOCK_WORDS];

/// A cryptographically strong generator with a seed that the caller gives.
///
/// On a real wire the seed comes from the operating system; in the lab it comes from the scenario. A
/// component takes a generator of its own with [`Rng::fork`], so that one more draw in one component does
/// not shift what the others see.
///
/// It is ChaCha with 12 rounds. A connection has several generators and draws little, so each keeps its seed and a single block,
/// instead of the state and the four blocks that the library works with; and after [`Rng::rest`] not even that.
#[derive(Clone)]
pub struct Rng {
    seed: [u8; 32],
    /// The block that words are drawn from, once there were any.
    block: Option<Box<Block>>,
    /// Words that were drawn.
    drawn: u64,
}

impl Rng {
    /// A generator with a full 256-bit seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self { seed, block: None, drawn: 0 }
    }

    /// Gives back the memory of what is not drawn yet. It is made again with the next draw, which is what it would have been.
    pub fn rest(&mut self) {
        self.block = None;
    }

    /// What the generator is: its seed, and how many words were drawn. Whoever has it knows all that follows.
    pub fn state(&self) -> ([u8; 32], u64) {
        (self.seed, self.drawn)
    }

    /// The generator with this [`state`](Self::state).
    pub fn with_state((seed, drawn): ([u8; 32], u64)) -> Self {
        Self { seed, block: None, drawn }
    }

    /// A generator for a simulation, from a small seed.
    pub fn from_u64(seed: u64) -> Self {
        Self::new(ChaCha12Rng::seed_from_u64(seed).get_seed())
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
        for part in out.chunks_mut(size_of::<u32>()) {
            part.copy_from_slice(&self.word().to_le_bytes()[..part.len()]);
        }
    }

    /// A random 64-bit number.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.word()) | u64::from(self.word()) << 32
    }

    #[inline]
    fn word(&mut self) -> u32 {
        let (number, place) = (self.drawn / BLOCK_WORDS as u64, (self.drawn % BLOCK_WORDS as u64) as usize);
        self.drawn += 1;
        match &mut self.block {
            Some(block) => {
                if place == 0 {
                    **block = make_block(self.seed, number);
                }
                block[place]
            }
            none => none.insert(Box::new(make_block(self.seed, number)))[place],
        }
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

/// The block with this number.
fn make_block(seed: [u8; 32], number: u64) -> Block {
    let mut library = ChaCha12Rng::from_seed(seed);
    library.set_word_pos(u128::from(number) * BLOCK_WORDS as u128);
    std::array::from_fn(|_| library.next_u32())
}

impl fmt::Debug for Rng {
    /// Whoever sees the state knows all that follows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_are_those_of_the_library() {
        let (mut rng, mut library) = (Rng::from_u64(3), ChaCha12Rng::seed_from_u64(3));
        for step in 0..300 {
            let mut bytes = ([0; 150], [0; 150]);
            let len = step % 150;
            rng.fill(&mut bytes.0[..len]);
            library.fill_bytes(&mut bytes.1[..len]);
            assert_eq!(bytes.0, bytes.1, "{len} bytes");
            if step % 7 == 0 {
                rng.rest();
            }
            assert_eq!(rng.u64(), library.next_u64(), "after {len} bytes");
        }
        assert!(size_of::<Rng>() <= 48);
    }

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
