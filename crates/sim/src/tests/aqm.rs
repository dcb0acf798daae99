//! Queues that drop and mark before they are full.

use super::*;
use crate::{Aqm, Change, CoDel, DropReason, DualQ, QueueLimit, Red};

/// 10 Mbit/s: 1,250 bytes take a millisecond.
fn managed(aqm: Aqm) -> LinkConfig {
    let queue = QueueLimit { bytes: Some(1_000_000), time: None };
    LinkConfig { rate_bps: Some(10_000_000), queue, aqm, ..LinkConfig::default() }
}

/// A stream of packets of 1,250 bytes with one ECN codepoint.
#[derive(Clone, Copy)]
struct Stream {
    ecn: Ecn,
    interval: Duration,
}

fn stream(ecn: Ecn, rate_kbps: u32) -> Stream {
    // 10 Mbit in microseconds, per kbit.
    Stream { ecn, interval: Duration::from_micros(10_000_000) / rate_kbps }
}

/// Sends the streams for a time; returns the deliveries.
fn run(line: &mut Line, streams: &[Stream], duration: Duration) -> Vec<Delivery> {
    let start = line.world.now();
    let mut due = vec![start; streams.len()];
    let mut deliveries = Vec::new();
    while let Some((next, at)) = due.iter().copied().enumerate().min_by_key(|(_, at)| *at)
        && at < start + duration
    {
        while line.world.now() < at {
            line.world.advance(at);
            deliveries.extend(std::iter::from_fn(|| line.world.poll_delivery()));
        }
        line.world.send(line.a, Packet::new(address(1), address(2), streams[next].ecn, vec![0; 1_250]));
        due[next] = at + streams[next].interval;
    }
    deliveries.extend(line.drain());
    deliveries
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[test]
fn a_link_that_is_not_full_is_left_alone() {
    let red = Aqm::Red(Red::between(12_500, 37_500));
    for aqm in [Aqm::DropTail, red, Aqm::CoDel(CoDel::default()), Aqm::DualQ(DualQ::default())] {
        let mut line = Line::new(1, managed(aqm));
        let streams = [stream(Ecn::NotEct, 4_000), stream(Ecn::Ect1, 4_000)];
        run(&mut line, &streams, Duration::from_secs(5));
        let stats = line.stats();
        assert_eq!((stats.packets_dropped_in_all(), stats.packets_marked), (0, 0), "{aqm:?}");
    }
}

#[test]
fn the_limit_holds_for_every_discipline() {
    let red = Aqm::Red(Red::between(125_000, 375_000));
    for aqm in [Aqm::DropTail, red, Aqm::CoDel(CoDel::default()), Aqm::DualQ(DualQ::default())] {
        let config = LinkConfig { queue: QueueLimit { bytes: Some(5_000), time: None }, ..managed(aqm) };
        let mut line = Line::new(1, config);
        for n in 0..10 {
            line.send(n, 1_250);
        }
        assert_eq!(line.drain().len(), 5, "{aqm:?}");
        assert_eq!(line.stats().packets_dropped(DropReason::QueueFull), 5, "{aqm:?}");
    }
}

#[test]
fn red_drops_the_exact_share_if_it_is_told_to() {
    // The average follows at once, and halfway between the thresholds half of the packets are due: a load of twice the
    // rate settles there.
    let exact = Red { weight: 1.0, probability_max: 1.0, exact_share: true, ..Red::between(12_500, 320_000) };
    let mut line = Line::new(1, managed(Aqm::Red(exact)));
    line.world.record(line.link, line.a, millis(10));
    run(&mut line, &[stream(Ecn::NotEct, 20_000)], Duration::from_secs(30));
    let trace = line.world.link_trace(line.link, line.a).expect("it is recorded");
    let later = trace.queue.iter().filter(|sample| sample.at > Instant::from_millis(5_000));
    let (sum, count) = later.fold((0, 0), |(sum, count), sample| (sum + sample.bytes, count + 1));
    let average = sum / count;
    assert!((22_500..220_000).contains(&average), "{average}");
}

#[test]
fn red_keeps_the_average_between_the_thresholds() {
    let red = Red { weight: 0.02, probability_max: 0.5, ..Red::between(12_500, 37_500) };
    let mut line = Line::new(1, managed(Aqm::Red(red)));
    line.world.record(line.link, line.a, millis(10));
    // A fifth too much.
    run(&mut line, &[stream(Ecn::NotEct, 12_500)], Duration::from_secs(30));
    let dropped = share(line.stats().packets_dropped(DropReason::Aqm), line.stats().packets_sent);
    assert!((0.19..0.21).contains(&dropped), "{dropped}");
    let trace = line.world.link_trace(line.link, line.a).expect("it is recorded");
    let later = trace.queue.iter().filter(|sample| sample.at > Instant::from_millis(5_000));
    let (sum, count) = later.fold((0, 0), |(sum, count), sample| (sum + sample.bytes, count + 1));
    // A probability of 0.2 is due at two fifths of the way from one threshold to the other; that the chosen
    // packets are spread evenly makes it more often, and so earlier.
    let average = sum / count;
    assert!((15_000..26_000).contains(&average), "{average}");
    assert_eq!(line.stats().packets_marked, 0);
}

#[test]
fn red_marks_where_it_may() {
    let red = Red { ecn: true, weight: 0.02, probability_max: 0.3, ..Red::between(12_500, 37_500) };
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::NotEct, false)] {
        let mut line = Line::new(1, managed(Aqm::Red(red)));
        let deliveries = run(&mut line, &[stream(ecn, 10_500)], millis(500));
        let stats = line.stats();
        assert_eq!(stats.packets_marked > 10, marks, "{stats:?}");
        assert_eq!(stats.packets_dropped(DropReason::Aqm) > 10, !marks, "{stats:?}");
        let arrived = deliveries.iter().filter(|delivery| delivery.packet.ecn == Ecn::Ce).count();
        assert_eq!(arrived as u64, stats.packets_marked);
    }
}

