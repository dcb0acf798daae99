//! The receive buffers that are not being filled: most of them wait for their last slice to be dropped.

use std::collections::VecDeque;
use std::mem;

use bytes::BytesMut;

use super::BUFFER_BYTES;

/// Exhausted buffers that slices may keep. When there are so many, what is received is copied, so that it keeps none.
pub(super) const SPARES_MAX: usize = 64;
/// Copying ends when no more than so many are kept: a pool that is full again at once would copy and allocate in turns.
const SPARES_RESUMED: usize = SPARES_MAX / 2;
/// How many exhausted buffers are asked for their return before a new one is allocated.
const RECLAIM_TRIES: usize = 4;

/// Exhausted buffers, and whether there may be more.
///
/// A peer decides how many bytes of a buffer are worth keeping: a reader that takes its time may hold a slice of 256 bytes in each. Without
/// a bound, memory would grow by five hundred times what flow control counts.
#[derive(Debug, Default)]
pub(super) struct Pool {
    spares: VecDeque<BytesMut>,
    /// Whether slices keep as many buffers as they may.
    is_exhausted: bool,
}

impl Pool {
    /// A received slice as it is given to the application: as it is, or as a copy where no more buffers may be kept.
    #[inline]
    pub(super) fn give(&self, slice: BytesMut) -> BytesMut {
        if self.is_exhausted { BytesMut::from(&slice[..]) } else { slice }
    }

    /// Replaces an exhausted buffer: by itself if nobody holds a slice of it any more, by an older one, or by a new one.
    pub(super) fn refill(&mut self, slot: &mut BytesMut) {
        let is_free = reclaim(slot);
        if is_free && !self.is_exhausted {
            return;
        }
        if !is_free && slot.capacity() > 0 {
            self.spares.push_back(mem::take(slot));
        }
        for _ in 0..RECLAIM_TRIES.min(self.spares.len()) {
            let Some(mut spare) = self.spares.pop_front() else { break };
            if !reclaim(&mut spare) {
                self.spares.push_back(spare);
            } else if slot.capacity() == 0 {
                *slot = spare;
                break;
            }
        }
        if slot.capacity() == 0 {
            *slot = BytesMut::zeroed(BUFFER_BYTES);
        }
        let limit = if self.is_exhausted { SPARES_RESUMED } else { SPARES_MAX - 1 };
        self.is_exhausted = self.spares.len() > limit;
    }

    /// Takes the buffer of a slot that is given up, unless nobody holds a slice of it: then it is freed.
    pub(super) fn give_up(&mut self, mut slot: BytesMut) {
        if slot.capacity() > 0 && !reclaim(&mut slot) {
            self.spares.push_back(slot);
        }
    }

    #[cfg(test)]
    pub(super) fn spares(&self) -> usize {
        self.spares.len()
    }
}

/// Makes the whole of a buffer writable again, if no slice of it is alive.
fn reclaim(buffer: &mut BytesMut) -> bool {
    if buffer.capacity() == 0 {
        return false;
    }
    buffer.clear();
    if !buffer.try_reclaim(BUFFER_BYTES) {
        return false;
    }
    #[allow(
        unsafe_code,
        reason = "zeroing 128 KB again for every 128 KB received would cost several percent of a core"
    )]
    // SAFETY: every buffer of non-zero capacity was made by `BytesMut::zeroed(BUFFER_BYTES)`, and `try_reclaim` never
    // reallocates: it returned the same allocation of at least BUFFER_BYTES, all of which was initialised then and has only
    // been overwritten since.
    unsafe {
        buffer.set_len(BUFFER_BYTES);
    }
    true
}
