//! Dialect M: blocks of a fixed size, as an implementation of draft-michel-quic-fec-01 in a fork of quic-go (0xFEC) has them.

use fulmar_fec::{Blocks, Code, RepairId, Vandermonde, Xor};
use fulmar_wire::VarInt;

/// An erasure code of dialect M, with its blocks: they belong together there, and cannot be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockCode {
    /// One repair symbol for each two source symbols.
    Xor,
    /// Ten repair symbols for each 20 source symbols.
    ReedSolomon,
}

impl BlockCode {
    /// The longest source symbol that is sent: the fork keeps packets in buffers of 1,452 bytes, and refuses what is longer
    /// than these less its headers.
    pub(super) const SYMBOL_MAX: usize = 1_434;

    /// The largest block.
    pub(super) const SOURCE_MAX: u16 = 20;

    /// The code with this number in the transport parameter decoder_fec_scheme; 0 is none.
    pub(super) fn of(scheme: VarInt) -> Option<Self> {
        match scheme.get() {
            1 => Some(Self::Xor),
            2 => Some(Self::ReedSolomon),
            _ => None,
        }
    }

    /// The number in the transport parameter.
    pub(crate) fn scheme(self) -> VarInt {
        VarInt::from_u32(match self {
            Self::Xor => 1,
            Self::ReedSolomon => 2,
        })
    }

    pub(super) fn code(self) -> &'static dyn Code {
        match self {
            Self::Xor => &Xor,
            Self::ReedSolomon => &Vandermonde,
        }
    }

    /// Source symbols of a block.
    pub(super) fn source(self) -> u16 {
        match self {
            Self::Xor => 2,
            Self::ReedSolomon => Self::SOURCE_MAX,
        }
    }

    /// Repair symbols of a block.
    pub(super) fn repairs(self) -> u16 {
        match self {
            Self::Xor => 1,
            Self::ReedSolomon => 10,
        }
    }

    /// The block that begins with this source symbol.
    pub(super) fn block_of(self, first: u64) -> VarInt {
        VarInt::saturating(first / u64::from(self.source()))
    }

    /// A repair symbol of a block; `None` if there is no such one.
    pub(super) fn repair_id(self, block: VarInt, parity: VarInt) -> Option<RepairId> {
        let index = u16::try_from(parity.get()).ok().filter(|index| *index < self.repairs())?;
        Blocks::new(self.source())?.repair(block.get(), index)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;
