//! ACK and PATH_ACK (RFC 9000 §19.3, RFC 10069).

use std::fmt;
use std::ops::RangeInclusive;

use fulmar_base::RangeSet;

use super::{Malformed, put_type};
use crate::{Dialect, FrameType, PathId, Reader, VarInt, Writer};

/// How many packets arrived with each ECN codepoint (RFC 9000 §19.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with ECN-CE.
    pub ce: u64,
}

impl EcnCounts {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { ect0: reader.varint()?.get(), ect1: reader.varint()?.get(), ce: reader.varint()?.get() })
    }

    /// The counts in their order on the wire. Those that are too large for it become the largest.
    fn varints(self) -> [VarInt; 3] {
        [self.ect0, self.ect1, self.ce].map(VarInt::saturating)
    }
}

/// Acknowledges packets of one path.
///
/// The ranges stay encoded as they were received. They were checked when the frame was decoded.
#[derive(Clone, Copy)]
pub struct Ack<'a> {
    /// The path in whose packet number space the packets are.
    pub path: PathId,
    /// The largest packet number acknowledged.
    pub largest: VarInt,
    /// How long the largest waited for this frame, in microseconds, before scaling by the sender's
    /// `ack_delay_exponent` (RFC 9000 §18.2).
    pub delay: VarInt,
    /// The ECN counts of the path.
    pub ecn: Option<EcnCounts>,
    /// How many packets before the largest the first range has.
    first_range: VarInt,
    /// How many pairs there are.
    pair_count: VarInt,
    /// Pairs of a gap and a length, encoded.
    pairs: &'a [u8],
}

impl<'a> Ack<'a> {
    /// The packet numbers acknowledged, largest range first.
    pub fn ranges(&self) -> AckRanges<'a> {
        AckRanges::new(self.largest, self.first_range, self.pairs)
    }

    /// The bytes that [`Ack::encode`] writes.
    pub fn encoded_len(&self, dialect: Dialect) -> usize {
        prefix_len(dialect, self.path, self.largest, self.delay)
            + self.pair_count.size()
            + self.first_range.size()
            + self.pairs.len()
            + ecn_len(self.ecn)
    }

    /// Writes the frame.
    pub fn encode(&self, dialect: Dialect, writer: &mut Writer<'_>) {
        put_prefix(dialect, self.path, self.largest, self.delay, self.ecn, writer);
        writer.put_varint(self.pair_count);
        writer.put_varint(self.first_range);
        writer.put_bytes(self.pairs);
        put_ecn(self.ecn, writer);
    }

    pub(super) fn decode(reader: &mut Reader<'a>, path: PathId, has_ecn: bool) -> Result<Self, Malformed> {
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let pair_count = reader.varint()?;
        let first_range = reader.varint()?;
        let pairs = check_ranges(reader, largest.get(), first_range.get(), pair_count.get())?;
        let ecn = if has_ecn { Some(EcnCounts::decode(reader)?) } else { None };
        Ok(Self { path, largest, delay, ecn, first_range, pair_count, pairs })
    }
}

/// Skips the pairs and returns their bytes, once it is sure that no range falls below zero.
///
/// Each pair takes two bytes at least, so that the work is bounded by the packet, whatever the count says.
pub(super) fn check_ranges<'a>(
    reader: &mut Reader<'a>,
    largest: u64,
    first_range: u64,
    pair_count: u64,
) -> Result<&'a [u8], Malformed> {
    const BELOW_ZERO: Malformed = Malformed::new("an ACK range falls below zero");
    let (all, before) = (reader.rest(), reader.position());
    let mut smallest = largest.checked_sub(first_range).ok_or(BELOW_ZERO)?;
    for _ in 0..pair_count {
        let range = read_pair(reader, smallest)?.ok_or(BELOW_ZERO)?;
        smallest = *range.start();
    }
    Ok(&all[..reader.position() - before])
}

