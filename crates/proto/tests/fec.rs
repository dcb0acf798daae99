//! Forward erasure correction between two ends.

mod pair;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use fulmar_proto::congestion::{CongestionControl, PragueConfig};
use fulmar_proto::{ConnectionStats, Dir, FecCode, FecConfig, FecMode, Side, TransportConfig};
use pair::{Flying, Pair, Wire};

#[test]
fn a_constant_rate_is_kept_in_bulk() {
    for (code, source, repair) in
        [(FecCode::ReedSolomon, 20, 10), (FecCode::Rlc, 10, 2), (FecCode::Xor, 2, 1)]
    {
        let fec = FecConfig { mode: FecMode::Constant { source, repair }, code, ..FecConfig::default() };
        let config = || TransportConfig { fec: Some(fec), ..TransportConfig::default() };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(100));
        pair.transfer(Side::Server, 1_000_000, Duration::from_secs(10));
        let stats = pair.server.conn().stats().fec.expect("both ends have it");
        let blocks = stats.symbols_sent / u64::from(source);
        assert!(blocks > 30, "{stats:?}");
        assert_eq!(stats.repairs_sent, blocks * u64::from(repair), "{code:?} {stats:?}");
    }
}

#[test]
fn the_bulk_of_a_long_transfer_takes_as_many_packets_as_without_protection() {
    let packets = |fec: Option<FecConfig>| {
        // All of it may leave as soon as congestion control allows, by a window that doubles at most: there is always more to send.
        let config = || TransportConfig {
            congestion: CongestionControl::Prague(PragueConfig::default()),
            fec,
            stream_receive_window: 20 << 20,
            stream_receive_window_max: 20 << 20,
            receive_window: 20 << 20,
            receive_window_max: 20 << 20,
            send_window: 20 << 20,
            ..TransportConfig::default()
        };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(100));
        pair.transfer(Side::Server, 10_000_000, Duration::from_secs(10));
        let stats = pair.server.conn().stats();
        (stats.packets_sent, stats.fec.map(|fec| fec.symbols_sent))
    };
    let (without, _) = packets(None);
    let (with, symbols) = packets(Some(FecConfig::default()));
    let symbols = symbols.expect("both ends have it");
    // The window that repair symbols at the end cover, a few small packets, and what is buffered in the first round trips: while the
    // capacity is searched for, that might be all there is.
    assert!((200..600).contains(&symbols), "{symbols}");
    assert!(with <= without + 20, "{with} packets, {without} without");
}

#[test]
fn what_repair_symbols_cover_has_no_copies() {
    let packets = |fec, idle_duplicates| {
        let config = || TransportConfig { fec, idle_duplicates, ..TransportConfig::default() };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(200));
        let before = pair.server.sent.len();
        let streams = pair.server.conn().streams();
        let id = streams.open(Dir::Uni).unwrap();
        assert_eq!(streams.send(id).write(&[1; 6_000]).unwrap(), 6_000);
        streams.send(id).finish().unwrap();
        pair.run_for(Duration::from_millis(10));
        pair.server.sent.len() - before
    };
    assert!(packets(None, true) > packets(None, false), "copies of all");
    let fec = Some(FecConfig::default());
    assert_eq!(packets(fec, true), packets(fec, false));
}

#[test]
fn the_second_half_of_the_repairs_at_an_end_waits_for_nothing_but_its_time() {
    let config = || TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
    let mut pair = Pair::new(config(), config());
    pair.run_for(Duration::from_millis(200));
    let (start, times) = (pair.now, Rc::new(RefCell::new(Vec::new())));
    let seen = Rc::clone(&times);
    pair.server.wire = Box::new(move |flying| {
        seen.borrow_mut().push(flying.at - start);
        vec![flying]
    });
    let streams = pair.server.conn().streams();
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.send(id).write(&[1; 6_000]).unwrap(), 6_000);
    streams.send(id).finish().unwrap();
    pair.run_for(Duration::from_millis(8));
    // An eighth of the round trip later, which is 10 ms and what acknowledgements wait, before anything can have come back.
    let last = *times.borrow().last().expect("something was sent");
    assert!(Duration::from_millis(1) < last && last < Duration::from_millis(4), "{:?}", times.borrow());
    assert!(pair.server.conn().stats().fec.expect("both ends have it").repairs_sent >= 2);
}

