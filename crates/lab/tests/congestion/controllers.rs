//! Controllers on whole connections: marks and what the path does to them, very short paths, losses by chance.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_lab::{Connecting, Lab, Workload};
use fulmar_proto::congestion::CongestionControl;
use fulmar_sim::{Aqm, Change, CoDel, DropReason, DualQ, EcnPath, Jitter, LinkConfig, Loss};

use crate::run::{bbr, cubic, link, ms, newreno, prague, upload, with};

/// An upload of three seconds over a path that treats marks in this way from the beginning, and drops marked packets
/// after a second: how many are that tells whether the sender still marks.
fn marked_after_a_second(path: EcnPath, congestion: CongestionControl) -> u64 {
    let link = LinkConfig { ecn_path: path, ..link() };
    let link = link.then(Instant::from_millis(1_000), Change::EcnPath(EcnPath::Drop));
    let report = upload(&link, congestion, 3_000_000);
    assert_eq!(report.connections[0].server.bytes_read, 3_000_000, "{path:?}");
    report.up.packets_dropped(DropReason::Ecn)
}

#[test]
fn marks_that_do_not_arrive_as_they_left_end_marking() {
    for congestion in [cubic, prague] {
        for path in [EcnPath::Bleach, EcnPath::Drop, EcnPath::Swap] {
            let early = if path == EcnPath::Drop { 20 } else { 0 };
            let marked = marked_after_a_second(path, congestion());
            assert!(marked <= early, "{path:?} {:?}: {marked} marked packets", congestion());
        }
        let marked = marked_after_a_second(EcnPath::Keep, congestion());
        assert!(marked > 0, "the test sees marks where there are any");
    }
    assert_eq!(marked_after_a_second(EcnPath::Downgrade, prague()), 0, "ECT(1) arrives as ECT(0)");
    assert!(marked_after_a_second(EcnPath::Downgrade, bbr()) > 0, "ECT(0) passes there");
}

/// How long a download of 2.5 s takes over a path that drops marked packets from `at_ms` on, both ways.
fn download_without_marks(congestion: CongestionControl, at_ms: u64, seed: u64) -> f64 {
    let drops = || link().then(Instant::from_millis(at_ms), Change::EcnPath(EcnPath::Drop));
    let report = Lab::new(seed)
        .link(drops(), drops())
        .both(with(congestion))
        .server_workload(Workload::replies(3_000_000))
        .connection(Connecting::new(Workload::requests(1, 100)))
        .run()
        .unwrap();
    report.connections[0].client.last_read.unwrap().saturating_since(Instant::ZERO).as_secs_f64()
}

#[test]
fn a_path_that_begins_to_drop_marked_packets_costs_an_upload_less_than_a_second() {
    for congestion in [bbr, cubic, newreno, prague] {
        let drops = link().then(Instant::from_millis(500), Change::EcnPath(EcnPath::Drop));
        let report = Lab::new(3)
            .link(drops, link())
            .both(with(congestion()))
            .connection(Connecting::new(Workload::upload(3_000_000)))
            .run()
            .unwrap();
        let end = report.connections[0].server.last_read.unwrap();
        // 2.5 s at the rate of the link.
        assert!(end < Instant::from_millis(3_500), "{:?}: {end:?}", congestion());
    }
}

#[test]
fn a_path_that_begins_to_drop_marked_packets_both_ways_costs_a_download_less_than_a_second() {
    // The client sends acknowledgements alone, of whose loss nobody tells it.
    for congestion in [bbr, cubic, newreno, prague] {
        for (at_ms, seed) in [(100, 1), (300, 2), (500, 3), (1_000, 4), (2_000, 5)] {
            let seconds = download_without_marks(congestion(), at_ms, seed);
            assert!(seconds < 3.5, "{:?}, {at_ms} ms: {seconds} s", congestion());
        }
    }
}

#[test]
fn a_path_that_has_always_dropped_marked_packets_costs_a_few_round_trips() {
    for congestion in [bbr, cubic, newreno, prague] {
        let seconds = download_without_marks(congestion(), 0, 1);
        // A guess of the round-trip time ends one second after the first packet; a round trip takes 20 ms.
        assert!(seconds < 2.75, "{:?}: {seconds} s", congestion());
    }
}

