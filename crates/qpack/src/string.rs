//! String literals (RFC 9204 §4.1.2).

use crate::huffman;
use crate::integer::{self, ReadError};

/// A string as it stands in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Literal<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

/// Bits of a literal that are no string.
pub(crate) const INVALID_HUFFMAN: &str = "a string is not of the Huffman code";

impl<'a> Literal<'a> {
    /// Takes a literal whose length stands in the lower `prefix_bits` of the first byte, and the mark of the Huffman code in
    /// the bit above them. A string that must be longer than `len_max` bytes is refused before all of it has come.
    pub(crate) fn read(input: &mut &'a [u8], prefix_bits: u32, len_max: usize) -> Result<Self, ReadError> {
        let is_huffman = input.first().ok_or(ReadError::Incomplete)? >> prefix_bits & 1 == 1;
        let len = integer::read(input, prefix_bits)?;
        // A symbol has at most 30 bits.
        let encoded_max = if is_huffman { len_max.saturating_mul(4) } else { len_max };
        if len > encoded_max as u64 {
            return Err(ReadError::Invalid("a string is longer than may be"));
        }
        let (bytes, rest) = input.split_at_checked(len as usize).ok_or(ReadError::Incomplete)?;
        *input = rest;
        Ok(Self { bytes, is_huffman })
    }

    /// An upper bound of the room that [`append_to`](Self::append_to) takes, in bytes.
    pub(crate) fn room(&self) -> usize {
        if self.is_huffman { huffman::room(self.bytes.len()) } else { self.bytes.len() }
    }

    /// Appends the bytes that the literal stands for.
    pub(crate) fn append_to(&self, out: &mut impl Buffer) -> Result<(), &'static str> {
        if !self.is_huffman {
            out.append(self.bytes);
            return Ok(());
        }
        let start = out.len();
        out.set_len(start + huffman::room(self.bytes.len()));
        let len = huffman::decode(self.bytes, &mut out.bytes()[start..]).map_err(|_| INVALID_HUFFMAN)?;
        out.set_len(start + len);
        Ok(())
    }

    /// The bytes that the literal stands for.
    pub(crate) fn to_vec(self) -> Result<Vec<u8>, &'static str> {
        let mut bytes = Vec::with_capacity(self.room());
        self.append_to(&mut bytes)?;
        Ok(bytes)
    }
}

/// What strings are decoded into.
pub(crate) trait Buffer {
    fn len(&self) -> usize;
    fn bytes(&mut self) -> &mut [u8];
    fn append(&mut self, bytes: &[u8]);
    /// Cuts it, or fills it with zeros.
    fn set_len(&mut self, len: usize);
}

impl Buffer for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    fn bytes(&mut self) -> &mut [u8] {
        self
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn set_len(&mut self, len: usize) {
        self.resize(len, 0);
    }
}

impl Buffer for bytes::BytesMut {
    fn len(&self) -> usize {
        self.len()
    }

    fn bytes(&mut self) -> &mut [u8] {
        self
    }

    fn append(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn set_len(&mut self, len: usize) {
        self.resize(len, 0);
    }
}

/// Writes a string in the shorter of its two forms, behind the upper bits of the first byte, which are those of `flags`.
pub(crate) fn write(out: &mut Vec<u8>, flags: u8, prefix_bits: u32, bytes: &[u8]) {
    let huffman_len = huffman::encoded_len(bytes);
    if huffman_len < bytes.len() {
        integer::write(out, flags | 1 << prefix_bits, prefix_bits, huffman_len as u64);
        huffman::encode(bytes, out);
    } else {
        integer::write(out, flags, prefix_bits, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
}

/// How many bytes [`write`] writes.
pub(crate) fn encoded_len(prefix_bits: u32, bytes: &[u8]) -> usize {
    let len = huffman::encoded_len(bytes).min(bytes.len());
    integer::encoded_len(prefix_bits, len as u64) + len
}

#[cfg(test)]
mod tests;
