//! Connections on which nothing is said when their addresses change.

use std::time::Duration;

use fulmar_lab::{Failure, Simulation, Workload};
use fulmar_proto::TransportConfig;

use super::run::{link, one_address, start, two_addresses};

const RTT: Duration = Duration::from_millis(40);

fn idle(nat: fulmar_sim::NatConfig) -> Result<Simulation, Failure> {
    start(1, Workload::default(), Workload::default(), TransportConfig::default(), &link(RTT), nat)
}

/// The client asks for an answer; whether it comes within two round trips, and nothing is missed in the end.
fn is_answered(lab: &mut Simulation) -> Result<bool, Failure> {
    let received = |lab: &Simulation| lab.client().sessions()[0].connection().stats().packets_received;
    let before = received(lab);
    lab.client_connection(0).ping();
    lab.run_for(RTT * 2)?;
    let answered = received(lab) > before;
    // The server asks of the new path twice, as little credit goes before a full datagram, and is answered; the last
    // answer is acknowledged late.
    lab.run_for(RTT * 2)?;
    let stats = lab.client().sessions()[0].connection().stats();
    Ok(answered && stats.bytes_in_flight == 0 && stats.pto_count == 0)
}

#[test]
fn what_a_client_says_after_a_rebinding_is_answered() -> Result<(), Failure> {
    for nat in [one_address(), two_addresses()] {
        let mut lab = idle(nat)?;
        for round in 1..=5 {
            // Longer than a silence after which the client changes its connection ID by itself.
            lab.run_for(Duration::from_secs(6))?;
            lab.rebind_nat();
            assert!(is_answered(&mut lab)?);
            let server = lab.server().sessions()[0].connection().stats();
            assert_eq!((server.migrations, server.paths_validated), (round, round));
        }
    }
    Ok(())
}

#[test]
fn a_rebinding_that_nobody_notices_costs_nothing() -> Result<(), Failure> {
    let mut lab = idle(one_address())?;
    lab.run_for(Duration::from_secs(1))?;
    let sent = |lab: &Simulation| {
        [lab.client(), lab.server()].map(|host| host.sessions()[0].connection().stats().datagrams_sent)
    };
    let before = sent(&lab);
    for _ in 0..100 {
        lab.rebind_nat();
        lab.run_for(Duration::from_millis(100))?;
    }
    assert_eq!(sent(&lab), before);
    assert!(is_answered(&mut lab)?);
    Ok(())
}

#[test]
fn a_client_that_moves_while_idle_tells_its_server_at_once() -> Result<(), Failure> {
    let mut lab = idle(one_address())?;
    lab.run_for(Duration::from_secs(2))?;
    assert_eq!(lab.move_client(), 0);
    lab.run_for(RTT * 2)?;
    for host in [lab.client(), lab.server()] {
        let stats = host.sessions()[0].connection().stats();
        assert_eq!((stats.migrations, stats.paths_validated), (1, 1));
    }
    assert!(is_answered(&mut lab)?);
    Ok(())
}
