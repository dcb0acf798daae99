//! Header protection: the bits and bytes that it covers (RFC 9001 §5.4).

use super::{KEY_PHASE_BIT, LONG_FORM, LONG_RESERVED_BITS, SHORT_RESERVED_BITS, SPIN_BIT};
use crate::Truncated;

/// What removing header protection reveals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnprotectedBits {
    /// The first byte, in the clear.
    pub first_byte: u8,
    /// The packet number's low bytes.
    pub truncated_pn: u32,
    /// How many they are, 1 to 4.
    pub pn_len: usize,
}

impl UnprotectedBits {
    /// Whether the bits that must be zero are (RFC 9000 §17.2, §17.3.1).
    pub fn reserved_bits_are_zero(&self) -> bool {
        let mask = if self.first_byte & LONG_FORM != 0 { LONG_RESERVED_BITS } else { SHORT_RESERVED_BITS };
        self.first_byte & mask == 0
    }

    /// The key phase bit of a short header.
    pub fn key_phase(&self) -> bool {
        self.first_byte & KEY_PHASE_BIT != 0
    }

    /// The spin bit of a short header.
    pub fn spin(&self) -> bool {
        self.first_byte & SPIN_BIT != 0
    }
}

/// The bytes that the header protection mask is computed from (RFC 9001 §5.4.2); `None` if the packet is too
/// short.
pub fn sample(packet: &[u8], pn_offset: usize) -> Option<&[u8; 16]> {
    packet.get(pn_offset + 4..)?.first_chunk()
}

/// The bits of the first byte that are protected.
fn protected_bits(first_byte: u8) -> u8 {
    if first_byte & LONG_FORM != 0 { 0x0f } else { 0x1f }
}

/// Removes header protection in place.
///
/// # Errors
/// If the packet ends before its packet number does.
pub fn unprotect_header(
    packet: &mut [u8],
    pn_offset: usize,
    mask: [u8; 5],
) -> Result<UnprotectedBits, Truncated> {
    let first = packet.first_mut().ok_or(Truncated)?;
    *first ^= mask[0] & protected_bits(*first);
    let first_byte = *first;
    let pn_len = usize::from(first_byte & 3) + 1;
    let number = packet.get_mut(pn_offset..pn_offset + pn_len).ok_or(Truncated)?;
    let mut truncated_pn = 0;
    for (byte, mask) in number.iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
        truncated_pn = truncated_pn << 8 | u32::from(*byte);
    }
    Ok(UnprotectedBits { first_byte, truncated_pn, pn_len })
}

/// Applies header protection in place to a packet that this crate wrote.
pub fn protect_header(packet: &mut [u8], pn_offset: usize, mask: [u8; 5]) {
    let pn_len = usize::from(packet[0] & 3) + 1;
    packet[0] ^= mask[0] & protected_bits(packet[0]);
    for (byte, mask) in packet[pn_offset..pn_offset + pn_len].iter_mut().zip(&mask[1..]) {
        *byte ^= mask;
    }
}
