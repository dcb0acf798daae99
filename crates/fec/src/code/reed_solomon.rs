//! Reed-Solomon codes: any K of the K source symbols and R repair symbols of a window give the source symbols.

use super::{Code, ID_LIMIT, RepairId};
use crate::gf256::{inv, mul};

/// The most source and repair symbols of a window together.
const SYMBOLS_MAX: u16 = 255;

/// Systematic Reed-Solomon with a Cauchy matrix.
///
/// The coefficient of symbol `i` in repair symbol `r` of a window that begins with `f` is `1 / (x + y)`, where `y` is `i` and
/// `x` is `f - 1 - r`, both modulo 256. K + R is at most 255, so that all of these differ, and every square part of
/// such a matrix is invertible (RFC 5510 §8.3 has the argument for another matrix). As `y` comes from the id itself and not
/// from the place in the window, repair symbols of windows that overlap are independent, too, as far as their
/// `f - r` differ and they lack only symbols that they share; [`CauchyKeys`] sees to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cauchy;

impl Code for Cauchy {
    fn name(&self) -> &'static str {
        "rs"
    }

    fn repairs_max(&self, count: u16) -> u32 {
        reed_solomon_repairs_max(count)
    }

    fn fill(&self, id: &RepairId, out: &mut [u8]) {
        let x = point(id.first, id.key);
        for (out, y) in out.iter_mut().zip(id.first..) {
            // The ids of the window and those before it differ modulo 256, so that the sum is never 0.
            *out = inv(x ^ y as u8).unwrap_or_default();
        }
    }
}

/// The `x` of a repair symbol.
fn point(first: u64, key: u16) -> u8 {
    first.wrapping_sub(1).wrapping_sub(u64::from(key)) as u8
}

/// Chooses the keys of [`Cauchy`] for windows that move on, so that all repair symbols that share source symbols are
/// independent, as long as there are enough keys.
#[derive(Debug, Clone)]
pub struct CauchyKeys {
    /// For each `x` the end of the last window that it was used for.
    used_until: [u64; 256],
}

impl Default for CauchyKeys {
    fn default() -> Self {
        Self { used_until: [0; 256] }
    }
}

impl CauchyKeys {
    /// The next repair symbol over a window, or `None` if [`Cauchy`] has none for so many symbols. When all keys were used for
    /// windows that reach into this one, the one is taken of which this was the longest ago.
    pub fn next(&mut self, first: u64, count: u16) -> Option<RepairId> {
        let used_until = |key: &u16| self.used_until[usize::from(point(first, *key))].max(first);
        // At most 254 keys.
        let key = (0..reed_solomon_repairs_max(count) as u16).min_by_key(used_until)?;
        let id = RepairId { first, count, key };
        self.used_until[usize::from(point(first, key))] = id.end()?;
        Some(id)
    }

    /// How many symbols a window that ends before `end` may have at most, so that [`CauchyKeys::next`] gives so many repair symbols over
    /// it that are independent of those before. A long window has few keys: one of 250 symbols has five, and after these it would
    /// be given them again, for repair symbols that say nothing new.
    pub fn longest(&self, end: u64, count: u16, repairs: u16) -> Option<u16> {
        let fresh = |count: u16| {
            let first = end - u64::from(count);
            let keys = 0..reed_solomon_repairs_max(count) as u16;
            let unused = keys.filter(|key| self.used_until[usize::from(point(first, *key))] <= first);
            unused.take(repairs.into()).count()
        };
        let fits = |count: u16| reed_solomon_repairs_max(count) >= repairs.into();
        let counts = || (1..=count).rev().filter(|count| u64::from(*count) <= end && fits(*count));
        // Where all keys were used for a part of any window, at least there are enough.
        counts().find(|count| fresh(*count) >= repairs.into()).or_else(|| counts().next())
    }
}

/// Systematic Reed-Solomon with the matrix that many libraries make of a Vandermonde matrix, times the inverse of its top.
///
/// It is for peers that use such a library; coefficients depend on the place in the window alone. Repair symbol `r` is the
/// value at K + r of the polynomial that has the source symbols as its values at 0 to K - 1, so that coefficients are
/// those of Lagrange, and no matrix has to be inverted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vandermonde;

impl Code for Vandermonde {
    fn name(&self) -> &'static str {
        "rs-vandermonde"
    }

    fn repairs_max(&self, count: u16) -> u32 {
        reed_solomon_repairs_max(count)
    }

    fn fill(&self, id: &RepairId, out: &mut [u8]) {
        // The window and the key are at most 255 together.
        let (count, x) = (id.count as u8, (id.count + id.key) as u8);
        for (out, j) in out.iter_mut().zip(0..count) {
            let others = (0..count).filter(|m| *m != j);
            let (above, below) =
                others.fold((1, 1), |(above, below), m| (mul(above, x ^ m), mul(below, j ^ m)));
            *out = mul(above, inv(below).unwrap_or_default());
        }
    }
}

fn reed_solomon_repairs_max(count: u16) -> u32 {
    if count == 0 { 0 } else { u32::from(SYMBOLS_MAX.saturating_sub(count)) }
}

/// A division of all source symbols into blocks of the same size: block `b` has those from `b * size` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    size: u16,
}

impl Blocks {
    /// Blocks of `size` symbols, or `None` unless that is 1 to [`WINDOW_MAX`](super::WINDOW_MAX).
    pub fn new(size: u16) -> Option<Self> {
        (1..=super::WINDOW_MAX).contains(&size).then_some(Self { size })
    }

    /// The number of symbols of a block.
    pub fn size(self) -> u16 {
        self.size
    }

    /// The block of a source symbol.
    pub fn block_of(self, id: u64) -> u64 {
        id / u64::from(self.size)
    }

    /// Whether this source symbol is the last one of its block.
    pub fn completes(self, id: u64) -> bool {
        id % u64::from(self.size) == u64::from(self.size) - 1
    }

    /// Repair symbol `index` of a block, or `None` if the ids of the block are too large.
    pub fn repair(self, block: u64, index: u16) -> Option<RepairId> {
        let first = block.checked_mul(u64::from(self.size)).filter(|first| *first < ID_LIMIT)?;
        let id = RepairId { first, count: self.size, key: index };
        id.end().map(|_| id)
    }
}
