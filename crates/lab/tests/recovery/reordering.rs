//! Packets that others overtake.

use std::time::Duration;

use fulmar_proto::TimerStyle;
use fulmar_sim::{LinkConfig, Reorder};

use crate::run::{Finished, controllers, download, ms, with};

fn ten_megabytes(probability: f64) -> Finished {
    let link = LinkConfig {
        reorder: Reorder::ByDepth { probability, depth_max: 20, hold_max: ms(20) },
        ..LinkConfig::with_rate(50_000_000, ms(20), ms(50))
    };
    let config = with(&controllers()[0], TimerStyle::OncePerRtt);
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
