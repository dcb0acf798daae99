//! The events of one end of a connection, or of one of its paths, and what is drawn of them.

use std::collections::BTreeMap;

use fulmar_base::{Instant, RangeSet};

use crate::series::Points;

mod positions;

use positions::Positions;

/// A packet number space: the kind of packets, and the path.
pub type SpaceKey = (u8, u32);

/// What a sent packet carried, as far as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentFrameInfo {
    /// Bytes of a stream.
    Stream {
        /// The stream.
        id: u64,
        /// Of the first byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// An unreliable datagram of so many bytes.
    Datagram(u64),
}

/// The most phases of a controller that are told; later ones are left out.
const PHASES_MAX: usize = 20_000;

/// The course of one end of a connection, or of one of its paths.
///
/// The vertical axis of its time-sequence chart are the bytes that this end has sent, over all streams, in the order in
/// which they left for the first time: what is sent again appears at the height where it was first.
#[derive(Debug, Default)]
pub struct Timeline {
    pub(crate) sent: Points,
    pub(crate) resent: Points,
    pub(crate) acked: Points,
    pub(crate) lost: Points,
    pub(crate) spurious: Points,
    pub(crate) window: Points,
    pub(crate) in_flight: Points,
    pub(crate) ssthresh: Points,
    pub(crate) probe_timeouts: Points,
    pub(crate) rtt_latest: Points,
    pub(crate) rtt_smoothed: Points,
    pub(crate) rtt_min: Points,
    pub(crate) pacing: Points,
    pub(crate) delivery: Points,
    pub(crate) mtu: Points,
    pub(crate) phases: Vec<(Instant, String)>,
    positions: Positions,
    outstanding: BTreeMap<(SpaceKey, u64), Outstanding>,
    /// Positions that were acknowledged, or need not be.
    settled: RangeSet,
    /// Bytes in flight by the packets, for logs that do not tell them.
    counted_in_flight: u64,
    told_in_flight: bool,
    last_in_flight: u64,
    /// The path whose figures these are. The course of the connection has those of path 0, and the packets of all.
    path: u32,
    /// Bytes that were sent for the first time.
    bytes: u64,
    /// The height up to which something was sent.
    end: u64,
}

/// What a packet carried, where it lies.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    pieces: Vec<Piece>,
    /// The height up to which something was sent with it.
    end: u64,
}

/// A packet without a verdict, or one that was declared lost.
#[derive(Debug)]
struct Outstanding {
    size: u64,
    in_flight: bool,
    lost: bool,
    ranges: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    /// Whether it is sent again if it is lost.
    reliable: bool,
    /// Whether it was sent before.
    again: bool,
}

impl Timeline {
    /// That of a path beside the first.
    pub(crate) fn of_path(path: u32) -> Self {
        Self { path, ..Self::default() }
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
        let placed = self.place(frames);
        self.packet_placed(at, (space, number), size, in_flight, &placed);
    }

    /// Where frames lie that leave now.
    pub(crate) fn place(&mut self, frames: &[SentFrameInfo]) -> Placed {
        let mut pieces = Vec::new();
        for frame in frames {
            match *frame {
                SentFrameInfo::Stream { id, offset, len } => {
                    self.positions.place(id, offset, len, |start, end, again| {
                        pieces.push(Piece { start, end, reliable: true, again });
                    });
                }
                SentFrameInfo::Datagram(len) => {
                    let (start, end) = self.positions.append(len);
                    pieces.push(Piece { start, end, reliable: false, again: false });
                }
            }
        }
        Placed { pieces, end: self.positions.end() }
    }

    /// A packet left with what lies there.
    pub(crate) fn packet_placed(
        &mut self,
        at: Instant,
        (space, number): (SpaceKey, u64),
        size: u64,
        in_flight: bool,
        placed: &Placed,
    ) {
        self.end = placed.end;
        for piece in &placed.pieces {
            let series = if piece.again { &mut self.resent } else { &mut self.sent };
            series.push(at, piece.end);
            if !piece.again {
                self.bytes = self.bytes.saturating_add(piece.end - piece.start);
            }
        }
        if in_flight {
            // What is in flight on another path belongs to the figures of that.
            let size = if space.1 == self.path { size } else { 0 };
            let ranges = placed.pieces.clone();
            self.outstanding.insert((space, number), Outstanding { size, in_flight, lost: false, ranges });
            self.counted_in_flight = self.counted_in_flight.saturating_add(size);
            self.note_counted(at);
        }
    }

    /// The peer acknowledged the packets `first` to `last`.
    pub fn packets_acked(&mut self, at: Instant, space: SpaceKey, first: u64, last: u64) {
        if first > last {
            return;
        }
        // Packets that were acknowledged before are not in the table any more.
        let keys: Vec<_> =
            self.outstanding.range((space, first)..=(space, last)).map(|(key, _)| *key).collect();
        for key in &keys {
            let Some(packet) = self.outstanding.remove(key) else { continue };
            if packet.lost {
                self.spurious.push(at, self.height(&packet));
            } else {
                self.counted_in_flight = self.counted_in_flight.saturating_sub(packet.size);
            }
            for piece in &packet.ranges {
                self.settled.insert(piece.start..piece.end);
            }
        }
        if !keys.is_empty() {
            self.note_acked(at);
            self.note_counted(at);
        }
    }

