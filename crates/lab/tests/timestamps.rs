//! Timestamps tell the queue of one direction from that of the other.

use std::time::Duration;

use fulmar_lab::{Connecting, Failure, Lab, Workload};
use fulmar_proto::congestion::{CongestionControl, CubicConfig};
use fulmar_proto::{OneWayDelays, TimeStamps, TransportConfig};
use fulmar_sim::LinkConfig;

const MILLISECOND: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(200);

fn config(time_stamps: Option<TimeStamps>) -> TransportConfig {
    let window = 8 << 20;
    TransportConfig {
        time_stamps,
        // One that fills queues.
        congestion: CongestionControl::Cubic(CubicConfig::default()),
        stream_receive_window: window,
        receive_window: window,
        ..TransportConfig::default()
    }
}

/// A narrow link with a long queue, or a wide one.
fn link(narrow: bool) -> LinkConfig {
    LinkConfig::with_rate(if narrow { 4_000_000 } else { 400_000_000 }, DELAY, QUEUE)
}

/// What a client that uploads has measured, again and again, while a server sends as well if `download`.
fn measured(up: LinkConfig, down: LinkConfig, download: u64) -> Result<Vec<OneWayDelays>, Failure> {
    let both = config(Some(TimeStamps::Both));
    let upload = Workload { bidirectional: 1.0, ..Workload::upload(2_000_000) };
    let lab = Lab::new(1).link(up, down).both(both).server_workload(Workload::replies(download));
    let mut lab = lab.connection(Connecting::new(upload)).start().expect("the configuration is sound");
    let mut all = Vec::new();
    for _ in 0..300 {
        lab.run_for(10 * MILLISECOND)?;
        let session = lab.client().sessions().iter().next();
        all.extend(session.and_then(|session| session.connection().stats().one_way));
    }
    Ok(all)
}

fn largest(all: &[OneWayDelays], of: fn(&OneWayDelays) -> Duration) -> Duration {
    all.iter().map(of).max().unwrap_or_default()
}

#[test]
fn a_queue_on_the_way_there_is_not_taken_for_one_on_the_way_back() -> Result<(), Failure> {
    let all = measured(link(true), link(false), 0)?;
    let (forward, back) = (largest(&all, |d| d.forward_queue), largest(&all, |d| d.return_queue));
    println!("{} measurements: forward {forward:?}, return {back:?}", all.len());
    assert!(forward > QUEUE / 2 && forward < QUEUE + 30 * MILLISECOND, "{forward:?}");
    assert!(back < 5 * MILLISECOND, "{back:?}");
    let total = largest(&all, |d| d.forward);
    assert!(
        total >= forward + DELAY - 5 * MILLISECOND && total <= forward + DELAY + 5 * MILLISECOND,
        "{total:?}"
    );
    Ok(())
}

#[test]
fn a_queue_on_the_way_back_is_not_taken_for_one_on_the_way_there() -> Result<(), Failure> {
    let all = measured(link(false), link(true), 2_000_000)?;
    let (forward, back) = (largest(&all, |d| d.forward_queue), largest(&all, |d| d.return_queue));
    println!("{} measurements: forward {forward:?}, return {back:?}", all.len());
    assert!(back > QUEUE / 2 && back < QUEUE + 30 * MILLISECOND, "{back:?}");
    assert!(forward < 30 * MILLISECOND, "{forward:?}");
    Ok(())
}

#[test]
fn nothing_is_measured_where_one_end_does_not_take_part() -> Result<(), Failure> {
    for (client, server) in [
        (Some(TimeStamps::Both), None),
        (None, Some(TimeStamps::Both)),
        (Some(TimeStamps::Send), Some(TimeStamps::Both)),
        (Some(TimeStamps::Receive), Some(TimeStamps::Receive)),
    ] {
        let lab = Lab::new(1).link(link(false), link(false)).client(config(client)).server(config(server));
        let report = lab.connection(Connecting::new(Workload::upload(100_000))).run()?;
        let stats = report.connections[0].client.stats.as_ref().expect("the connection ended");
        assert_eq!(stats.one_way, None, "{client:?}, {server:?}");
    }
    Ok(())
}
