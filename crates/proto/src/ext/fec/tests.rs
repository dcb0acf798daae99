mod config;
mod receive_memory;

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_wire::{
    Dialect, Dir, FecParameters, FecRecovered, FecRepair, FecSid, FecWindow, Side, StreamId, VarInt,
};

use super::*;
use crate::memory::SharedMemory;
use crate::packet::{Protection, SentFrame, SymbolId};

pub(super) const RTT: Duration = Duration::from_millis(100);

/// A path on which nothing has waited so far.
pub(super) const PATH: PathFigures =
    PathFigures { smoothed_rtt: RTT, min_rtt: RTT, byte_time: 0.0, room: 1_000 };

pub(super) fn sender(mode: FecMode, code: FecCode) -> FecSender {
    let config = FecConfig { mode, code, ..FecConfig::default() };
    FecSender::new(&config, &FecConfig::default().parameters()).unwrap()
}

/// The last data of a stream.
pub(super) fn stream(chosen: Option<Protection>) -> Upcoming {
    Upcoming { chosen, datagram: None, backlog: 0, room: 1_200, flight: u64::MAX }
}

/// Sends so many symbols.
pub(super) fn send(sender: &mut FecSender, symbols: u64) {
    assert_eq!(send_as(sender, None, symbols), symbols);
}

/// Sends so many packets with data of this protection; returns how many of them are symbols.
fn send_as(sender: &mut FecSender, protection: Option<Protection>, packets: u64) -> u64 {
    let mut symbols = 0;
    for index in 0..packets {
        let mut payload = [0; 1_200];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        sender.begin(stream(protection), &mut out);
        out.write_stream(StreamId::new(Side::Client, Dir::Bi, 0), index * 100, 100, false, |room| {
            room.fill(1)
        });
        sender.end_symbol(Instant::ZERO, PathId::ZERO, &mut out);
        symbols += u64::from(out.finish().symbol.is_some());
    }
    symbols
}

/// The last five symbols that were sent arrive, but for the first.
pub(super) fn lose_one_of_five(sender: &mut FecSender) {
    let first = (sender.sent_end() - 5) as u32;
    sender.on_lost(Instant::ZERO + 2 * RTT, SymbolId(first));
    (first + 1..first + 5).for_each(|id| sender.on_acked(SymbolId(id)));
}

/// Sends all repair symbols that wait; returns how many there were.
pub(super) fn repairs(sender: &mut FecSender) -> u64 {
    let before = sender.stats().repairs_sent;
    while sender.has_repairs() {
        let mut payload = [0; 1_200];
        sender.write(Instant::ZERO, payload.len(), &mut FrameWriter::new(&mut payload, Dialect::SinglePath));
    }
    sender.stats().repairs_sent - before
}

#[test]
fn an_id_is_the_nearest_one_with_its_low_bits() {
    assert_eq!(restore_id(5, 3), 5);
    assert_eq!(restore_id(2, 65_536), 65_538);
    assert_eq!(restore_id(65_530, 65_536), 65_530);
    assert_eq!(restore_id(65_530, 3), 65_530, "there are none below 0");
}

#[test]
fn dialect_m_sends_repairs_of_whole_blocks_and_none_to_a_peer_that_keeps_fewer_symbols() {
    let mut sender = FecSender::in_blocks(&FecConfig::default(), BlockCode::ReedSolomon);
    let blocks = |sender: &mut FecSender, symbols| {
        send(sender, symbols);
        sender.schedule(Instant::ZERO, true, &PATH);
        repairs(sender)
    };
    assert_eq!(blocks(&mut sender, 19), 0);
    assert!(!sender.probe(PathId::ZERO, 2), "the tail of a transfer has none");
    assert_eq!(blocks(&mut sender, 1), 10);
    assert!(sender.on_lost(Instant::ZERO, SymbolId(1)).resend, "nobody will tell that it was recovered");
    let window = |epoch, size| FecWindow { epoch: VarInt::from_u32(epoch), size: VarInt::from_u32(size) };
    sender.on_window(&window(1, 19));
    sender.on_window(&window(0, 256));
    assert_eq!(blocks(&mut sender, 20), 0);
    sender.on_window(&window(2, 20));
    assert_eq!(blocks(&mut sender, 20), 10);
}

