//! Memory that all connections of an endpoint have together, and what each of them has reserved of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What every connection may hold, however much the others do. It is also the step in which memory is reserved, so that
/// connections touch what they share rarely.
pub(crate) const CONNECTION_FLOOR_BYTES: u64 = 16 * 1024;

/// The memory that all connections of an endpoint have together for one purpose, beyond [`CONNECTION_FLOOR_BYTES`] for each of
/// them.
///
/// Peers that acknowledge nothing pin what was written for them, and applications that read nothing what came from peers, so
/// this is what they fight for. A connection may reserve as much as nobody has reserved, and no more: the share of each
/// shrinks with their number.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    bytes: u64,
    reserved: AtomicU64,
}

impl SharedMemory {
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { bytes, reserved: AtomicU64::new(0) })
    }

    /// Bytes that connections have reserved.
    #[inline]
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Whether one part of so many is reserved, or more.
    pub(crate) fn is_reserved_to(&self, parts: u64) -> bool {
        self.reserved() > self.bytes / parts
    }

    /// What a connection with this window may reserve in all. Alone it always has its window.
    fn share(&self, window: u64) -> u64 {
        self.bytes.max(window.saturating_mul(2)).saturating_sub(self.reserved())
    }

    /// Replaces a reservation. Counters of other threads may be a moment behind: the total can be exceeded by one
    /// write for each of them.
    fn exchange(&self, before: u64, after: u64) {
        if after > before {
            self.reserved.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.reserved.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

/// What a connection holds, and what it has reserved for that.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<SharedMemory>,
    held: u64,
    reserved: u64,
}

impl Reservation {
    pub(crate) fn new(memory: Arc<SharedMemory>) -> Self {
        Self { memory, held: 0, reserved: 0 }
    }

    /// What it is of.
    pub(crate) fn memory(&self) -> &Arc<SharedMemory> {
        &self.memory
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Whether so many bytes need no larger reservation.
    #[inline]
    pub(crate) fn covers(&self, bytes: u64) -> bool {
        bytes <= CONNECTION_FLOOR_BYTES + self.reserved
    }

    /// What others leave to a connection with this window, beside what it has reserved: nothing of its reservation counts for it.
    pub(crate) fn left(&self, window: u64) -> u64 {
        CONNECTION_FLOOR_BYTES + self.memory.share(window)
    }

    /// What a connection with this window may hold in all.
    pub(crate) fn limit(&self, window: u64) -> u64 {
        self.left(window) + self.reserved
    }

    /// What a connection with this window may let come: what it may hold of the first half of the memory. The other half is
    /// for what comes all the same, by credit from before. Alone it always has its window.
    #[inline]
    pub(crate) fn limit_of_half(&self, window: u64) -> u64 {
        let half = (self.memory.bytes / 2).max(window);
        CONNECTION_FLOOR_BYTES + half.saturating_sub(self.memory.reserved()) + self.reserved
    }

    /// So many bytes are held now. Reserves what is beyond the floor, and gives back what has not been needed for a step.
    #[inline]
    pub(crate) fn set_held(&mut self, bytes: u64) {
        self.held = bytes;
        let step = CONNECTION_FLOOR_BYTES;
        // What is reserved is enough, and no more than a step too much: asked in one comparison, as this is called often.
        if (CONNECTION_FLOOR_BYTES + self.reserved).wrapping_sub(bytes) <= 2 * step {
            return;
        }
        let needed = bytes.saturating_sub(CONNECTION_FLOOR_BYTES).next_multiple_of(step);
        if needed > self.reserved || needed + step < self.reserved {
            self.memory.exchange(self.reserved, needed);
            self.reserved = needed;
        }
    }
}

impl Drop for Reservation {
    /// What was held is gone with its holder.
    fn drop(&mut self) {
        self.memory.exchange(self.reserved, 0);
    }
}

/// The memories of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct EndpointMemory {
    /// For what is to be sent ([`EndpointConfig::send_memory`](crate::EndpointConfig::send_memory)).
    pub(crate) send: Arc<SharedMemory>,
    /// For what was received ([`EndpointConfig::receive_memory`](crate::EndpointConfig::receive_memory)).
    pub(crate) receive: Arc<SharedMemory>,
    /// For decoders of erasure codes ([`EndpointConfig::fec_memory`](crate::EndpointConfig::fec_memory)).
    pub(crate) fec: Arc<SharedMemory>,
}

impl EndpointMemory {
    pub(crate) fn new(send: u64, receive: u64, fec: u64) -> Self {
        Self {
            send: SharedMemory::new(send),
            receive: SharedMemory::new(receive),
            fec: SharedMemory::new(fec),
        }
    }
}

#[cfg(test)]
mod tests;