    /// A packet was declared lost.
    pub fn packet_lost(&mut self, at: Instant, space: SpaceKey, number: u64) {
        let Some(packet) = self.outstanding.get_mut(&(space, number)) else { return };
        if std::mem::replace(&mut packet.lost, true) || !packet.in_flight {
            return;
        }
        self.counted_in_flight = self.counted_in_flight.saturating_sub(packet.size);
        for piece in packet.ranges.iter().filter(|piece| !piece.reliable) {
            self.settled.insert(piece.start..piece.end);
        }
        let packet = &self.outstanding[&(space, number)];
        let height = self.height(packet);
        self.lost.push(at, height);
        self.note_acked(at);
        self.note_counted(at);
    }

    /// A probe for larger datagrams got lost: that is no loss of data.
    pub fn probe_lost(&mut self, space: SpaceKey, number: u64) {
        if let Some(packet) = self.outstanding.remove(&(space, number)) {
            self.counted_in_flight = self.counted_in_flight.saturating_sub(packet.size);
        }
    }

    /// The keys of the space are gone, and with them its packets.
    pub fn space_discarded(&mut self, space: SpaceKey) {
        let keys: Vec<_> =
            self.outstanding.range((space, 0)..=(space, u64::MAX)).map(|(key, _)| *key).collect();
        for key in keys {
            if let Some(packet) = self.outstanding.remove(&key).filter(|packet| !packet.lost) {
                self.counted_in_flight = self.counted_in_flight.saturating_sub(packet.size);
            }
        }
    }

    /// The congestion window, in bytes.
    pub fn window(&mut self, at: Instant, bytes: u64) {
        self.window.push_change(at, bytes);
    }

    /// The bytes in flight.
    pub fn in_flight(&mut self, at: Instant, bytes: u64) {
        if !std::mem::replace(&mut self.told_in_flight, true) {
            // What was counted until now gives way to what is told.
            self.in_flight = Points::default();
        }
        self.last_in_flight = bytes;
        self.in_flight.push_change(at, bytes);
    }

    /// The slow start threshold, in bytes.
    pub fn ssthresh(&mut self, at: Instant, bytes: u64) {
        self.ssthresh.push_change(at, bytes);
    }

    /// A sample of the round-trip time, in nanoseconds.
    pub fn rtt(&mut self, at: Instant, latest: u64) {
        self.rtt_latest.push(at, latest);
    }

    /// The smoothed round-trip time, in nanoseconds.
    pub fn rtt_smoothed(&mut self, at: Instant, smoothed: u64) {
        self.rtt_smoothed.push_change(at, smoothed);
    }

    /// The smallest round-trip time, in nanoseconds.
    pub fn rtt_min(&mut self, at: Instant, min: u64) {
        self.rtt_min.push_change(at, min);
    }

    /// The pacing rate, in bytes per second.
    pub fn pacing_rate(&mut self, at: Instant, rate: u64) {
        self.pacing.push_change(at, rate);
    }

    /// The delivery rate, in bytes per second.
    pub fn delivery_rate(&mut self, at: Instant, rate: u64) {
        self.delivery.push_change(at, rate);
    }

    /// The size of a full datagram, in bytes.
    pub fn mtu(&mut self, at: Instant, bytes: u64) {
        self.mtu.push_change(at, bytes);
    }

    /// A probe timeout has passed.
    pub fn probe_timeout(&mut self, at: Instant) {
        let height = if self.told_in_flight { self.last_in_flight } else { self.counted_in_flight };
        self.probe_timeouts.push(at, height);
    }

    /// The congestion controller is in another state.
    pub fn phase(&mut self, at: Instant, name: &str) {
        let same = self.phases.last().is_some_and(|(_, last)| last == name);
        if !same && self.phases.len() < PHASES_MAX {
            self.phases.push((at, name.to_owned()));
        }
    }

    /// Bytes that were sent for the first time.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a round-trip time is known.
    pub fn has_rtt(&self) -> bool {
        !self.rtt_latest.is_empty()
    }

    /// Whether nothing is known that could be drawn.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
            && self.window.is_empty()
            && self.rtt_latest.is_empty()
            && self.in_flight.is_empty()
    }

    /// Where a packet lies in the time-sequence chart.
    fn height(&self, packet: &Outstanding) -> u64 {
        packet.ranges.first().map_or(self.end, |piece| piece.end)
    }

    fn note_acked(&mut self, at: Instant) {
        // What was lost on a path may be acknowledged on another.
        if self.path > 0 {
            return;
        }
        let end = self.settled.first().filter(|first| first.start == 0).map_or(0, |first| first.end);
        self.acked.push_change(at, end);
    }

    fn note_counted(&mut self, at: Instant) {
        if !self.told_in_flight {
            self.in_flight.push_change(at, self.counted_in_flight);
        }
    }
}

#[cfg(test)]
mod tests;
