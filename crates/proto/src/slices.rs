//! What is kept of received bytes: a slice of the receive buffer, or a copy where a slice would waste memory.

use bytes::Bytes;

/// Data below this size are copied: a slice costs a reference count and 32 bytes, and pins its packet.
const SHARED_MIN: usize = 256;

/// Unread bytes of a connection, or of its datagrams, up to which slices of receive buffers are kept. A slice
/// keeps the whole buffer that its packet arrived in, which other packets share. An application that reads what
/// comes never gets here, also if all comes at once that a fast peer sends while it has its turn: with half as much,
/// up to half of what each turn of a download over loopback brought was copied. For one that lets data lie, copies keep the
/// memory near what flow control counts. So whoever drives a connection gives its readers their turn before.
pub const UNREAD_SHARED_MAX: u64 = 512 * 1024;

/// Whether data may be kept as a slice of its receive buffer while `unread` bytes wait.
pub(crate) fn may_pin(unread: u64) -> bool {
    unread <= UNREAD_SHARED_MAX
}

/// Takes `data`, a part of `payload`, into ownership: without a copy if it is the better part of what it
/// would pin, as a copy otherwise.
///
/// So the memory behind what this returns is at most twice its length, and a peer that pads its packets or
/// cuts its data small gains nothing. The receive buffer behind `payload` may be larger: see [`may_pin`].
pub(crate) fn adopt(payload: &Bytes, data: &[u8]) -> Bytes {
    if is_worth_sharing(data.len(), payload.len()) {
        payload.slice_ref(data)
    } else {
        Bytes::copy_from_slice(data)
    }
}

/// Whether a slice of `len` bytes is the better part of the `pinned` bytes that it keeps in memory.
pub(crate) fn is_worth_sharing(len: usize, pinned: usize) -> bool {
    len >= SHARED_MIN && len >= pinned / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_part_of_a_packet_is_copied_and_a_large_one_shared() {
        assert!(is_worth_sharing(SHARED_MIN, 2 * SHARED_MIN + 1));
        assert!(!is_worth_sharing(SHARED_MIN, 2 * SHARED_MIN + 2));
        assert!(!is_worth_sharing(SHARED_MIN - 1, SHARED_MIN));
    }

    #[test]
    fn what_one_turn_of_a_fast_receiver_brings_is_kept_as_it_came_and_what_lies_about_is_not() {
        assert!(may_pin(480 << 10));
        assert!(!may_pin(600 << 10));
    }
}
