use proptest::prelude::*;

use super::*;
use crate::frame::tests::{check_truncations, encode, strategies, varint};
use crate::{Frame, frames};

const DIALECTS: [Dialect; 2] = [Dialect::SinglePath, Dialect::Multipath];

fn read(bytes: &[u8], dialect: Dialect) -> Ack<'_> {
    let read: Vec<_> = frames(bytes, dialect).collect();
    let [Ok(Frame::Ack(ack))] = read[..] else { panic!("{bytes:02x?} was read: {read:?}") };
    ack
}

fn write(encoder: &AckEncoder<'_>, dialect: Dialect, room: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0xff; room];
    let mut writer = Writer::new(&mut bytes);
    let written = encoder.encode_within(dialect, 0, &mut writer);
    let len = writer.len();
    assert_eq!(written.map(|w| w.largest), encoder.ranges.max().filter(|_| len > 0));
    assert_eq!(written.is_some(), len > 0, "all or nothing is written");
    bytes.truncate(len);
    if let Some(written) = written {
        assert_eq!(read(&bytes, dialect).ranges().count(), written.ranges);
    }
    written.map(|_| bytes)
}

fn any_ranges() -> impl Strategy<Value = RangeSet> {
    let step = || (0u32..30, any::<u32>()).prop_map(|(shift, bits)| u64::from(bits >> shift >> 2) + 1);
    (strategies::any_varint(), prop::collection::vec((step(), step()), 1..100)).prop_map(|(from, steps)| {
        let mut ranges = RangeSet::new();
        // All steps together stay far below 2^40.
        let mut at = from.get().min(1 << 61);
        for (gap, len) in steps {
            ranges.insert(at + gap..at + gap + len);
            at += gap + len;
        }
        ranges
    })
}

fn any_ecn() -> impl Strategy<Value = Option<EcnCounts>> {
    let count = || strategies::any_varint().prop_map(VarInt::get);
    prop::option::of((count(), count(), count()).prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce }))
}

proptest! {
    #[test]
    fn an_ack_is_read_as_written(
        (dialect, path) in prop::sample::select(&DIALECTS[..])
            .prop_flat_map(|dialect| (Just(dialect), strategies::any_path(dialect))),
        delay in strategies::any_varint(),
        ranges in any_ranges(),
        ecn in any_ecn(),
    ) {
        let encoder = AckEncoder { path, delay, ranges: &ranges, ecn, max_ranges: usize::MAX };
        let bytes = write(&encoder, dialect, 4000).unwrap();
        let ack = read(&bytes, dialect);
        prop_assert_eq!((ack.path, ack.delay, ack.ecn), (path, delay, ecn));
        prop_assert_eq!(Some(ack.largest.get()), ranges.max());
        prop_assert!(ack.ranges().eq(ranges.iter().rev().map(|range| range.start..=range.end - 1)));
        prop_assert_eq!(encode(&Frame::Ack(ack), dialect), &bytes[..]);
        check_truncations(&bytes, dialect);
    }

    #[test]
    fn the_newest_ranges_that_fit_are_written(
        ranges in any_ranges(),
        ecn in any_ecn(),
        max_ranges in 0usize..110,
    ) {
        let encoder = |max_ranges| AckEncoder {
            path: PathId(7),
            delay: varint(100),
            ranges: &ranges,
            ecn,
            max_ranges,
        };
        // What any number of ranges takes, if there is room.
        let by_count: Vec<_> = (1..=ranges.len().min(max_ranges))
            .map(|count| write(&encoder(count), Dialect::Multipath, 4000).unwrap())
            .collect();
        let whole = by_count.last().map_or(0, Vec::len);
        for room in 0..whole + 20 {
            let expected = by_count.iter().rev().find(|bytes| bytes.len() <= room);
            let written = write(&encoder(max_ranges), Dialect::Multipath, room);
            prop_assert_eq!(written.as_ref(), expected);
        }
        for (bytes, count) in by_count.iter().zip(1..) {
            prop_assert_eq!(read(bytes, Dialect::Multipath).ranges().count(), count);
        }
    }
}

/// The example of RFC 9000 §19.3.1: gaps and lengths are written one less than they are.
#[test]
fn bytes_on_the_wire() {
    let mut ranges = RangeSet::new();
    for range in [0..1, 2..5, 90..101] {
        ranges.insert(range);
    }
    let ecn = EcnCounts { ect0: 1, ect1: 0, ce: 64 };
    for (path, ecn, dialect, before, after) in [
        (PathId::ZERO, None, Dialect::SinglePath, &b"\x02"[..], &b""[..]),
        (PathId::ZERO, Some(ecn), Dialect::SinglePath, b"\x03", b"\x01\x00\x40\x40"),
        (PathId::ZERO, None, Dialect::Multipath, b"\x3e\x00", b""),
        (PathId(64), Some(ecn), Dialect::Multipath, b"\x3f\x40\x40", b"\x01\x00\x40\x40"),
    ] {
        // Largest 100, delay 3, two more ranges; 100 to 90; not 89 to 5, 4 to 2; not 1, 0.
        const MIDDLE: &[u8] = b"\x40\x64\x03\x02\x0a\x40\x54\x02\x00\x00";
        let encoder = AckEncoder { path, delay: varint(3), ranges: &ranges, ecn, max_ranges: 3 };
        let bytes = write(&encoder, dialect, 100).unwrap();
        assert_eq!(bytes, [before, MIDDLE, after].concat());
        let ack = read(&bytes, dialect);
        assert!(ack.ranges().eq([90..=100, 2..=4, 0..=0]));
        assert_eq!((ack.path, ack.ecn), (path, ecn));
    }
}