#[test]
fn red_drops_everything_above_the_upper_threshold_and_forgets_when_idle() {
    let red = Red { weight: 1.0, ecn: true, ..Red::between(2_500, 5_000) };
    let mut line = Line::new(1, managed(Aqm::Red(red)));
    for _ in 0..20 {
        line.world.send(line.a, Packet::new(address(1), address(2), Ecn::Ect0, vec![0; 1_250]));
    }
    // One is sent; four wait when the average reaches the threshold.
    assert_eq!(line.drain().len(), 5);

    // An average that moves slowly is high still when the queue is long empty, unless the idle time counts.
    let red = Red { weight: 0.01, ..Red::between(1_000, 40_000) };
    let idle = |wait_ms: u64| {
        let mut line = Line::new(3, managed(Aqm::Red(red)));
        run(&mut line, &[stream(Ecn::NotEct, 12_000)], Duration::from_secs(2));
        let before = line.stats().packets_dropped(DropReason::Aqm);
        let resume = line.world.now() + millis(wait_ms);
        line.world.advance(resume);
        run(&mut line, &[stream(Ecn::NotEct, 5_000)], Duration::from_millis(100));
        line.stats().packets_dropped(DropReason::Aqm) - before
    };
    assert!(idle(0) > 0);
    assert_eq!(idle(2_000), 0);
}

#[test]
fn codel_brings_the_wait_down() {
    // A burst leaves a standing queue of 200 ms that a stream at the link's rate would keep for ever.
    let standing = |aqm| {
        let mut line = Line::new(1, managed(aqm));
        for n in 0..200 {
            line.send(n, 1_250);
        }
        line.world.record(line.link, line.a, millis(1));
        let deliveries = run(&mut line, &[stream(Ecn::NotEct, 10_000)], Duration::from_secs(20));
        let trace = line.world.link_trace(line.link, line.a).expect("it is recorded");
        let end = Instant::from_millis(19_000);
        let level = trace.queue.iter().rfind(|sample| sample.at < end);
        (
            level.map_or(0, |sample| sample.bytes),
            deliveries.len(),
            line.stats().packets_dropped(DropReason::Aqm),
        )
    };
    let (level, delivered, dropped) = standing(Aqm::DropTail);
    assert!(level > 240_000 && delivered == 20_200 && dropped == 0, "{level} {delivered} {dropped}");
    let (level, delivered, dropped) = standing(Aqm::CoDel(CoDel { ecn: false, ..CoDel::default() }));
    assert!(level <= 6_250, "{level}");
    assert!((190..=200).contains(&dropped) && delivered == 20_200 - dropped as usize, "{dropped}");
}

