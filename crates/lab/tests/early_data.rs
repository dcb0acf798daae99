//! What a client gains that comes again (RFC 9001 §4.6), in the lab.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Simulation, Workload};
use fulmar_proto::{EarlyData, RetryPolicy, Version};
use fulmar_sim::LinkConfig;

/// The delay of a geostationary satellite, each way.
const DELAY: Duration = Duration::from_millis(300);

fn satellite(seed: u64) -> Lab {
    let link = LinkConfig::with_rate(50_000_000, DELAY, Duration::from_millis(600));
    Lab::new(seed).link(link.clone(), link)
}

/// Lets two connections upload `bytes` each, one after the other, and returns how long it took from the beginning of each
/// until the server had all.
fn durations(lab: Lab, bytes: u64) -> ([Duration; 2], Simulation) {
    let lab = lab
        .connection(Connecting::new(Workload::upload(bytes)))
        .connection(Connecting::new(Workload::upload(bytes)).after_previous());
    let mut lab = lab.start().expect("the configuration is sound");
    lab.run_until(Duration::from_secs(60), |lab| {
        let done = |n: usize| lab.server().sessions().get(n).is_some_and(|s| s.application().is_done());
        done(0) && done(1)
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    let duration = |n: usize| {
        let started = lab.client().sessions()[n].started();
        lab.server().sessions()[n].application().last_read().expect("it was read") - started
    };
    let durations = [duration(0), duration(1)];
    (durations, lab)
}

#[test]
fn early_data_saves_a_round_trip_over_a_satellite() {
    let slack = Duration::from_millis(20);
    let (without, lab) = durations(satellite(1).resume(), 5_000);
    assert!(lab.client().sessions()[1].connection().stats().resumed);
    let (with, lab) = durations(satellite(1).early_data(), 5_000);
    assert_eq!(lab.client().sessions()[1].connection().early_data(), EarlyData::Accepted);
    for full in [without[0], without[1], with[0]] {
        assert!(full >= 3 * DELAY && full < 3 * DELAY + slack, "{full:?}");
    }
    assert!(with[1] >= DELAY && with[1] < DELAY + slack, "{:?}", with[1]);
}

#[test]
fn what_a_session_store_remembers_of_the_path_speeds_up_the_next_upload() {
    let (durations, lab) = durations(satellite(1).resume(), 10_000_000);
    assert!(lab.client().sessions()[1].connection().stats().resumed);
    assert!(durations[1] + DELAY / 3 < durations[0], "{durations:?}");
}

#[test]
fn early_data_with_retries_other_versions_and_losses() {
    for seed in 0..30 {
        let mut lab = satellite(seed).early_data().client_versions(vec![Version::V2, Version::V1]);
        if seed % 2 == 0 {
            lab = lab.retry(RetryPolicy::Always);
        }
        if seed % 3 == 0 {
            lab = lab.initial_version(Version::V1);
        }
        for _ in 0..3 {
            lab = lab.connection(Connecting::new(Workload::upload(20_000)).after_previous());
        }
        let report = lab.run().unwrap_or_else(|failure| panic!("{failure}"));
        for connection in &report.connections {
            assert_eq!(connection.server.bytes_read, 20_000, "seed {seed}");
        }
    }
}