#[test]
fn an_empty_set_is_not_written() {
    let ranges = RangeSet::new();
    let encoder =
        AckEncoder { path: PathId::ZERO, delay: VarInt::ZERO, ranges: &ranges, ecn: None, max_ranges: 5 };
    assert_eq!(write(&encoder, Dialect::SinglePath, 100), None);
}

#[test]
fn no_ranges_are_written_where_none_are_allowed() {
    let mut ranges = RangeSet::new();
    ranges.insert(3..5);
    let encoder =
        AckEncoder { path: PathId::ZERO, delay: VarInt::ZERO, ranges: &ranges, ecn: None, max_ranges: 0 };
    assert_eq!(write(&encoder, Dialect::SinglePath, 100), None);
}

#[test]
fn counts_too_large_for_the_wire_become_the_largest() {
    let mut ranges = RangeSet::new();
    ranges.insert(0..1);
    let ecn = Some(EcnCounts { ect0: u64::MAX, ect1: 1 << 62, ce: 2 });
    let encoder = AckEncoder { path: PathId::ZERO, delay: VarInt::ZERO, ranges: &ranges, ecn, max_ranges: 1 };
    let bytes = write(&encoder, Dialect::SinglePath, 100).unwrap();
    let max = VarInt::MAX.get();
    assert_eq!(read(&bytes, Dialect::SinglePath).ecn, Some(EcnCounts { ect0: max, ect1: max, ce: 2 }));
}

#[test]
fn a_huge_count_of_ranges_ends_with_the_bytes() {
    // Largest 2^62 - 1, delay 0, 2^62 - 1 further ranges of which there are none, some, or many.
    for pairs in [0, 1, 700] {
        let mut bytes = [&[0x02][..], &[0xff; 8], &[0x00], &[0xff; 8], &[0x00]].concat();
        bytes.resize(bytes.len() + 2 * pairs, 0);
        let read: Vec<_> = frames(&bytes, Dialect::SinglePath).collect();
        let [Err(error)] = read[..] else { panic!("{read:?}") };
        assert_eq!(error.reason, "the frame is truncated");
    }
}

#[test]
fn the_form_of_varints_makes_no_difference() {
    let short = read(b"\x02\x05\x00\x01\x00\x01\x02", Dialect::SinglePath);
    let long = read(b"\x02\x40\x05\x00\x40\x01\x00\x40\x01\x40\x02", Dialect::SinglePath);
    let other = read(b"\x02\x05\x00\x01\x00\x01\x01", Dialect::SinglePath);
    assert_eq!(short, long);
    assert_ne!(short, other);
    // The ranges stay as they were.
    assert_eq!(encode(&Frame::Ack(long), Dialect::SinglePath), b"\x02\x05\x00\x01\x00\x40\x01\x40\x02");
}

#[test]
fn a_largest_that_was_changed_panics_nowhere() {
    let mut ack = read(b"\x02\x05\x00\x01\x01\x00\x01", Dialect::SinglePath);
    assert!(ack.ranges().eq([4..=5, 1..=2]));
    ack.largest = varint(3);
    assert!(ack.ranges().eq([2..=3]));
    ack.largest = varint(0);
    assert_eq!(ack.ranges().next(), None);
}

#[test]
fn packets_and_notes() {
    use crate::PacketKind::{Handshake, Initial, OneRtt, ZeroRtt};
    let ack = Frame::Ack(read(b"\x02\x00\x00\x00\x00", Dialect::SinglePath));
    let path_ack = Frame::Ack(read(b"\x3e\x01\x00\x00\x00\x00", Dialect::Multipath));
    assert_eq!(
        [Initial, Handshake, ZeroRtt, OneRtt].map(|kind| ack.is_permitted_in(kind)),
        [true, true, false, true]
    );
    assert_eq!(
        [Initial, Handshake, ZeroRtt, OneRtt].map(|kind| path_ack.is_permitted_in(kind)),
        [false, false, false, true]
    );
    assert!(!ack.is_ack_eliciting() && !ack.is_probing());
    assert_eq!(path_ack.frame_type(), FrameType::PATH_ACK);
    assert_eq!(ack.frame_type(), FrameType::ACK);
    assert_eq!(
        format!("{ack:?}"),
        "Ack(Ack { path: PathId(0), largest: VarInt(0), delay: VarInt(0), ecn: None, ranges: [0..=0] })"
    );
}
