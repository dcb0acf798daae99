//! One end of a connection with all of its paths.

use std::collections::BTreeMap;

use fulmar_base::Instant;

use crate::timeline::{SentFrameInfo, SpaceKey, Timeline};

/// The most paths beside the first that have a course of their own. Of others is drawn what the connection sent over them.
pub const PATHS_MAX: usize = 32;

/// The courses of one end of a connection, and of its paths beside the first (RFC 10069).
///
/// The course of the connection has what it sent over all paths, and the figures of path 0: all there is, if that is the only one.
/// That of another path has what was sent over it, at the same heights, and its figures; up to where all is acknowledged is a
/// matter of the connection alone.
#[derive(Debug, Default)]
pub struct Timelines {
    connection: Timeline,
    others: BTreeMap<u32, Timeline>,
}

impl Timelines {
    /// The course that has the figures of a path. `None` for a path that is one too many.
    pub fn path(&mut self, path: u32) -> Option<&mut Timeline> {
        if path == 0 {
            return Some(&mut self.connection);
        }
        if self.others.len() >= PATHS_MAX {
            return self.others.get_mut(&path);
        }
        Some(self.others.entry(path).or_insert_with(|| Timeline::of_path(path)))
    }

    /// A packet left. Packets that do not count `in_flight` hold acknowledgements alone.
    pub fn packet_sent(
        &mut self,
        at: Instant,
        (space, number): (SpaceKey, u64),
        size: u64,
        in_flight: bool,
        frames: &[SentFrameInfo],
    ) {
        let placed = self.connection.place(frames);
        for timeline in self.of_packets(space) {
            timeline.packet_placed(at, (space, number), size, in_flight, &placed);
        }
    }

    /// The peer acknowledged the packets `first` to `last`.
    pub fn packets_acked(&mut self, at: Instant, space: SpaceKey, first: u64, last: u64) {
        self.of_packets(space).for_each(|timeline| timeline.packets_acked(at, space, first, last));
    }

    /// A packet was declared lost.
    pub fn packet_lost(&mut self, at: Instant, space: SpaceKey, number: u64) {
        self.of_packets(space).for_each(|timeline| timeline.packet_lost(at, space, number));
    }

    /// A probe for larger datagrams got lost: that is no loss of data.
    pub fn probe_lost(&mut self, space: SpaceKey, number: u64) {
        self.of_packets(space).for_each(|timeline| timeline.probe_lost(space, number));
    }

    /// The keys of the space are gone, and with them its packets.
    pub fn space_discarded(&mut self, space: SpaceKey) {
        self.of_packets(space).for_each(|timeline| timeline.space_discarded(space));
    }

    /// Bytes that were sent for the first time, over all paths.
    pub fn bytes(&self) -> u64 {
        self.connection.bytes()
    }

    /// The course of the connection, and those of the paths beside the first of which something is known, by their numbers.
    pub fn finish(self) -> (Timeline, Vec<(u32, Timeline)>) {
        let others = self.others.into_iter().filter(|(_, timeline)| !timeline.is_empty());
        (self.connection, others.collect())
    }

    /// The courses in which the packets of a space are.
    fn of_packets(&mut self, (_, path): SpaceKey) -> impl Iterator<Item = &mut Timeline> {
        // It is there from the first packet on.
        self.path(path);
        let other = self.others.get_mut(&path);
        std::iter::once(&mut self.connection).chain(other)
    }
}

#[cfg(test)]
mod tests;
