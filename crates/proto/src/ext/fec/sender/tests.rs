mod held;

use fulmar_fec::schedule::Order;
use fulmar_wire::{Dialect, FecRecovered, FecWindow, Frame, VarInt, frames};

use super::super::FecCode;
use super::super::tests::{PATH, RTT, lose_one_of_five, repairs, send, sender, stream};
use super::source::CUT_MAX;
use super::*;

const TAIL: FecMode = FecMode::Tail;
const OTHER: PathId = PathId(1);

/// Which symbols the next repair symbol covers: the low bits of the first, and how many.
fn covered(sender: &mut FecSender) -> (u16, u16) {
    let mut payload = [0; 1_200];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    sender.write(Instant::ZERO, 1_200, &mut out);
    let len = out.finish().len;
    match frames(&payload[..len], Dialect::SinglePath).next() {
        Some(Ok(Frame::FecRepair(repair))) => (repair.first, repair.count()),
        other => panic!("no repair symbol: {other:?}"),
    }
}

/// Whether the next packet, in which so many bytes are left, gets a source symbol.
fn is_symbol(sender: &mut FecSender, room: usize, next: Upcoming) -> bool {
    let mut payload = vec![0; room];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    sender.begin(Upcoming { room, ..next }, &mut out);
    let written = out.write_untracked(&Frame::HandshakeDone);
    out.end_symbol().is_some() && written
}

#[test]
fn a_probe_repairs_what_is_in_flight_on_its_path_from_the_first_on() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    assert!(!sender.probe(PathId::ZERO, 1), "nothing was sent");
    send(&mut sender, 5);
    sender.on_acked(SymbolId(0));
    sender.on_acked(SymbolId(1));
    assert!(!sender.probe(OTHER, 1), "what has left on another path has a timeout of its own");
    assert!(sender.probe(PathId::ZERO, 1));
    assert!(!sender.probe(PathId::ZERO, 1), "they wait to be sent");
    assert_eq!(covered(&mut sender), (2, 3));
    (2..5).for_each(|id| sender.on_acked(SymbolId(id)));
    assert!(!sender.probe(PathId::ZERO, 1), "all have arrived");
}

#[test]
fn a_probe_repairs_nothing_where_the_first_in_flight_is_older_than_the_window() {
    let mut sender = sender(TAIL, FecCode::Rlc);
    let window = u64::from(FecConfig::default().window);
    send(&mut sender, window);
    assert!(sender.probe(PathId::ZERO, 1), "it is the oldest that can be repaired");
    assert_eq!(covered(&mut sender), (0, window as u16));
    send(&mut sender, 1);
    assert!(!sender.probe(PathId::ZERO, 1));
}

#[test]
fn a_datagram_that_a_symbol_has_no_room_for_is_not_protected() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    let kept = sender.repairs.overhead() + fulmar_fec::LENGTH_BYTES;
    let datagram = |datagram| Upcoming { datagram: Some(datagram), ..stream(None) };
    assert!(is_symbol(&mut sender, 1_200, datagram(1_200 - kept)));
    assert!(!is_symbol(&mut sender, 1_200, datagram(1_200 - kept + 1)));
}

#[test]
fn a_packet_far_longer_than_the_longest_symbol_is_not_cut_for_one() {
    let peer = FecParameters { symbol: VarInt::from_u32(1_000), ..FecConfig::default().parameters() };
    let mut sender = FecSender::new(&FecConfig { mode: TAIL, ..FecConfig::default() }, &peer).unwrap();
    let kept = sender.repairs.overhead() + fulmar_fec::LENGTH_BYTES;
    let bulk = Upcoming { backlog: 10_000, ..stream(None) };
    assert!(is_symbol(&mut sender, 1_000 + CUT_MAX + kept, bulk));
    assert!(!is_symbol(&mut sender, 1_000 + CUT_MAX + kept + 1, bulk));
    assert!(!is_symbol(&mut sender, kept - 1, stream(None)), "no room");
}

#[test]
fn in_long_packets_what_fits_a_symbol_is_protected() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    let mut is_symbol = |next| is_symbol(&mut sender, 9_000, next);
    let datagram = |datagram| Upcoming { datagram: Some(datagram), backlog: 100_000, ..stream(None) };
    assert!(is_symbol(datagram(100)) && is_symbol(datagram(1_500)));
    assert!(!is_symbol(datagram(1_501)));
    let backlog = |backlog| Upcoming { backlog, ..stream(None) };
    assert!(is_symbol(backlog(0)) && is_symbol(backlog(1_481)), "the end of a stream");
    assert!(!is_symbol(backlog(1_482)), "bulk data");
}

#[test]
fn repairs_cost_no_more_than_their_share_of_what_is_sent() {
    let config = FecConfig { overhead_max: 0.1, ..FecConfig::default() };
    let mut sender = FecSender::new(&config, &config.parameters()).unwrap();
    let mut sent = 0;
    for _ in 0..80 {
        send(&mut sender, 5);
        sender.schedule(Instant::ZERO, true, &PATH);
        sent += repairs(&mut sender);
        lose_one_of_five(&mut sender);
    }
    assert!((50..=60).contains(&sent), "16, and a tenth of 400: {sent}");
}

