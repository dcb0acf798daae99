//! Data that can be verified wherever it turns up.

use fulmar_proto::{Side, StreamId};

/// What is sent in one direction of one stream: bytes that follow from the connection, the stream, the direction
/// and the offset alone. So the receiver can check any piece of it, and data of another stream or another
/// connection does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content(u64);

impl Content {
    /// What `sender` sends on a stream of the connection with this key.
    pub fn of_stream(key: u64, id: StreamId, sender: Side) -> Self {
        Self(mix(mix(key ^ u64::from(sender.is_client())) ^ id.as_u64()))
    }

    /// The unreliable datagram with this index that `sender` sends on the connection with this key.
    pub fn of_datagram(key: u64, index: u64, sender: Side) -> Self {
        // No stream has an ID with the top bit set.
        Self(mix(mix(key ^ u64::from(sender.is_client())) ^ index ^ 1 << 63))
    }

    /// Writes the bytes at `offset` into `out`.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let (head, body) = out.split_at_mut(out.len().min(to_next_word(offset)));
        head.copy_from_slice(self.part(offset, head.len()).bytes());
        let first = offset.div_ceil(WORD);
        let mut words = body.chunks_exact_mut(WORD as usize);
        let mut index = first;
        for word in &mut words {
            word.copy_from_slice(&self.word(index));
            index += 1;
        }
        let tail = words.into_remainder();
        tail.copy_from_slice(self.part(index * WORD, tail.len()).bytes());
    }

    /// The offset of the first byte of `data`, which is said to be at `offset`, that is not what was sent.
    pub fn first_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let (head, body) = data.split_at(data.len().min(to_next_word(offset)));
        let first = offset.div_ceil(WORD);
        let words = body.chunks_exact(WORD as usize);
        let tail = words.remainder();
        let tail_at = (first + words.len() as u64) * WORD;
        let same = head == self.part(offset, head.len()).bytes()
            && words.zip(first..).all(|(word, index)| word == self.word(index))
            && tail == self.part(tail_at, tail.len()).bytes();
        if same { None } else { self.find_difference(offset, data) }
    }

    /// Looks byte by byte.
    fn find_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let expected = (offset..).map(|at| self.word(at / WORD)[(at % WORD) as usize]);
        let differs = data.iter().zip(expected).position(|(byte, expected)| *byte != expected);
        differs.map(|position| offset + position as u64)
    }

    /// Bytes of the word that `offset` is in, from there on. They end in it.
    fn part(self, offset: u64, len: usize) -> Part {
        Part { word: self.word(offset / WORD), start: (offset % WORD) as usize, len }
    }

    /// Eight bytes. No two words of a stream are alike, since a multiplication by an odd number is a permutation.
    fn word(self, index: u64) -> [u8; 8] {
        (self.0 ^ index).wrapping_mul(0xd6e8_feb8_6659_fd93).to_le_bytes()
    }
}

/// The bytes that are made at once.
const WORD: u64 = 8;

/// How many bytes come before the next whole word.
fn to_next_word(offset: u64) -> usize {
    (offset.next_multiple_of(WORD) - offset) as usize
}

/// Some bytes of a word.
struct Part {
    word: [u8; 8],
    start: usize,
    len: usize,
}

impl Part {
    fn bytes(&self) -> &[u8] {
        &self.word[self.start..self.start + self.len]
    }
}

/// A permutation of 64 bits in which each bit of the result depends on all of `value`: the last step of
/// SplitMix64, after an addition that keeps 0 from being its own image.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests;
