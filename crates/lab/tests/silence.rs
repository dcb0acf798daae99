//! Connections on which nothing is said, and a server that has forgotten what was.

use std::time::Duration;

use fulmar_lab::{Close, Connecting, Failure, Lab, Simulation, Workload};
use fulmar_proto::{ConnectionError, Dir, Side, TransportConfig};
use fulmar_sim::LinkConfig;

const DELAY: Duration = Duration::from_millis(20);

fn connected(client: TransportConfig, server: TransportConfig) -> Result<Simulation, Failure> {
    let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    let lab = Lab::new(1).link(link.clone(), link).client(client).server(server);
    let lab = lab.connection(Connecting::new(Workload::default()).close(Close::Never));
    let mut lab = lab.start().expect("the configuration is sound");
    lab.run_until(Duration::from_secs(1), |lab| {
        let confirmed = |session: &fulmar_lab::Session| session.application().is_confirmed();
        lab.client().sessions().iter().any(confirmed) && lab.server().sessions().iter().any(confirmed)
    })?;
    Ok(lab)
}

/// Why the connection ended at the client and at the server.
fn ends(lab: &Simulation) -> [Option<ConnectionError>; 2] {
    [lab.client(), lab.server()].map(|host| host.sessions()[0].application().lost().cloned())
}

fn idle_after(timeout: Duration) -> TransportConfig {
    TransportConfig { max_idle_timeout: Some(timeout), ..TransportConfig::default() }
}

#[test]
fn both_sides_give_up_after_the_shorter_idle_timeout() -> Result<(), Failure> {
    let mut lab = connected(idle_after(Duration::from_secs(30)), idle_after(Duration::from_secs(5)))?;
    lab.run_for(Duration::from_millis(4_800))?;
    assert_eq!(ends(&lab), [None, None]);
    lab.run_for(Duration::from_millis(500))?;
    assert_eq!(ends(&lab), [Some(ConnectionError::TimedOut), Some(ConnectionError::TimedOut)]);
    assert_eq!(lab.client().endpoint().open_connections(), 0);
    assert_eq!(lab.server().endpoint().open_connections(), 0);
    Ok(())
}

#[test]
fn an_end_without_idle_timeout_waits_forever() -> Result<(), Failure> {
    let never = TransportConfig { max_idle_timeout: None, ..TransportConfig::default() };
    let mut lab = connected(never.clone(), never)?;
    lab.run_for(Duration::from_secs(86_400 * 365))?;
    assert_eq!(ends(&lab), [None, None]);
    Ok(())
}

#[test]
fn keep_alive_keeps_both_sides_alive() -> Result<(), Failure> {
    let keeping = TransportConfig {
        keep_alive_interval: Some(Duration::from_secs(2)),
        ..idle_after(Duration::from_secs(5))
    };
    let mut lab = connected(keeping, idle_after(Duration::from_secs(5)))?;
    let sent_before = lab.client().sessions()[0].connection().stats().packets_sent;
    lab.run_for(Duration::from_secs(600))?;
    assert_eq!(ends(&lab), [None, None]);
    let sent = lab.client().sessions()[0].connection().stats().packets_sent - sent_before;
    assert!((290..=310).contains(&sent), "{sent} packets in 600 s with one every 2 s");
    Ok(())
}

#[test]
fn a_server_that_was_restarted_resets_its_old_connections() -> Result<(), Failure> {
    let mut lab = connected(TransportConfig::default(), TransportConfig::default())?;
    lab.restart_server();
    let streams = lab.client_connection(0).streams();
    let id = streams.open(Dir::Uni).expect("the server allows streams");
    streams.send(id).write(b"are you there?").expect("there is room");
    lab.run_for(DELAY * 2 + Duration::from_millis(1))?;
    assert_eq!(lab.client().sessions()[0].application().lost(), Some(&ConnectionError::Reset));
    assert!(lab.server().replies_sent() > 0);
    lab.run_for(Duration::from_secs(5))?;
    assert_eq!(lab.client().endpoint().open_connections(), 0);
    Ok(())
}

/// How long an upload of 100 kB lasts that the client must close like this, and how much of it arrives. That the client
/// closes it, and that no timeout ends it, is part of the run's own checks.
fn upload_until(close: Close) -> (Duration, u64) {
    let link = LinkConfig { delay: DELAY, ..LinkConfig::default() };
    let connecting = Connecting::new(Workload::upload(100_000)).close(close);
    let report = Lab::new(1).link(link.clone(), link).connection(connecting).run();
    let report = report.expect("the client closes the connection");
    (report.duration, report.connections[0].server.bytes_read)
}

#[test]
fn a_connection_that_is_done_before_its_time_is_closed_before_it_falls_idle() {
    let (duration, bytes) = upload_until(Close::AtLatest(Side::Client, Duration::from_secs(60)));
    assert!(duration < Duration::from_secs(5), "{duration:?}");
    assert_eq!(bytes, 100_000);
}

#[test]
fn a_connection_that_is_not_done_in_its_time_is_cut_short() {
    // The first flight is under way then.
    let (duration, bytes) = upload_until(Close::AtLatest(Side::Client, DELAY));
    assert!(duration < Duration::from_secs(5), "{duration:?}");
    assert!(bytes < 100_000, "{bytes}");
}
