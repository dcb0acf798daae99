//! Figures in the text format of Prometheus.

use std::fmt::Write as _;

use fulmar::{ConnectionMetrics, EndpointMetrics, PathStats};

/// Connections of which the figures are told one by one, the oldest first. A server may have very many, and each makes
/// series of its own.
const CONNECTIONS_MAX: usize = 200;

/// The figures as text.
pub(super) fn of(metrics: &EndpointMetrics) -> String {
    let mut text = String::new();
    endpoint(&mut text, metrics);
    totals(&mut text, metrics);
    connections(&mut text, &metrics.connections);
    text
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP fulmar_{name} {help}\n# TYPE fulmar_{name} {kind}");
}

fn single(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    family(text, name, kind, help);
    let _ = writeln!(text, "fulmar_{name} {value}");
}

fn endpoint(text: &mut String, metrics: &EndpointMetrics) {
    let stats = &metrics.endpoint;
    let gauges = [
        (
            "connections_open",
            "Connections that exist, those that are closing included.",
            stats.open_connections,
        ),
        ("incoming_waiting", "Connection attempts that nobody has accepted yet.", stats.waiting_incoming),
    ];
    for (name, help, value) in gauges {
        single(text, name, "gauge", help, value as u64);
    }
    let socket = &stats.socket;
    let counters = [
        (
            "endpoint_datagrams_dropped_total",
            "Datagrams that belonged to no connection.",
            stats.dropped_datagrams,
        ),
        ("socket_datagrams_received_total", "Datagrams that the socket received.", socket.datagrams_received),
        ("socket_bytes_received_total", "Bytes that the socket received.", socket.bytes_received),
        ("socket_receive_errors_total", "Receive calls that failed.", socket.recv_errors),
        ("socket_bytes_sent_total", "Bytes that the socket sent.", socket.bytes_sent),
        ("socket_send_errors_total", "Send calls that failed.", socket.send_errors),
        ("socket_send_blocked_total", "Send calls for which the socket had no room.", socket.send_blocked),
    ];
    for (name, help, value) in counters {
        single(text, name, "counter", help, value);
    }
}

fn totals(text: &mut String, metrics: &EndpointMetrics) {
    let totals = &metrics.totals;
    let counters = [
        ("connections_total", "Connections since the start.", totals.connections),
        ("handshakes_total", "Connections whose handshake was completed.", totals.handshakes),
        ("datagrams_sent_total", "UDP datagrams sent by connections.", totals.datagrams_sent),
        ("datagrams_received_total", "UDP datagrams received by connections.", totals.datagrams_received),
        ("bytes_sent_total", "Bytes of UDP payload sent by connections.", totals.bytes_sent),
        ("bytes_received_total", "Bytes of UDP payload received by connections.", totals.bytes_received),
        ("packets_sent_total", "QUIC packets sent.", totals.packets_sent),
        ("packets_received_total", "QUIC packets received and opened.", totals.packets_received),
        (
            "packets_dropped_total",
            "QUIC packets that could not be opened or were not wanted.",
            totals.packets_dropped,
        ),
        ("packets_lost_total", "QUIC packets declared lost.", totals.packets_lost),
        (
            "packets_spurious_total",
            "QUIC packets declared lost that arrived after all.",
            totals.packets_spurious,
        ),
        ("probe_timeouts_total", "Probe timeouts.", totals.probe_timeouts),
        ("acks_sent_total", "ACK frames sent.", totals.acks_sent),
        ("unreliable_datagrams_sent_total", "Unreliable datagrams sent.", totals.unreliable_sent),
        (
            "unreliable_datagrams_late_total",
            "Unreliable datagrams not sent because their deadlines had passed.",
            totals.unreliable_late,
        ),
        (
            "unreliable_datagrams_displaced_total",
            "Unreliable datagrams not sent because others took their place or the path shrank.",
            totals.unreliable_displaced,
        ),
        (
            "fec_symbols_sent_total",
            "Packets sent that forward erasure correction protects.",
            totals.symbols_sent,
        ),
        ("fec_repairs_sent_total", "Repair symbols sent.", totals.repairs_sent),
        ("fec_repair_bytes_sent_total", "Bytes of repair symbols sent.", totals.repair_bytes_sent),
        ("fec_repairs_received_total", "Repair symbols received.", totals.repairs_received),
        ("fec_symbols_recovered_total", "Lost packets that peers have recovered.", totals.symbols_recovered),
        (
            "fec_retransmissions_spared_total",
            "Lost packets that peers have recovered before they were sent again.",
            totals.retransmissions_spared,
        ),
        ("fec_recovered_total", "Lost packets of peers that were recovered.", totals.recovered),
    ];
    for (name, help, value) in counters {
        single(text, name, "counter", help, value);
    }
}

