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
        for (byte, expected) in out.iter_mut().zip(self.from(offset)) {
            *byte = expected;
        }
    }

    /// The offset of the first byte of `data`, which is said to be at `offset`, that is not what was sent.
    pub fn first_difference(self, offset: u64, data: &[u8]) -> Option<u64> {
        let differs = data.iter().zip(self.from(offset)).position(|(byte, expected)| *byte != expected);
        differs.map(|position| offset + position as u64)
    }

    /// The bytes from `offset` on, without end.
    fn from(self, offset: u64) -> impl Iterator<Item = u8> {
        let words = (offset / 8..).flat_map(move |index| mix(self.0 ^ index).to_le_bytes());
        words.skip((offset % 8) as usize)
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
