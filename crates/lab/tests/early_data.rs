//! What a client gains that comes again (RFC 9001 §4.6), in the lab.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Shift, Simulation, Workload};
use fulmar_proto::{EarlyData, RetryPolicy, TransportConfig, Version};
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

/// A satellite link with more than half a second of 250 Mbit/s under way, and ends that have memory for it.
fn wide_satellite(resume: bool) -> Lab {
    let link = LinkConfig::with_rate(250_000_000, DELAY, Duration::from_millis(600));
    let config = TransportConfig {
        send_window: 80_000_000,
        stream_receive_window_max: 80_000_000,
        receive_window_max: 80_000_000,
        ..TransportConfig::default()
    };
    let lab = Lab::new(1).link(link.clone(), link).client(config.clone()).server(config);
    if resume { lab.early_data() } else { lab.remember_paths() }
}

/// What the server of a connection allowed on all streams at its beginning.
fn first_window(lab: &Simulation, number: usize) -> u64 {
    let peer = lab.client().sessions()[number].connection().peer_transport_parameters();
    peer.expect("the handshake is complete").initial_max_data.get()
}

/// Enough for the first connection to use the whole link, and what goes into its window then.
const UPLOAD: u64 = 60_000_000;
const WINDOW: u64 = 20_000_000;

#[test]
fn a_client_that_comes_again_is_not_held_up_by_windows_that_grow() {
    let open = TransportConfig {
        send_window: 80_000_000,
        stream_receive_window: 80_000_000,
        stream_receive_window_max: 80_000_000,
        receive_window: 80_000_000,
        receive_window_max: 80_000_000,
        ..TransportConfig::default()
    };
    for resume in [false, true] {
        let (times, _) = durations(wide_satellite(resume), UPLOAD);
        let (best, _) = durations(wide_satellite(resume).server(open.clone()), UPLOAD);
        assert!(times[1] < best[1] + best[1] / 50, "{times:?}, and with open windows {best:?}");
    }
}

#[test]
fn credit_is_for_the_host_that_made_use_of_it() {
    for moves in [false, true] {
        let mut lab = wide_satellite(false)
            .connection(Connecting::new(Workload::upload(UPLOAD)))
            .connection(Connecting::new(Workload::upload(WINDOW)).start(Duration::from_secs(120)));
        if moves {
            lab = lab.shift(Duration::from_secs(100), Shift::Move);
        }
        let mut lab = lab.start().expect("the configuration is sound");
        lab.run_until(Duration::from_secs(200), |lab| {
            lab.server().sessions().get(1).is_some_and(|session| session.application().is_done())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
        let small = TransportConfig::default().receive_window;
        assert_eq!(first_window(&lab, 0), small, "a first connection begins with a small window");
        if moves {
            assert_eq!(first_window(&lab, 1), small);
        } else {
            assert!(first_window(&lab, 1) > WINDOW, "{}", first_window(&lab, 1));
        }
    }
}

#[test]
fn early_data_is_taken_as_long_as_no_limit_is_less_than_the_client_remembers() {
    let mut lab = wide_satellite(true).shift(Duration::from_secs(100), Shift::Move);
    let sizes = [UPLOAD, 2_000_000, 2_000_000, 2_000_000, 2_000_000];
    // The last two are made from another address, of which the server knows nothing at first.
    for (n, start_s) in [0, 30, 60, 120, 150].into_iter().enumerate() {
        let upload = Connecting::new(Workload::upload(sizes[n]));
        lab = lab.connection(upload.start(Duration::from_secs(start_s)));
    }
    let mut lab = lab.start().expect("the configuration is sound");
    lab.run_until(Duration::from_secs(200), |lab| {
        lab.server().sessions().get(4).is_some_and(|session| session.application().is_done())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    let fates = lab.client().sessions().iter().map(|session| session.connection().early_data());
    use EarlyData::{Accepted, Rejected, Unused};
    assert_eq!(fates.collect::<Vec<_>>(), [Unused, Accepted, Accepted, Rejected, Accepted]);
    assert!(lab.server().sessions().iter().all(|session| session.application().is_done()));
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