/// Reads the range that follows the one that ends at `smallest`; `None` if it falls below zero
/// (RFC 9000 §19.3.1).
fn read_pair(
    reader: &mut Reader<'_>,
    smallest: u64,
) -> Result<Option<RangeInclusive<u64>>, crate::Truncated> {
    let gap = reader.varint()?.get();
    let len = reader.varint()?.get();
    // Both are below 2^62: the sums do not overflow.
    let largest = smallest.checked_sub(gap + 2);
    Ok(largest.and_then(|largest| Some(largest.checked_sub(len)?..=largest)))
}

impl PartialEq for Ack<'_> {
    /// Compares what is acknowledged. A varint that was encoded longer than necessary makes no difference.
    fn eq(&self, other: &Self) -> bool {
        (self.path, self.largest, self.delay, self.ecn) == (other.path, other.largest, other.delay, other.ecn)
            && self.ranges().eq(other.ranges())
    }
}

impl Eq for Ack<'_> {}

impl fmt::Debug for Ack<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ack")
            .field("path", &self.path)
            .field("largest", &self.largest)
            .field("delay", &self.delay)
            .field("ecn", &self.ecn)
            .field("ranges", &self.ranges())
            .finish()
    }
}

/// The ranges of an [`Ack`] or a [`SymbolAck`](super::SymbolAck), largest first.
#[derive(Clone)]
pub struct AckRanges<'a> {
    next: Option<RangeInclusive<u64>>,
    pairs: Reader<'a>,
}

impl<'a> AckRanges<'a> {
    /// Of a first range that ends at `largest`, and encoded pairs that were checked.
    #[inline]
    pub(super) fn new(largest: VarInt, first_range: VarInt, pairs: &'a [u8]) -> Self {
        let largest = largest.get();
        let first = largest.checked_sub(first_range.get()).map(|smallest| smallest..=largest);
        Self { next: first, pairs: Reader::new(pairs) }
    }
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let range = self.next.take()?;
        self.next = read_pair(&mut self.pairs, *range.start()).ok().flatten();
        Some(range)
    }
}

impl std::iter::FusedIterator for AckRanges<'_> {}

impl fmt::Debug for AckRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// Writes an ACK of packet numbers received, without a copy of them.
///
/// ```
/// use fulmar_base::RangeSet;
/// use fulmar_wire::{AckEncoder, Dialect, Frame, PathId, VarInt, Writer, frames};
///
/// let mut ranges = RangeSet::new();
/// ranges.insert(0..3);
/// ranges.insert(7..8);
/// let (path, delay) = (PathId::ZERO, VarInt::ZERO);
/// let ack = AckEncoder { path, delay, ranges: &ranges, ecn: None, max_ranges: 32 };
///
/// let mut buffer = [0; 64];
/// let mut writer = Writer::new(&mut buffer);
/// let written = ack.encode_within(Dialect::SinglePath, 0, &mut writer).ok_or("no room")?;
/// assert_eq!((written.largest, written.ranges), (7, 2));
/// let len = writer.len();
///
/// let Some(Ok(Frame::Ack(ack))) = frames(&buffer[..len], Dialect::SinglePath).next() else { panic!() };
/// assert!(ack.ranges().eq([7..=7, 0..=2]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct AckEncoder<'r> {
    /// The path in whose packet number space the packets are.
    pub path: PathId,
    /// How long the largest has waited, in microseconds, scaled by our `ack_delay_exponent`.
    pub delay: VarInt,
    /// The packet numbers to acknowledge, all below 2^62.
    pub ranges: &'r RangeSet,
    /// The ECN counts of the path.
    pub ecn: Option<EcnCounts>,
    /// At most this many ranges are written.
    pub max_ranges: usize,
}

/// What an [`AckEncoder`] has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckWritten {
    /// The largest packet number.
    pub largest: u64,
    /// How many ranges, counted from the newest.
    pub ranges: usize,
}

