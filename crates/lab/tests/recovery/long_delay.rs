//! Peers that are minutes and hours away.

use std::time::Duration;

use fulmar_proto::TransportConfig;
use fulmar_sim::LinkConfig;

use crate::run::{Finished, download, ms};

/// 2 kB over a link of `one_way`, with a handshake timeout that leaves room for it.
fn two_kilobytes(one_way: Duration, initial_rtt: Option<Duration>) -> Finished {
    let link = LinkConfig::with_rate(10_000_000, one_way, Duration::from_secs(10));
    let default = TransportConfig::default();
    let config = TransportConfig {
        handshake_timeout: one_way * 5,
        initial_rtt: initial_rtt.unwrap_or(default.initial_rtt),
        ..default
    };
    download(link, config, 2_000).finish(one_way * 10)
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn four_delays_are_enough_and_no_timer_fires_where_the_distance_is_known() {
    for one_way in [Duration::from_secs(5), MINUTE, MINUTE * 20, MINUTE * 80] {
        let run = two_kilobytes(one_way, Some(one_way * 2));
        // The handshake takes a round trip, and so do request and answer.
        assert!(run.time < one_way * 4 + ms(100), "{one_way:?}: {run:?}");
        assert_eq!((run.client.pto_count, run.server.pto_count), (0, 0), "{one_way:?}");
        assert!(run.client.packets_sent + run.server.packets_sent <= 14, "{one_way:?}: {run:?}");
        assert_eq!(run.client.cid_changes, 0, "waiting is no silence");
    }
}

#[test]
fn a_distance_that_nobody_knows_of_costs_few_packets() {
    for (one_way, packets) in [(MINUTE, 78), (MINUTE * 20, 103), (MINUTE * 80, 113)] {
        let run = two_kilobytes(one_way, None);
        assert!(run.time < one_way * 4 + ms(100), "{one_way:?}: {run:?}");
        let sent = run.client.packets_sent + run.server.packets_sent;
        assert!(sent <= packets, "{one_way:?}: {sent} packets");
    }
}