#[test]
fn codel_drops_at_the_times_of_its_law() {
    let mut line = Line::new(1, managed(Aqm::CoDel(CoDel { ecn: false, ..CoDel::default() })));
    line.world.record(line.link, line.a, millis(1));
    run(&mut line, &[stream(Ecn::NotEct, 12_000)], millis(800));
    let trace = line.world.link_trace(line.link, line.a).expect("it is recorded");
    let times: Vec<u64> = trace.drops.iter().map(|drop| drop.at.as_nanos() / 1_000_000).collect();
    // The wait exceeds 5 ms from the 30th packet or so; 100 ms later the first is dropped, then the gaps
    // shrink with the square root.
    assert!((125..140).contains(&times[0]), "{times:?}");
    let law: Vec<u64> = (1..=6).map(|count| (100.0 / f64::from(count).sqrt()) as u64).collect();
    for (pair, gap) in times.windows(2).zip(law) {
        assert!((pair[1] - pair[0]).abs_diff(gap) <= 1, "{times:?}");
    }
}

#[test]
fn codel_marks_instead_where_it_may() {
    let mut line = Line::new(1, managed(Aqm::CoDel(CoDel::default())));
    let deliveries = run(&mut line, &[stream(Ecn::Ect0, 10_500)], Duration::from_secs(5));
    assert_eq!(line.stats().packets_dropped_in_all(), 0);
    assert!(line.stats().packets_marked > 20, "{}", line.stats().packets_marked);
    assert_eq!(deliveries.len() as u64, line.stats().packets_sent);
}

#[test]
fn l4s_packets_overtake_classic_ones_but_do_not_starve_them() {
    let mut line = Line::new(1, managed(Aqm::DualQ(DualQ::default())));
    for _ in 0..100 {
        line.world.send(line.a, Packet::new(address(1), address(2), Ecn::Ect0, vec![0; 1_250]));
    }
    for _ in 0..50 {
        line.world.send(line.a, Packet::new(address(1), address(2), Ecn::Ect1, vec![1; 1_250]));
    }
    let order: Vec<u8> = line.drain().iter().map(|delivery| delivery.packet.payload[0]).collect();
    // The first one was in transmission before any L4S packet came.
    let among_the_first = order[1..51].iter().filter(|kind| **kind == 0).count();
    assert!((4..=6).contains(&among_the_first), "a tenth is classic: {among_the_first}");
    assert!(order[60..].iter().all(|kind| *kind == 0));
}

#[test]
fn l4s_packets_are_marked_from_the_threshold_on() {
    let mut line =
        Line::new(1, LinkConfig { rate_bps: Some(100_000_000), ..managed(Aqm::DualQ(DualQ::default())) });
    for _ in 0..30 {
        line.world.send(line.a, Packet::new(address(1), address(2), Ecn::Ect1, vec![0; 1_250]));
    }
    let marked: Vec<bool> = line.drain().iter().map(|delivery| delivery.packet.ecn == Ecn::Ce).collect();
    // 0.1 ms each: the eleventh waits for 1 ms.
    assert_eq!(marked, Vec::from_iter((0..30).map(|n| n >= 10)));

    // At 10 Mbit/s a packet takes a millisecond: the threshold is that of two full packets, 2.4 ms.
    let mut line = Line::new(1, managed(Aqm::DualQ(DualQ::default())));
    for _ in 0..5 {
        line.world.send(line.a, Packet::new(address(1), address(2), Ecn::Ect1, vec![0; 1_250]));
    }
    let marked: Vec<bool> = line.drain().iter().map(|delivery| delivery.packet.ecn == Ecn::Ce).collect();
    assert_eq!(marked, [false, false, false, true, true]);
}