impl AckEncoder<'_> {
    /// Writes the newest ranges that fit and tells which. The last `kept` bytes of the writer stay free.
    ///
    /// Returns `None`, and writes nothing, if not even one range fits, or if there is none.
    pub fn encode_within(
        &self,
        dialect: Dialect,
        kept: usize,
        writer: &mut Writer<'_>,
    ) -> Option<AckWritten> {
        let newest = self.ranges.iter().next_back().filter(|_| self.max_ranges > 0)?;
        let largest = VarInt::saturating(newest.end - 1);
        let first_range = VarInt::saturating(newest.end - 1 - newest.start);
        let fixed_len =
            prefix_len(dialect, self.path, largest, self.delay) + first_range.size() + ecn_len(self.ecn);
        let pair_count = self.pairs_that_fit(writer.remaining().checked_sub(fixed_len + kept)?)?;

        put_prefix(dialect, self.path, largest, self.delay, self.ecn, writer);
        writer.put_varint(VarInt::saturating(pair_count as u64));
        writer.put_varint(first_range);
        for (gap, len) in self.pairs().take(pair_count) {
            writer.put_varint(gap);
            writer.put_varint(len);
        }
        put_ecn(self.ecn, writer);
        Some(AckWritten { largest: largest.get(), ranges: pair_count + 1 })
    }

    /// How many pairs fit into `room` bytes together with their count; `None` if the count alone does not fit.
    fn pairs_that_fit(&self, room: usize) -> Option<usize> {
        let mut used = 0;
        let fit = |count: usize, used: usize| VarInt::saturating(count as u64).size() + used <= room;
        if !fit(0, 0) {
            return None;
        }
        let mut count = 0;
        for (gap, len) in self.pairs().take(self.max_ranges - 1) {
            used += gap.size() + len.size();
            if !fit(count + 1, used) {
                break;
            }
            count += 1;
        }
        Some(count)
    }

    /// Gap and length of each range but the newest, in the order of the wire (RFC 9000 §19.3.1).
    fn pairs(&self) -> impl Iterator<Item = (VarInt, VarInt)> {
        let newer = self.ranges.iter().rev();
        let older = self.ranges.iter().rev().skip(1);
        newer.zip(older).map(|(newer, older)| {
            // Ranges of the set neither overlap nor touch: there is a gap of one at least, written as 0.
            let gap = newer.start - older.end - 1;
            (VarInt::saturating(gap), VarInt::saturating(older.end - older.start - 1))
        })
    }
}

/// The length of everything before the range count.
fn prefix_len(dialect: Dialect, path: PathId, largest: VarInt, delay: VarInt) -> usize {
    1 + super::path_len(dialect, path) + largest.size() + delay.size()
}

fn put_prefix(
    dialect: Dialect,
    path: PathId,
    largest: VarInt,
    delay: VarInt,
    ecn: Option<EcnCounts>,
    writer: &mut Writer<'_>,
) {
    let frame_type = match (dialect, ecn) {
        (Dialect::SinglePath, None) => FrameType::ACK,
        (Dialect::SinglePath, Some(_)) => FrameType::ACK_ECN,
        (Dialect::Multipath, None) => FrameType::PATH_ACK,
        (Dialect::Multipath, Some(_)) => FrameType::PATH_ACK_ECN,
    };
    put_type(frame_type, writer);
    super::put_path(dialect, path, writer);
    writer.put_varint(largest);
    writer.put_varint(delay);
}

fn ecn_len(ecn: Option<EcnCounts>) -> usize {
    ecn.map_or(0, |ecn| ecn.varints().into_iter().map(VarInt::size).sum())
}

fn put_ecn(ecn: Option<EcnCounts>, writer: &mut Writer<'_>) {
    for count in ecn.into_iter().flat_map(EcnCounts::varints) {
        writer.put_varint(count);
    }
}

#[cfg(test)]
mod tests;
