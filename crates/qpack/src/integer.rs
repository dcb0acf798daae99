//! Prefixed integers (RFC 9204 §4.1.1, RFC 7541 §5.1).

/// The largest value that is read or written: 62 bits, what QUIC can number.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// What keeps a value from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The input ends within the value.
    Incomplete,
    /// No more input would help.
    Invalid(&'static str),
}

pub(crate) const TOO_LARGE: ReadError = ReadError::Invalid("an integer of more than 62 bits");

/// Writes a value in the lower `prefix_bits` (1 to 8) of a byte whose upper bits are those of `flags`, and in as many bytes
/// more as it needs.
pub(crate) fn write(out: &mut Vec<u8>, flags: u8, prefix_bits: u32, value: u64) {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | prefix_max as u8);
    let mut rest = value - prefix_max;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes [`write`] writes.
pub(crate) fn encoded_len(prefix_bits: u32, value: u64) -> usize {
    let prefix_max = (1 << prefix_bits) - 1;
    if value < prefix_max {
        return 1;
    }
    let bits = u64::BITS - (value - prefix_max).leading_zeros();
    1 + bits.div_ceil(7).max(1) as usize
}

/// Takes a value from the beginning of `input`, where it stands in the lower `prefix_bits` of the first byte.
pub(crate) fn read(input: &mut &[u8], prefix_bits: u32) -> Result<u64, ReadError> {
    let (&first, rest) = input.split_first().ok_or(ReadError::Incomplete)?;
    let prefix_max = (1 << prefix_bits) - 1;
    let prefix = u64::from(first) & prefix_max;
    if prefix < prefix_max {
        *input = rest;
        return Ok(prefix);
    }
    let mut value = prefix;
    for (i, &byte) in rest.iter().enumerate() {
        // Nine bytes hold 63 bits. A tenth could only be padding, which would let a value grow without an end.
        if i == 9 {
            return Err(TOO_LARGE);
        }
        value += u64::from(byte & 0x7f) << (7 * i);
        if value > MAX {
            return Err(TOO_LARGE);
        }
        if byte & 0x80 == 0 {
            *input = &rest[i + 1..];
            return Ok(value);
        }
    }
    Err(ReadError::Incomplete)
}

#[cfg(test)]
mod tests;
