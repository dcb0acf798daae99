//! A connection under way, and how long nothing new arrived.

use std::net::IpAddr;
use std::time::Duration;

use fulmar_lab::{Close, Connecting, Failure, Lab, Session, Simulation, Workload};
use fulmar_proto::{Instant, Side, TransportConfig};
use fulmar_sim::{LinkConfig, NatConfig};

/// More than is transferred in any of the tests.
pub(crate) const MUCH: u64 = 4_000_000_000;

/// A NAT with one address outside: a rebinding changes the port.
pub(crate) fn one_address() -> NatConfig {
    NatConfig::port_restricted_cone(IpAddr::from([192, 0, 2, 1]))
}

/// A NAT with two addresses outside: each rebinding goes on to the other one.
pub(crate) fn two_addresses() -> NatConfig {
    NatConfig { addresses: vec![IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])], ..one_address() }
}

/// A link of 50 Mbit/s with a queue of two round trips.
pub(crate) fn link(rtt: Duration) -> LinkConfig {
    LinkConfig::with_rate(50_000_000, rtt / 2, rtt * 2)
}

/// A connection behind a NAT over which one side sends, which is done with its handshake and its slow start.
pub(crate) fn loaded(
    seed: u64,
    sender: Side,
    link: &LinkConfig,
    nat: NatConfig,
) -> Result<Simulation, Failure> {
    let (client, server) = match sender {
        Side::Client => (Workload::upload(MUCH), Workload::default()),
        Side::Server => (Workload::requests(1, 100), Workload::replies(MUCH)),
    };
    start(seed, client, server, TransportConfig::default(), link, nat)
}

/// A connection behind a NAT.
pub(crate) fn start(
    seed: u64,
    client: Workload,
    server: Workload,
    config: TransportConfig,
    link: &LinkConfig,
    nat: NatConfig,
) -> Result<Simulation, Failure> {
    let lab = Lab::new(seed).link(link.clone(), link.clone()).both(config).nat(nat);
    let lab = lab.server_workload(server).connection(Connecting::new(client).close(Close::Never));
    let mut lab = lab.start().expect("the configuration is sound");
    lab.run_until(Duration::from_secs(20), |lab| {
        let confirmed = |session: &Session| session.application().is_confirmed();
        lab.client().sessions().iter().any(confirmed) && lab.server().sessions().iter().any(confirmed)
    })?;
    Ok(lab)
}

/// What one side has read.
pub(crate) fn read(lab: &Simulation, reader: Side) -> u64 {
    let host = if reader.is_client() { lab.client() } else { lab.server() };
    let streams = host.sessions().iter().flat_map(|session| session.application().receiving().values());
    streams.map(|stream| stream.bytes()).sum()
}

/// Lets the time pass and returns the longest time in which `reader` could read nothing new.
pub(crate) fn longest_stall(
    lab: &mut Simulation,
    reader: Side,
    duration: Duration,
) -> Result<Duration, Failure> {
    const STEP: Duration = Duration::from_millis(1);
    let end = lab.now() + duration;
    let (mut last, mut since, mut longest): (u64, Instant, Duration) =
        (read(lab, reader), lab.now(), Duration::ZERO);
    while lab.now() < end {
        lab.run_for(STEP)?;
        let bytes = read(lab, reader);
        if bytes > last {
            longest = longest.max(lab.now() - since);
            (last, since) = (bytes, lab.now());
        }
    }
    Ok(longest.max(end - since))
}
