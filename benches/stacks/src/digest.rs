//! A checksum over all bytes of a stream, cheap enough to be taken by both ends of every benchmark.
//!
//! The bytes are words of eight, which are dealt to eight lanes. Each lane has the sum of its words and the sum of these sums
//! (as Fletcher's checksum has), so that a word that is missing, twice, changed or at another place changes the digest. The lanes are
//! independent, so that a compiler makes vector instructions of them.

const LANES: usize = 8;
const BLOCK: usize = 8 * LANES;
/// An odd number with as many ones as zeros, to mix the lanes at the end.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Clone)]
pub(crate) struct Digest {
    sums: [u64; LANES],
    sums_of_sums: [u64; LANES],
    /// The begin of a block that is not complete yet.
    partial: [u8; BLOCK],
    partial_len: usize,
    len: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self { sums: [0; LANES], sums_of_sums: [0; LANES], partial: [0; BLOCK], partial_len: 0, len: 0 }
    }
}

impl Digest {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.partial_len > 0 {
            let taken = bytes.len().min(BLOCK - self.partial_len);
            self.partial[self.partial_len..self.partial_len + taken].copy_from_slice(&bytes[..taken]);
            self.partial_len += taken;
            bytes = &bytes[taken..];
            if self.partial_len < BLOCK {
                return;
            }
            let block = self.partial;
            self.add(&block);
            self.partial_len = 0;
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for block in blocks {
            self.add(block);
        }
        self.partial[..rest.len()].copy_from_slice(rest);
        self.partial_len = rest.len();
    }

    /// How many bytes there were.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn value(&self) -> u64 {
        let mut whole = self.clone();
        whole.partial[whole.partial_len..].fill(0);
        let block = whole.partial;
        whole.add(&block);
        let lanes = whole.sums.iter().chain(&whole.sums_of_sums);
        lanes.fold(self.len, |value, lane| (value ^ lane).wrapping_mul(MIX).rotate_left(29))
    }

    fn add(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in words.iter().enumerate() {
            self.sums[lane] = self.sums[lane].wrapping_add(u64::from_le_bytes(*word));
            self.sums_of_sums[lane] = self.sums_of_sums[lane].wrapping_add(self.sums[lane]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.update(bytes);
        digest.value()
    }

    #[test]
    fn pieces_of_any_length_have_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|n| ((n * n) >> 3) as u8).collect();
        for length in [1, 7, 63, 64, 65, 200] {
            let mut pieces = Digest::default();
            bytes.chunks(length).for_each(|piece| pieces.update(piece));
            assert_eq!(pieces.value(), digest(&bytes), "{length}");
            assert_eq!(pieces.len(), 1_000);
        }
    }

    #[test]
    fn a_change_an_exchange_and_a_missing_piece_are_seen() {
        let bytes: Vec<u8> = (0..4_096_u32).map(|n| ((n * n) >> 5) as u8).collect();
        let whole = digest(&bytes);
        let mut changed = bytes.clone();
        changed[1_234] ^= 1;
        assert_ne!(digest(&changed), whole);
        let exchanged = [&bytes[64..128], &bytes[..64], &bytes[128..]].concat();
        assert_ne!(digest(&exchanged), whole);
        assert_ne!(digest(&bytes[64..]), whole);
        assert_ne!(digest(&bytes[..4_095]), whole);
        assert_ne!(digest(&[0]), digest(&[0, 0]));
    }

    #[test]
    fn the_digest_is_the_one_that_the_program_over_quic_go_computes() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|n| n as u8).collect();
        assert_eq!(digest(&bytes), GO);
    }

    const GO: u64 = 0x9494_86ed_e81c_6590;
}
