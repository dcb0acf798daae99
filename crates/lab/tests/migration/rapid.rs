//! Addresses that change faster than a path can be validated.

use std::sync::Arc;
use std::time::Duration;

use fulmar_lab::{Connecting, Failure, Lab, RunReport, Shift, Side, Workload};
use fulmar_proto::{EmptyCids, Instant, Rng, TransportConfig};
use fulmar_sim::{LinkConfig, Loss};

use super::run::{link, one_address, two_addresses};

const MS: Duration = Duration::from_millis(1);
const BYTES: u64 = 4_000_000;

/// What the ends do about connection IDs.
#[derive(Debug, Clone, Copy)]
enum Ids {
    /// As many as there are by default.
    Default,
    /// The fewest that RFC 9000 allows, at both ends.
    Two,
    /// The client has none, so that its server has but one way to address it.
    NoneAtClient,
}

const IDS: [Ids; 3] = [Ids::Default, Ids::Two, Ids::NoneAtClient];

/// Both ends send `bytes`, the client from behind a NAT if that is asked for.
fn lab(seed: u64, ids: Ids, link: &LinkConfig, has_nat: bool, bytes: u64) -> Lab {
    let connection_ids = if matches!(ids, Ids::Two) { 2 } else { 4 };
    let keep_alive_interval = Some(Duration::from_secs(1));
    let config = TransportConfig { connection_ids, keep_alive_interval, ..TransportConfig::default() };
    let mut lab = Lab::new(seed).link(link.clone(), link.clone()).both(config);
    if matches!(ids, Ids::NoneAtClient) {
        lab = lab.cids(Side::Client, Arc::new(EmptyCids));
    }
    if has_nat {
        lab = lab.nat(if seed.is_multiple_of(2) { one_address() } else { two_addresses() });
    }
    lab.server_workload(Workload::upload(bytes)).connection(Connecting::new(Workload::upload(bytes)))
}

/// Both ends send, while the client's address changes at the given times. That the run ends well says that all
/// that both have sent has arrived.
fn run(seed: u64, ids: Ids, link: &LinkConfig, shifts: &[(Duration, Shift)]) -> Result<RunReport, Failure> {
    let has_nat = shifts.iter().any(|(_, shift)| *shift == Shift::Rebinding);
    let lab = lab(seed, ids, link, has_nat, BYTES);
    shifts.iter().fold(lab, |lab, (at, shift)| lab.shift(*at, *shift)).run()
}

/// `count` times from `start` on, with gaps of up to `gap_max`.
fn times(rng: &mut Rng, start: Duration, count: u32, gap_max: Duration) -> Vec<Duration> {
    let mut at = start;
    let mut times = Vec::new();
    for _ in 0..count {
        at += Duration::from_nanos(rng.below(gap_max.as_nanos() as u64 + 1));
        times.push(at);
    }
    times
}

fn migrations(report: &RunReport) -> [u64; 2] {
    let ends = [&report.connections[0].client, &report.connections[0].server];
    ends.map(|end| end.stats.as_ref().map_or(0, |stats| stats.migrations))
}

#[test]
fn a_client_that_leaps_from_socket_to_socket_within_milliseconds_is_followed() -> Result<(), Failure> {
    for ids in IDS {
        for rtt in [1, 20, 100] {
            for seed in 0..6 {
                let mut rng = Rng::from_u64(seed);
                let count = [2, 3, 5, 8, 20, 60][seed as usize];
                let gap = [MS * 5, MS, MS * 5, MS * 2, MS * 5, MS * 5][seed as usize];
                let shifts = times(&mut rng, MS * 200, count, gap).into_iter().map(|at| (at, Shift::Leap));
                let report = run(seed, ids, &link(MS * rtt), &shifts.collect::<Vec<_>>())?;
                let [client, server] = migrations(&report);
                assert!(
                    client > 0 && server > 0,
                    "{ids:?}, {rtt} ms, seed {seed}: {client} and {server} moves"
                );
                assert!(
                    report.duration < Duration::from_secs(10),
                    "{ids:?}, {rtt} ms, seed {seed}: {count} leaps took {:?}",
                    report.duration
                );
            }
        }
    }
    Ok(())
}

#[test]
fn a_client_that_leaps_from_socket_to_socket_is_followed_where_packets_are_lost() -> Result<(), Failure> {
    for ids in IDS {
        for seed in 0..20 {
            let mut rng = Rng::from_u64(seed);
            let lossy = LinkConfig { loss: Loss::Uniform { probability: 0.1 }, ..link(MS * 20) };
            let times = times(&mut rng, MS * 200, 30, MS * 5);
            let shifts: Vec<_> = times.into_iter().map(|at| (at, Shift::Leap)).collect();
            run(seed, ids, &lossy, &shifts)?;
        }
    }
    Ok(())
}

#[test]
fn all_kinds_of_changes_at_once_are_followed() -> Result<(), Failure> {
    for ids in IDS {
        for seed in 0..20 {
            let mut rng = Rng::from_u64(seed);
            let kinds = [Shift::Leap, Shift::Move, Shift::Rebinding];
            let times = times(&mut rng, MS * 200, 40, MS * 30);
            let shifts: Vec<_> = times.into_iter().map(|at| (at, kinds[rng.below(3) as usize])).collect();
            run(seed, ids, &link(MS * 20), &shifts)?;
        }
    }
    Ok(())
}

#[test]
fn a_thousand_changes_in_one_connection_are_survived_whatever_lies_between_them() -> Result<(), Failure> {
    for ids in IDS {
        for shift in [Shift::Rebinding, Shift::Leap] {
            for seed in 0..2 {
                let rtt = MS * [20, 60][seed as usize];
                let mut rng = Rng::from_u64(seed);
                let mut lab = lab(seed, ids, &link(rtt), true, 20_000_000).start().expect("sound");
                lab.run_for(MS * 500)?;
                for _ in 0..1_000 {
                    lab.run_for(Duration::from_nanos(rng.below(50_000_000)))?;
                    match shift {
                        Shift::Rebinding => lab.rebind_nat(),
                        _ => _ = lab.replace_client_socket(),
                    }
                }
                let storm = lab.now();
                let report = lab.run()?;
                let [client, server] = migrations(&report);
                let rest = report.duration.saturating_sub(storm - Instant::ZERO);
                let what = format!(
                    "{ids:?}, {shift:?}, {rtt:?}: {client} and {server} moves, {rest:?} after the last"
                );
                println!("{what}");
                // What is left takes about three seconds of the link.
                assert!(server > 20 && rest < Duration::from_secs(10), "{what}");
            }
        }
    }
    Ok(())
}
