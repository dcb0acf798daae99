use proptest::prelude::*;

use super::*;

fn byte(offset: u64) -> u8 {
    (offset % 253) as u8
}

/// A packet of `packet` bytes with the stream's bytes of `range` in it.
fn receive(assembler: &mut Assembler, range: Range<u64>, packet: usize) {
    let data: Vec<u8> = range.clone().map(byte).collect();
    let len = data.len();
    let mut payload = data;
    payload.resize(packet.max(len), 0);
    let payload = Bytes::from(payload);
    assembler.insert(range.start, &payload[..len], Some(&payload));
}

/// Reads everything that is there, and checks the contents.
fn drain(assembler: &mut Assembler, max_len: usize, ordered: bool) -> Vec<Range<u64>> {
    let mut read = Vec::new();
    while let Some((offset, bytes)) = assembler.read(max_len, ordered) {
        let range = offset..offset + bytes.len() as u64;
        assert!(bytes.len() <= max_len && bytes.iter().copied().eq(range.clone().map(byte)));
        read.push(range);
    }
    read
}

/// Upper estimate of the memory behind an assembler, if packets have `packet` bytes.
fn memory(assembler: &Assembler, packet: usize) -> usize {
    let ready: usize = assembler
        .ready
        .iter()
        .map(|(_, segment)| match segment {
            Segment::Shared(bytes) => 64 + if bytes.len() >= 256 { packet } else { bytes.len() },
            Segment::Collected(bytes) => 64 + bytes.capacity(),
        })
        .sum();
    ready + assembler.out_of_order.memory(packet) + assembler.read_ahead.len() * 16
}

#[test]
fn in_order_data_is_not_copied() {
    let mut assembler = Assembler::default();
    let payload = Bytes::from(vec![1; 1_200]);
    assembler.insert(0, &payload[20..1_200], Some(&payload));
    let (offset, bytes) = assembler.read(usize::MAX, true).unwrap();
    assert_eq!((offset, bytes.as_ptr()), (0, payload[20..].as_ptr()));
}

#[test]
fn copies_in_order_are_read_many_packets_at_a_time() {
    let mut assembler = Assembler::default();
    for start in (0..30_000).step_by(1_000) {
        let data: Vec<u8> = (start..start + 1_000).map(byte).collect();
        assembler.insert(start, &data, None);
    }
    assert_eq!(drain(&mut assembler, 50_000, true), [0..16_000, 16_000..30_000]);
}

#[test]
fn out_of_order_copies_are_read_when_the_gap_before_them_closes() {
    let mut assembler = Assembler::default();
    for start in [2_000, 1_000, 0] {
        let data: Vec<u8> = (start..start + 1_000).map(byte).collect();
        assembler.insert(start, &data, None);
    }
    assert_eq!(drain(&mut assembler, 50_000, true).last().map(|range| range.end), Some(3_000));
    assert!(assembler.is_complete(3_000));
}

#[test]
fn gaps_hold_back_ordered_reading_only() {
    let mut assembler = Assembler::default();
    receive(&mut assembler, 1_000..2_000, 1_000);
    assert!(!assembler.is_readable(true) && assembler.is_readable(false));
    assert_eq!(drain(&mut assembler, 5_000, true), []);
    assert_eq!(drain(&mut assembler, 600, false), [1_000..1_600, 1_600..2_000]);
    receive(&mut assembler, 0..2_500, 2_500);
    assert_eq!(drain(&mut assembler, 5_000, true), [0..1_000, 2_000..2_500]);
    assert!(assembler.is_complete(2_500) && assembler.read_ahead.is_empty());
}

#[test]
fn reading_ahead_stops_at_its_limit() {
    let mut assembler = Assembler::default();
    for i in 0..1_000 {
        receive(&mut assembler, 2 * i + 1..2 * i + 2, 100);
    }
    assert_eq!(drain(&mut assembler, 10, false).len(), READ_AHEAD_RANGES_MAX);
    assert!(!assembler.is_readable(false));
    receive(&mut assembler, 0..1_000, 1_000);
    receive(&mut assembler, 1_000..2_000, 1_000);
    let rest: u64 = drain(&mut assembler, usize::MAX, true).iter().map(|r| r.end - r.start).sum();
    assert_eq!(rest, 2_000 - READ_AHEAD_RANGES_MAX as u64);
}

#[test]
fn tiny_segments_at_every_second_offset_stay_small() {
    const WINDOW: u64 = 1 << 18;
    let mut assembler = Assembler::default();
    let mut peak = 0;
    for i in (0..WINDOW / 2).rev() {
        receive(&mut assembler, 2 * i + 1..2 * i + 2, 1_200);
        if i % 1_000 == 0 {
            peak = peak.max(memory(&assembler, 1_200));
        }
    }
    assert!(peak <= (WINDOW as usize + 8_192) * 9 / 8 + 10_000, "{peak}");
    for i in 0..WINDOW / 2 {
        receive(&mut assembler, 2 * i..2 * i + 1, 1_200);
    }
    assert!(memory(&assembler, 1_200) <= 3 * WINDOW as usize);
    let read = drain(&mut assembler, usize::MAX, true);
    assert_eq!(read.iter().map(|r| r.end - r.start).sum::<u64>(), WINDOW);
    assert!(
        matches!(assembler.out_of_order, OutOfOrder::Segments(_)),
        "blocks are left when the gaps are closed"
    );
}