#[test]
fn the_signals_of_both_queues_are_coupled() {
    // L4S packets are few and never wait; classic ones overload the link by a twelfth.
    let mut line = Line::new(5, managed(Aqm::DualQ(DualQ::default())));
    let streams = [stream(Ecn::NotEct, 9_830), stream(Ecn::Ect1, 1_000)];
    let deliveries = run(&mut line, &streams, Duration::from_secs(200));
    let l4s = deliveries.iter().filter(|delivery| delivery.packet.ecn != Ecn::NotEct).count() as u64;
    assert_eq!(l4s, 20_000, "no L4S packet is dropped");
    let stats = line.stats();
    let classic_dropped = share(stats.packets_dropped(DropReason::Aqm), stats.packets_sent - l4s);
    let l4s_marked = share(stats.packets_marked, l4s);
    // p² is what must go, and the marks are 2p.
    assert!((0.07..0.10).contains(&classic_dropped), "{classic_dropped}");
    let coupled = 2.0 * classic_dropped.sqrt();
    assert!((l4s_marked - coupled).abs() < 0.08, "{l4s_marked} marked, {coupled} expected");
}

#[test]
fn the_classic_queue_is_kept_at_its_target() {
    let mut line = Line::new(6, managed(Aqm::DualQ(DualQ::default())));
    line.world.record(line.link, line.a, millis(5));
    run(&mut line, &[stream(Ecn::NotEct, 11_000)], Duration::from_secs(60));
    let trace = line.world.link_trace(line.link, line.a).expect("it is recorded");
    let later = trace.queue.iter().filter(|sample| sample.at > Instant::from_millis(20_000));
    let (sum, count) = later.fold((0, 0), |(sum, count), sample| (sum + sample.bytes, count + 1));
    // 15 ms are 18,750 bytes.
    let average = sum / count;
    assert!((14_000..24_000).contains(&average), "{average}");
}

#[test]
fn classic_packets_are_marked_rather_than_dropped_where_they_may() {
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let mut line = Line::new(6, managed(Aqm::DualQ(DualQ::default())));
        run(&mut line, &[stream(ecn, 10_500)], Duration::from_secs(1));
        let stats = line.stats();
        assert_eq!(stats.packets_marked > 0, marks, "{stats:?}");
        assert_eq!(stats.packets_dropped(DropReason::Aqm) > 0, !marks, "{stats:?}");
    }
}

#[test]
fn in_overload_l4s_packets_are_dropped_too() {
    let mut line = Line::new(7, managed(Aqm::DualQ(DualQ::default())));
    run(&mut line, &[stream(Ecn::Ect1, 30_000)], Duration::from_secs(30));
    let dropped = share(line.stats().packets_dropped(DropReason::Aqm), line.stats().packets_sent);
    assert!((0.6..0.7).contains(&dropped), "{dropped}");
}

#[test]
fn what_waits_goes_over_to_a_new_discipline() {
    let config = managed(Aqm::DropTail);
    let config = config.then(Instant::from_micros(5_500), Change::Aqm(Aqm::DualQ(DualQ::default())));
    let config = config.then(Instant::from_micros(20_500), Change::Aqm(Aqm::DropTail));
    let mut line = Line::new(1, config);
    for n in 0..40_u8 {
        let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
        line.world.send(line.a, Packet::new(address(1), address(2), ecn, vec![n; 1_250]));
    }
    let order: Vec<u8> = line.drain().iter().map(|delivery| delivery.packet.payload[0]).collect();
    assert_eq!(order.len(), 40);
    assert_eq!(order[..6], [0, 1, 2, 3, 4, 5]);
    // For 15 packets, L4S goes first and classic has a tenth.
    assert!(order[6..21].iter().filter(|n| **n % 2 == 1).count() >= 12, "{order:?}");
}

#[test]
fn the_same_seed_gives_the_same_choices() {
    let deliveries = |seed| {
        let mut line = Line::new(seed, managed(Aqm::DualQ(DualQ::default())));
        run(&mut line, &[stream(Ecn::Ect0, 9_000), stream(Ecn::Ect1, 3_000)], Duration::from_secs(5))
    };
    assert_eq!(deliveries(1), deliveries(1));
    assert_ne!(deliveries(1), deliveries(2));
}