#[test]
fn each_kind_of_protection_has_a_scheduler_of_its_own() {
    let mut sender = sender(FecMode::None, FecCode::ReedSolomon);
    let mut repaired = |protection, packets, idle| {
        let symbols = send_as(&mut sender, protection, packets);
        sender.schedule(Instant::ZERO, idle, &PATH);
        (symbols, repairs(&mut sender))
    };
    assert_eq!(repaired(None, 30, true), (0, 0), "the mode of the connection");
    assert_eq!(repaired(Some(Protection::None), 30, true), (0, 0));
    assert_eq!(repaired(Some(Protection::Constant), 30, false), (30, 3), "one for every ten");
    assert_eq!(repaired(Some(Protection::Tail), 5, false), (5, 0), "not before there is nothing else");
    assert!(repaired(Some(Protection::None), 5, true).1 > 0);
}

#[test]
fn a_rate_is_for_the_blocks_that_were_sent_with_it() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    send(&mut sender, 1_000);
    (0..1_000).for_each(|id| sender.on_acked(SymbolId(id)));
    let mut repaired = |symbols| {
        send_as(&mut sender, Some(Protection::Constant), symbols);
        sender.schedule(Instant::ZERO, false, &PATH);
        repairs(&mut sender)
    };
    assert_eq!(repaired(1), 0, "what was sent before has arrived");
    assert_eq!(repaired(9), 1, "one for every ten");
}

#[test]
fn a_tail_gets_no_repairs_for_what_follows_with_another_protection() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    let mut repaired = |protection, symbols| {
        send_as(&mut sender, protection, symbols);
        sender.schedule(Instant::ZERO, true, &PATH);
        repairs(&mut sender)
    };
    assert!(repaired(None, 5) > 0);
    assert_eq!(repaired(Some(Protection::Constant), 4), 0, "their block is not full");
    assert_eq!(repaired(Some(Protection::Constant), 1), 1, "that is all they get");
    assert!(repaired(None, 1) > 0);
}

#[test]
fn a_packet_has_data_of_one_protection_behind_what_has_none() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    let mut payload = [0; 1_200];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    let (none, constant) = (Some(Protection::None), Some(Protection::Constant));
    sender.begin(stream(none), &mut out);
    assert!(out.takes(none) && !out.takes(None));
    assert!(out.write_untracked(&Frame::HandshakeDone));
    assert!(sender.switches(None, &out));
    sender.switch(stream(None), &mut out);
    assert!(!out.takes(none) && out.takes(None) && out.takes(Some(Protection::Tail)));
    assert!(sender.switches(constant, &out));
    sender.switch(stream(constant), &mut out);
    assert!(out.takes(constant), "nothing was written in between");
    assert!(out.write_untracked(&Frame::HandshakeDone));
    for other in [none, None] {
        assert!(!sender.switches(other, &out));
        assert!(out.takes(constant) && !out.takes(other));
    }
    let symbol = out.end_symbol().map(|(symbol, _, _)| symbol.to_vec());
    assert_eq!(symbol, Some(vec![0x1e]));
}

#[test]
fn what_no_repair_at_the_end_can_cover_is_no_symbol_and_its_packet_as_long_as_any() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    let mut is_symbol = |chosen, backlog| {
        let mut payload = [0; 1_200];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        sender.begin(Upcoming { backlog, ..stream(chosen) }, &mut out);
        out.write_stream(StreamId::new(Side::Client, Dir::Bi, 0), 0, 1_200, false, |room| room.fill(1));
        sender.end_symbol(Instant::ZERO, PathId::ZERO, &mut out);
        let payload = out.finish();
        assert_eq!(payload.len < 1_200, payload.symbol.is_some());
        payload.symbol.is_some()
    };
    let window = 256 * 1_200;
    assert!(is_symbol(None, 0) && is_symbol(None, window - 1));
    assert!(!is_symbol(None, window));
    assert!(is_symbol(Some(Protection::Constant), window), "its repair symbols do not wait for the end");
}

