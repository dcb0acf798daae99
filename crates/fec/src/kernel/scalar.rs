//! The loops without vector instructions: the reference of all others.

use crate::gf256::NIBBLES;

/// Adds `src` times `coefficient` to `dst`, up to the end of the shorter one.
pub(super) fn mul_add(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let (low, high) = NIBBLES[usize::from(coefficient)].split_at(16);
    for (dst, src) in dst.iter_mut().zip(src) {
        *dst ^= low[usize::from(src & 0x0f)] ^ high[usize::from(src >> 4)];
    }
}
