//! Connections of many kinds in the lab, and their files.

use std::time::Duration;

use fulmar_base::Instant;
use fulmar_lab::scenario::Scenario;
use fulmar_lab::{Close, Connecting, Lab, LinkConfig, Shift, Side, Workload};
use fulmar_proto::log::{
    BarePacket, CloseCause, LogEntry, LogEvent, LogText, MigrationState, PacketDropReason, TextKind,
};
use fulmar_proto::{
    AddressDiscovery, Dir, FrameType, KeyUpdatePolicy, PacketKind, PathId, RetryPolicy, SpaceId, StreamId,
    TimeStamps, TransportConfig, TransportErrorCode, Version,
};
use fulmar_qlog::{Flavor, Header, Writer};
use fulmar_sim::Loss;
use serde_json::Value;

/// What both ends of a connection noted, and events that must be among it.
pub(crate) struct Transfer {
    pub(crate) name: &'static str,
    logs: [Vec<LogEntry>; 2],
    pub(crate) client_has: &'static [&'static str],
    pub(crate) server_has: &'static [&'static str],
}

impl Transfer {
    /// The files of the client and of the server.
    pub(crate) fn files(&self, flavor: Flavor) -> [Vec<u8>; 2] {
        [Side::Client, Side::Server].map(|side| {
            let log = &self.logs[usize::from(side.is_server())];
            let header = Header {
                side,
                group_id: "0102030405060708",
                title: "a \"test\"",
                start: log.first().map_or(Instant::ZERO, |first| first.at),
                wall_clock_time: if side.is_client() { "2026-11-01T12:00:00.000Z" } else { "" },
                flavor,
            };
            let mut writer = Writer::new(Vec::new(), &header).unwrap();
            writer.write(log).unwrap();
            writer.finish().unwrap()
        })
    }
}

/// The records of a file.
pub(crate) fn records(file: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(file).unwrap();
    text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect()
}

/// A link of 10 Mbit/s and 20 ms with a queue of so many milliseconds.
fn lab(queue: u64) -> Lab {
    let link = || LinkConfig::with_rate(10_000_000, Duration::from_millis(20), Duration::from_millis(queue));
    Lab::new(5).link(link(), link())
}

/// A link that loses three packets in ten. Which ones depends on the seed.
fn heavy_losses(seed: u64) -> Lab {
    let loss = Loss::Uniform { probability: 0.3 };
    let link = || LinkConfig {
        loss: loss.clone(),
        ..LinkConfig::with_rate(10_000_000, Duration::from_millis(20), Duration::from_millis(200))
    };
    Lab::new(seed).link(link(), link())
}

/// Two links that a connection uses together, and of which it gives one up.
fn two_paths() -> Lab {
    let text = "title = \"x\"\n[[path]]\nname = \"A\"\nlink = { rate_mbps = 10, delay_ms = 20, queue_ms = 100 }\n\
                [[path]]\nname = \"B\"\nlink = { rate_mbps = 5, delay_ms = 30, queue_ms = 100 }\nabandoned_at_s = 0.2\n\
                [[connection]]\nupload_bytes = 400_000\n";
    let scenario = Scenario::parse("paths", text).unwrap();
    scenario.lab(scenario.default_controller().unwrap(), 1).unwrap()
}

/// The logs of the last connection of a run.
fn run(
    name: &'static str,
    lab: Lab,
    client_has: &'static [&'static str],
    server_has: &'static [&'static str],
) -> Transfer {
    let mut recording = lab.recorded(1 << 16).run().unwrap().recording.unwrap();
    let logs = recording.connections.pop().unwrap();
    assert_eq!(logs.overwritten, 0, "{name}");
    Transfer { name, logs: [logs.client, logs.server], client_has, server_has }
}

const BASICS: &[&str] = &[
    "quic:connection_started",
    "quic:version_information",
    "quic:parameters_set",
    "quic:recovery_parameters_set",
    "quic:alpn_information",
    "quic:key_updated",
    "quic:key_discarded",
    "quic:packet_sent",
    "quic:packet_received",
    "quic:recovery_metrics_updated",
    "quic:connection_closed",
];