#[test]
fn tiny_segments_far_apart_stay_small() {
    const WINDOW: u64 = 1 << 20;
    let mut assembler = Assembler::default();
    for offset in (1..WINDOW).step_by(1_000) {
        receive(&mut assembler, offset..offset + 1, 1_200);
    }
    assert!(memory(&assembler, 1_200) <= (WINDOW as usize + 8_192) * 9 / 8);
}

#[test]
fn tiny_segments_in_order_are_collected() {
    let mut assembler = Assembler::default();
    for offset in 0..100_000 {
        receive(&mut assembler, offset..offset + 1, 1_200);
    }
    assert!(memory(&assembler, 1_200) <= 2 * 100_000 + 1_000);
    assert_eq!(drain(&mut assembler, usize::MAX, true).len(), 100_000usize.div_ceil(16 * 1024));
}

#[test]
fn slices_that_overlap_do_not_pin_their_packets() {
    let mut assembler = Assembler::default();
    for i in 0..500u64 {
        // The second packet leaves one byte of the first to be read.
        receive(&mut assembler, i * 1_200 + 1..(i + 1) * 1_200, 1_200);
        receive(&mut assembler, i * 1_200..(i + 1) * 1_200 - 1, 1_200);
    }
    assert!(memory(&assembler, 1_200) <= 2 * 600_000, "{}", memory(&assembler, 1_200));
}

/// How many of the ranges that an assembler holds out of order are where they were before.
fn untouched(assembler: &Assembler, before: &[(u64, *const u8)]) -> usize {
    let now = places(assembler);
    before.iter().filter(|place| now.contains(place)).count()
}

/// Where what is held out of order lies in memory.
fn places(assembler: &Assembler) -> Vec<(u64, *const u8)> {
    assembler.out_of_order.places()
}

#[test]
fn what_remains_when_the_end_is_forgotten_is_not_touched() {
    for (len, packet) in [(1_000, 1_000), (1, 100)] {
        let mut assembler = Assembler::default();
        for start in (1..1_000_000).step_by(2_000) {
            receive(&mut assembler, start..start + len, packet);
        }
        let before = places(&assembler);
        assert!(before.len() > 200);
        for end in (900_000..1_000_000).rev().step_by(333) {
            assembler.truncate(end);
        }
        let kept = untouched(&assembler, &before);
        assert!(kept + 1 >= places(&assembler).len() && kept > before.len() * 8 / 10, "{kept}");
    }
}

proptest! {
    /// Whatever was received, in segments or in blocks, all of it below the smallest end remains and nothing else.
    #[test]
    fn what_lies_beyond_the_end_is_forgotten_and_nothing_else(
        segments in prop::collection::vec((0u64..20_000, 1u64..3_000, any::<bool>()), 0..40),
        tiny_segments in prop::collection::vec(0u64..20_000, 0..200),
        ends in prop::collection::vec(0u64..24_000, 1..8),
    ) {
        let mut assembler = Assembler::default();
        let mut model = RangeSet::new();
        for offset in tiny_segments {
            receive(&mut assembler, offset..offset + 1, 50);
            model.insert(offset..offset + 1);
        }
        let mut size = u64::MAX;
        let mut ends = ends.into_iter();
        for (start, len, cut) in segments {
            let range = start..(start + len).min(size);
            if !range.is_empty() {
                receive(&mut assembler, range.clone(), 0);
                model.insert(range);
            }
            if let Some(end) = ends.next().filter(|end| cut && *end < size) {
                size = end;
                assembler.truncate(end);
                model.remove(end..u64::MAX);
            }
        }
        let size = ends.chain([size]).min().unwrap();
        assembler.truncate(size);
        model.remove(size..u64::MAX);
        let missing = |model: &RangeSet| {
            let mut missing = RangeSet::new();
            missing.insert(0..size.min(24_000));
            for range in model.iter() {
                missing.remove(range);
            }
            missing
        };
        // What is read is what was received and no more, and the rest fits into the gaps.
        let mut read = RangeSet::new();
        for range in drain(&mut assembler, 500, false) {
            read.insert(range);
        }
        prop_assert_eq!(&read, &model);
        prop_assert!(assembler.out_of_order.is_empty() && assembler.held() == 0);
        for gap in missing(&model).iter() {
            receive(&mut assembler, gap, 0);
        }
        drain(&mut assembler, 500, true);
        prop_assert!(assembler.is_read_to(size.min(24_000)));
    }
}

proptest! {
    /// Segments of any size, in any order, repeated and overlapping, give every byte exactly once.
    #[test]
    fn every_byte_is_delivered_once(
        segments in prop::collection::vec((0u64..20_000, 1u64..3_000, any::<bool>(), any::<bool>()), 1..120),
        tiny_segments in prop::collection::vec(0u64..20_000, 0..200),
        unordered in any::<bool>(),
    ) {
        let mut assembler = Assembler::default();
        let mut seen = RangeSet::new();
        let mut note = |ranges: Vec<Range<u64>>| {
            for range in ranges {
                assert!(!range.clone().any(|offset| seen.contains(offset)), "{range:?} twice");
                seen.insert(range);
            }
            seen.clone()
        };
        for offset in tiny_segments {
            receive(&mut assembler, offset..offset + 1, 50);
        }
        for (start, len, padded, read) in segments {
            receive(&mut assembler, start..start + len, if padded { 10_000 } else { 0 });
            if read {
                note(drain(&mut assembler, len as usize, !unordered));
            }
        }
        receive(&mut assembler, 0..23_000, 0);
        let all = note(drain(&mut assembler, 1_000, true));
        prop_assert!(all.contains_range(0..23_000) && all.len() == 1);
        prop_assert!(assembler.out_of_order.is_empty() && assembler.read_ahead.is_empty());
    }
}
