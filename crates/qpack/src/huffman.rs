//! The Huffman code of string literals (RFC 7541 §5.2 and appendix B).
//!
//! Decoding looks at twelve bits at a time, which mostly hold one or two whole symbols; a table says which. The longer
//! codes, of bytes that hardly occur in fields, are found by comparing numbers. Both need no unsafe code: output goes to
//! bytes that were there before, and is cut to its length.

mod code;

use self::code::{BY_LENGTH, CODE_LENGTHS, CODES, LEN_MAX, LEN_MIN, STEP_BITS, STEPS, SYMBOLS};

/// Bits that are no string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidHuffman;

/// How long `bytes` are when they are encoded, in bytes.
#[must_use]
pub(crate) fn encoded_len(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|&byte| usize::from(CODE_LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `bytes`, padded to whole bytes by ones.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let mut waiting = 0_u64;
    let mut waiting_bits = 0;
    for &byte in bytes {
        let code = CODES[usize::from(byte)];
        waiting = waiting << code.len | u64::from(code.bits);
        waiting_bits += code.len;
        if waiting_bits >= 32 {
            waiting_bits -= 32;
            out.extend_from_slice(&((waiting >> waiting_bits) as u32).to_be_bytes());
        }
    }
    let padding = waiting_bits.wrapping_neg() % 8;
    waiting = waiting << padding | ((1 << padding) - 1);
    let bytes = (waiting_bits + padding) / 8;
    out.extend_from_slice(&waiting.to_be_bytes()[8 - bytes as usize..]);
}

/// The room that [`decode`] wants for `encoded_len` bytes: the longest result, and what a step writes beyond it.
#[must_use]
pub(crate) fn room(encoded_len: usize) -> usize {
    encoded_len * 8 / LEN_MIN as usize + STEPS[0].bytes.len()
}

/// Decodes `input` to the beginning of `out`, which has at least the [`room`] that it takes, and returns the length of
/// the result.
pub(crate) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, InvalidHuffman> {
    debug_assert!(out.len() >= room(input.len()), "the caller makes room");
    let mut bits = Bits { rest: input, window: 0, count: 0 };
    let mut written = 0;
    loop {
        bits.refill();
        if bits.count < LEN_MAX {
            break;
        }
        while bits.count >= STEP_BITS {
            let step = STEPS[bits.peek(STEP_BITS)];
            if step.count == 0 {
                if bits.count < LEN_MAX {
                    break;
                }
                out[written] = long_code(&mut bits)?;
                written += 1;
                continue;
            }
            out[written..written + 2].copy_from_slice(&step.bytes);
            written += usize::from(step.count);
            bits.skip(step.bits);
        }
    }
    finish(bits, out, written)
}

/// Decodes the last bits, of which there are fewer than the longest code has. What is left is padding.
fn finish(mut bits: Bits<'_>, out: &mut [u8], mut written: usize) -> Result<usize, InvalidHuffman> {
    while bits.count > 0 {
        // Behind the input ones are seen: the beginning of EOS, which is no symbol.
        let window = bits.window | (u64::MAX >> bits.count);
        let Some((symbol, len)) = first_symbol(window) else { break };
        if len > bits.count {
            break;
        }
        out[written] = symbol;
        written += 1;
        bits.skip(len as u8);
    }
    // RFC 7541 §5.2: at most seven bits, and all of them ones.
    let is_padding = bits.count < 8 && bits.window | (u64::MAX >> bits.count) == u64::MAX;
    is_padding.then_some(written).ok_or(InvalidHuffman)
}

/// Takes a code that is longer than a step.
#[cold]
fn long_code(bits: &mut Bits<'_>) -> Result<u8, InvalidHuffman> {
    let (symbol, len) = first_symbol(bits.window).ok_or(InvalidHuffman)?;
    bits.skip(len as u8);
    Ok(symbol)
}

/// The byte whose code begins the window, and the length of that; nothing if it is EOS.
fn first_symbol(window: u64) -> Option<(u8, u32)> {
    let start = window >> 32;
    let len = (LEN_MIN..=LEN_MAX).find(|&len| start < BY_LENGTH[len as usize].end)?;
    let of_len = BY_LENGTH[len as usize];
    let symbol = SYMBOLS[(of_len.at + ((start >> (32 - len)) as u32 - of_len.first)) as usize];
    Some((u8::try_from(symbol).ok()?, len))
}

/// The bits of the input, the next one as the highest of a window.
struct Bits<'a> {
    rest: &'a [u8],
    window: u64,
    /// How many bits of the window are of the input. Those below them are zero.
    count: u32,
}

impl Bits<'_> {
    /// Fills the window as far as whole bytes fit.
    fn refill(&mut self) {
        if let Some(chunk) = self.rest.first_chunk::<8>() {
            let bytes = (63 - self.count) / 8;
            let taken = u64::from_be_bytes(*chunk) & !(u64::MAX >> (bytes * 8));
            self.window |= taken >> self.count;
            self.count += bytes * 8;
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.count <= 56 {
            let Some((&byte, rest)) = self.rest.split_first() else { return };
            self.window |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    fn peek(&self, bits: u32) -> usize {
        (self.window >> (64 - bits)) as usize
    }

    fn skip(&mut self, bits: u8) {
        self.window <<= bits;
        self.count -= u32::from(bits);
    }
}

#[cfg(test)]
mod tests;
