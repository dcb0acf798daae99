//! What the windows of the default configuration allow, in the lab.

use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Workload};
use fulmar_proto::TransportConfig;
use fulmar_sim::LinkConfig;

const MIB: u64 = 1 << 20;

/// A link of 1 Gbit/s with 300 ms each way, which holds 75 MB, and a queue as long as that.
fn gigabit_satellite() -> Lab {
    let delay = Duration::from_millis(300);
    let link = LinkConfig::with_rate(1_000_000_000, delay, Duration::from_millis(600));
    Lab::new(1).link(link.clone(), link)
}

/// Runs an upload until the server has all of it, and returns how long that took.
fn upload(lab: Lab, bytes: u64) -> Duration {
    let mut lab = lab.connection(Connecting::new(Workload::upload(bytes))).start().expect("it is sound");
    lab.run_until(Duration::from_secs(60), |lab| {
        lab.server().sessions().first().is_some_and(|session| session.application().is_done())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    lab.server().sessions()[0].application().last_read().expect("it was read")
        - lab.client().sessions()[0].started()
}

#[test]
fn the_default_windows_do_not_hold_back_a_gigabit_over_600_ms() {
    let bytes = 300_000_000;
    let open = TransportConfig {
        send_window: 1 << 30,
        stream_receive_window: 1 << 30,
        stream_receive_window_max: 1 << 30,
        receive_window: 1 << 30,
        receive_window_max: 1 << 30,
        ..TransportConfig::default()
    };
    let tuned = upload(gigabit_satellite(), bytes);
    let best = upload(gigabit_satellite().client(open.clone()).server(open), bytes);
    // The windows grow for some round trips.
    assert!(tuned < best + best / 10, "{tuned:?}, and with open windows {best:?}");
}

/// What the client of an endless upload has buffered for sending after so long.
fn held_after(time: Duration) -> u64 {
    let upload = Connecting::new(Workload::upload(1_000_000_000));
    let mut lab = gigabit_satellite().connection(upload).start().expect("it is sound");
    lab.run_for(time).unwrap_or_else(|failure| panic!("{failure}"));
    lab.client().sessions()[0].connection().send_buffered()
}

#[test]
fn an_end_holds_much_only_for_a_peer_that_has_acknowledged_much() {
    // The handshake takes 600 ms, and as long it takes until the first data is acknowledged.
    let unanswered = held_after(Duration::from_millis(1_150));
    assert!((1..=MIB / 4).contains(&unanswered), "{unanswered} bytes before data was acknowledged");
    let at_full_rate = held_after(Duration::from_secs(4));
    assert!(at_full_rate > 75_000_000, "{at_full_rate} bytes while the path is full");
}
