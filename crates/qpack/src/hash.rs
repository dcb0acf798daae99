//! A quick hash of names and values.
//!
//! It is no protection from chosen collisions. Where it is used, collisions cost a comparison or a worse compression, and
//! the number of slots that are looked at is bounded.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of some bytes, which continues from that of other bytes.
pub(crate) const fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed ^ bytes.len() as u64);
    let mut rest = bytes;
    while let Some((chunk, tail)) = rest.split_first_chunk::<8>() {
        hash = mix(hash ^ u64::from_le_bytes(*chunk));
        rest = tail;
    }
    if rest.is_empty() {
        return hash;
    }
    let mut last = 0;
    while let Some((&byte, tail)) = rest.split_first() {
        last = last << 8 | byte as u64;
        rest = tail;
    }
    mix(hash ^ last)
}

const fn mix(value: u64) -> u64 {
    let product = value.wrapping_mul(MULTIPLIER);
    product ^ product >> 29
}