#[test]
fn a_path_that_marks_everything_slows_down_but_stops_nothing() {
    for congestion in [bbr, cubic, newreno, prague] {
        let link = LinkConfig { ecn_path: EcnPath::MarkAll, ..link() };
        let report = upload(&link, congestion(), 300_000);
        assert_eq!(report.connections[0].server.bytes_read, 300_000);
    }
}

#[test]
fn with_marks_a_transfer_loses_nothing_and_fills_the_link() {
    let queues = [Aqm::DualQ(DualQ::default()), Aqm::CoDel(CoDel::default())];
    for congestion in [bbr, cubic, newreno, prague] {
        for aqm in queues {
            let link = LinkConfig { aqm, ..link() };
            let report = upload(&link, congestion(), 10_000_000);
            let stats = report.connections[0].client.stats.clone().unwrap();
            let time = report.connections[0].server.last_read.unwrap();
            assert!(stats.packets_lost <= 30, "{:?} {aqm:?}: {} lost", congestion(), stats.packets_lost);
            // 8 s at the rate of the link.
            assert!(time < Instant::from_millis(9_600), "{:?} {aqm:?}: {time:?}", congestion());
            assert!(report.up.packets_marked > 0, "{:?} {aqm:?}", congestion());
        }
    }
}

#[test]
fn prague_keeps_the_queue_of_an_l4s_link_shorter_than_cubic_does() {
    let link = LinkConfig { aqm: Aqm::DualQ(DualQ::default()), ..link() };
    let rtt = |congestion| {
        let stats = upload(&link, congestion, 10_000_000).connections[0].client.stats.clone().unwrap();
        stats.rtt
    };
    let (low, classic) = (rtt(prague()), rtt(cubic()));
    assert!(low < ms(26), "{low:?}");
    assert!(classic > low, "{classic:?} and {low:?}");
}

/// The bytes that two uploads over one link moved in twenty seconds.
fn shares(link: &LinkConfig, one: CongestionControl, other: CongestionControl) -> [f64; 2] {
    use fulmar_lab::Close;
    use fulmar_proto::Side;
    let connecting = |congestion| {
        Connecting::new(Workload::upload(100_000_000))
            .transport(std::sync::Arc::new(with(congestion)))
            .close(Close::After(Side::Client, Duration::from_secs(20)))
    };
    let report = Lab::new(5)
        .link(link.clone(), link.clone())
        .connection(connecting(one))
        .connection(connecting(other))
        .run()
        .unwrap();
    let bytes = |number: usize| report.connections[number].server.bytes_read as f64;
    let sum = bytes(0) + bytes(1);
    [bytes(0) / sum, bytes(1) / sum]
}

#[test]
fn prague_leaves_classic_flows_their_share_of_a_classic_queue_that_marks() {
    let link = LinkConfig { aqm: Aqm::CoDel(CoDel::default()), ..link() };
    let [low, classic] = shares(&link, prague(), newreno());
    assert!(classic > 0.25, "{classic} beside {low}");
}

#[test]
fn where_delay_says_nothing_the_window_stops_with_the_rate() {
    // The queue is endless, so that no loss would ever stop the window.
    let largest = |one_way: Duration, congestion| {
        let link = LinkConfig { rate_bps: Some(1_000_000_000), delay: one_way, ..LinkConfig::default() };
        upload(&link, congestion, 50_000_000).connections[0].client.stats.clone().unwrap().cwnd_max
    };
    for congestion in [cubic, newreno, prague] {
        let window = largest(Duration::from_micros(10), congestion());
        // The path holds 2,500 bytes, the initial window is 12,000, and three doublings show that it is enough.
        assert!(window < 300_000, "{:?}: {window}", congestion());
    }
    assert!(largest(Duration::from_micros(500), newreno()) > 300_000, "delay is asked there");
}

#[test]
fn in_a_rack_bbr_needs_no_more_queue_than_a_switch_has() {
    for rate in [1_000_000_000, 10_000_000_000] {
        let link = LinkConfig::with_rate(rate, Duration::from_micros(50), Duration::from_micros(500));
        let report = upload(&link, bbr(), 50_000_000);
        let stats = report.connections[0].client.stats.clone().unwrap();
        assert!(stats.packets_lost < 20, "{rate}: {} lost of {}", stats.packets_lost, stats.packets_sent);
        let floor = Duration::from_secs_f64(50_000_000.0 * 8.0 / rate as f64);
        let time = report.connections[0].server.last_read.unwrap().saturating_since(Instant::ZERO);
        // A few hundredths are headers, the rest is the beginning.
        assert!(time < floor * 11 / 10, "{rate}: {time:?} instead of {floor:?}");
    }
}

