use fulmar_fec::SourceWindow;
use fulmar_wire::{Dialect, frames};

use super::*;
use crate::memory::SharedMemory;

fn receiver(blocks: Option<BlockCode>) -> FecReceiver {
    let memory = Reservation::new(SharedMemory::new(1 << 30));
    FecReceiver::new(&FecConfig::default(), blocks, memory)
}

/// Receives a repair symbol over this one alone, which recovers it, and takes it out.
fn recover(receiver: &mut FecReceiver, id: u64) {
    let mut window = SourceWindow::new(1).starting_at(id);
    window.push(b"lost").unwrap();
    let mut symbol = Vec::new();
    window.repair(&fulmar_fec::Xor, &window.repair_from(id, 0).unwrap(), &mut symbol).unwrap();
    let repair = FecRepair { scheme: 0, first: id as u16, more: 0, key: 0, symbol: &symbol };
    receiver.on_repair(&repair).unwrap();
    assert_eq!(receiver.next_recovered().map(|(id, _)| id), Some(id));
}

/// What the peer is told now: the first id of each report, and how many more there are.
fn told(receiver: &mut FecReceiver) -> Vec<(u64, u8)> {
    let mut payload = [0; 2_000];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    receiver.write(&mut out);
    let len = out.finish().len;
    let read = frames(&payload[..len], Dialect::SinglePath).map(Result::unwrap);
    read.map(|frame| match frame {
        Frame::FecRecovered(report) => (report.first.get(), report.more),
        other => panic!("{other:?}"),
    })
    .collect()
}

#[test]
fn symbols_that_follow_one_another_are_reported_together() {
    let mut receiver = receiver(None);
    assert!(!receiver.has_reports());
    for id in [3, 4, 5, 7, 9, 10] {
        recover(&mut receiver, id);
    }
    assert!(receiver.has_reports());
    assert_eq!(told(&mut receiver), [(3, 2), (7, 0), (9, 1)]);
    assert!(!receiver.has_reports());
    recover(&mut receiver, 11);
    assert_eq!(told(&mut receiver), [(11, 0)], "what was told before is not made longer");
}

#[test]
fn a_report_has_no_more_symbols_than_its_field_can_count() {
    let mut receiver = receiver(None);
    (0..=256).for_each(|id| recover(&mut receiver, id));
    assert_eq!(told(&mut receiver), [(0, 255), (256, 0)]);
}

#[test]
fn a_report_goes_with_two_further_answers_and_again_when_it_is_lost() {
    let mut receiver = receiver(None);
    assert!(!receiver.repeat_reports());
    recover(&mut receiver, 3);
    assert_eq!(told(&mut receiver), [(3, 0)]);
    for _ in 0..2 {
        assert!(receiver.repeat_reports());
        assert_eq!(told(&mut receiver), [(3, 0)]);
    }
    assert!(!receiver.repeat_reports());
    receiver.on_report_lost(FecRecovered { first: VarInt::from_u32(3), more: 0 });
    assert_eq!(told(&mut receiver), [(3, 0)]);
    assert!(!receiver.repeat_reports(), "without copies");
}

#[test]
fn a_report_that_is_repeated_is_not_joined_by_what_is_new() {
    let mut receiver = receiver(None);
    recover(&mut receiver, 3);
    told(&mut receiver);
    receiver.repeat_reports();
    recover(&mut receiver, 4);
    assert_eq!(told(&mut receiver), [(3, 0), (4, 0)]);
}

#[test]
fn reports_that_wait_are_few_and_the_newest() {
    let mut receiver = receiver(None);
    for first in 0..RECOVERED_MAX as u32 + 10 {
        receiver.on_report_lost(FecRecovered { first: VarInt::from_u32(first), more: 0 });
    }
    assert_eq!(receiver.reports.len(), RECOVERED_MAX);
    assert_eq!(told(&mut receiver)[0], (10, 0));
}

#[test]
fn a_symbol_that_arrives_after_it_was_recovered_is_known_as_long_as_it_is_remembered() {
    let mut receiver = receiver(None);
    let ids = 0..=RECOVERED_MAX as u64;
    ids.for_each(|id| recover(&mut receiver, id));
    let mut is_known = |id| {
        receiver.on_sid(&FecSid { id }).unwrap();
        let known = receiver.is_known();
        receiver.end_packet(b"lost").unwrap();
        known
    };
    assert!(is_known(RECOVERED_MAX as u16) && is_known(1));
    assert!(!is_known(0), "the oldest was forgotten");
    assert!(!is_known(RECOVERED_MAX as u16 + 1));
}

#[test]
fn an_id_is_known_by_its_low_bits_up_to_half_of_their_range_ahead() {
    let mut receiver = receiver(None);
    for id in [0, 1 << 15, 1 << 16, 3 << 15] {
        receiver.on_sid(&FecSid { id: id as u16 }).unwrap();
        assert_eq!(receiver.open, Some(id));
        receiver.end_packet(b"data").unwrap();
    }
}

#[test]
fn a_symbol_longer_than_was_announced_is_an_error_where_something_was_announced() {
    let longest = vec![1; usize::from(SYMBOL_MAX)];
    let longer = vec![1; usize::from(SYMBOL_MAX) + 1];
    for (blocks, refused) in [(None, true), (Some(BlockCode::Xor), false)] {
        let mut receiver = receiver(blocks);
        receiver.on_sid(&FecSid { id: 0 }).unwrap();
        receiver.end_packet(&longest).unwrap();
        receiver.on_sid(&FecSid { id: 1 }).unwrap();
        assert_eq!(receiver.end_packet(&longer).is_err(), refused);
        assert!(!receiver.is_in_symbol());
    }
}

#[test]
fn a_block_repair_is_taken_up_to_the_length_that_is_kept() {
    let mut receiver = receiver(Some(BlockCode::Xor));
    let mut outcome = |block, len| {
        let symbol = vec![0; len];
        let repair = BlockRepair { block: VarInt::from_u32(block), parity: VarInt::ZERO, symbol: &symbol };
        match receiver.on_block_repair(&repair).unwrap() {
            FecEvent::RepairReceived { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    };
    let longest = LENGTH_BYTES + usize::from(SYMBOL_MAX);
    assert_eq!(outcome(0, longest), RepairOutcome::Kept);
    assert_eq!(outcome(1, longest + 1), RepairOutcome::Dropped);
}
