//! Bytes that are quick to make and tell when they are out of order.

use bytes::Bytes;

/// How much one chunk holds. A power of two below the pattern's length.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// The length of the pseudo-random pattern all chunks are cut from.
const PATTERN_BYTES: usize = 1 << 20;
/// How far the next chunk's start is from the last one's, modulo the pattern. It is odd, so that each of the
/// `PATTERN_BYTES` possible chunks comes once before the first one is repeated, after 64 GiB; and no chunk follows
/// another seamlessly, so that a lost or doubled one is no mere shift.
const STRIDE: u64 = 314_159;

/// A stream of content: chunk after chunk, each a slice of one shared pattern, so that making it copies nothing.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    /// The pattern, and its beginning once more, so that a chunk may start anywhere.
    pattern: Bytes,
}

impl Content {
    pub(crate) fn new() -> Self {
        let mut state = 0x0123_4567_89ab_cdef_u64;
        let mut pattern = Vec::with_capacity(PATTERN_BYTES + CHUNK_BYTES);
        while pattern.len() < PATTERN_BYTES {
            pattern.extend_from_slice(&splitmix64(&mut state).to_le_bytes());
        }
        pattern.extend_from_within(..CHUNK_BYTES);
        Self { pattern: pattern.into() }
    }

    /// The chunks of a content of `size` bytes, in order. The last one may be short.
    pub(crate) fn chunks(&self, size: u64) -> impl Iterator<Item = Bytes> + '_ {
        (0..size.div_ceil(CHUNK_BYTES as u64)).map(move |index| {
            let left = size - index * CHUNK_BYTES as u64;
            let start = (index.wrapping_mul(STRIDE) % PATTERN_BYTES as u64) as usize;
            let len = left.min(CHUNK_BYTES as u64) as usize;
            self.pattern.slice(start..start + len)
        })
    }
}

/// The generator of Steele, Lea and Flood (2014): small, quick, and every seed is as good as another.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(chunks: impl Iterator<Item = Bytes>) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        chunks.for_each(|chunk| hasher.update(&chunk));
        hasher.finalize()
    }

    #[test]
    fn a_content_has_exactly_its_size() {
        let content = Content::new();
        for size in [0, 1, 65_535, 65_536, 65_537, 3_000_001] {
            assert_eq!(content.chunks(size).map(|chunk| chunk.len() as u64).sum::<u64>(), size);
        }
    }

    #[test]
    fn content_is_the_same_each_time() {
        let size = 5_000_000;
        assert_eq!(checksum(Content::new().chunks(size)), checksum(Content::new().chunks(size)));
    }

    #[test]
    fn any_two_chunks_differ_so_that_misordering_shows() {
        let content = Content::new();
        let mut chunks: Vec<Bytes> = content.chunks(512 * CHUNK_BYTES as u64).collect();
        let right = checksum(chunks.iter().cloned());
        // A whole pattern apart: a pattern repeated without a stride would not show this.
        chunks.swap(3, 3 + PATTERN_BYTES / CHUNK_BYTES);
        assert_ne!(checksum(chunks.iter().cloned()), right);
    }
}