/// What is told of each connection, and of its path.
type Figure = (&'static str, &'static str, &'static str, fn(&ConnectionMetrics) -> Option<f64>);

const CONNECTION: &[Figure] = &[
    ("connection_bytes_sent_total", "counter", "Bytes of UDP payload sent.", |c| {
        Some(c.stats.bytes_sent as f64)
    }),
    ("connection_bytes_received_total", "counter", "Bytes of UDP payload received.", |c| {
        Some(c.stats.bytes_received as f64)
    }),
    ("connection_packets_sent_total", "counter", "QUIC packets sent.", |c| Some(c.stats.packets_sent as f64)),
    ("connection_packets_lost_total", "counter", "QUIC packets declared lost.", |c| {
        Some(c.stats.packets_lost as f64)
    }),
    ("connection_packets_spurious_total", "counter", "Packets declared lost that arrived after all.", |c| {
        Some(c.stats.packets_spurious as f64)
    }),
    ("connection_probe_timeouts_total", "counter", "Probe timeouts.", |c| Some(c.stats.pto_count as f64)),
    ("connection_handshake_seconds", "gauge", "How long the handshake took.", |c| {
        Some(c.stats.handshake_duration?.as_secs_f64())
    }),
];

/// What is told of each path of a connection.
type PathFigure = (&'static str, &'static str, &'static str, fn(&PathStats) -> f64);

const PATHS: &[PathFigure] = &[
    ("path_bytes_sent_total", "counter", "Bytes of UDP payload sent over the addresses in use.", |p| {
        p.bytes_sent as f64
    }),
    (
        "path_bytes_received_total",
        "counter",
        "Bytes of UDP payload received over the addresses in use.",
        |p| p.bytes_received as f64,
    ),
    ("path_congestion_window_bytes", "gauge", "The congestion window.", |p| p.cwnd as f64),
    ("path_bytes_in_flight", "gauge", "Bytes in flight.", |p| p.bytes_in_flight as f64),
    ("path_pacing_rate_bytes_per_second", "gauge", "The rate at which packets leave.", |p| {
        p.pacing_rate as f64
    }),
    ("path_rtt_smoothed_seconds", "gauge", "The smoothed round-trip time.", |p| p.rtt.as_secs_f64()),
    ("path_mtu_bytes", "gauge", "UDP payload of a full datagram.", |p| p.mtu.into()),
];

/// What is told of the first path alone.
const FIRST_PATH: &[Figure] = &[
    ("path_rtt_min_seconds", "gauge", "The smallest round-trip time.", |c| {
        Some(c.stats.rtt_min?.as_secs_f64())
    }),
    ("path_rtt_latest_seconds", "gauge", "The latest round-trip time.", |c| {
        c.stats.rtt_min.map(|_| c.stats.rtt_latest.as_secs_f64())
    }),
    ("path_forward_queue_seconds", "gauge", "The time in queues to the peer, if it tells the time.", |c| {
        Some(c.stats.one_way?.forward_queue.as_secs_f64())
    }),
    ("path_return_queue_seconds", "gauge", "The time in queues from the peer, if it tells the time.", |c| {
        Some(c.stats.one_way?.return_queue.as_secs_f64())
    }),
];

fn connections(text: &mut String, connections: &[ConnectionMetrics]) {
    let told = &connections[..connections.len().min(CONNECTIONS_MAX)];
    let left_out = connections.len() - told.len();
    single(
        text,
        "connections_not_listed",
        "gauge",
        "Open connections without series of their own.",
        left_out as u64,
    );
    for (name, kind, help, value) in PATHS {
        family(text, name, kind, help);
        for connection in told {
            let ConnectionMetrics { id, stats, paths, .. } = connection;
            for path in paths {
                let (number, remote, value) = (path.path, path.addrs.remote, value(path));
                let controller = escaped(stats.controller);
                let _ = writeln!(
                    text,
                    "fulmar_{name}{{connection=\"{id}\",path=\"{}\",remote=\"{remote}\",controller=\"{controller}\"}} {value}",
                    number.0
                );
            }
        }
    }
    for (figures, is_path) in [(CONNECTION, false), (FIRST_PATH, true)] {
        for (name, kind, help, value) in figures {
            family(text, name, kind, help);
            for connection in told {
                let Some(value) = value(connection) else { continue };
                let ConnectionMetrics { id, remote, stats, .. } = connection;
                let labels = match is_path {
                    true => format!(",remote=\"{remote}\",controller=\"{}\"", escaped(stats.controller)),
                    false => format!(",remote=\"{remote}\""),
                };
                let _ = writeln!(text, "fulmar_{name}{{connection=\"{id}\"{labels}}} {value}");
            }
        }
    }
}

/// The name of a controller may be anything, as controllers come from users of the library, too.
fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