#[test]
fn a_recovery_is_not_reported_again_once_the_report_was_acknowledged() {
    let config = || TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
    let mut pair = Pair::new(config(), config());
    pair.run_for(Duration::from_millis(200));
    let mut count = 0;
    pair.server.wire = Box::new(move |flying| {
        count += 1;
        if count == 2 { Vec::new() } else { vec![flying] }
    });
    pair.transfer(Side::Server, 6_000, Duration::from_secs(1));
    pair.run_for(Duration::from_millis(200));
    let recovered =
        |pair: &mut Pair| pair.server.conn().stats().fec.expect("both ends have it").symbols_recovered;
    assert_eq!(recovered(&mut pair), 1);
    let sent =
        |pair: &mut Pair| pair.client.conn().stats().packets_sent + pair.server.conn().stats().packets_sent;
    let before = sent(&mut pair);
    pair.run_for(Duration::from_secs(3));
    assert!(sent(&mut pair) <= before + 2, "{} packets after {before}", sent(&mut pair));
    assert_eq!(recovered(&mut pair), 1);
}

/// Repair symbols that the server has sent, and those of which it is told what became of them, when a short transfer is over.
fn repairs_and_verdicts(len: usize, wire: Wire) -> (u64, u64, ConnectionStats) {
    let config = || TransportConfig { fec: Some(FecConfig::default()), ..TransportConfig::default() };
    let mut pair = Pair::new(config(), config());
    pair.run_for(Duration::from_millis(200));
    pair.server.wire = wire;
    pair.transfer(Side::Server, len, Duration::from_secs(2));
    pair.run_for(Duration::from_secs(1));
    let stats = pair.server.conn().stats();
    let fec = stats.fec.expect("both ends have it");
    (fec.repairs_sent, fec.repairs_acked + fec.repairs_lost, stats)
}

#[test]
fn a_repair_whose_packet_a_probe_has_repeated_has_a_verdict() {
    // What arrives first is what the second probe timeout has sent: the packet, and what was in the one of its repair symbol.
    let mut first = None;
    let wire = Box::new(move |flying: Flying| {
        let start = *first.get_or_insert(flying.at);
        if flying.at < start + Duration::from_millis(100) { Vec::new() } else { vec![flying] }
    });
    let (sent, verdicts, stats) = repairs_and_verdicts(500, wire);
    assert!(stats.packets_lost > 2, "{stats:?}");
    assert!(sent > 1, "{stats:?}");
    assert_eq!(verdicts, sent, "{stats:?}");
}

#[test]
fn a_repair_that_arrives_after_it_was_taken_for_lost_has_one_verdict() {
    let mut spurious = 0;
    // One packet after the other is overtaken by what follows, source symbols and repair symbols.
    for late in 1..=8 {
        let mut count = 0;
        let wire = Box::new(move |flying: Flying| {
            count += 1;
            let delay = Duration::from_millis(if count == late { 30 } else { 0 });
            vec![Flying { at: flying.at + delay, ..flying }]
        });
        let (sent, verdicts, stats) = repairs_and_verdicts(6_000, wire);
        assert_eq!(verdicts, sent, "packet {late}: {stats:?}");
        spurious += stats.packets_spurious;
    }
    assert!(spurious > 5, "{spurious}");
}

#[test]
fn what_is_sent_again_has_a_copy_where_no_repair_takes_its_place() {
    let packets = |preemptive_repeat| {
        let fec = Some(FecConfig { overhead_max: 0.0, ..FecConfig::default() });
        let config = || TransportConfig { fec, preemptive_repeat, ..TransportConfig::default() };
        let mut pair = Pair::new(config(), config());
        pair.run_for(Duration::from_millis(200));
        // Uses up what is not counted.
        for _ in 0..25 {
            pair.transfer(Side::Server, 500, Duration::from_secs(1));
            pair.run_for(Duration::from_millis(200));
        }
        let before = pair.server.conn().stats();
        let mut count = 0;
        pair.server.wire = Box::new(move |flying| {
            count += 1;
            if count == 2 { Vec::new() } else { vec![flying] }
        });
        pair.transfer(Side::Server, 6_000, Duration::from_secs(1));
        pair.run_for(Duration::from_millis(200));
        let after = pair.server.conn().stats();
        let repairs = |stats: &ConnectionStats| stats.fec.expect("both ends have it").repairs_sent;
        assert_eq!(repairs(&after), repairs(&before), "they are used up");
        after.packets_sent - before.packets_sent
    };
    assert_eq!(packets(true), packets(false) + 1);
}
