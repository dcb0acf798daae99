//! The handshake on a link that loses 30 % in bursts of up to three packets.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, RunReport, Workload};
use fulmar_proto::TransportConfig;
use fulmar_sim::{LinkConfig, Loss};

use crate::run::ms;

/// Attempts, one after another: each has ended, one way or another, when the next one starts.
const ATTEMPTS: u64 = 50;
const DISTANCE: Duration = Duration::from_secs(70);

/// Bursts are two packets long on average, so that 3 of 10 packets are lost.
const LOSS: Loss = Loss::Burst { probability: 0.1765, length: 1..=3 };

fn attempts(seed: u64, initial_rtt: Option<Duration>) -> RunReport {
    let link = LinkConfig { loss: LOSS, ..LinkConfig::with_rate(10_000_000, ms(15), ms(50)) };
    let default = TransportConfig::default();
    let config = TransportConfig { initial_rtt: initial_rtt.unwrap_or(default.initial_rtt), ..default };
    let lab = Lab::new(seed).link(link.clone(), link).both(config);
    let lab = lab.server_workload(Workload::replies(1_000));
    let lab = (0..ATTEMPTS).fold(lab, |lab, number| {
        lab.connection(Connecting::new(Workload::requests(1, 100)).start(DISTANCE * number as u32))
    });
    lab.run().unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn each_attempt_is_one_connection_of_the_server_and_succeeds() {
    for seed in 0..200 {
        let report = attempts(seed, None);
        assert_eq!(report.server_sessions as u64, ATTEMPTS, "seed {seed}: connections at the server");
        for connection in &report.connections {
            assert_eq!(connection.client.bytes_read, 1_000, "seed {seed}: {}", connection.client);
        }
    }
}

/// Mean time of a handshake in milliseconds, and mean packets of a connection.
fn cost(initial_rtt: Duration) -> (f64, f64) {
    let (mut time, mut packets, mut count) = (0.0, 0, 0);
    for seed in 0..4 {
        for connection in attempts(seed, Some(initial_rtt)).connections {
            let client = connection.client.stats.expect("the client was there");
            let handshake = client.handshake_duration.expect("the handshake was complete");
            time += handshake.as_secs_f64() * 1_000.0;
            packets += client.packets_sent + connection.server.stats.map_or(0, |stats| stats.packets_sent);
            count += 1;
        }
    }
    (time / f64::from(count), packets as f64 / f64::from(count))
}

/// What speaks for the default of `initial_rtt`: the guess of RFC 9002 costs twice the time and saves nothing.
#[test]
fn a_short_guess_pays() {
    let (ours, recommended) = (cost(ms(100)), cost(ms(333)));
    assert!(ours.0 * 2.0 < recommended.0, "{ours:?} {recommended:?}");
    assert!(ours.1 < recommended.1 * 1.05, "{ours:?} {recommended:?}");
}
