//! What was lost waits for repair symbols, or is sent again.

use super::*;

#[test]
fn what_is_lost_waits_for_all_repairs_over_it() {
    let mut payload = [0; 1_200];
    let mut write = |sender: &mut FecSender, now| {
        sender.write(now, 1_200, &mut FrameWriter::new(&mut payload, Dialect::SinglePath));
    };
    let mut held = |at: &[Duration]| {
        let mut sender = sender(TAIL, FecCode::ReedSolomon);
        send(&mut sender, 8);
        sender.schedule(Instant::ZERO, true, &PATH);
        at.iter().for_each(|at| write(&mut sender, Instant::ZERO + *at));
        (!sender.on_lost(Instant::ZERO + RTT, SymbolId(3)).resend)
            .then(|| sender.sent.next_timeout().unwrap())
    };
    assert_eq!(held(&[]), None, "none has left");
    assert_eq!(held(&[RTT / 8]), Some(Instant::ZERO + RTT / 8 + RTT * 9 / 8));
    // It has arrived when a retransmission would, half of a round trip after the loss is known.
    assert_eq!(held(&[RTT / 8, RTT]), Some(Instant::ZERO + RTT + RTT * 9 / 8));
}

/// A packet without data leaves, as one with a repair symbol.
fn leave_without_data(sender: &mut FecSender) {
    let mut payload = [0; 1_200];
    let mut out = FrameWriter::new(&mut payload, Dialect::SinglePath);
    sender.begin(stream(None), &mut out);
    out.write_untracked(&Frame::Ping);
    sender.end_symbol(Instant::ZERO, PathId::ZERO, &mut out);
    sender.schedule(Instant::ZERO, false, &PATH);
}

/// Four of eight symbols with three repair symbols are lost, and data has left meanwhile unless this end is `idle`. Returns how many of them are sent again.
fn lose_four(sender: &mut FecSender, idle: bool) -> usize {
    send(sender, 8);
    sender.schedule(Instant::ZERO, true, &PATH);
    assert_eq!(repairs(sender), 3);
    match idle {
        true => leave_without_data(sender),
        false => send(sender, 1),
    }
    let resent = (0..4).filter(|id| sender.on_lost(Instant::ZERO + RTT, SymbolId(*id)).resend).count();
    resent + sender.take_released().len()
}

#[test]
fn where_nothing_else_is_to_be_sent_repairs_take_the_place_of_copies() {
    let lost = |idle| {
        let mut sender = sender(TAIL, FecCode::ReedSolomon);
        let resent = lose_four(&mut sender, idle);
        (sender, resent)
    };
    assert_eq!(lost(false).1, 4, "there is data that would wait behind them");
    let (mut sender, resent) = lost(true);
    assert_eq!(resent, 0);
    sender.schedule(Instant::ZERO + RTT, true, &PATH);
    assert!(sender.has_repairs());
    assert_eq!(covered(&mut sender), (0, 8));
    let _ = repairs(&mut sender);
    sender.yield_to_data(Instant::ZERO);
    assert!(sender.take_released().is_empty(), "they have left");
    // Data comes before they leave.
    let mut sender = lost(true).0;
    sender.schedule(Instant::ZERO + RTT, true, &PATH);
    sender.yield_to_data(Instant::ZERO);
    assert_eq!(sender.take_released().len(), 4);
    // There was data before they were made.
    let mut sender = lost(true).0;
    send(&mut sender, 1);
    sender.schedule(Instant::ZERO + RTT, false, &PATH);
    assert_eq!(sender.take_released().len(), 4);
    // A sum over all of them repairs one loss.
    let mut xor = super::sender(TAIL, FecCode::Xor);
    assert_eq!(lose_four(&mut xor, true), 4);
}

#[test]
fn copies_are_spared_of_what_repairs_in_flight_cover() {
    let mut sender = sender(TAIL, FecCode::ReedSolomon);
    send(&mut sender, 1);
    assert!(!sender.covers(SymbolId(0)), "none was made");
    sender.schedule(Instant::ZERO, true, &PATH);
    assert!(!sender.covers(SymbolId(0)), "it waits");
    assert_eq!(repairs(&mut sender), 1);
    assert!(sender.covers(SymbolId(0)) && !sender.covers(SymbolId(1)));
    sender.on_repair_delivery(0, 1, false);
    assert!(!sender.covers(SymbolId(0)), "it is lost");
}

/// Whether a lost symbol is held back for two repair symbols over it and seven others.
fn is_held(sender: &mut FecSender) -> bool {
    let first = sender.sent.end() as u32;
    send(sender, 8);
    assert!(sender.probe(PathId::ZERO, 2));
    assert_eq!([(); 2].map(|()| covered(sender).1), [8, 8]);
    !sender.on_lost(Instant::ZERO, SymbolId(first + 3)).resend
}

#[test]
fn repairs_are_waited_for_by_what_was_lost_lately() {
    let tail = || {
        let mut sender = sender(TAIL, FecCode::ReedSolomon);
        sender.schedule(Instant::ZERO, false, &PATH);
        sender
    };
    assert!(is_held(&mut tail()), "nothing was lost so far");
    for is_reported in [false, true] {
        let mut sender = tail();
        for id in 0..400 {
            send(&mut sender, 1);
            let report = FecRecovered { first: VarInt::from_u32(id), more: 0 };
            match id % 3 {
                0 if is_reported => drop(sender.on_recovered(&report).unwrap()),
                0 => drop(sender.on_lost(Instant::ZERO, SymbolId(id))),
                _ => sender.on_acked(SymbolId(id)),
            }
        }
        assert!(!is_held(&mut sender), "more than two of ten are to be expected");
    }
}
