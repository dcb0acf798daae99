//! The sum of all symbols.

use super::{Code, RepairId};

/// XOR: one repair symbol for each window, the sum of its source symbols. It replaces any one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Xor;

impl Code for Xor {
    fn name(&self) -> &'static str {
        "xor"
    }

    fn repairs_max(&self, count: u16) -> u32 {
        u32::from(count > 0)
    }

    fn fill(&self, _: &RepairId, out: &mut [u8]) {
        out.fill(1);
    }
}
