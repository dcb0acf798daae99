use fulmar_wire::{PathId, VarInt};

use super::words::TEXT_PART_MAX;
use super::*;

fn mtu(log: &ConnectionLog) -> Vec<u16> {
    log.iter()
        .map(|entry| match entry.event {
            LogEvent::Mtu { bytes, .. } => bytes,
            other => panic!("{other:?} was not put in"),
        })
        .collect()
}

fn of_mtu(bytes: u16) -> LogEvent {
    LogEvent::Mtu { path: PathId::ZERO, bytes }
}

#[test]
fn the_oldest_entries_are_overwritten_and_counted() {
    let mut log = ConnectionLog::new(3);
    for number in 1..=5 {
        log.push(Instant::from_millis(number), of_mtu(number as u16));
    }
    assert_eq!(mtu(&log), [3, 4, 5]);
    assert_eq!((log.len(), log.capacity(), log.overwritten()), (3, 3, 2));
}

#[test]
fn a_drained_log_starts_anew() {
    let mut log = ConnectionLog::new(3);
    let mut out = Vec::new();
    for number in 1..=4 {
        log.push(Instant::ZERO, of_mtu(number));
    }
    assert!(!log.is_empty());
    assert_eq!(log.drain_into(&mut out), 1);
    assert!(log.is_empty());
    log.push(Instant::ZERO, of_mtu(9));
    assert_eq!((log.drain_into(&mut out), out.len()), (0, 4));
    let last = out.last().map(|entry| entry.event);
    assert_eq!(last, Some(of_mtu(9)));
}

#[test]
fn the_memory_is_taken_once() {
    let mut log = ConnectionLog::new(1_000);
    let (before, memory) = (log.entries.as_ptr(), log.entries.capacity());
    for number in 0..5_000 {
        log.push(Instant::ZERO, of_mtu(number));
    }
    assert_eq!((log.entries.as_ptr(), log.entries.capacity()), (before, memory));
}

#[test]
fn figures_are_noted_when_they_are_different() {
    let (mut log, path, totals) = (ConnectionLog::new(100), PathId::ZERO, Totals::default());
    let mut figures = Figures { window: (12_000, 0), phase: "slow start", ..Figures::default() };
    log.push_figures(Instant::ZERO, path, &figures, &totals);
    log.push_figures(Instant::ZERO, path, &figures, &totals);
    assert_eq!(log.len(), 2, "window and phase, once");
    figures.window.1 = 1_200;
    log.push_figures(Instant::from_millis(1), path, &figures, &totals);
    let last = log.iter().last().map(|entry| entry.event);
    assert_eq!(last, Some(LogEvent::Window { path, window: 12_000, in_flight: 1_200 }));
}

#[test]
fn figures_of_a_path_are_compared_with_its_own() {
    let mut log = ConnectionLog::new(100);
    let of = |window| Figures { window: (window, 0), ..Figures::default() };
    let (first, second) = (PathId::ZERO, PathId(1));
    for _ in 0..3 {
        log.push_figures(Instant::ZERO, first, &of(12_000), &Totals::default());
        log.push_figures(Instant::ZERO, second, &of(9_000), &Totals::default());
    }
    let noted: Vec<LogEvent> = log.iter().map(|entry| entry.event).collect();
    let window = |path, window| LogEvent::Window { path, window, in_flight: 0 };
    assert_eq!(noted, [window(first, 12_000), window(second, 9_000)]);
    // What the connection has in common is noted once, whichever path tells it.
    let totals = Totals { datagrams_dropped: (1, 0), ..Totals::default() };
    log.push_figures(Instant::ZERO, second, &of(9_000), &totals);
    log.push_figures(Instant::ZERO, first, &of(12_000), &totals);
    assert_eq!(log.len(), 3);
}

#[test]
fn a_path_that_is_gone_takes_no_memory() {
    let mut log = ConnectionLog::new(10);
    for path in (0..1_000).map(PathId) {
        log.push_figures(Instant::ZERO, path, &Figures::default(), &Totals::default());
        log.forget_path(path);
    }
    assert!(log.seen.paths.capacity() < 10);
}

#[test]
fn addresses_are_noted_as_they_are() {
    let mut log = ConnectionLog::new(10);
    let addrs = |remote: &str, local: &str| {
        crate::datagram::FourTuple::new(remote.parse().unwrap(), Some(local.parse().unwrap()))
    };
    let (v4, v6) = (addrs("192.0.2.1:443", "192.0.2.9"), addrs("[2001:db8::1]:444", "2001:db8::9"));
    let mapped = |last| [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, last];
    let plain = |last| [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    for (addrs, local, remote) in [(v4, mapped(9), (mapped(1), 443)), (v6, plain(9), (plain(1), 444))] {
        assert_eq!(log.push_local(Instant::ZERO, &addrs), remote);
        assert_eq!(log.iter().last().map(|entry| entry.event), Some(LogEvent::LocalAddress { ip: local }));
        let observed = LogEvent::observed_address(addrs.remote);
        assert_eq!(observed, LogEvent::ObservedAddress { ip: remote.0, port: remote.1 });
    }
}

#[test]
fn the_ranges_of_an_ack_have_their_path_their_first_and_their_last_packet() {
    let mut log = ConnectionLog::new(10);
    let mut ranges = fulmar_base::RangeSet::new();
    for range in [2..5, 8..9] {
        ranges.insert(range);
    }
    let (path, delay) = (PathId(3), VarInt::from_u32(0));
    let ack = AckEncoder { path, delay, ranges: &ranges, ecn: None, max_ranges: 10 };
    log.push_ack(Instant::ZERO, &ack, 2);
    let found: Vec<_> = log
        .iter()
        .filter_map(|entry| match entry.event {
            LogEvent::AckRange { path: PathId(3), first, last } => Some((first, last)),
            _ => None,
        })
        .collect();
    assert_eq!(found, [(8, 8), (2, 4)]);
}

#[test]
fn the_last_part_of_a_text_says_that_it_is_the_last() {
    for (length, goes_on) in [
        (0, vec![false]),
        (TEXT_PART_MAX, vec![false]),
        (TEXT_PART_MAX + 1, vec![true, false]),
        (2 * TEXT_PART_MAX, vec![true, false]),
    ] {
        let parts: Vec<LogText> = LogText::parts(TextKind::Alpn, &vec![b'a'; length]).collect();
        assert_eq!(parts.iter().map(|part| part.goes_on).collect::<Vec<_>>(), goes_on, "{length} bytes");
        assert_eq!(parts.iter().map(|part| part.as_bytes().len()).sum::<usize>(), length);
    }
}