#[test]
fn a_path_that_loses_nothing_gets_few_repairs() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    let mut sent = 0;
    for id in 0..2_000 {
        send(&mut sender, 1);
        sender.schedule(Instant::ZERO, true, &PATH);
        sent += repairs(&mut sender);
        sender.on_acked(SymbolId(id));
    }
    assert!((16..=60).contains(&sent), "{sent}");
}

#[test]
fn a_packet_that_was_only_late_is_no_loss() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    send(&mut sender, 2);
    let rate = sender.losses.loss_rate();
    assert!(sender.on_lost(Instant::ZERO, SymbolId(0)).resend);
    assert!(sender.losses.loss_rate() > 1.5 * rate);
    sender.on_spurious(SymbolId(0));
    sender.on_spurious(SymbolId(0));
    sender.on_spurious(SymbolId(1));
    assert!(sender.losses.loss_rate() < rate);
    assert_eq!((sender.stats().symbols_lost, sender.losses.lost()), (0, 0));
    sender.on_acked(SymbolId(1));
    assert_eq!(sender.sent.unresolved(), 0);
}

#[test]
fn what_has_arrived_takes_no_memory() {
    let memory_after = |rounds: u32| {
        let mut sender = sender(TAIL, FecCode::ReedSolomon);
        for round in 0..rounds {
            send(&mut sender, 10);
            (10 * round..10 * (round + 1)).for_each(|id| sender.on_acked(SymbolId(id)));
        }
        sender.sent.memory()
    };
    assert_eq!(memory_after(200), memory_after(20));
}

#[test]
fn losses_that_were_none_bring_no_repairs() {
    let repairs_after = |is_late: bool| {
        let mut sender = sender(TAIL, FecCode::ReedSolomon);
        send(&mut sender, 200);
        for id in (0..200).map(SymbolId) {
            if id.0 % 10 > 0 {
                sender.on_acked(id);
                continue;
            }
            sender.on_lost(Instant::ZERO, id);
            if is_late {
                sender.on_spurious(id);
            }
        }
        send(&mut sender, 30);
        sender.schedule(Instant::ZERO, true, &PATH);
        sender.repairs.waiting()
    };
    let (lost, late) = (repairs_after(false), repairs_after(true));
    assert!(late < lost, "{late}, where packets were lost {lost}");
}

#[test]
fn repairs_at_an_end_yield_to_data_and_others_do_not() {
    let mut tail = sender(TAIL, FecCode::ReedSolomon);
    send(&mut tail, 8);
    tail.schedule(Instant::ZERO, true, &PATH);
    assert_eq!(tail.repairs.waiting(), 3);
    tail.yield_to_data(Instant::ZERO);
    assert!(!tail.has_repairs());
    send(&mut tail, 1);
    tail.schedule(Instant::ZERO, true, &PATH);
    assert_eq!(covered(&mut tail), (0, 9), "made again for all that was sent by then");
    let _ = repairs(&mut tail);
    assert!(tail.probe(PathId::ZERO, 2));
    tail.yield_to_data(Instant::ZERO);
    assert!(!tail.has_repairs(), "data is as good a probe");
    let mut constant = sender(FecMode::Constant { source: 4, repair: 2 }, FecCode::ReedSolomon);
    send(&mut constant, 4);
    constant.schedule(Instant::ZERO, false, &PATH);
    constant.yield_to_data(Instant::ZERO);
    assert_eq!(repairs(&mut constant), 2);
}

#[test]
fn few_repairs_wait_however_many_are_ordered() {
    let mut sender = sender(FecMode::Constant { source: 1, repair: 1 }, FecCode::Rlc);
    send(&mut sender, 200);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!(repairs(&mut sender), 64);
    sender.obey(&Order { first: 0, count: 10, repairs: 100 }, Some(Protection::Constant));
    assert_eq!(repairs(&mut sender), 64);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!(repairs(&mut sender), 64, "the others follow");
}

#[test]
fn what_becomes_of_repairs_is_counted() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    send(&mut sender, 10);
    for acked in [true, true, false] {
        sender.on_repair_delivery(0, 10, acked);
    }
    let stats = sender.stats();
    assert_eq!((stats.repairs_acked, stats.repairs_lost), (2, 1));
}

#[test]
fn of_symbols_that_the_peer_has_in_dialect_m_those_count_as_recovered_whose_packets_were_lost() {
    let mut sender = FecSender::in_blocks(&FecConfig::default(), BlockCode::ReedSolomon);
    send(&mut sender, 6);
    for id in [1, 2] {
        assert!(sender.on_lost(Instant::ZERO, SymbolId(id)).resend);
    }
    // SYMBOL_ACK: the ids 0 to 4.
    let bytes = b"\xc0\x00\x00\x32\xa8\x0f\xec\xac\x04\x00\x04";
    let mut read = frames(bytes, Dialect::SinglePath);
    let Some(Ok(Frame::SymbolAck(ack))) = read.next() else { panic!("no SYMBOL_ACK") };
    assert_eq!(sender.on_symbol_ack(&ack).unwrap().len(), 5);
    assert_eq!(sender.stats().symbols_recovered, 2);
    assert_eq!((sender.sent.unresolved(), sender.sent.end()), (1, 6));
}