#[test]
fn what_has_its_verdict_before_the_end_is_no_symbol() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    let mut is_symbol = |backlog, flight| {
        let mut payload = [0; 1_200];
        let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
        sender.begin(Upcoming { backlog, flight, ..stream(None) }, &mut out);
        out.write_stream(StreamId::new(Side::Client, Dir::Bi, 0), 0, 1_200, false, |room| room.fill(1));
        sender.end_symbol(Instant::ZERO, PathId::ZERO, &mut out);
        out.finish().symbol.is_some()
    };
    assert!(is_symbol(29_999, 20_000));
    assert!(!is_symbol(30_000, 20_000));
}

#[test]
fn repairs_at_the_tail_leave_when_there_is_nothing_else_in_two_halves() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    send(&mut sender, 10);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert!(!sender.has_repairs());
    sender.schedule(Instant::ZERO, true, &PATH);
    assert_eq!(repairs(&mut sender), 3);
    let second = sender.next_timeout().unwrap();
    assert_eq!(second, Instant::ZERO + RTT / 8);
    sender.schedule(second, true, &PATH);
    assert_eq!((repairs(&mut sender), sender.next_timeout()), (2, None));
}

#[test]
fn what_is_lost_waits_for_repairs_in_flight_and_not_longer_than_they_can_take() {
    let mut sender = sender(FecMode::Constant { source: 4, repair: 1 }, FecCode::Xor);
    send(&mut sender, 1);
    assert!(sender.on_lost(Instant::ZERO, SymbolId(0)).resend, "no repair covers it");
    sender.on_recovered(&FecRecovered { first: VarInt::from_u32(0), more: 0 }).unwrap();
    send(&mut sender, 4);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!(repairs(&mut sender), 1);
    let verdict = Instant::ZERO + RTT * 9 / 8;
    assert!(!sender.on_lost(Instant::ZERO + RTT, SymbolId(1)).resend, "held");
    assert_eq!(sender.next_timeout(), Some(verdict));
    sender.on_timeout(verdict);
    assert_eq!((sender.take_released().len(), sender.next_timeout()), (1, None));
    assert!(sender.on_lost(verdict, SymbolId(2)).resend, "nothing is to be expected any more");
}

#[test]
fn what_cannot_be_recovered_together_is_sent_again_at_once() {
    let mut sender = sender(FecMode::Constant { source: 8, repair: 2 }, FecCode::ReedSolomon);
    send(&mut sender, 8);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!(repairs(&mut sender), 2);
    assert!(!sender.on_lost(Instant::ZERO, SymbolId(1)).resend, "held");
    assert!(!sender.on_lost(Instant::ZERO, SymbolId(2)).resend, "held");
    assert!(sender.on_lost(Instant::ZERO, SymbolId(3)).resend, "more than there are repair symbols");
    assert_eq!(sender.take_released().len(), 2);
}

#[test]
fn what_is_lost_is_given_up_when_the_last_repair_in_flight_has_not_helped() {
    let mut sender = sender(FecMode::Constant { source: 4, repair: 1 }, FecCode::Xor);
    send(&mut sender, 4);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!(repairs(&mut sender), 1);
    assert!(!sender.on_lost(Instant::ZERO, SymbolId(1)).resend, "held");
    sender.on_repair_delivery(0, 4, true);
    assert_eq!(sender.take_released().len(), 1);
    assert!(sender.take_released().is_empty(), "once");
}

#[test]
fn what_the_peer_has_recovered_is_not_sent_again() {
    let mut sender = sender(FecMode::Constant { source: 4, repair: 1 }, FecCode::Xor);
    send(&mut sender, 4);
    let report = |first, more| FecRecovered { first: VarInt::from_u32(first), more };
    assert_eq!(sender.on_recovered(&report(1, 1)).unwrap().len(), 2);
    assert!(sender.on_recovered(&report(1, 0)).unwrap().is_empty(), "once");
    let loss = sender.on_lost(Instant::ZERO, SymbolId(1));
    assert!(!loss.resend, "its packet is lost all the same");
    assert!(sender.on_recovered(&report(3, 1)).is_err(), "never sent");
    let stats = sender.stats();
    assert_eq!((stats.symbols_lost, stats.symbols_recovered, stats.retransmissions_spared), (1, 2, 2));
}

