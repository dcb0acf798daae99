//! A client behind a NAT learns where it is seen, and that it is seen elsewhere later.

use std::net::SocketAddr;
use std::time::Duration;

use fulmar_lab::{Close, Connecting, Failure, Lab, Shift, Simulation, Workload};
use fulmar_proto::{AddressDiscovery, TransportConfig};
use fulmar_sim::{LinkConfig, Loss, NatConfig};

const MILLISECOND: Duration = Duration::from_millis(1);
const NAT: [u8; 4] = [192, 0, 2, 1];

fn config(address_discovery: Option<AddressDiscovery>) -> TransportConfig {
    let keep_alive_interval = Some(Duration::from_millis(500));
    TransportConfig { address_discovery, keep_alive_interval, ..TransportConfig::default() }
}

/// A connection through a NAT that forgets it twice, over a link that loses packets.
fn through_nat(seed: u64, client: TransportConfig, server: TransportConfig) -> Simulation {
    let loss = Loss::Uniform { probability: 0.1 };
    let link = LinkConfig { delay: 20 * MILLISECOND, loss, ..LinkConfig::default() };
    let lab = Lab::new(seed)
        .link(link.clone(), link)
        .client(client)
        .server(server)
        .nat(NatConfig::port_restricted_cone(NAT.into()))
        .shift(Duration::from_secs(5), Shift::Rebinding)
        .shift(Duration::from_secs(10), Shift::Rebinding)
        .connection(Connecting::new(Workload::default()).close(Close::Never));
    lab.start().expect("the configuration is sound")
}

/// Where each end is seen by the other, as it was told.
fn told(lab: &Simulation) -> [Option<SocketAddr>; 2] {
    [lab.client(), lab.server()].map(|host| host.sessions()[0].connection().observed_address())
}

#[test]
fn a_client_behind_a_nat_hears_of_every_address_that_it_gets() -> Result<(), Failure> {
    let both = || config(Some(AddressDiscovery::Both));
    for seed in 0..10 {
        let mut lab = through_nat(seed, both(), both());
        let mut seen = Vec::new();
        for round in 0..3 {
            lab.run_for(Duration::from_millis(4_900))?;
            let server = lab.server().sessions()[0].connection().remote_address();
            assert_eq!(told(&lab)[0], Some(server), "seed {seed}, after {seen:?}");
            assert_eq!(server.ip(), std::net::IpAddr::from(NAT));
            seen.push(server.port());
            if round == 0 {
                let client = lab.client().sessions()[0].connection().remote_address();
                assert_eq!(told(&lab)[1], Some(client), "seed {seed}");
            }
        }
        assert!(seen[0] != seen[1] && seen[1] != seen[2], "seed {seed}: {seen:?}");
    }
    Ok(())
}

#[test]
fn the_roles_are_kept() -> Result<(), Failure> {
    use AddressDiscovery::{Both, Provide, Receive};
    for (client, server, expected) in [
        (Some(Receive), Some(Provide), [true, false]),
        (Some(Provide), Some(Receive), [false, true]),
        (Some(Receive), Some(Receive), [false, false]),
        (Some(Provide), Some(Provide), [false, false]),
        (Some(Both), None, [false, false]),
        (None, Some(Both), [false, false]),
    ] {
        let mut lab = through_nat(1, config(client), config(server));
        lab.run_for(Duration::from_secs(4))?;
        assert_eq!(told(&lab).map(|address| address.is_some()), expected, "{client:?}, {server:?}");
        assert!(lab.client().sessions()[0].application().lost().is_none());
    }
    Ok(())
}
