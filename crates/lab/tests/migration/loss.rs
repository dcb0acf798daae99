//! Addresses that change on links that lose packets.

use std::time::Duration;

use fulmar_lab::{Connecting, Failure, Lab, Shift, Workload};
use fulmar_proto::TransportConfig;
use fulmar_sim::{LinkConfig, Loss};

use super::run::{link, two_addresses};

#[test]
fn transfers_end_well_however_often_the_address_changes_on_a_link_that_loses_packets() -> Result<(), Failure>
{
    let rtt = Duration::from_millis(30);
    for seed in 0..12 {
        let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.05 }, ..link(rtt) };
        let config = TransportConfig {
            keep_alive_interval: Some(Duration::from_secs(1)),
            ..TransportConfig::default()
        };
        let mut lab = Lab::new(seed).link(lossy.clone(), lossy).both(config).nat(two_addresses());
        lab = lab.server_workload(Workload::replies(1_000_000));
        lab = lab.connection(Connecting::new(Workload::requests(3, 1_000_000)));
        for n in 0..20 {
            let shift = if (n + seed) % 3 == 0 { Shift::Move } else { Shift::Rebinding };
            lab = lab.shift(Duration::from_millis(200 + 150 * n), shift);
        }
        let report = lab.run()?;
        let connection = &report.connections[0];
        for side in [&connection.client, &connection.server] {
            assert!(side.stats.as_ref().is_some_and(|stats| stats.migrations > 0), "seed {seed}");
        }
    }
    Ok(())
}
