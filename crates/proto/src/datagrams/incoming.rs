//! Datagrams that wait for the application.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::OVERHEAD_BYTES;
use crate::memory::{Reservation, SharedMemory};

/// Datagrams that wait for the application, in the order of their arrival.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) queue: VecDeque<Bytes>,
    limit: usize,
    /// Holds the sum of the lengths, with [`OVERHEAD_BYTES`] for each.
    reservation: Reservation,
}

impl Incoming {
    pub(super) fn new(limit: usize, memory: Arc<SharedMemory>) -> Self {
        Self { queue: VecDeque::new(), limit, reservation: Reservation::new(memory) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.reservation.held()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn has_room(&self, len: usize) -> bool {
        let (bytes, limit) = (self.bytes() + (len + OVERHEAD_BYTES) as u64, self.limit as u64);
        bytes <= limit && bytes <= self.reservation.limit_of_half(limit)
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let data = self.queue.pop_front()?;
        self.reservation.set_held(self.bytes() - (data.len() + OVERHEAD_BYTES) as u64);
        Some(data)
    }

    /// Makes room and adds `data`. Returns how many datagrams were dropped: `data` itself too if it is larger
    /// than the whole queue.
    pub(super) fn push_dropping_oldest(&mut self, data: Bytes) -> u64 {
        let mut dropped = 0;
        while !self.has_room(data.len()) {
            dropped += 1;
            if self.pop().is_none() {
                return dropped;
            }
        }
        self.reservation.set_held(self.bytes() + (data.len() + OVERHEAD_BYTES) as u64);
        self.queue.push_back(data);
        dropped
    }
}
