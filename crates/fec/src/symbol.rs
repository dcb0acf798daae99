//! Symbols as the codes see them: two bytes of length, the bytes of the source symbol, zeros up to the longest.
//!
//! The zeros are never stored: adding a shorter symbol to a longer sum leaves the rest as it is.

/// The bytes of the length before a source symbol.
pub const LENGTH_BYTES: usize = 2;

/// The largest number of bytes of a source symbol.
pub const SYMBOL_MAX: u16 = 1500;

/// Replaces what is in `out` by the length and the bytes of a source symbol, which has at most 65,535 bytes.
pub(crate) fn pack(payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve_exact(LENGTH_BYTES + payload.len());
    out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    out.extend_from_slice(payload);
}

/// How many bytes of a decoded symbol are not padding, or `None` if the length is not possible or the padding is not zero.
pub(crate) fn packed_length(symbol: &[u8]) -> Option<usize> {
    let (length, _) = symbol.split_first_chunk::<LENGTH_BYTES>()?;
    let end = LENGTH_BYTES + usize::from(u16::from_be_bytes(*length));
    let padding = symbol.get(end..)?;
    padding.iter().all(|byte| *byte == 0).then_some(end)
}

/// The source symbol within a packed one.
pub(crate) fn payload(packed: &[u8]) -> &[u8] {
    &packed[LENGTH_BYTES..]
}

/// Moves the length from the beginning of a repair symbol to its end, where the experiments with
/// draft-michel-quic-fec have it. Symbols of one window have the same padded length, so that this is all the difference.
pub fn length_to_end(repair: &mut [u8]) {
    repair.rotate_left(LENGTH_BYTES.min(repair.len()));
}

/// Undoes [`length_to_end`].
pub fn length_to_front(repair: &mut [u8]) {
    repair.rotate_right(LENGTH_BYTES.min(repair.len()));
}
