//! The ECN field of an IP packet.

/// The marks that the ECN field of an IP packet can carry (RFC 3168 §5); no mark is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// Capable of ECN, the classic service.
    Ect0,
    /// Capable of ECN, the low-latency service (RFC 9331).
    Ect1,
    /// Congestion was experienced on the way.
    Ce,
}

impl EcnCodepoint {
    /// The codepoint in the two low bits of a traffic class or type-of-service byte.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b01 => Some(Self::Ect1),
            0b10 => Some(Self::Ect0),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }

    /// The two bits of the ECN field.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_round_trip() {
        for bits in 0..=0b11 {
            assert_eq!(EcnCodepoint::from_bits(bits | 0xb8).map_or(0, EcnCodepoint::bits), bits);
        }
    }
}
