//! Transfers over networks that misbehave in one way each.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_lab::{Close, Connecting, Lab, RunReport, SideReport, Workload};
use fulmar_proto::{ConnectionStats, Side, TransportConfig};
use fulmar_sim::{Change, Corrupt, LinkConfig, Loss, QueueLimit, Reorder};

const MEGABYTE: u64 = 1_000_000;

/// 10 Mbit/s and 20 ms in each direction, with a queue of 100 ms.
fn link() -> LinkConfig {
    LinkConfig::with_rate(10_000_000, Duration::from_millis(20), Duration::from_millis(100))
}

/// The client sends `bytes` to the server.
#[track_caller]
fn upload(bytes: u64, up: LinkConfig, down: LinkConfig) -> RunReport {
    let lab = Lab::new(1).link(up, down).connection(Connecting::new(Workload::upload(bytes)));
    let report = lab.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(server(&report).bytes_read, bytes);
    report
}

fn client(report: &RunReport) -> &SideReport {
    &report.connections[0].client
}

fn server(report: &RunReport) -> &SideReport {
    &report.connections[0].server
}

fn stats(side: &SideReport) -> &ConnectionStats {
    side.stats.as_ref().expect("the connection was made")
}

/// How much of the rate of [`link`] was used on the way up.
fn efficiency(bytes: u64, report: &RunReport) -> f64 {
    bytes as f64 * 8.0 / 10e6 / report.duration.as_secs_f64()
}

#[test]
fn a_perfect_link_needs_no_repetition() {
    let perfect = LinkConfig { delay: Duration::from_millis(10), ..LinkConfig::default() };
    let report = upload(5 * MEGABYTE, perfect.clone(), perfect);
    for side in [client(&report), server(&report)] {
        let stats = stats(side);
        assert_eq!((stats.packets_lost, stats.pto_count, stats.streams.bytes_retransmitted), (0, 0, 0));
        assert_eq!(stats.rtt_min, Some(Duration::from_millis(20)));
    }
    assert_eq!(stats(client(&report)).mtu, 1_452);
    // Slow start doubles the window in each round trip: 5 MB are about eleven of them.
    assert!(report.duration < Duration::from_millis(600), "{report}");
}

#[test]
fn a_link_without_delay_works() {
    let report = upload(MEGABYTE, LinkConfig::default(), LinkConfig::default());
    assert_eq!(stats(client(&report)).packets_lost, 0);
}

#[test]
fn a_full_link_is_used_well() {
    let report = upload(10 * MEGABYTE, link(), link());
    assert!(efficiency(10 * MEGABYTE, &report) > 0.85, "{report}");
    // The search for larger datagrams finds its place between the data. What was lost was sent twice: that is what the
    // end of slow start overshoots by, less than the queue holds.
    let stats = stats(client(&report));
    let packets = stats.packets_sent - stats.packets_lost;
    assert!(packets < 10 * MEGABYTE / 1_410, "{packets} packets, {report}");
    assert!(stats.packets_lost < 100, "{report}");
}

#[test]
fn what_was_changed_on_the_way_does_not_pass() {
    let damage = Corrupt { probability: 0.05, bytes_max: 3, replace: false };
    let bad = LinkConfig { corrupt: damage, ..link() };
    let report = upload(2 * MEGABYTE, bad.clone(), bad);
    assert!(report.up.packets_corrupted > 50 && report.down.packets_corrupted > 10, "{report}");
    let unauthenticated = stats(server(&report)).packets_unauthenticated;
    // Some changes hit the connection ID, so that the packet does not reach the connection at all.
    assert!(unauthenticated * 2 > report.up.packets_corrupted, "{unauthenticated}: {report}");
    assert_eq!(report.server_sessions, 1);
}

