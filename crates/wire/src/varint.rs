//! Variable-length integers (RFC 9000 §16).

use std::fmt;

/// An integer below 2^62, as QUIC encodes it in 1, 2, 4 or 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VarInt(u64);

/// A value of 2^62 or more, which a variable-length integer cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is 2^62 or more")]
pub struct VarIntTooLarge(pub u64);

impl VarInt {
    /// The largest value, 2^62 - 1.
    pub const MAX: Self = Self((1 << 62) - 1);
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A value that always fits.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// `value`, or the largest value if it is larger.
    pub const fn saturating(value: u64) -> Self {
        if value > Self::MAX.0 { Self::MAX } else { Self(value) }
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How many bytes the value takes: 1, 2, 4 or 8.
    pub const fn size(self) -> usize {
        match self.0 {
            0..=0x3f => 1,
            0x40..=0x3fff => 2,
            0x4000..=0x3fff_ffff => 4,
            _ => 8,
        }
    }
}

impl From<u8> for VarInt {
    fn from(value: u8) -> Self {
        Self(value.into())
    }
}

impl From<u16> for VarInt {
    fn from(value: u16) -> Self {
        Self(value.into())
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

impl TryFrom<u64> for VarInt {
    type Error = VarIntTooLarge;
    fn try_from(value: u64) -> Result<Self, VarIntTooLarge> {
        if value <= Self::MAX.0 { Ok(Self(value)) } else { Err(VarIntTooLarge(value)) }
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
