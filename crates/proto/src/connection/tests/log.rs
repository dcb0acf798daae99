//! What the log tells of a transfer, against what the figures of the connection say.

use std::time::Duration;

use fulmar_base::Rng;
use fulmar_wire::{PacketKind, PathId, Side};

use super::pair::{Pair, SECOND, Setup, multipath_config};
use crate::TransportConfig;
use crate::log::{CloseCause, ConnectionState, LogEntry, LogEvent, MigrationState};

const BYTES: usize = 300_000;

/// A transfer on a wire that loses one datagram of 15, with logs of so many entries.
fn transfer(log_entries: usize) -> Pair {
    let config = || TransportConfig { log_entries, ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    let mut rng = Rng::from_u64(3);
    pair.end(Side::Client).wire =
        Box::new(move |flying| if rng.below(15) == 0 { Vec::new() } else { vec![flying] });
    pair.transfer(Side::Client, BYTES, Duration::from_secs(20));
    pair
}

fn entries(pair: &mut Pair, side: Side) -> Vec<LogEntry> {
    pair.end(side).conn().log().unwrap().iter().copied().collect()
}

fn count(entries: &[LogEntry], wanted: impl Fn(&LogEvent) -> bool) -> u64 {
    entries.iter().filter(|entry| wanted(&entry.event)).count() as u64
}

#[test]
fn the_log_agrees_with_the_figures() {
    let mut pair = transfer(1 << 16);
    for side in [Side::Client, Side::Server] {
        let entries = entries(&mut pair, side);
        let stats = pair.end(side).conn().stats();
        let sent = count(&entries, |event| matches!(event, LogEvent::PacketSent { .. }));
        let received = count(&entries, |event| matches!(event, LogEvent::PacketReceived { .. }));
        let lost = count(&entries, |event| matches!(event, LogEvent::PacketLost { mtu_probe: false, .. }));
        assert_eq!((sent, received), (stats.packets_sent, stats.packets_received), "{side:?}");
        assert_eq!(lost, stats.packets_lost, "{side:?}");
        assert!(entries.is_sorted_by_key(|entry| entry.at));
        let last = |wanted: fn(&LogEvent) -> Option<u64>| {
            entries.iter().rev().find_map(|entry| wanted(&entry.event))
        };
        let window = last(|event| match event {
            LogEvent::Window { window, .. } => Some(*window),
            _ => None,
        });
        assert_eq!(window, Some(stats.cwnd));
    }
    let stats = pair.end(Side::Client).conn().stats();
    assert!(stats.packets_lost > 3, "{} losses show little", stats.packets_lost);
}

/// The figures that are noted of each path are its own: they neither rise nor fall with those of the other.
#[test]
fn each_path_has_figures_of_its_own() {
    let config = TransportConfig { log_entries: 1 << 16, ..multipath_config() };
    let mut pair = Pair::with_two_paths_and(&config);
    pair.transfer(Side::Client, BYTES, Duration::from_secs(20));
    let entries = entries(&mut pair, Side::Client);
    let addresses = count(&entries, |event| matches!(event, LogEvent::PeerAddress { .. }));
    assert_eq!(addresses, 1, "one path is new, and none has moved");
    for path in [PathId::ZERO, SECOND] {
        let smallest: Vec<u64> = entries
            .iter()
            .filter_map(|entry| match entry.event {
                LogEvent::RttBounds { path: of, min, .. } if of == path => Some(min),
                _ => None,
            })
            .collect();
        assert!(!smallest.is_empty() && smallest.is_sorted_by(|a, b| a >= b), "{path:?}: {smallest:?}");
        assert!(!smallest.contains(&0), "{path:?}: {smallest:?}");
        let phases =
            count(&entries, |event| matches!(event, LogEvent::Phase { path: of, .. } if *of == path));
        assert!((1..50).contains(&phases), "{path:?} has had {phases} phases");
    }
}

#[test]
fn every_byte_of_a_stream_is_in_the_log_of_both_ends() {
    let mut pair = transfer(1 << 16);
    let bytes = |entries: &[LogEntry]| -> u64 {
        let streams = entries.iter().filter_map(|entry| match entry.event {
            LogEvent::Stream { len, .. } => Some(u64::from(len)),
            _ => None,
        });
        streams.sum()
    };
    let (client, server) = (entries(&mut pair, Side::Client), entries(&mut pair, Side::Server));
    assert!(bytes(&server) >= BYTES as u64);
    assert!(bytes(&client) > bytes(&server), "what was lost was sent again");
}

#[test]
fn without_a_wish_there_is_no_log_and_nothing_else_is_different() {
    let (mut with, mut without) = (transfer(64), transfer(0));
    assert!(without.end(Side::Client).conn().log().is_none());
    let sent = |pair: &mut Pair| pair.end(Side::Client).conn().stats().packets_sent;
    assert_eq!(sent(&mut with), sent(&mut without));
    let log = with.end(Side::Client).conn().log().unwrap();
    assert_eq!(log.len(), 64);
    assert!(log.overwritten() > 0);
}

#[test]
fn the_end_is_noted() {
    let mut pair = transfer(1 << 16);
    let now = pair.now;
    pair.client.conn().close(now, 7u32.into(), bytes::Bytes::new());
    pair.run_for(Duration::from_secs(2));
    let state = |state| move |event: &LogEvent| *event == LogEvent::State(state);
    let client = entries(&mut pair, Side::Client);
    assert_eq!(count(&client, state(ConnectionState::Established)), 1);
    assert_eq!(count(&client, state(ConnectionState::Closing)), 1);
    let server = entries(&mut pair, Side::Server);
    assert_eq!(count(&server, |event| *event == LogEvent::Close { application: true, code: 7 }), 1);
    assert_eq!(count(&server, state(ConnectionState::Draining)), 1);
    let closed = |local| LogEvent::Closed { local, cause: CloseCause::Application, code: 7 };
    assert_eq!(count(&client, |event| *event == closed(true)), 1);
    assert_eq!(count(&server, |event| *event == closed(false)), 1);
}

#[test]
fn the_beginning_and_what_was_agreed_on_are_noted_once() {
    let mut pair = transfer(1 << 16);
    for side in [Side::Client, Side::Server] {
        let entries = entries(&mut pair, side);
        assert!(matches!(entries[0].event, LogEvent::Started { .. }), "{side:?}: {:?}", entries[0]);
        for remote in [false, true] {
            let ends = count(&entries, |event| *event == LogEvent::ParametersEnd { remote });
            assert_eq!(ends, 1, "{side:?}");
        }
        let limits = |event: &LogEvent| matches!(event, LogEvent::Parameter { id: 0x04, value: 1.. });
        assert_eq!(count(&entries, limits), 2, "{side:?}: the limits of both ends");
        assert_eq!(count(&entries, |event| matches!(event, LogEvent::Tls { resumed: false, .. })), 1);
        for kind in [PacketKind::Handshake, PacketKind::OneRtt] {
            assert_eq!(count(&entries, |event| *event == LogEvent::KeysInstalled(kind)), 1, "{side:?}");
        }
    }
}

#[test]
fn an_update_of_the_keys_is_noted_before_the_first_packet_with_them() {
    let config = TransportConfig { log_entries: 1 << 16, ..TransportConfig::default() };
    let mut pair = Setup { client: config.clone(), server: config, ..Setup::default() }.connect();
    pair.run_for(Duration::from_secs(1));
    pair.client.conn().update_keys();
    pair.run_for(Duration::from_secs(1));
    let (client, server) = (entries(&mut pair, Side::Client), entries(&mut pair, Side::Server));
    let update = |entries: &[LogEntry]| {
        entries.iter().position(|entry| entry.event == LogEvent::KeyGeneration(1)).expect("an update")
    };
    let next = |entries: &[LogEntry]| {
        entries[update(entries)..].iter().find_map(|entry| match entry.event {
            LogEvent::PacketSent { number, .. } | LogEvent::PacketReceived { number, .. } => Some(number),
            _ => None,
        })
    };
    assert!(next(&client).is_some());
    assert_eq!(next(&client), next(&server), "the packet that brought the new keys");
}

#[test]
fn the_keys_of_the_handshake_are_discarded_one_after_the_other() {
    let mut pair = transfer(1 << 16);
    for side in [Side::Client, Side::Server] {
        let entries = entries(&mut pair, side);
        let kinds = entries.iter().filter_map(|entry| match entry.event {
            LogEvent::KeysDiscarded(kind) => Some(kind),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [PacketKind::Initial, PacketKind::Handshake], "{side:?}");
    }
}

#[test]
fn the_frames_of_packets_that_share_a_datagram_are_told_apart() {
    let mut pair = transfer(1 << 16);
    for side in [Side::Client, Side::Server] {
        let ends = count(&entries(&mut pair, side), |event| matches!(event, LogEvent::FramesEnd));
        // Only datagrams of the handshake have more than one packet.
        assert!((1..=10).contains(&ends), "{ends} at the {side:?}");
    }
}

#[test]
fn a_packet_under_the_keys_before_is_marked() {
    let config = || TransportConfig { log_entries: 1 << 12, ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    pair.transfer(Side::Client, 10_000, Duration::from_secs(1));
    // One packet is held back, and comes when both ends have other keys.
    pair.client.conn().ping();
    pair.client.mute = true;
    pair.run_for(Duration::from_millis(1));
    let held_back = pair.client.sent.last().unwrap().clone();
    pair.client.mute = false;
    pair.client.conn().update_keys();
    pair.run_for(Duration::from_millis(12));
    pair.inject(Side::Server, super::pair::CLIENT.parse().unwrap(), held_back);
    let entries = entries(&mut pair, Side::Server);
    let old = count(&entries, |event| matches!(event, LogEvent::PacketReceived { old_keys: true, .. }));
    assert_eq!((pair.server.conn().stats().key_updates, old), (1, 1));
}

#[test]
fn a_move_is_in_the_log_of_both_ends() {
    let config = || TransportConfig { log_entries: 1 << 12, ..TransportConfig::default() };
    let mut pair = Setup { client: config(), server: config(), ..Setup::default() }.connect();
    pair.client.addr = "10.0.0.9:99".parse().unwrap();
    let now = pair.now;
    pair.client.conn().migrate(now, None).unwrap();
    pair.run_for(Duration::from_millis(100));
    for side in [Side::Client, Side::Server] {
        let entries = entries(&mut pair, side);
        let states = entries.iter().filter_map(|entry| match entry.event {
            // The server looks after the old address as well.
            LogEvent::Migration { state: MigrationState::ProbingStarted, .. } => None,
            LogEvent::Migration { state, .. } => Some(state),
            _ => None,
        });
        let expected = [MigrationState::MigrationStarted, MigrationState::MigrationComplete];
        assert_eq!(states.collect::<Vec<_>>(), expected, "{side:?}");
    }
}

#[test]
fn datagrams_that_are_dropped_before_they_leave_are_noted() {
    let client =
        TransportConfig { log_entries: 1 << 12, datagram_send_buffer: 5_000, ..TransportConfig::default() };
    let mut pair = Setup { client, ..Setup::default() }.connect();
    for _ in 0..10 {
        pair.client.conn().send_datagram(vec![7; 1_000].into(), true).unwrap();
    }
    pair.run_for(Duration::from_millis(100));
    let dropped = pair.client.conn().stats().datagrams.dropped_outgoing;
    assert!(dropped > 0);
    let entries = entries(&mut pair, Side::Client);
    let noted = count(
        &entries,
        |event| matches!(event, LogEvent::DatagramsDropped { late: 0, other } if *other == dropped),
    );
    assert_eq!(noted, 1);
}

#[test]
fn a_version_is_logged_when_it_is_chosen_and_not_again() {
    let mut pair = transfer(1 << 16);
    for side in [Side::Client, Side::Server] {
        let entries = entries(&mut pair, side);
        assert_eq!(count(&entries, |event| matches!(event, LogEvent::VersionChosen(_))), 1, "{side:?}");
    }
}

#[test]
fn entries_can_be_moved_out_of_a_log() {
    let mut pair = transfer(1 << 16);
    let mut out = Vec::new();
    let before = pair.client.conn().log().unwrap().len();
    pair.client.conn().log_mut().unwrap().drain_into(&mut out);
    assert_eq!(out.len(), before);
    assert!(pair.client.conn().log().unwrap().is_empty());
}