/// A path of 417 packets with room for eight more in its queue. In bursts of what two milliseconds give, 17 packets, windows of a
/// tenth of it had overflowed the queue.
#[test]
fn a_queue_of_eight_packets_is_enough_for_a_path_of_four_hundred() {
    let link = LinkConfig::with_rate(100_000_000, ms(25), Duration::from_micros(960));
    for (congestion, most) in [(bbr as fn() -> CongestionControl, 12.0), (cubic, 12.0), (newreno, 25.0)] {
        let report = upload(&link, congestion(), 75_000_000);
        let seconds = report.duration.as_secs_f64();
        // 6 s are the ideal. NewReno needs 10 s to grow back from a loss, where CUBIC needs five; in bursts they took 94 and 16 s.
        assert!(seconds < most, "{:?}: {seconds} s", congestion());
        let dropped = report.up.packets_dropped(DropReason::QueueFull);
        // 2 % of 52,000.
        assert!(dropped < 1_040, "{:?}: {dropped} packets, {seconds} s", congestion());
    }
}

/// Three lost packets of a first flight of forty are chance and no sign of a full path: BBR goes on to look for its rate.
#[test]
fn a_few_losses_in_the_first_flight_do_not_end_the_first_rise() {
    let link = LinkConfig::with_rate(50_000_000, ms(300), ms(600));
    let seconds = |lost: &[u64]| {
        let lossy = LinkConfig { loss: Loss::Listed(lost.iter().copied().collect()), ..link.clone() };
        let lab = Lab::new(3).link(lossy, link.clone()).both(with(bbr()));
        let report = lab.connection(Connecting::new(Workload::upload(10_000_000))).run().unwrap();
        assert_eq!(report.up.packets_dropped(DropReason::Lost), lost.len() as u64);
        report.duration.as_secs_f64()
    };
    // The handshake takes the first packets.
    let (clean, lossy) = (seconds(&[]), seconds(&[8, 14, 21]));
    assert!(lossy < clean + 1.3, "{lossy} s instead of {clean} s: more than two round trips later");
}

/// The seconds until the last byte of an upload was read, with seeds from 1 on; `up` and `down` are the links.
fn upload_seconds(
    seeds: u64,
    [up, down]: [&LinkConfig; 2],
    congestion: CongestionControl,
    bytes: u64,
) -> Vec<f64> {
    let seconds = |seed| {
        let lab = Lab::new(seed).link(up.clone(), down.clone()).both(with(congestion.clone()));
        let report = lab.connection(Connecting::new(Workload::upload(bytes))).run().unwrap();
        report.connections[0].server.last_read.unwrap().saturating_since(Instant::ZERO).as_secs_f64()
    };
    (1..=seeds).map(seconds).collect()
}

/// Six packets in a hundred are lost by chance, whatever is sent. Losses that end STARTUP or slow BBR down later are on trial, until
/// it is known that a smaller flight loses as many.
#[test]
fn bbr_keeps_the_rate_of_a_link_that_loses_many_packets_by_chance() {
    let back = LinkConfig::with_rate(100_000_000, ms(10), ms(40));
    let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.06 }, ..back.clone() };
    let mut times = upload_seconds(16, [&lossy, &back], bbr(), 10_000_000);
    times.sort_by(f64::total_cmp);
    // 0.89 s at what is left of the rate, and some round trips until it is found. A trial is by lot, too: three of four must do.
    assert!(times[11] < 1.3, "{times:?}");
}

/// Two packets in a hundred are what is tolerated. What the search for the rate has lost is no reason to take the next of them for congestion,
/// and neither is it that a mean over a thousand packets is now and then a little more than two in a hundred.
#[test]
fn losses_of_what_is_tolerated_leave_bbr_its_rate() {
    let back = LinkConfig::with_rate(50_000_000, ms(20), ms(40));
    let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.02 }, ..back.clone() };
    let times = upload_seconds(30, [&lossy, &back], bbr(), 20_000_000);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let worst = times.iter().copied().fold(0.0, f64::max);
    // 3.4 s at what is left of the rate. Were earlier losses to count, 4.4 s and 5.8 s.
    assert!(mean < 3.95 && worst < 4.6, "{mean} s, {worst} s at most: {times:?}");
}

