//! The Huffman code of RFC 7541 appendix B, and the tables that follow from it.
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and shorter codes
//! come first. The lengths alone say all; the tables are computed from them when the crate is compiled.

/// The symbol that ends a string. It is never written, but its first bits are the padding.
const EOS: usize = 256;

/// The length of the code of each symbol, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The longest code, in bits.
pub(super) const LEN_MAX: u32 = 30;

/// The shortest code, in bits.
pub(super) const LEN_MIN: u32 = 5;

/// How many bits a step of decoding looks at. Two symbols of the shortest codes fit.
pub(super) const STEP_BITS: u32 = 12;

/// The code of a byte: its bits, and how many they are.
#[derive(Clone, Copy)]
pub(super) struct Code {
    pub(super) bits: u32,
    pub(super) len: u32,
}

/// The codes of all bytes.
pub(super) static CODES: [Code; 256] = codes();

/// The lengths of the codes of all bytes, in bits.
pub(super) static CODE_LENGTHS: [u8; 256] = code_lengths();

/// What the next bits of the input mean.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The bytes that they stand for, of which `count` count.
    pub(super) bytes: [u8; 2],
    /// How many codes end within the bits: none if the first is longer than they are.
    pub(super) count: u8,
    /// How many bits those take.
    pub(super) bits: u8,
}

/// A step for each value of the next [`STEP_BITS`] bits.
pub(super) static STEPS: [Step; 1 << STEP_BITS] = steps();

/// The codes of one length, for those that are too long for a step.
#[derive(Clone, Copy)]
pub(super) struct Length {
    /// What follows the last code of this length, aligned to the left in 32 bits. Whatever is less has this length, or a
    /// shorter one.
    pub(super) end: u64,
    /// The first code.
    pub(super) first: u32,
    /// Where the symbol of the first code stands in [`SYMBOLS`].
    pub(super) at: u32,
}

/// One for each length, from 0 to [`LEN_MAX`].
pub(super) static BY_LENGTH: [Length; LEN_MAX as usize + 1] = by_length();

/// The symbols in the order of their codes.
pub(super) static SYMBOLS: [u16; 257] = symbols();

const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let mut filled = 0;
    let mut len = LEN_MIN;
    while len <= LEN_MAX {
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol] as u32 == len {
                symbols[filled] = symbol as u16;
                filled += 1;
            }
            symbol += 1;
        }
        len += 1;
    }
    symbols
}

const fn by_length() -> [Length; LEN_MAX as usize + 1] {
    let mut lengths = [Length { end: 0, first: 0, at: 0 }; LEN_MAX as usize + 1];
    let symbols = symbols();
    let mut code = 0_u32;
    let mut at = 0;
    let mut len = 1;
    while len <= LEN_MAX {
        code <<= 1;
        let first = code;
        let first_at = at;
        while at <= EOS && LENGTHS[symbols[at] as usize] as u32 == len {
            code += 1;
            at += 1;
        }
        lengths[len as usize] = Length { end: (code as u64) << (32 - len), first, at: first_at as u32 };
        len += 1;
    }
    lengths
}

const fn codes() -> [Code; 256] {
    let mut codes = [Code { bits: 0, len: 0 }; 256];
    let symbols = symbols();
    let lengths = by_length();
    let mut at = 0;
    while at <= EOS {
        let symbol = symbols[at] as usize;
        if symbol != EOS {
            let len = LENGTHS[symbol] as u32;
            let of_len = lengths[len as usize];
            codes[symbol] = Code { bits: of_len.first + (at as u32 - of_len.at), len };
        }
        at += 1;
    }
    codes
}

const fn code_lengths() -> [u8; 256] {
    let mut lengths = [0; 256];
    let mut symbol = 0;
    while symbol < 256 {
        lengths[symbol] = LENGTHS[symbol];
        symbol += 1;
    }
    lengths
}

const fn steps() -> [Step; 1 << STEP_BITS] {
    let mut steps = [Step { bytes: [0; 2], count: 0, bits: 0 }; 1 << STEP_BITS];
    let symbols = symbols();
    let lengths = by_length();
    let mut value = 0;
    while value < steps.len() {
        let mut step = Step { bytes: [0; 2], count: 0, bits: 0 };
        while (step.count as usize) < step.bytes.len() {
            let left = STEP_BITS - step.bits as u32;
            // What is left of the bits, aligned to the left in 32.
            let window = ((value as u64) << (32 - STEP_BITS + step.bits as u32)) & 0xffff_ffff;
            let mut len = LEN_MIN;
            while len <= left && window >= lengths[len as usize].end {
                len += 1;
            }
            if len > left {
                break;
            }
            let of_len = lengths[len as usize];
            let symbol = symbols[(of_len.at + ((window >> (32 - len)) as u32 - of_len.first)) as usize];
            step.bytes[step.count as usize] = symbol as u8;
            step.count += 1;
            step.bits += len as u8;
        }
        steps[value] = step;
        value += 1;
    }
    steps
}
