//! A cursor over room for bytes to send.

use crate::VarInt;

/// Writes into a slice from its start.
///
/// The caller asks for the encoded length of what it writes before it writes: going past the end panics.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Writes to the start of `buffer`.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self { buffer, at: 0 }
    }

    /// How many bytes were written.
    pub fn len(&self) -> usize {
        self.at
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// How many bytes still fit.
    pub fn remaining(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// The bytes that were written from `start` on.
    ///
    /// # Panics
    /// Panics if fewer than `start` were written.
    pub fn written_from(&self, start: usize) -> &[u8] {
        &self.buffer[start..self.at]
    }

    /// Goes back: only the first `len` bytes were written.
    pub fn rewind(&mut self, len: usize) {
        self.at = self.at.min(len);
    }

    /// Lets no more than `len` further bytes be written.
    pub fn limit(&mut self, len: usize) {
        let end = self.buffer.len().min(self.at.saturating_add(len));
        let buffer = std::mem::take(&mut self.buffer);
        self.buffer = &mut buffer[..end];
    }

    /// Takes the next `len` bytes, which the caller fills.
    pub fn reserve(&mut self, len: usize) -> &mut [u8] {
        let room = &mut self.buffer[self.at..self.at + len];
        self.at += len;
        room
    }

    /// Writes bytes as they are.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len()).copy_from_slice(bytes);
    }

    /// Writes one byte.
    pub fn put_u8(&mut self, value: u8) {
        self.put_bytes(&[value]);
    }

    /// Writes two bytes, the high one first.
    pub fn put_u16(&mut self, value: u16) {
        self.put_bytes(&value.to_be_bytes());
    }

    /// Replaces two bytes that were written before, the first of them at `at`.
    ///
    /// # Panics
    /// Panics if they were not written.
    pub fn replace_u16(&mut self, at: usize, value: u16) {
        self.buffer[..self.at][at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    /// Takes out `len` bytes that were written before, the first of them at `at`; what was written behind them moves up.
    ///
    /// # Panics
    /// Panics if they were not written.
    pub fn remove(&mut self, at: usize, len: usize) {
        self.buffer.copy_within(at + len..self.at, at);
        self.at -= len;
    }

    /// Writes four bytes, the high one first.
    pub fn put_u32(&mut self, value: u32) {
        self.put_bytes(&value.to_be_bytes());
    }

    /// Writes a variable-length integer in its shortest form (RFC 9000 §16).
    pub fn put_varint(&mut self, value: VarInt) {
        let v = value.get();
        match value.size() {
            1 => self.put_bytes(&[v as u8]),
            2 => self.put_bytes(&(v as u16 | 0x4000).to_be_bytes()),
            4 => self.put_bytes(&(v as u32 | 0x8000_0000).to_be_bytes()),
            _ => self.put_bytes(&(v | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }

    /// Writes a length and the bytes.
    pub fn put_length_prefixed(&mut self, bytes: &[u8]) {
        self.put_varint(VarInt::saturating(bytes.len() as u64));
        self.put_bytes(bytes);
    }
}