#[test]
fn a_symbol_that_was_recovered_counts_as_lost_however_late_its_packet_is_taken_for_lost() {
    let mut sender = sender(FecMode::Constant { source: 4, repair: 1 }, FecCode::Xor);
    send(&mut sender, 4);
    let report = FecRecovered { first: VarInt::from_u32(0), more: 1 };
    assert_eq!(sender.on_recovered(&report).unwrap().len(), 2);
    // What is over is forgotten whenever something arrives.
    sender.on_acked(SymbolId(2));
    for id in [0, 1] {
        assert!(!sender.on_lost(Instant::ZERO, SymbolId(id)).resend);
    }
    let stats = sender.stats();
    assert_eq!((stats.symbols_lost, stats.symbols_recovered), (2, 2));
}

#[test]
fn memory_of_symbols_without_a_verdict_is_bounded() {
    let mut sender = sender(FecMode::Tail, FecCode::ReedSolomon);
    send(&mut sender, 10_000);
    sender.schedule(Instant::ZERO, true, &PATH);
    assert!(repairs(&mut sender) > 0);
    assert!(sender.on_lost(Instant::ZERO, SymbolId(0)).resend, "forgotten");
    for id in 9_000..10_000 {
        sender.on_acked(SymbolId(id));
    }
}

#[test]
fn a_sender_that_rests_gives_back_what_no_repair_will_be_made_of() {
    let mut tail = sender(FecMode::Tail, FecCode::ReedSolomon);
    send(&mut tail, 300);
    (0..299).for_each(|id| tail.on_acked(SymbolId(id)));
    tail.rest();
    assert!(tail.memory() > 25_000, "one is in flight still");
    tail.schedule(Instant::ZERO, true, &PATH);
    tail.on_acked(SymbolId(299));
    tail.rest();
    assert!(tail.memory() > 25_000, "repairs wait");
    assert_eq!(repairs(&mut tail), 1);
    tail.rest();
    assert_eq!(tail.memory(), 0);
    assert!(!tail.probe(PathId::ZERO, 1));
    send(&mut tail, 1);
    tail.schedule(Instant::ZERO, true, &PATH);
    assert_eq!(repairs(&mut tail), 1, "it goes on");
}

#[test]
fn a_sender_that_rests_keeps_blocks_that_are_not_full() {
    let constant = sender(FecMode::Constant { source: 20, repair: 10 }, FecCode::ReedSolomon);
    let in_blocks = FecSender::in_blocks(&FecConfig::default(), BlockCode::ReedSolomon);
    for mut sender in [constant, in_blocks] {
        send(&mut sender, 35);
        sender.schedule(Instant::ZERO, true, &PATH);
        assert_eq!(repairs(&mut sender), 10);
        (0..35).for_each(|id| sender.on_acked(SymbolId(id)));
        sender.rest();
        assert!((1_500..2_500).contains(&sender.memory()), "{} bytes of 15 symbols", sender.memory());
        send(&mut sender, 5);
        sender.schedule(Instant::ZERO, true, &PATH);
        assert!(sender.has_repairs());
        while sender.has_repairs() {
            let mut payload = [0; 1_200];
            let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
            sender.write(Instant::ZERO, 1_200, &mut out);
            assert_eq!(out.finish().frames[..], [SentFrame::FecRepair { first: 20, count: 20 }]);
        }
    }
}

#[test]
fn an_overhead_is_kept_but_for_the_first_repairs() {
    let config = FecConfig { overhead_max: 0.0, ..FecConfig::default() };
    let mut sender = FecSender::new(&config, &config.parameters()).unwrap();
    let mut sent = 0;
    for _ in 0..100 {
        send(&mut sender, 5);
        sender.schedule(Instant::ZERO, true, &PATH);
        sent += repairs(&mut sender);
        lose_one_of_five(&mut sender);
    }
    assert!((16..20).contains(&sent), "{sent}");
}

#[test]
fn data_with_a_deadline_is_of_use_for_as_long_as_the_mode_says() {
    let within = |mode| FecConfig { mode, ..FecConfig::default() }.within();
    let deadline = |millis| FecMode::Deadline { within: Duration::from_millis(millis) };
    assert_eq!([40, 600].map(|millis| within(deadline(millis)).as_millis()), [40, 600]);
    // A stream may be protected so in any mode.
    assert_eq!(within(FecMode::Tail), Duration::from_millis(150));
}
