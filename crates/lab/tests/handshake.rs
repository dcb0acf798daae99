//! Handshakes under difficulties.

use std::time::Duration;

use fulmar_lab::{Close, Connecting, Lab, Limits, Workload};
use fulmar_proto::{ConnectionError, Side, TransportConfig, Version};
use fulmar_sim::{LinkConfig, Loss};

fn delayed(delay: Duration) -> LinkConfig {
    LinkConfig { delay, ..LinkConfig::default() }
}

#[test]
fn every_handshake_survives_bursts_of_losses() {
    // Bursts of 1 to 8 packets that take 30 % of all.
    let loss = Loss::Burst { probability: 0.0952, length: 1..=8 };
    let link = LinkConfig { loss, ..delayed(Duration::from_millis(20)) };
    let config =
        TransportConfig { handshake_timeout: Duration::from_secs(120), ..TransportConfig::default() };
    let (mut sent, mut lost) = (0, 0);
    for seed in 0..10 {
        let mut lab = Lab::new(seed).link(link.clone(), link.clone()).both(config.clone());
        lab = lab.server_workload(Workload::replies(2_000));
        for number in 0..20 {
            let start = Duration::from_millis(50 * number);
            lab = lab.connection(Connecting::new(Workload::requests(1, 500)).start(start));
        }
        let report = lab.run().unwrap_or_else(|failure| panic!("{failure}"));
        assert!(
            report.connections.iter().all(|connection| connection.client.bytes_read == 2_000),
            "{report}"
        );
        assert_eq!(report.server_sessions, 20, "{report}");
        sent += report.up.packets_sent + report.down.packets_sent;
        lost += report.up.packets_dropped_in_all() + report.down.packets_dropped_in_all();
    }
    let share = lost as f64 / sent as f64;
    assert!((0.25..0.35).contains(&share), "{share} of the packets were lost");
}

/// A transfer of 100,000 bytes to a planet that light reaches in a minute.
fn far_away(config: TransportConfig) -> fulmar_lab::RunReport {
    let config = TransportConfig {
        handshake_timeout: Duration::from_secs(3_600),
        max_idle_timeout: Some(Duration::from_secs(3_600)),
        ..config
    };
    let link = delayed(Duration::from_secs(60));
    let lab = Lab::new(1).link(link.clone(), link).both(config);
    let lab = lab.limits(Limits { time: Duration::from_secs(86_400), ..Limits::default() });
    let report = lab.connection(Connecting::new(Workload::upload(100_000))).run();
    report.unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn a_delay_of_a_minute_that_is_known_costs_nothing() {
    let report =
        far_away(TransportConfig { initial_rtt: Duration::from_secs(120), ..TransportConfig::default() });
    let stats = report.connections[0].client.stats.as_ref().expect("the connection was made");
    assert_eq!((stats.packets_lost, stats.pto_count), (0, 0), "{report}");
    assert_eq!(stats.handshake_duration, Some(Duration::from_secs(120)));
}

#[test]
fn a_delay_of_a_minute_that_is_not_known_is_survived() {
    let report = far_away(TransportConfig::default());
    let stats = report.connections[0].client.stats.as_ref().expect("the connection was made");
    assert!(stats.pto_count > 0 && stats.rtt >= Duration::from_secs(120), "{report}");
    assert_eq!(report.server_sessions, 1);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let link = LinkConfig { loss: Loss::Everything, ..LinkConfig::default() };
    let config = TransportConfig { handshake_timeout: Duration::from_secs(3), ..TransportConfig::default() };
    let lab = Lab::new(1).link(link.clone(), link).client(config);
    let lab = lab.connection(Connecting::new(Workload::default()).close(Close::Never));
    let report = lab.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.connections[0].client.end, ConnectionError::HandshakeTimedOut.to_string());
    assert_eq!(report.duration, Duration::from_secs(3));
    assert_eq!(report.server_sessions, 0);
}

#[test]
fn a_client_of_another_version_learns_that_there_is_none_in_common() {
    let link = delayed(Duration::from_millis(10));
    let lab = Lab::new(1).link(link.clone(), link).client_versions(vec![Version::V2]);
    let lab = lab.server_versions(vec![Version::V1]);
    let lab = lab.connection(Connecting::new(Workload::default()).close(Close::Never));
    let report = lab.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(report.connections[0].client.end, ConnectionError::VersionMismatch.to_string());
    assert_eq!((report.server_sessions, report.down.packets_sent), (0, 1));
    // Three probe timeouts pass until a connection that ended is forgotten.
    assert!(report.duration < Duration::from_secs(3), "{report}");
}

/// A long header of a version that nobody speaks, with connection IDs of 20 and 255 bytes (RFC 8999 §5.1).
fn unknown_version(len: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 0x5a, 0x6a, 0x7a, 0x8a, 20];
    packet.extend([3; 20]);
    packet.push(255);
    packet.extend([4; 255]);
    packet.resize(len, 0);
    packet
}

#[test]
fn unknown_versions_are_answered_if_the_datagram_is_large_enough() {
    let mut lab = Lab::new(1).start().expect("the configuration is sound");
    for (len, answers) in [(1_200, 1), (1_199, 1), (1_452, 2)] {
        lab.send_from_client(&unknown_version(len));
        lab.run_for(Duration::from_millis(10)).expect("nothing goes wrong");
        assert_eq!(lab.server().replies_sent(), answers, "{len}");
    }
    let link = lab.link_stats(Side::Server);
    // Each answer repeats both connection IDs and names the versions.
    assert!(link.bytes_sent >= 2 * (1 + 4 + 21 + 256 + 8) && link.bytes_sent < 700, "{}", link.bytes_sent);
    assert_eq!(lab.server().sessions().len(), 0);
}

#[test]
fn a_link_without_delay_delivers_at_once() {
    let text = "title = \"nothing between\"\n[[connection]]\ndownload_bytes = 100_000\n";
    let scenario = fulmar_lab::scenario::Scenario::parse("nothing-between", text).unwrap();
    let figures = scenario.run(None, 1).unwrap();
    assert!(figures.completion_s.unwrap() < 0.001, "{:?}", figures.completion_s);
    assert_eq!((figures.client.pto_count, figures.server.pto_count), (0, 0));
}