#[test]
fn repairs_by_sums_share_what_they_cover() {
    let mut sender = sender(FecMode::Constant { source: 9, repair: 2 }, FecCode::Xor);
    send(&mut sender, 18);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!([(); 4].map(|()| covered(&mut sender)), [(0, 4), (4, 5), (9, 4), (13, 5)]);
    // More repair symbols than source symbols: they begin again.
    send(&mut sender, 2);
    sender.obey(&Order { first: 18, count: 2, repairs: 3 }, Some(Protection::Constant));
    assert_eq!([(); 3].map(|()| covered(&mut sender)), [(18, 1), (19, 1), (18, 1)]);
}

#[test]
fn the_largest_block_is_repaired_from_its_first_symbol_on() {
    let mut sender = sender(FecMode::Constant { source: 200, repair: 55 }, FecCode::ReedSolomon);
    send(&mut sender, 200);
    sender.schedule(Instant::ZERO, false, &PATH);
    assert_eq!([(); 55].map(|()| covered(&mut sender)), [(0, 200); 55]);
    assert!(!sender.has_repairs());
}

#[test]
fn a_repair_is_as_long_as_the_longest_symbol_and_what_goes_before_it() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    assert_eq!(sender.repair_len_max(), sender.repairs.overhead());
    send(&mut sender, 1);
    assert!(sender.probe(PathId::ZERO, 1));
    let len = sender.repair_len_max();
    let mut payload = [0; 1_200];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    sender.write(Instant::ZERO, 1_200, &mut out);
    let written = out.finish().len;
    assert!((written..=written + 4).contains(&len), "{len} for {written} bytes");
}

#[test]
fn the_first_window_of_an_epoch_holds() {
    let mut sender = FecSender::in_blocks(&FecConfig::default(), BlockCode::Xor);
    for size in [1, 2] {
        sender.on_window(&FecWindow { epoch: VarInt::from_u32(1), size: VarInt::from_u32(size) });
        send(&mut sender, 2);
        sender.schedule(Instant::ZERO, false, &PATH);
        assert_eq!(repairs(&mut sender), 0);
    }
}

/// How many repair symbols are sent at once for the next four symbols, which have a deadline.
fn repairs_in_time(sender: &mut FecSender) -> u64 {
    send(sender, 4);
    sender.schedule(Instant::ZERO, false, &PATH);
    repairs(sender)
}

#[test]
fn what_has_a_deadline_is_repaired_in_time_as_long_as_that_helps() {
    let mut sender = sender(FecMode::Deadline { within: RTT }, FecCode::ReedSolomon);
    for id in 0..60 {
        send(&mut sender, 1);
        match id % 3 {
            0 => drop(sender.on_lost(Instant::ZERO, SymbolId(id))),
            _ => sender.on_acked(SymbolId(id)),
        }
    }
    assert!(repairs_in_time(&mut sender) > 0);
    let first = sender.sent.end();
    let unused = |sender: &mut FecSender, acked| {
        let first = sender.sent.end();
        send(sender, 4);
        (0..200).for_each(|_| sender.on_repair_delivery(first, 4, acked));
        (first..first + 4).for_each(|id| sender.on_acked(SymbolId(id as u32)));
    };
    unused(&mut sender, false);
    assert!(repairs_in_time(&mut sender) > 0, "those that are lost show nothing");
    unused(&mut sender, true);
    assert_eq!(repairs_in_time(&mut sender), 0, "they have not helped");
    let report = |first: u64| FecRecovered { first: VarInt::saturating(first), more: 0 };
    sender.on_recovered(&report(first)).unwrap();
    assert_eq!(repairs_in_time(&mut sender), 0, "that is no news");
    let last = sender.sent.end() - 1;
    assert_eq!(sender.on_recovered(&report(last)).unwrap().len(), 1);
    assert!(repairs_in_time(&mut sender) > 0, "they help again");
}

#[test]
fn no_sum_is_made_for_losses_of_several_blocks() {
    let mode = FecMode::Constant { source: 4, repair: 1 };
    let mut sender = sender(mode, FecCode::Xor);
    for _ in 0..2 {
        send(&mut sender, 4);
        sender.schedule(Instant::ZERO, true, &PATH);
        let _ = repairs(&mut sender);
    }
    for id in [1, 6] {
        let _ = sender.on_lost(Instant::ZERO + RTT, SymbolId(id));
    }
    sender.schedule(Instant::ZERO + RTT, true, &PATH);
    assert!(!sender.has_repairs());
}
