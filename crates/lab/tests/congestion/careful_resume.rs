//! Careful resume: what a server knows of a path from an earlier connection (RFC 9959).

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_lab::{Connecting, Lab, Workload};
use fulmar_proto::ConnectionStats;
use fulmar_proto::congestion::CongestionControl;
use fulmar_sim::{Change, LinkConfig, Loss};

use crate::run::{bbr, cubic, ms, newreno, prague, with};

/// Two downloads one after another over a link of 20 Mbit/s and 100 ms each way, which has another rate from when the
/// first one is over. Returns what the server saw of the second, and how long it took.
fn second_download(congestion: CongestionControl, rate: u64, remember: bool) -> (ConnectionStats, Duration) {
    let link = LinkConfig::with_rate(20_000_000, ms(100), ms(200));
    let link = link.then(Instant::from_millis(20_000), Change::Rate(Some(rate)));
    second_download_over(link, congestion, remember)
}

/// The same over another link.
fn second_download_over(
    link: LinkConfig,
    congestion: CongestionControl,
    remember: bool,
) -> (ConnectionStats, Duration) {
    let mut lab = Lab::new(4)
        .link(link.clone(), link)
        .both(with(congestion))
        .server_workload(Workload::replies(8_000_000))
        .connection(Connecting::new(Workload::requests(1, 100)))
        .connection(
            Connecting::new(Workload::requests(1, 100)).start(Duration::from_secs(20)).after_previous(),
        );
    if remember {
        lab = lab.remember_paths();
    }
    let report = lab.run().unwrap();
    let second = &report.connections[1];
    let time = second.client.last_read.unwrap() - second.client.started.unwrap();
    (second.server.stats.clone().unwrap(), time)
}

#[test]
fn a_second_connection_is_faster_with_what_the_first_one_knew() {
    for congestion in [bbr, cubic, newreno, prague] {
        let (fresh_stats, fresh) = second_download(congestion(), 20_000_000, false);
        let (stats, resumed) = second_download(congestion(), 20_000_000, true);
        // 3.2 s at the rate of the link, and 0.4 s until the request is there and answered.
        assert!(resumed < ms(3_900), "{:?}: {resumed:?}", congestion());
        assert!(resumed + ms(50) < fresh, "{:?}: {resumed:?} and {fresh:?}", congestion());
        let (lost, fresh_lost) = (stats.packets_lost, fresh_stats.packets_lost);
        assert!(lost <= fresh_lost + 20, "{:?}: {lost} and {fresh_lost} lost", congestion());
    }
}

/// One packet of two hundred is lost by chance, and so is one of nearly every jump. That is no congestion for a controller to which it
/// is none later.
#[test]
fn a_second_connection_over_a_lossy_path_is_no_slower_than_the_first() {
    let link = LinkConfig {
        loss: Loss::Uniform { probability: 0.005 },
        ..LinkConfig::with_rate(100_000_000, ms(150), ms(300))
    };
    for congestion in [bbr, cubic] {
        let (_, fresh) = second_download_over(link.clone(), congestion(), false);
        let (_, resumed) = second_download_over(link.clone(), congestion(), true);
        assert!(resumed * 100 < fresh * 115, "{:?}: {resumed:?} and {fresh:?}", congestion());
    }
}

#[test]
fn a_path_that_is_a_tenth_of_what_it_was_loses_no_more_than_the_jump() {
    for congestion in [bbr, cubic, newreno, prague] {
        let (fresh, time) = second_download(congestion(), 2_000_000, false);
        let (resumed, resumed_time) = second_download(congestion(), 2_000_000, true);
        // Half of 500,000 bytes were tried; 50,000 fit the path, and as many the queue.
        let lost = resumed.packets_lost.saturating_sub(fresh.packets_lost);
        assert!(lost < 200, "{:?}: {} and {}", congestion(), resumed.packets_lost, fresh.packets_lost);
        assert!(resumed_time < time + time / 8, "{:?}: {resumed_time:?} and {time:?}", congestion());
    }
}

/// 600 ms there and back, where a server that guesses the round-trip time repeats its flight, by itself or because its client asks, before
/// it can be answered.
#[test]
fn a_server_that_knows_a_long_path_does_not_repeat_its_part_of_the_handshake() {
    let link = LinkConfig::with_rate(20_000_000, ms(300), ms(600));
    let (fresh, _) = second_download_over(link.clone(), bbr(), false);
    let (known, _) = second_download_over(link, bbr(), true);
    // Two flights, an Initial and a Handshake packet each.
    let beside_data = |stats: &ConnectionStats| stats.packets_sent - stats.streams.frames_sent;
    let (least, most) = (beside_data(&known) + 4, beside_data(&fresh));
    assert!(least <= most, "{least} and {most} packets");
    assert_eq!(known.pto_count, 0);
}
