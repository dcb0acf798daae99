//! A cursor over received bytes.

use crate::VarInt;

/// The bytes ended in the middle of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes end in the middle of a value")]
pub struct Truncated;

/// A cursor over received bytes. A failed read leaves the cursor where it was.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes that are left, which stay unread.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], Truncated> {
        let bytes = self.rest().get(..len).ok_or(Truncated)?;
        self.at += len;
        Ok(bytes)
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let bytes = *self.rest().first_chunk().ok_or(Truncated)?;
        self.at += N;
        Ok(bytes)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// If none is left.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(|[byte]| byte)
    }

    /// Reads two bytes, the high one first.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes, the high one first.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a variable-length integer (RFC 9000 §16).
    ///
    /// # Errors
    /// If it does not end within the bytes.
    pub fn varint(&mut self) -> Result<VarInt, Truncated> {
        let first = *self.rest().first().ok_or(Truncated)?;
        let value = match first >> 6 {
            0 => u64::from(self.u8()?),
            1 => u64::from(u16::from_be_bytes(self.array()?) & 0x3fff),
            2 => u64::from(u32::from_be_bytes(self.array()?) & 0x3fff_ffff),
            _ => u64::from_be_bytes(self.array()?) & VarInt::MAX.get(),
        };
        Ok(VarInt::saturating(value))
    }

    /// Reads a length and that many bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let before = self.at;
        let len = usize::try_from(self.varint()?.get()).map_err(|_| Truncated);
        let bytes = len.and_then(|len| self.bytes(len));
        if bytes.is_err() {
            self.at = before;
        }
        bytes
    }
}
