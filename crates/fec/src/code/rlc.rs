//! Sliding-window random linear codes (RFC 8681).

use super::tiny_mt::TinyMt32;
use super::{Code, RepairId};

/// The random linear code of RFC 8681 over GF(256), FEC Encoding ID 10.
///
/// Coefficients come from a generator that both ends start with the repair key. Repair symbols of any windows are
/// independent with a probability of about 255/256, so that windows may slide as the sender likes.
///
/// Third parties claim patents on random linear codes, so this one is never a default; see the documentation of the crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rlc {
    density_threshold: u8,
}

impl Rlc {
    /// The code in which every symbol of the window counts: density threshold 15.
    pub const DENSE: Self = Self { density_threshold: 15 };

    /// A code in which a source symbol has a coefficient other than 0 with the probability `(threshold + 1) / 16`
    /// (RFC 8681 §3.6), or `None` if the threshold is above 15.
    pub fn with_density_threshold(threshold: u8) -> Option<Self> {
        (threshold <= 15).then_some(Self { density_threshold: threshold })
    }

    /// The density threshold, 0 to 15.
    pub fn density_threshold(self) -> u8 {
        self.density_threshold
    }
}

impl Code for Rlc {
    fn name(&self) -> &'static str {
        "rlc"
    }

    fn repairs_max(&self, count: u16) -> u32 {
        if count == 0 { 0 } else { 1 << 16 }
    }

    /// RFC 8681 §3.6.
    fn fill(&self, id: &RepairId, out: &mut [u8]) {
        let mut random = TinyMt32::new(u32::from(id.key));
        for out in out {
            // At full density nothing is drawn for the decision.
            let counts =
                self.density_threshold == 15 || random.next_u32() & 0x0f <= self.density_threshold.into();
            *out = if counts { nonzero(&mut random) } else { 0 };
        }
    }
}

fn nonzero(random: &mut TinyMt32) -> u8 {
    loop {
        let byte = random.next_u32() as u8;
        if byte != 0 {
            return byte;
        }
    }
}
