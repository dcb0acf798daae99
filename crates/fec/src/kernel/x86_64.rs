//! The loops for x86-64.
//!
//! A product by a constant is linear in the two halves of a byte, so that it is the sum of two look-ups in tables of 16
//! bytes each, which is what PSHUFB does for all bytes of a vector at once. With GFNI it is one instruction: a product by
//! a matrix over GF(2). (The multiplication that GFNI has, too, is one modulo another polynomial.)

use std::arch::x86_64::{
    __m128i, __m256i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_shuffle_epi8, _mm_srli_epi64,
    _mm_storeu_si128, _mm_xor_si128, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
    _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_mask_storeu_epi8, _mm512_maskz_loadu_epi8,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_xor_si512,
};

use super::scalar;
use crate::gf256::{AFFINE, NIBBLES};

/// The bytes of an SSE register.
const SSE: usize = 16;
/// The bytes of an AVX register.
const AVX: usize = 32;
/// The bytes of an AVX-512 register.
const AVX512: usize = 64;

/// Adds `src` times `coefficient` to `dst`; both have the same length.
#[target_feature(enable = "ssse3")]
pub(super) fn mul_add_ssse3(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let table = &NIBBLES[usize::from(coefficient)];
    // SAFETY: the table has 32 bytes, of which each load reads 16.
    let (low, high) = unsafe { (load_sse(&table[..SSE]), load_sse(&table[SSE..])) };
    let mask = _mm_set1_epi8(0x0f);
    let (dst, dst_tail) = dst.as_chunks_mut::<SSE>();
    let (src, src_tail) = src.as_chunks::<SSE>();
    for (dst, src) in dst.iter_mut().zip(src) {
        // SAFETY: both chunks have the 16 bytes that are read and written; no alignment is asked for.
        unsafe {
            let bytes = load_sse(src);
            let from_low = _mm_shuffle_epi8(low, _mm_and_si128(bytes, mask));
            let from_high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(bytes), mask));
            let sum = _mm_xor_si128(load_sse(dst), _mm_xor_si128(from_low, from_high));
            _mm_storeu_si128(dst.as_mut_ptr().cast(), sum);
        }
    }
    scalar::mul_add(dst_tail, src_tail, coefficient);
}

/// Adds `src` times `coefficient` to `dst`; both have the same length.
#[target_feature(enable = "avx2")]
pub(super) fn mul_add_avx2(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let table = &NIBBLES[usize::from(coefficient)];
    // SAFETY: the table has 32 bytes, of which each load reads 16.
    let (low, high) = unsafe { (load_sse(&table[..SSE]), load_sse(&table[SSE..])) };
    let low = _mm256_broadcastsi128_si256(low);
    let high = _mm256_broadcastsi128_si256(high);
    let mask = _mm256_set1_epi8(0x0f);
    let product = |bytes: __m256i| {
        let from_low = _mm256_shuffle_epi8(low, _mm256_and_si256(bytes, mask));
        let from_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), mask));
        _mm256_xor_si256(from_low, from_high)
    };
    let (dst, dst_tail) = dst.as_chunks_mut::<AVX>();
    let (src, src_tail) = src.as_chunks::<AVX>();
    for (dst, src) in dst.iter_mut().zip(src) {
        // SAFETY: both chunks have the 32 bytes that are read and written; no alignment is asked for.
        unsafe {
            let sum = _mm256_xor_si256(load_avx(dst), product(load_avx(src)));
            _mm256_storeu_si256(dst.as_mut_ptr().cast(), sum);
        }
    }
    mul_add_ssse3(dst_tail, src_tail, coefficient);
}

/// Adds `src` times `coefficient` to `dst`; both have the same length.
#[target_feature(enable = "gfni,avx2")]
pub(super) fn mul_add_gfni_avx2(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let matrix = _mm256_set1_epi64x(AFFINE[usize::from(coefficient)].cast_signed());
    let (dst, dst_tail) = dst.as_chunks_mut::<AVX>();
    let (src, src_tail) = src.as_chunks::<AVX>();
    for (dst, src) in dst.iter_mut().zip(src) {
        // SAFETY: both chunks have the 32 bytes that are read and written; no alignment is asked for.
        unsafe {
            let product = _mm256_gf2p8affine_epi64_epi8::<0>(load_avx(src), matrix);
            let sum = _mm256_xor_si256(load_avx(dst), product);
            _mm256_storeu_si256(dst.as_mut_ptr().cast(), sum);
        }
    }
    mul_add_ssse3(dst_tail, src_tail, coefficient);
}

/// Adds `src` times `coefficient` to `dst`; both have the same length.
#[target_feature(enable = "gfni,avx512f,avx512bw")]
pub(super) fn mul_add_gfni_avx512(dst: &mut [u8], src: &[u8], coefficient: u8) {
    let matrix = _mm512_set1_epi64(AFFINE[usize::from(coefficient)].cast_signed());
    let (dst, dst_tail) = dst.as_chunks_mut::<AVX512>();
    let (src, src_tail) = src.as_chunks::<AVX512>();
    for (dst, src) in dst.iter_mut().zip(src) {
        // SAFETY: both chunks have the 64 bytes that are read and written; no alignment is asked for.
        unsafe {
            let bytes = _mm512_loadu_si512(src.as_ptr().cast());
            let product = _mm512_gf2p8affine_epi64_epi8::<0>(bytes, matrix);
            let sum = _mm512_xor_si512(_mm512_loadu_si512(dst.as_ptr().cast()), product);
            _mm512_storeu_si512(dst.as_mut_ptr().cast(), sum);
        }
    }
    // Both tails have the same length, below 64: the callers give slices of one length.
    let length = dst_tail.len().min(src_tail.len());
    let tail = (1u64 << length) - 1;
    // SAFETY: the mask has a bit for each byte of the tails; the others are neither read nor written.
    unsafe {
        let bytes = _mm512_maskz_loadu_epi8(tail, src_tail.as_ptr().cast());
        let product = _mm512_gf2p8affine_epi64_epi8::<0>(bytes, matrix);
        let sum = _mm512_xor_si512(_mm512_maskz_loadu_epi8(tail, dst_tail.as_ptr().cast()), product);
        _mm512_mask_storeu_epi8(dst_tail.as_mut_ptr().cast(), tail, sum);
    }
}

/// # Safety
/// `bytes` has at least 16 bytes.
#[target_feature(enable = "ssse3")]
unsafe fn load_sse(bytes: &[u8]) -> __m128i {
    // SAFETY: as above; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// # Safety
/// `bytes` has at least 32 bytes.
#[target_feature(enable = "avx2")]
unsafe fn load_avx(bytes: &[u8]) -> __m256i {
    // SAFETY: as above; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}