pub(crate) fn transfers() -> Vec<Transfer> {
    let upload = |bytes| Connecting::new(Workload::upload(bytes));
    let idle = TransportConfig { max_idle_timeout: Some(Duration::from_secs(1)), ..Default::default() };
    let updates = KeyUpdatePolicy { packets: Some(40), bytes: None };
    let updating = TransportConfig { key_update: updates, ..TransportConfig::default() };
    let both = vec![Version::V2, Version::V1];
    vec![
        run("clean", lab(200).connection(upload(50_000)), BASICS, BASICS),
        run("many streams", lab(200).connection(Connecting::new(Workload::requests(250, 100))), &[], &[]),
        run("losses", lab(15).connection(upload(400_000)), &["quic:packet_lost"], &[]),
        run("two paths", two_paths(), &["quic:tuple_assigned"], &["quic:tuple_assigned"]),
        run("timeouts", heavy_losses(6).connection(upload(20_000)), &["quic:timer_updated"], &[]),
        // The packet that completes the handshake comes after some that waited for it.
        run("waiting packets", heavy_losses(5).connection(upload(20_000)), &["quic:timer_updated"], &[]),
        run(
            "early data",
            lab(200).early_data().connection(upload(1_000)).connection(upload(20_000).after_previous()),
            &["quic:parameters_set"],
            &[],
        ),
        run("retry", lab(200).retry(RetryPolicy::Always).connection(upload(1_000)), &[], &[]),
        run(
            "move",
            lab(100).connection(upload(600_000)).shift(Duration::from_millis(200), Shift::Move),
            &["quic:migration_state_updated"],
            &["quic:migration_state_updated", "quic:tuple_assigned"],
        ),
        run("keys", lab(200).both(updating).connection(upload(200_000)), &["quic:key_updated"], &[]),
        run(
            "version 2",
            lab(200)
                .client_versions(both.clone())
                .server_versions(both.clone())
                .initial_version(Version::V1)
                .connection(upload(1_000)),
            &["quic:version_information"],
            &["quic:version_information"],
        ),
        run(
            "version negotiation",
            lab(200).client_versions(both).server_versions(vec![Version::V1]).connection(upload(1_000)),
            &["quic:version_information"],
            &[],
        ),
        run(
            "closed by the client",
            lab(200)
                .connection(upload(5_000_000).close(Close::After(Side::Client, Duration::from_millis(300)))),
            &["quic:connection_closed"],
            &["quic:connection_closed"],
        ),
        run(
            "silence",
            lab(200).both(idle).connection(upload(1_000).close(Close::Never)),
            &["quic:connection_closed"],
            &["quic:connection_closed"],
        ),
        run("extensions", extensions(), &["fulmar:observed_address", "fulmar:datagrams_dropped"], &[]),
        by_hand(),
    ]
}

/// Streams that are abandoned, datagrams that are late, copies of packets, and every extension.
fn extensions() -> Lab {
    let config = TransportConfig {
        time_stamps: Some(TimeStamps::Both),
        address_discovery: Some(AddressDiscovery::Both),
        ..TransportConfig::default()
    };
    let workload = Workload {
        streams: 30,
        bidirectional: 0.5,
        size: 1_000..=80_000,
        reply: 1_000..=50_000,
        reset: 0.5,
        reset_at: 0.5,
        stop: 0.3,
        datagrams: 200,
        datagram_size: 100..=1_000,
        datagram_lifetime: Some(Duration::from_millis(3)),
        ..Workload::default()
    };
    let link = LinkConfig {
        duplicate: 0.05,
        ..LinkConfig::with_rate(5_000_000, Duration::from_millis(30), Duration::from_millis(30))
    };
    let lab = Lab::new(11).link(link.clone(), link).both(config).server_workload(workload.clone());
    lab.connection(Connecting::new(workload))
}

