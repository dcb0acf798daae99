//! Greasing of the QUIC bit (RFC 9287): the second bit of a packet gets random values, so that no middlebox comes to rely on
//! it.
//!
//! Exists where the peer takes any value. Before its transport parameters are known, the bit is set. A client does not
//! remember that a server had the extension, which §3.1 leaves open.

use fulmar_base::Rng;

/// The values of the bit.
#[derive(Debug)]
pub(crate) struct QuicBit {
    rng: Rng,
    /// Random bits that are left, below a bit that marks their end.
    bits: u64,
}

impl QuicBit {
    pub(crate) fn new(rng: Rng) -> Self {
        Self { rng, bits: 1 }
    }

    pub(crate) fn rest(&mut self) {
        self.rng.rest();
    }

    /// The bit of the next packet: as likely set as not.
    pub(crate) fn next(&mut self) -> bool {
        if self.bits == 1 {
            self.bits = self.rng.u64() | 1 << 63;
        }
        let set = self.bits & 1 == 1;
        self.bits >>= 1;
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_values_come_and_none_can_be_told_from_those_before() {
        let mut bit = QuicBit::new(Rng::from_u64(1));
        let bits: Vec<bool> = (0..10_000).map(|_| bit.next()).collect();
        let set = bits.iter().filter(|set| **set).count();
        assert!((4_800..5_200).contains(&set), "{set}");
        for lag in 1..130 {
            let same = bits.iter().zip(&bits[lag..]).filter(|(a, b)| a == b).count();
            assert!((4_700..5_300).contains(&same), "{same} after {lag}");
        }
    }
}
