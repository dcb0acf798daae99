//! The loops for AArch64.

use std::arch::aarch64::{vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8};

use super::scalar;
use crate::gf256::NIBBLES;

/// The bytes of a NEON register.
const NEON: usize = 16;

/// Adds `src` times `coefficient` to `dst`; both have the same length. A product is the sum of two look-ups in tables of
/// 16 bytes, one for each half of a byte.
#[target_feature(enable = "neon")]
pub(super) fn mul_add_neon(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let table = &NIBBLES[usize::from(coefficient)];
    // SAFETY: the table has 32 bytes, of which each load reads 16.
    let (low, high) = unsafe { (vld1q_u8(table.as_ptr()), vld1q_u8(table[NEON..].as_ptr())) };
    let mask = vdupq_n_u8(0x0f);
    let (dst, dst_tail) = dst.as_chunks_mut::<NEON>();
    let (src, src_tail) = src.as_chunks::<NEON>();
    for (dst, src) in dst.iter_mut().zip(src) {
        // SAFETY: both chunks have the 16 bytes that are read and written; no alignment is asked for.
        unsafe {
            let bytes = vld1q_u8(src.as_ptr());
            let from_low = vqtbl1q_u8(low, vandq_u8(bytes, mask));
            let from_high = vqtbl1q_u8(high, vshrq_n_u8::<4>(bytes));
            let sum = veorq_u8(vld1q_u8(dst.as_ptr()), veorq_u8(from_low, from_high));
            vst1q_u8(dst.as_mut_ptr(), sum);
        }
    }
    scalar::mul_add(dst_tail, src_tail, coefficient);
}
