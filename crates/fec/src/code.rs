//! Codes: which coefficients make a repair symbol of source symbols.
//!
//! All codes here are linear and systematic: source symbols travel as they are, and a repair symbol is a sum of the source
//! symbols of a window, each times a coefficient. So a code is only a rule that gives the coefficients, and one encoder
//! ([`crate::SourceWindow`]) and one decoder ([`crate::Decoder`]) serve them all.

mod reed_solomon;
mod rlc;
mod tiny_mt;
mod xor;

use std::fmt;

pub use reed_solomon::{Blocks, Cauchy, CauchyKeys, Vandermonde};
pub use rlc::Rlc;
pub use xor::Xor;

/// The largest number of source symbols that a repair symbol may cover.
pub const WINDOW_MAX: u16 = 256;

/// Ids of symbols are smaller than this, so that they fit a variable-length integer of QUIC (RFC 9000 §16).
pub const ID_LIMIT: u64 = 1 << 62;

/// Names a repair symbol: the source symbols that it covers and the coefficients they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairId {
    /// The id of the first source symbol of the window.
    pub first: u64,
    /// The number of source symbols in the window, with consecutive ids: 1 to [`WINDOW_MAX`].
    pub count: u16,
    /// Tells the repair symbols of a window apart: an index for block codes, the repair key of RFC 8681 for random codes.
    pub key: u16,
}

impl RepairId {
    /// The id after the last one of the window, or `None` if there is no such window.
    pub fn end(&self) -> Option<u64> {
        let end = self.first.checked_add(u64::from(self.count))?;
        (self.count > 0 && end <= ID_LIMIT).then_some(end)
    }
}

/// Why there is no such repair symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The window is empty, longer than [`WINDOW_MAX`] or than the code allows, or its ids are too large.
    #[error("the code has no window of {count} symbols from {first} on")]
    Window {
        /// The first id.
        first: u64,
        /// The number of symbols.
        count: u16,
    },
    /// The code has fewer repair symbols for such a window.
    #[error("the code has no repair symbol {key} for {count} symbols")]
    Key {
        /// The key that was asked for.
        key: u16,
        /// The number of symbols.
        count: u16,
    },
}

/// A linear code: it gives the coefficients of repair symbols, the same ones at both ends.
pub trait Code: fmt::Debug + Send + Sync {
    /// A short name: `xor`, `rs`, `rlc`.
    fn name(&self) -> &'static str;

    /// How many repair symbols there are for a window of `count` source symbols: keys are smaller than this.
    /// 0 if there is no such window.
    fn repairs_max(&self, count: u16) -> u32;

    /// Writes the coefficients of a repair symbol, those of the first symbol of its window first. `id` was checked, and
    /// `out` is as long as the window.
    fn fill(&self, id: &RepairId, out: &mut [u8]);
}

/// The coefficients of a repair symbol, in the beginning of `out`.
pub(crate) fn coefficients<'a>(
    code: &dyn Code,
    id: &RepairId,
    out: &'a mut [u8; WINDOW_MAX as usize],
) -> Result<&'a [u8], CodeError> {
    let RepairId { first, count, key } = *id;
    let repairs_max = code.repairs_max(count);
    if count > WINDOW_MAX || id.end().is_none() || repairs_max == 0 {
        return Err(CodeError::Window { first, count });
    }
    if u32::from(key) >= repairs_max {
        return Err(CodeError::Key { key, count });
    }
    let out = &mut out[..usize::from(count)];
    code.fill(id, out);
    Ok(out)
}

#[cfg(test)]
mod tests;
