//! Received bytes: a slice of the receive buffer, or a copy where a slice would waste memory.

use bytes::{Bytes, BytesMut};

/// Segments below this size are copied: a slice costs a reference count and 32 bytes, and pins its packet.
const SHARED_MIN: usize = 256;
/// Copies are collected in buffers of at most this size.
const COLLECTED_MAX: usize = 16 * 1024;

/// Unread bytes of a connection, or of its datagrams, up to which slices of receive buffers are kept. A slice
/// keeps the whole buffer that its packet arrived in, which other packets share. An application that reads what
/// comes never gets here; for one that lets data lie, copies keep the memory near what flow control counts.
const PINNED_MAX: u64 = 256 * 1024;

/// Whether data may be kept as a slice of its receive buffer while `unread` bytes wait.
pub(crate) fn may_pin(unread: u64) -> bool {
    unread <= PINNED_MAX
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

fn is_worth_sharing(len: usize, pinned: usize) -> bool {
    len >= SHARED_MIN && len >= pinned / 2
}

/// Contiguous bytes that wait to be read.
#[derive(Debug)]
pub(super) enum Segment {
    /// A slice of a receive buffer, or a single copy.
    Shared(Bytes),
    /// Copies, collected: of small segments, and of all when the application lets data lie. One allocation then holds
    /// many packets; with one for each, a fast transfer would spend a quarter of its time on allocating.
    Collected(BytesMut),
}

impl Segment {
    /// Takes `data`, a part of `payload` if that may be kept, into ownership as the next bytes after `last`, the
    /// segment before it. Returns `None` if it was added to that.
    pub(super) fn follow(last: Option<&mut Self>, payload: Option<&Bytes>, data: &[u8]) -> Option<Self> {
        if let Some(payload) = payload.filter(|payload| is_worth_sharing(data.len(), payload.len())) {
            return Some(Self::Shared(payload.slice_ref(data)));
        }
        match last {
            Some(Self::Collected(collected)) if collected.len() + data.len() <= COLLECTED_MAX => {
                collected.extend_from_slice(data);
                None
            }
            // The one before is full, so this one will be soon: it is not to be copied again each time it doubles.
            Some(Self::Collected(_)) => {
                let mut collected = BytesMut::with_capacity(COLLECTED_MAX.max(data.len()));
                collected.extend_from_slice(data);
                Some(Self::Collected(collected))
            }
            _ => Some(Self::Collected(BytesMut::from(data))),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Shared(bytes) => bytes.len(),
            Self::Collected(bytes) => bytes.len(),
        }
    }

    /// Keeps the first `len` bytes, or all if there are no more.
    pub(super) fn truncate(&mut self, len: usize) {
        match self {
            Self::Shared(bytes) => bytes.truncate(len),
            Self::Collected(bytes) => bytes.truncate(len),
        }
    }

    /// All of the bytes.
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Collected(bytes) => bytes.freeze(),
        }
    }

    /// Splits the first `len` bytes off, which is at most all of them.
    pub(super) fn split_to(&mut self, len: usize) -> Bytes {
        match self {
            Self::Shared(bytes) => bytes.split_to(len),
            Self::Collected(bytes) => bytes.split_to(len).freeze(),
        }
    }
}
