//! Variable-length integers (RFC 9000 §16), of which frames, settings, capsules and datagrams are made.

use bytes::{Buf, Bytes};

/// The largest value.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Takes an integer off the front, or nothing if it is not whole.
pub(crate) fn read(input: &mut &[u8]) -> Option<u64> {
    let first = *input.first()?;
    let len = 1 << (first >> 6);
    let (bytes, rest) = input.split_at_checked(len)?;
    let value = bytes[1..].iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    *input = rest;
    Some(value)
}

/// Reads an integer that is all there is.
pub(crate) fn read_alone(mut input: &[u8]) -> Option<u64> {
    read(&mut input).filter(|_| input.is_empty())
}

/// Appends an integer in its shortest form.
///
/// # Panics
///
/// If it is larger than [`MAX`].
pub(crate) fn write(value: u64, out: &mut Vec<u8>) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(0x4000 | value as u16).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(0x8000_0000 | value as u32).to_be_bytes()),
        _ => {
            assert!(value <= MAX, "an integer of more than 62 bits");
            out.extend_from_slice(&(0xc << 60 | value).to_be_bytes());
        }
    }
}

/// How many bytes an integer takes.
pub(crate) const fn len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Reads an integer that comes in pieces.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    bytes: [u8; 8],
    len: u8,
}

impl Reader {
    /// Takes what belongs to the integer off the front, and returns it once it is whole.
    pub(crate) fn read(&mut self, input: &mut Bytes) -> Option<u64> {
        if self.len == 0 {
            let mut rest = &input[..];
            if let Some(value) = read(&mut rest) {
                let taken = input.len() - rest.len();
                input.advance(taken);
                return Some(value);
            }
        }
        while input.has_remaining() {
            self.bytes[usize::from(self.len)] = input.get_u8();
            self.len += 1;
            if let Some(value) = read(&mut &self.bytes[..usize::from(self.len)]) {
                self.len = 0;
                return Some(value);
            }
        }
        None
    }

    /// Whether a part of an integer has come.
    pub(crate) fn is_inside(&self) -> bool {
        self.len > 0
    }
}

#[cfg(test)]
mod tests;
