//! Packets that others overtake.

use std::time::Duration;

use fulmar_proto::{TimerStyle, TransportConfig};
use fulmar_sim::{Jitter, LinkConfig, Reorder};

use crate::run::{Finished, controllers, download, ms, with};

fn ten_megabytes(probability: f64) -> Finished {
    let link = LinkConfig {
        reorder: Reorder::ByDepth { probability, depth_max: 20, hold_max: ms(20) },
        ..LinkConfig::with_rate(50_000_000, ms(20), ms(50))
    };
    // With an ACK for every second packet, so that nothing but loss detection is measured.
    let config = TransportConfig { ack_frequency: false, ..with(&controllers()[0], TimerStyle::OncePerRtt) };
    download(link, config, 10_000_000).finish(Duration::from_secs(20))
}

#[test]
fn a_packet_of_twenty_that_is_overtaken_costs_nothing_that_counts() {
    let (steady, reordered) = (ten_megabytes(0.0), ten_megabytes(0.05));
    assert!(reordered.time <= steady.time.mul_f64(1.03), "{steady:?} {reordered:?}");
    // The thresholds learn: after a few mistakes none is made.
    let stats = &reordered.server;
    assert!(stats.packets_spurious > 0 && stats.packets_spurious <= 20, "{stats:?}");
    assert_eq!(stats.packets_lost, stats.packets_spurious, "nothing was lost");
}

/// Each packet is overtaken by up to 200 others. None but what the queue has no room for is lost, and the one ACK for dozens of packets has to name them all.
#[test]
fn packets_that_hundreds_overtake_are_acknowledged() {
    let link = LinkConfig {
        jitter: Jitter::Uniform { max: ms(8) },
        jitter_reorders: true,
        ..LinkConfig::with_rate(300_000_000, ms(5), ms(50))
    };
    for congestion in &controllers()[..2] {
        let run = download(link.clone(), with(congestion, TimerStyle::OncePerRtt), 30_000_000);
        let run = run.finish(Duration::from_secs(20));
        let stats = &run.server;
        let not_acknowledged = stats.packets_lost - stats.packets_spurious;
        assert!(
            not_acknowledged <= run.dropped + stats.packets_sent / 100,
            "{} dropped, {stats:?}",
            run.dropped
        );
    }
}

/// One packet in a hundred takes a way that is up to five round trips longer. Others are found to be lost before the first of them arrive,
/// so that several reactions stand when the first turns out to have had no cause.
#[test]
fn packets_that_are_overtaken_for_several_round_trips_do_not_keep_the_window_small() {
    let link = LinkConfig {
        reorder: Reorder::ByTime { probability: 0.01, delay_max: ms(100) },
        ..LinkConfig::with_rate(100_000_000, ms(10), ms(20))
    };
    for congestion in &controllers() {
        let run = download(link.clone(), with(congestion, TimerStyle::OncePerRtt), 50_000_000);
        let run = run.finish(Duration::from_secs(60));
        // 4.2 s are the ideal. Were only the latest reaction undone, NewReno would take 18 to 22 s.
        assert!(run.time < Duration::from_secs(8), "{congestion:?}: {:?}", run.time);
    }
}