/// Where a lower pace has lost less, and more than is tolerated all the same, it has not shown that losses are congestion: the next reaction
/// is on trial at once.
#[test]
fn a_trial_that_has_lost_a_little_less_by_chance_does_not_keep_bbr_slow() {
    let back = LinkConfig::with_rate(43_000_000, ms(28), ms(42));
    let lossy = LinkConfig { loss: Loss::Burst { probability: 0.029, length: 1..=3 }, ..back.clone() };
    let times = upload_seconds(24, [&lossy, &back], bbr(), 18_000_000);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    // 3.8 s at what is left of the rate. Were the next trial put off, 5.2 s.
    assert!(mean < 4.7, "{mean} s: {times:?}");
}

/// The seconds that an upload takes over a Wi-Fi of 500 Mbit/s that stops for 4 ms in the mean, with twenty seeds.
fn times_over_wi_fi(delay: Duration, congestion: CongestionControl, bytes: u64) -> Vec<f64> {
    let link = LinkConfig::with_rate(500_000_000, delay, ms(24));
    let link = LinkConfig { jitter: Jitter::Wifi { mean: ms(4) }, ..link };
    upload_seconds(20, [&link, &link], congestion, bytes)
}

/// A Wi-Fi that stops for single packets, and keeps their order, takes ten of its smallest round trips for most of them. Neither ends
/// the search for its rate: the delay does not fall with the flight, and a round with a stop shows no plateau.
#[test]
fn bbr_finds_the_rate_of_a_wi_fi_that_delays_most_packets() {
    let times = times_over_wi_fi(ms(5), bbr(), 10_000_000);
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let worst = times.iter().copied().fold(0.0, f64::max);
    // Were the search to end early, 1.8 s and 3.8 s.
    assert!(mean < 1.65 && worst < 2.6, "{mean} s, {worst} s at most: {times:?}");
}

/// The same delays end the slow start of the others, which goes on when they have passed: congestion avoidance would take seconds to reach
/// the rate.
#[test]
fn a_passing_delay_of_a_wi_fi_does_not_end_slow_start_for_good() {
    for controller in [cubic(), newreno()] {
        let times = times_over_wi_fi(ms(18), controller, 20_000_000);
        let worst = times.iter().copied().fold(0.0, f64::max);
        // Were it to end for good, 5.8 s.
        assert!(worst < 3.5, "{worst} s at most: {times:?}");
    }
}

/// The path becomes longer after three seconds, by a quarter or, before that, for 50 ms shorter by as much. What the path was like before
/// is no reason to take each loss for a queue from then on.
#[test]
fn a_change_of_the_round_trip_time_leaves_losses_by_chance_what_they_are() {
    let back = LinkConfig::with_rate(50_000_000, ms(10), ms(40));
    let lossy = |delay| LinkConfig { loss: Loss::Uniform { probability: 0.01 }, delay, ..back.clone() };
    let (longer, shorter) = (Duration::from_micros(15_000), Duration::from_micros(10_000));
    let change =
        |at, delay| move |link: LinkConfig| link.then(Instant::from_millis(at), Change::Delay(delay));
    let constant = lossy(longer);
    let rise = change(3_000, longer)(lossy(shorter));
    let dip = change(3_050, longer)(change(3_000, shorter)(lossy(longer)));
    for congestion in [bbr(), cubic()] {
        let seconds = |link| {
            let times = upload_seconds(4, [link, &back], congestion.clone(), 150_000_000);
            times.iter().sum::<f64>() / times.len() as f64
        };
        let (usual, rise, dip) = (seconds(&constant), seconds(&rise), seconds(&dip));
        // Two periods of five seconds until the smaller round-trip time is forgotten. Were it never, CUBIC would take 160 s instead of 28.
        assert!(rise < usual + 10.0 && dip < usual + 10.0, "{congestion:?}: {usual} s, {rise} s, {dip} s");
    }
}