/// What none of the others does.
fn by_hand() -> Transfer {
    let closed = |local, cause, code| LogEvent::Closed { local, cause, code };
    let mut client = vec![
        LogEvent::PacketBuffered { kind: PacketKind::Handshake, size: 900 },
        LogEvent::VersionKnown { server: true, version: Version(0xface_b00c) },
        LogEvent::VersionChosen(None),
        LogEvent::PacketSpurious { space: SpaceId::Initial, number: 3, size: 1_200 },
        LogEvent::Queues { path: PathId(0), forward: 1_500_000, back: 2_000_000 },
        LogEvent::BareReceived { packet: BarePacket::StatelessReset, size: 43 },
    ];
    let reasons = [
        PacketDropReason::Unreadable,
        PacketDropReason::Unwanted,
        PacketDropReason::Duplicate,
        PacketDropReason::Unauthenticated,
        PacketDropReason::NoKeys,
    ];
    for reason in reasons {
        client.extend([None, Some(PacketKind::ZeroRtt)].map(|kind| LogEvent::PacketDropped {
            reason,
            kind,
            size: 9,
        }));
    }
    let states = [
        MigrationState::ProbingStarted,
        MigrationState::ProbingAbandoned,
        MigrationState::ProbingSuccessful,
        MigrationState::MigrationStarted,
        MigrationState::MigrationAbandoned,
        MigrationState::MigrationComplete,
    ];
    client.extend(states.map(|state| LogEvent::Migration { state, ip: [0xfe; 16], port: 443 }));
    let mut server: Vec<LogEvent> =
        LogText::parts(TextKind::Reason, b"words \"with\" \\ and \xff").map(LogEvent::Text).collect();
    server.extend([closed(true, CloseCause::Transport, TransportErrorCode::PROTOCOL_VIOLATION.0)]);
    for code in [0, 0x10, 0x11, 0x12, 0x100, 0x178, 0x1ff, 0x200, 1 << 61] {
        server.extend([
            closed(false, CloseCause::Transport, code),
            closed(true, CloseCause::Application, code),
        ]);
    }
    let causes = [
        CloseCause::IdleTimeout,
        CloseCause::HandshakeTimeout,
        CloseCause::StatelessReset,
        CloseCause::VersionMismatch,
        CloseCause::Refused,
        CloseCause::Unsent,
        CloseCause::DatagramsTooLarge,
    ];
    server.extend(causes.map(|cause| closed(true, cause, 0)));
    // The codes of HTTP/3 have names.
    server.extend(LogText::parts(TextKind::Alpn, b"h3").map(LogEvent::Text));
    for code in [0x33].into_iter().chain(0xff..=0x111).chain([0x200]) {
        server.extend([
            closed(true, CloseCause::Application, code),
            LogEvent::Close { application: true, code },
            LogEvent::Close { application: false, code },
            LogEvent::Reset { code, reliable_size: 1 },
            LogEvent::StreamFrame {
                kind: FrameType::RESET_STREAM.0 as u8,
                id: StreamId::new(Side::Client, Dir::Bi, 0),
                value: 1,
            },
        ]);
    }
    // A log may begin in the middle of a packet.
    let blocked = |kind| LogEvent::Frame { kind, value: 7 };
    server.extend([blocked(FrameType::DATA_BLOCKED), blocked(FrameType::STREAMS_BLOCKED_UNI)]);
    server.extend([blocked(FrameType::ACK_FREQUENCY), blocked(FrameType::IMMEDIATE_ACK)]);
    server.push(LogEvent::PacketReceived {
        space: SpaceId::Initial,
        number: 0,
        size: 1_200,
        early: false,
        waited: true,
        old_keys: false,
        ecn: fulmar_proto::Ecn::Ce,
    });
    let entries = |events: Vec<LogEvent>| -> Vec<LogEntry> {
        let at = |place: usize| Instant::from_micros(1_000 + place as u64 * 333);
        events.into_iter().enumerate().map(|(place, event)| LogEntry { at: at(place), event }).collect()
    };
    Transfer {
        name: "by hand",
        logs: [entries(client), entries(server)],
        client_has: &["quic:packet_buffered", "fulmar:spurious_loss", "fulmar:one_way_queues"],
        server_has: &[],
    }
}
