//! What the core does in many worlds, in figures: how long each took, what was sent, lost, and sent again.
//!
//! None of these figures is a goal. A change of the recovery or of a controller shows in them what it changes, also what it was not
//! meant to change. A run that fails is an error and no figure. `INSTA_UPDATE=always cargo test -p fulmar-lab --test behaviour`
//! writes the tables anew; what has become different is then a part of the commit.
//!
//! The figures are those of one platform: a world is drawn with logarithms, and another library of mathematics may round the last
//! digit otherwise.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fmt::Write;

use fulmar_lab::explore::{DrawnLink, Space};
use fulmar_lab::scenario::{ControllerName, Figures, Scenario, SideFigures};
use fulmar_lab::swarm::Worlds;
use fulmar_lab::{ConnectionReport, RunReport, SideReport};

const CONTROLLERS: [ControllerName; 5] = [
    ControllerName::Bbr,
    ControllerName::Cubic,
    ControllerName::Newreno,
    ControllerName::Bbr1,
    ControllerName::Prague,
];

const LINKS: u64 = 60;
const SHORT_LINKS: u64 = 12;
const SEED: u64 = 1;

/// Worlds of the swarm with one link, and with several paths.
const WORLDS: u64 = 100;
const WORLDS_WITH_PATHS: u64 = 40;

/// Scenarios whose queues mark or drop before they are full.
const MANAGED: [&str; 2] = ["congestion/l4s", "congestion/red"];

/// Scenarios that are over soon.
const SCENARIOS: [&str; 38] = [
    "congestion/application-limited",
    "congestion/black-hole",
    "congestion/drop-and-back",
    "congestion/fairness-bbr-cubic-1-bdp",
    "congestion/five-flows",
    "congestion/low-and-up",
    "congestion/media-wifi",
    "congestion/policer",
    "congestion/wifi-suspension",
    "deep-space/five-seconds",
    "deep-space/minute-requests",
    "fec/bursts-of-packets",
    "fec/loss-100ms",
    "fec/voice-5",
    "multipath/abandon",
    "multipath/back-again",
    "multipath/backup",
    "multipath/both",
    "multipath/churn",
    "multipath/datagrams",
    "multipath/failover",
    "multipath/first-path-down",
    "multipath/messages",
    "multipath/return-slow",
    "multipath/shared-bottleneck",
    "multipath/wifi-and-lte",
    "recovery/black-hole",
    "recovery/heavy-loss",
    "recovery/heavy-loss-exchanges",
    "recovery/mtu-drop",
    "recovery/reordering",
    "recovery/suspended-path",
    "recovery/two-of-64-uniform",
    "satellite/geo-start",
    "satellite/second-connection",
    "satellite/small-uplink",
    "wifi/bad",
    "wifi/suspension-many",
];

/// Links with each of the controllers. Transfers are short enough for a test, and long enough for some cycles of each controller.
#[test]
fn links() {
    let table = links_of("rate_mbps = [1, 200]\nbytes = [20_000, 4_000_000]\n", LINKS);
    insta::assert_snapshot!("links", table);
}

/// Where a round trip takes as long as a switch and two hosts need, some rules are others.
#[test]
fn links_of_a_building() {
    let space =
        "rtt_ms = [0.02, 2]\nrate_mbps = [100, 5_000]\nqueue_bdp = [0.5, 8]\nbytes = [100_000, 4_000_000]\n";
    insta::assert_snapshot!("links-of-a-building", links_of(space, SHORT_LINKS));
}

fn links_of(space: &str, count: u64) -> String {
    let space = Space::parse("behaviour", space).expect("it is a space");
    let mut table = String::new();
    for number in 0..count {
        let link = DrawnLink::draw(&space, SEED, number);
        let scenario = link.scenario().expect("a link that was drawn is a scenario");
        let _ = writeln!(table, "{number}: {}", link.title());
        table += &with_each_controller(&scenario, link.seed);
    }
    table
}

fn with_each_controller(scenario: &Scenario, seed: u64) -> String {
    let line = |controller: ControllerName| {
        format!("    {controller:<8}{}\n", outcome(scenario, Some(controller), seed))
    };
    CONTROLLERS.into_iter().map(line).collect()
}

#[test]
fn managed_queues() {
    let mut table = String::new();
    for name in MANAGED {
        let scenario = Scenario::builtin(name).expect("the scenario is there");
        let _ = writeln!(table, "{name}");
        table += &with_each_controller(&scenario, SEED);
    }
    insta::assert_snapshot!("managed-queues", table);
}

#[test]
fn scenarios() {
    let mut table = String::new();
    for name in SCENARIOS {
        let scenario = Scenario::builtin(name).expect("the scenario is there");
        let _ = writeln!(table, "{name}\n    {}", outcome(&scenario, None, SEED));
    }
    insta::assert_snapshot!("scenarios", table);
}

#[test]
fn worlds_of_the_swarm() {
    let table: String = (0..WORLDS).map(|seed| world(Worlds::OneLink, seed)).collect();
    insta::assert_snapshot!("worlds", table);
}

#[test]
fn worlds_of_the_swarm_with_paths() {
    let table: String = (0..WORLDS_WITH_PATHS).map(|seed| world(Worlds::Paths, seed)).collect();
    insta::assert_snapshot!("worlds-with-paths", table);
}

/// A run of a scenario, in a line.
fn outcome(scenario: &Scenario, controller: Option<ControllerName>, seed: u64) -> String {
    figures_line(&scenario.run(controller, seed).unwrap_or_else(|error| panic!("{error}")))
}

fn figures_line(figures: &Figures) -> String {
    let time = figures.completion_s.map_or("no data".to_owned(), |time| format!("{time:.6} s"));
    let side = |side: &SideFigures| {
        format!(
            "{} packets, {} bytes, {} lost, {} spurious, {} PTOs, {} ACKs, window {}",
            side.packets_sent,
            side.bytes_sent,
            side.packets_lost,
            side.packets_spurious,
            side.pto_count,
            side.acks_sent,
            side.cwnd_max,
        )
    };
    format!("{time}; client {}; server {}", side(&figures.client), side(&figures.server))
}

/// A world of the swarm, with a line for each end of a connection.
fn world(worlds: Worlds, seed: u64) -> String {
    report_lines(&worlds.run(seed).unwrap_or_else(|failure| panic!("{failure}")))
}

fn report_lines(report: &RunReport) -> String {
    let mut lines = format!("{}: {:.6} s\n", report.seed, report.duration.as_secs_f64());
    for ConnectionReport { client, server, .. } in &report.connections {
        let _ = writeln!(lines, "    client {}\n    server {}", side_line(client), side_line(server));
    }
    lines
}

fn side_line(side: &SideReport) -> String {
    let Some(stats) = &side.stats else { return "was not reached".to_owned() };
    format!(
        "{} packets, {} bytes, {} lost, {} spurious, {} PTOs, {} ACKs, {} window {}, {} migrations, rtt {:?}, mtu {}, {} repaired; {}",
        stats.packets_sent,
        stats.bytes_sent,
        stats.packets_lost,
        stats.packets_spurious,
        stats.pto_count,
        stats.acks_sent,
        stats.controller,
        stats.cwnd_max,
        stats.migrations,
        stats.rtt,
        stats.mtu,
        stats.fec.as_ref().map_or(0, |fec| fec.recovered),
        side.end,
    )
}
