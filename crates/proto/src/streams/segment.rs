//! Received bytes: a slice of the receive buffer, or a copy where a slice would waste memory.

use bytes::{Bytes, BytesMut};

use crate::slices::is_worth_sharing;

/// Copies are collected in buffers of at most this size.
const COLLECTED_MAX: usize = 16 * 1024;

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
