//! Connections that are busy when their addresses change.

use std::time::Duration;

use fulmar_lab::{Failure, Simulation};
use fulmar_proto::Side;
use fulmar_sim::LinkConfig;

use super::run::{link, loaded, longest_stall, one_address, read, two_addresses};

const RTTS: [u64; 3] = [10, 50, 200];

/// The longest stall that a change of the client's address causes, in two units.
#[derive(Debug, Clone, Copy, Default)]
struct Stall {
    /// Round trips as the sender has measured them just before: with the queue that it keeps on the way. What is sent after
    /// the change stands in that queue, behind what nobody receives any more, so no sender can do better than this.
    measured: f64,
    /// Round trips of the link without its queue.
    base: f64,
}

fn stall(
    sender: Side,
    rtt: Duration,
    link: &LinkConfig,
    nat: fulmar_sim::NatConfig,
    change: impl Fn(&mut Simulation),
) -> Result<Stall, Failure> {
    let mut worst = Stall::default();
    for seed in 0..5 {
        let mut lab = loaded(seed, sender, link, nat.clone())?;
        lab.run_for(rtt * 40 + Duration::from_millis(7 * seed))?;
        let before = read(&lab, !sender);
        assert!(before > 0, "nothing moves before the change");
        let host = if sender.is_client() { lab.client() } else { lab.server() };
        let measured = host.sessions()[0].connection().rtt();
        change(&mut lab);
        let stall = longest_stall(&mut lab, !sender, rtt * 40)?;
        assert!(read(&lab, !sender) > before, "nothing moves after the change");
        worst.measured = worst.measured.max(stall.as_secs_f64() / measured.as_secs_f64());
        worst.base = worst.base.max(stall.as_secs_f64() / rtt.as_secs_f64());
    }
    Ok(worst)
}

#[test]
fn a_rebinding_stalls_no_transfer_for_more_than_three_round_trips() -> Result<(), Failure> {
    for nat in [one_address(), two_addresses()] {
        for sender in [Side::Client, Side::Server] {
            for rtt in RTTS.map(Duration::from_millis) {
                let stall = stall(sender, rtt, &link(rtt), nat.clone(), Simulation::rebind_nat)?;
                println!("{sender:?} sends, {rtt:?}, {} addresses: {stall:.2?}", nat.addresses.len());
                assert!(stall.measured <= 3.0, "{sender:?} sends, {rtt:?}, {:?}: {stall:.2?}", nat.addresses);
            }
        }
    }
    Ok(())
}

#[test]
fn a_client_that_moves_stalls_no_transfer_for_more_than_three_round_trips() -> Result<(), Failure> {
    for sender in [Side::Client, Side::Server] {
        for rtt in RTTS.map(Duration::from_millis) {
            let moves = |lab: &mut Simulation| assert_eq!(lab.move_client(), 0);
            let stall = stall(sender, rtt, &link(rtt), one_address(), moves)?;
            println!("{sender:?} sends, {rtt:?}: {stall:.2?}");
            assert!(stall.measured <= 3.0, "{sender:?} sends, {rtt:?}: {stall:.2?}");
        }
    }
    Ok(())
}

#[test]
fn a_client_that_leaves_its_socket_stalls_no_transfer_for_more_than_three_round_trips() -> Result<(), Failure>
{
    for sender in [Side::Client, Side::Server] {
        for rtt in RTTS.map(Duration::from_millis) {
            let leaps = |lab: &mut Simulation| assert_eq!(lab.replace_client_socket(), 0);
            let stall = stall(sender, rtt, &link(rtt), one_address(), leaps)?;
            println!("{sender:?} sends, {rtt:?}, no socket left: {stall:.2?}");
            assert!(stall.measured <= 3.0, "{sender:?} sends, {rtt:?}: {stall:.2?}");
        }
    }
    Ok(())
}

#[test]
fn behind_a_shallow_buffer_no_stall_is_longer_than_three_round_trips_of_the_link() -> Result<(), Failure> {
    for nat in [one_address(), two_addresses()] {
        for sender in [Side::Client, Side::Server] {
            for rtt in RTTS.map(Duration::from_millis) {
                let shallow = LinkConfig::with_rate(50_000_000, rtt / 2, rtt / 4);
                let stall = stall(sender, rtt, &shallow, nat.clone(), Simulation::rebind_nat)?;
                println!(
                    "{sender:?} sends, {rtt:?}, shallow, {} addresses: {stall:.2?}",
                    nat.addresses.len()
                );
                assert!(stall.base <= 3.0, "{sender:?} sends, {rtt:?}, {:?}: {stall:.2?}", nat.addresses);
            }
        }
    }
    Ok(())
}

#[test]
fn a_connection_lives_through_a_thousand_rebindings() -> Result<(), Failure> {
    let rtt = Duration::from_millis(20);
    for sender in [Side::Client, Side::Server] {
        let mut lab = loaded(3, sender, &link(rtt), two_addresses())?;
        for _ in 0..1_000 {
            lab.run_for(rtt * 10)?;
            let before = read(&lab, !sender);
            lab.rebind_nat();
            lab.run_for(rtt * 10)?;
            assert!(read(&lab, !sender) > before, "nothing moves any more");
        }
        let stats = lab.server().sessions()[0].connection().stats();
        assert_eq!(stats.migrations, 1_000, "each rebinding is followed once");
        assert_eq!(stats.paths_validated, 1_000);
        assert_eq!(lab.server().endpoint().open_connections(), 1);
    }
    Ok(())
}

#[test]
fn a_connection_lives_through_a_thousand_moves_each_under_a_fresh_connection_id() -> Result<(), Failure> {
    let rtt = Duration::from_millis(20);
    let mut lab = loaded(4, Side::Client, &link(rtt), one_address())?;
    for _ in 0..1_000 {
        lab.run_for(rtt * 10)?;
        assert_eq!(lab.move_client(), 0, "there is a spare connection ID");
    }
    lab.run_for(rtt * 10)?;
    let [client, server] = [lab.client(), lab.server()].map(|host| host.sessions()[0].connection().stats());
    assert_eq!((client.migrations, server.migrations), (1_000, 1_000));
    assert_eq!((client.paths_failed, server.paths_failed), (0, 0));
    Ok(())
}
