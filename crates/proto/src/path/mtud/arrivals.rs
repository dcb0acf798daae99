//! The sizes of large packets that arrived, and when these left: what they prove, and what they do not.

use fulmar_base::Instant;

use crate::packed::packed;

/// So many sizes are remembered. When full, the oldest makes room.
const SIZES_MAX: usize = 4;

/// The newest packet of each size that arrived, without those that prove nothing beside the others: one of at least their size left
/// no earlier. So along the list sizes fall and times rise.
#[derive(Debug)]
pub(super) struct Arrivals {
    sizes: [u16; SIZES_MAX],
    sent: [Instant; SIZES_MAX],
    len: u8,
}

packed!(Arrivals { sizes, sent, len });

impl Arrivals {
    pub(super) fn new() -> Self {
        Self { sizes: [0; SIZES_MAX], sent: [Instant::ZERO; SIZES_MAX], len: 0 }
    }

    /// Whether a packet of at least `size` bytes arrived that left at `sent` or later.
    pub(super) fn prove(&self, size: u16, sent: Instant) -> bool {
        self.list().any(|(other, at)| other >= size && at >= sent)
    }

    /// The size of the largest packet that arrived and left at `sent` or later.
    pub(super) fn largest_since(&self, sent: Instant) -> Option<u16> {
        self.list().find(|(_, at)| *at >= sent).map(|(size, _)| size)
    }

    /// A packet of `size` bytes that left at `sent` arrived.
    #[inline]
    pub(super) fn note(&mut self, size: u16, sent: Instant) {
        if self.len == 1 && size >= self.sizes[0] && sent >= self.sent[0] {
            // Bulk data.
            (self.sizes[0], self.sent[0]) = (size, sent);
        } else if !self.prove(size, sent) {
            self.insert(size, sent);
        }
    }

    fn insert(&mut self, size: u16, sent: Instant) {
        let mut kept = 0;
        for index in 0..usize::from(self.len) {
            if self.sizes[index] > size || self.sent[index] > sent {
                (self.sizes[kept], self.sent[kept]) = (self.sizes[index], self.sent[index]);
                kept += 1;
            }
        }
        if kept == SIZES_MAX {
            self.sizes.rotate_left(1);
            self.sent.rotate_left(1);
            kept -= 1;
        }
        let place = self.sizes[..kept].partition_point(|other| *other > size);
        self.sizes.copy_within(place..kept, place + 1);
        self.sent.copy_within(place..kept, place + 1);
        (self.sizes[place], self.sent[place]) = (size, sent);
        self.len = kept as u8 + 1;
    }

    fn list(&self) -> impl Iterator<Item = (u16, Instant)> {
        self.sizes.iter().copied().zip(self.sent.iter().copied()).take(self.len.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn arrivals(packets: &[(u16, u64)]) -> Arrivals {
        let mut arrivals = Arrivals::new();
        packets.iter().for_each(|&(size, sent)| arrivals.note(size, at(sent)));
        arrivals
    }

    #[test]
    fn a_packet_proves_its_size_and_none_above_it() {
        let arrivals = arrivals(&[(1_452, 10), (1_270, 20)]);
        assert!(arrivals.prove(1_452, at(10)) && arrivals.prove(1_452, at(5)));
        assert!(!arrivals.prove(1_452, at(11)) && !arrivals.prove(1_271, at(20)));
        assert!(arrivals.prove(1_270, at(20)) && !arrivals.prove(1_270, at(21)));
        assert_eq!(arrivals.largest_since(at(10)), Some(1_452));
        assert_eq!(arrivals.largest_since(at(11)), Some(1_270));
        assert_eq!(arrivals.largest_since(at(21)), None);
    }

    #[test]
    fn the_order_of_the_arrivals_does_not_matter() {
        let packets = [(1_300, 30), (1_452, 10), (1_400, 20), (1_250, 25), (1_400, 15)];
        for turn in 0..packets.len() {
            let mut turned = packets;
            turned.rotate_left(turn);
            let list: Vec<_> = arrivals(&turned).list().collect();
            assert_eq!(list, [(1_452, at(10)), (1_400, at(20)), (1_300, at(30))], "{turned:?}");
        }
    }

    #[test]
    fn of_many_sizes_the_oldest_is_forgotten() {
        let arrivals = arrivals(&[(1_452, 1), (1_400, 2), (1_350, 3), (1_300, 4), (1_250, 5)]);
        assert!(!arrivals.prove(1_452, at(1)));
        assert!(arrivals.prove(1_400, at(2)) && arrivals.prove(1_250, at(5)));
    }
}
