//! Lost packets that may arrive after all.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use fulmar_base::Instant;

use crate::memory::{Reservation, SharedMemory};
use crate::packet::SentPacket;

/// The lost packets that are remembered, to recognise a late acknowledgement. The oldest are forgotten.
pub(super) const PACKETS_MAX: usize = 2_048;

pub(super) const PACKET_BYTES: u64 = size_of::<(u64, SentPacket)>() as u64;

/// Lost packets, in the order of their numbers.
///
/// Peers decide what is lost, and for how long they say nothing more. So what is remembered counts in the memory that the connections
/// of the endpoint have for sending, and where that is used up no more is remembered than what every connection may hold.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    packets: VecDeque<(u64, SentPacket)>,
    /// What they take; `None` before the first.
    reservation: Option<Reservation>,
}

impl Remembered {
    pub(super) fn push(&mut self, number: u64, packet: SentPacket, memory: &Arc<SharedMemory>) {
        let reservation = self.reservation.get_or_insert_with(|| Reservation::new(memory.clone()));
        let (len, capacity) = (self.packets.len(), self.packets.capacity());
        let is_full = len == capacity && {
            // The queue grows to twice its size.
            let grown = (2 * capacity as u64).max(4) * PACKET_BYTES;
            !reservation.covers(grown) && grown > reservation.limit(0)
        };
        if len == PACKETS_MAX || is_full {
            self.packets.pop_front();
        }
        self.packets.push_back((number, packet));
        self.count();
    }

    /// Takes out the packets with these numbers.
    pub(super) fn take(
        &mut self,
        numbers: &RangeInclusive<u64>,
    ) -> impl ExactSizeIterator<Item = (u64, SentPacket)> + '_ {
        let from = self.packets.partition_point(|(number, _)| number < numbers.start());
        let to = self.packets.partition_point(|(number, _)| number <= numbers.end());
        self.packets.drain(from..to)
    }

    /// Takes out the packets of which `is_wanted` says so.
    pub(super) fn take_where(&mut self, is_wanted: impl Fn(&SentPacket) -> bool) -> Vec<SentPacket> {
        let mut taken = Vec::new();
        self.packets.retain(|(_, packet)| {
            let wanted = is_wanted(packet);
            if wanted {
                taken.push(packet.clone());
            }
            !wanted
        });
        taken
    }

    /// Forgets, from the oldest on, what was sent so long ago that `is_over` says so.
    pub(super) fn forget(&mut self, is_over: impl Fn(Instant) -> bool) {
        while self.packets.front().is_some_and(|(_, packet)| is_over(packet.time_sent)) {
            self.packets.pop_front();
        }
        if self.packets.is_empty() && self.packets.capacity() > 0 {
            self.shrink();
        }
    }

    pub(in crate::space) fn oldest(&self) -> Option<u64> {
        self.packets.front().map(|(number, _)| *number)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// Gives back the memory that nothing needs.
    pub(super) fn shrink(&mut self) {
        self.packets.shrink_to_fit();
        self.count();
    }

    fn count(&mut self) {
        if let Some(reservation) = &mut self.reservation {
            reservation.set_held(self.packets.capacity() as u64 * PACKET_BYTES);
        }
    }
}