#[test]
fn a_black_hole_of_two_seconds_is_survived() {
    let hole = |link: LinkConfig| {
        link.then(Instant::from_millis(1_000), Change::Loss(Loss::Everything))
            .then(Instant::from_millis(3_000), Change::Loss(Loss::None))
    };
    let report = upload(5 * MEGABYTE, hole(link()), hole(link()));
    assert!(stats(client(&report)).pto_count > 0);
    // Four seconds of transfer, two of silence, and what it takes to find out and to speed up again.
    assert!(report.duration < Duration::from_secs(9), "{report}");
}

#[test]
fn a_path_that_becomes_narrower_is_noticed() {
    let narrows = link().then(Instant::from_millis(1_000), Change::Mtu(Some(1_300)));
    let report = upload(5 * MEGABYTE, narrows, link());
    let stats = stats(client(&report));
    assert!(stats.black_holes >= 1 && stats.mtu <= 1_300, "{report}");
    assert!(report.duration < Duration::from_secs(9), "{report}");
}

#[test]
fn copies_change_nothing() {
    let copying = LinkConfig { duplicate: 0.5, ..link() };
    let report = upload(2 * MEGABYTE, copying.clone(), copying);
    assert!(report.up.packets_duplicated > 500, "{report}");
    assert!(stats(server(&report)).packets_dropped > 500, "{report}");
    assert_eq!(report.server_sessions, 1);
}

#[test]
fn overtaken_packets_are_not_all_sent_again() {
    let reorder = Reorder::ByDepth { probability: 0.1, depth_max: 2, hold_max: Duration::from_millis(20) };
    let report = upload(2 * MEGABYTE, LinkConfig { reorder, ..link() }, link());
    assert!(report.up.packets_reordered > 50, "{report}");
    // RFC 9002 §6.1.1: a packet counts as lost when three later ones were acknowledged. What the queue dropped was
    // lost indeed.
    let taken_for_lost =
        stats(client(&report)).packets_lost.saturating_sub(report.up.packets_dropped_in_all());
    assert!(taken_for_lost < report.up.packets_reordered / 2, "{report}");
}

#[test]
fn a_narrow_way_back_does_not_slow_the_way_there() {
    let wide = LinkConfig::with_rate(50_000_000, Duration::from_millis(20), Duration::from_millis(100));
    let narrow = LinkConfig::with_rate(500_000, Duration::from_millis(20), Duration::from_millis(200));
    let report = upload(20 * MEGABYTE, wide, narrow);
    let ideal = Duration::from_millis(3_200);
    assert!(report.duration < ideal * 2, "{report}");
}

#[test]
fn a_tiny_queue_is_enough() {
    let tiny = LinkConfig { queue: QueueLimit { time: None, bytes: Some(6_000) }, ..link() };
    let report = upload(5 * MEGABYTE, tiny, link());
    assert!(efficiency(5 * MEGABYTE, &report) > 0.3, "{report}");
}

#[test]
fn heavy_loss_only_slows_down() {
    let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.1 }, ..link() };
    let report = upload(MEGABYTE, lossy.clone(), lossy);
    assert!(stats(client(&report)).packets_lost > 50, "{report}");
}

#[test]
fn many_requests_on_one_connection() {
    let config = TransportConfig { max_concurrent_bidi_streams: 20, ..TransportConfig::default() };
    let requests = Connecting::new(Workload::requests(1_999, 100)).close(Close::WhenDone(Side::Server));
    let lab = Lab::new(1).link(link(), link()).both(config).server_workload(Workload::replies(1_000));
    let report = lab.connection(requests).run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(client(&report).streams_finished, 1_999);
    assert_eq!(client(&report).bytes_read, 1_999_000);
    assert_eq!(server(&report).bytes_read, 199_900);
}

#[test]
fn the_same_seed_sends_the_same_packets() {
    let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.02 }, ..link() };
    let run = |seed| {
        let lab = Lab::new(seed).link(lossy.clone(), lossy.clone());
        lab.connection(Connecting::new(Workload::upload(MEGABYTE))).run().expect("the transfer works")
    };
    assert_eq!(run(1).trace, run(1).trace);
    assert_ne!(run(1).trace, run(2).trace);
}
