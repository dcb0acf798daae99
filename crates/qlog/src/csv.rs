//! The log as a table, for spreadsheets and scripts.

use std::fmt::Write as _;

use fulmar_base::Instant;
use fulmar_h3_proto::log::{LogEvent as HttpEvent, LogFrame};
use fulmar_proto::log::{FecEvent, LogEntry, LogEvent};
use fulmar_proto::{PathId, SpaceId};

use crate::writer::{blocked, repair_outcome};

/// The columns. What an event does not have is empty.
const HEADER: &str = "time_us,event,space,number,bytes,stream,offset,value,value2,text\n";

/// A row of what an event has.
#[derive(Default)]
struct Row {
    event: &'static str,
    space: Option<SpaceId>,
    number: Option<u64>,
    bytes: Option<u64>,
    stream: Option<u64>,
    offset: Option<u64>,
    values: [Option<u64>; 2],
    text: String,
}

/// The entries as comma-separated values with a header (RFC 4180). Times are microseconds with three decimals, times of
/// round trips nanoseconds, rates bytes per second. Figures of a path have the space of its packets, but for those of the first path.
pub fn csv(entries: &[LogEntry]) -> String {
    let mut out = HEADER.to_owned();
    for entry in entries {
        let row = row(&entry.event);
        let nanos = entry.at.as_nanos();
        let _ = write!(out, "{}.{:03},{},", nanos / 1_000, nanos % 1_000, row.event);
        if let Some(space) = row.space {
            let _ = write!(out, "{space}");
        }
        for number in [row.number, row.bytes, row.stream, row.offset].into_iter().chain(row.values) {
            out.push(',');
            if let Some(number) = number {
                let _ = write!(out, "{number}");
            }
        }
        let _ = writeln!(out, ",{}", row.text);
    }
    out
}

/// Events of HTTP/3 in the same columns, without the header: below the others. Lengths are those of payloads.
pub fn csv_http3(events: &[(Instant, &HttpEvent)]) -> String {
    let mut out = String::new();
    for (at, event) in events {
        let nanos = at.as_nanos();
        let (name, stream, bytes, text) = http3_row(event);
        let [stream, bytes] = [stream, bytes].map(|number| number.map_or(String::new(), |n| n.to_string()));
        let text = text.replace([',', '"', '\n', '\r'], " ");
        let _ = writeln!(out, "{}.{:03},{name},,,{bytes},{stream},,,,{text}", nanos / 1_000, nanos % 1_000);
    }
    out
}

fn http3_row(event: &HttpEvent) -> (&'static str, Option<u64>, Option<u64>, String) {
    let of_frame = |name, stream: u64, frame: &LogFrame| {
        let (bytes, text) = match frame {
            LogFrame::Data { len } => (Some(*len), "data".to_owned()),
            LogFrame::Headers { len, fields, .. } => {
                let pseudo = fields.iter().filter(|field| field.name.starts_with(b":"));
                let values = pseudo.filter_map(|field| field.value.as_deref());
                let words = values.map(|value| format!(" {}", String::from_utf8_lossy(value)));
                (*len, format!("headers{}", words.collect::<String>()))
            }
            LogFrame::Reserved { len, .. } | LogFrame::Unknown { len, .. } => {
                (Some(*len), format!("{frame:?}"))
            }
            other => (None, format!("{other:?}")),
        };
        (name, Some(stream), bytes, text)
    };
    match event {
        HttpEvent::FrameCreated { stream, frame } => of_frame("http3_frame_created", *stream, frame),
        HttpEvent::FrameParsed { stream, frame } => of_frame("http3_frame_parsed", *stream, frame),
        HttpEvent::StreamType { stream, kind, .. } => {
            ("http3_stream_type", Some(*stream), None, format!("{kind:?}"))
        }
        HttpEvent::PrioritySet { stream, new, .. } => {
            ("http3_priority", Some(*stream), None, format!("{new:?}"))
        }
        HttpEvent::DatagramCreated { stream, len } => {
            ("http3_datagram_created", Some(*stream), Some(*len), String::new())
        }
        HttpEvent::DatagramParsed { stream, len } => {
            ("http3_datagram_parsed", Some(*stream), Some(*len), String::new())
        }
        HttpEvent::SettingsSet { is_local, .. } => {
            ("http3_settings", None, None, if *is_local { "local" } else { "remote" }.to_owned())
        }
        HttpEvent::SettingsRestored(_) => ("http3_settings", None, None, "restored".to_owned()),
        HttpEvent::Missing(count) => ("http3_missing", None, None, count.to_string()),
    }
}

fn row(event: &LogEvent) -> Row {
    let plain = |event| Row { event, ..Row::default() };
    let values = |event, first, second| Row { values: [Some(first), second], ..plain(event) };
    let packet = |event, space, number, size: u16| Row {
        space: Some(space),
        number: Some(number),
        bytes: Some(size.into()),
        ..plain(event)
    };
    let worded = |event, text: &str| Row { text: text.replace([',', '"', '\n', '\r'], " "), ..plain(event) };
    match *event {
        LogEvent::PacketSent { space, number, size, mtu_probe, .. } => {
            let text = if mtu_probe { "mtu_probe".to_owned() } else { String::new() };
            Row { text, ..packet("packet_sent", space, number, size) }
        }
        LogEvent::PacketReceived { space, number, size, .. } => {
            packet("packet_received", space, number, size)
        }
        LogEvent::PacketLost { space, number, size, .. } => packet("packet_lost", space, number, size),
        LogEvent::PacketSpurious { space, number, size } => packet("packet_spurious", space, number, size),
        LogEvent::PacketDropped { reason, size, .. } => {
            Row { bytes: Some(size.into()), ..worded("packet_dropped", &format!("{reason:?}")) }
        }
        LogEvent::PacketBuffered { kind, size } => {
            Row { bytes: Some(size.into()), ..worded("packet_buffered", &format!("{kind:?}")) }
        }
        LogEvent::BareReceived { packet, size } => {
            Row { bytes: Some(size.into()), ..worded("packet_received", &format!("{packet:?}")) }
        }
        LogEvent::Stream { id, offset, len, fin } => Row {
            stream: Some(id.as_u64()),
            offset: Some(offset),
            bytes: Some(len.into()),
            text: if fin { "fin".to_owned() } else { String::new() },
            ..plain("frame_stream")
        },
        LogEvent::Crypto { offset, len } => {
            Row { offset: Some(offset), bytes: Some(len.into()), ..plain("frame_crypto") }
        }
        LogEvent::Ack { delay, marks } => values("frame_ack", delay.into(), marks.map(|[.., ce]| ce.into())),
        LogEvent::FramesEnd => plain("frames_end"),
        LogEvent::Reset { code, reliable_size } => values("frame_reset", code, Some(reliable_size)),
        LogEvent::AckRange { path, first, last } => on(path, values("ack_range", first, Some(last))),
        LogEvent::Frame { kind, value } => Row { text: kind.to_string(), ..values("frame", value, None) },
        LogEvent::StreamFrame { kind, id, value } => Row {
            stream: Some(id.as_u64()),
            text: fulmar_proto::FrameType(kind.into()).to_string(),
            ..values("frame", value, None)
        },
        LogEvent::NewConnectionId { sequence, retire_prior_to, .. } => {
            values("frame_new_connection_id", sequence, Some(retire_prior_to))
        }
        LogEvent::Close { application, code } => {
            let text = if application { "application" } else { "transport" };
            Row { text: text.to_owned(), ..values("frame_close", code, None) }
        }
        LogEvent::ProbeTimeout { space, count } => {
            Row { space: Some(space), ..values("probe_timeout", count.into(), None) }
        }
        LogEvent::LossTimeout => plain("loss_timeout"),
        LogEvent::Window { path, window, in_flight } => on(path, values("window", window, Some(in_flight))),
        LogEvent::SlowStartThreshold { path, bytes } => {
            on(path, Row { values: [bytes, None], ..plain("slow_start_threshold") })
        }
        LogEvent::Rates { path, pacing, delivery } => on(path, values("rates", pacing, Some(delivery))),
        LogEvent::Rtt { path, latest, smoothed } => on(path, values("rtt", latest, Some(smoothed))),
        LogEvent::RttBounds { path, min, variance } => on(path, values("rtt_bounds", min, Some(variance))),
        LogEvent::Phase { path, name } => on(path, worded("phase", name)),
        LogEvent::Mtu { path, bytes } => on(path, values("mtu", bytes.into(), None)),
        LogEvent::EcnState { path, state } => on(path, worded("ecn_state", &format!("{state:?}"))),
        LogEvent::KeyGeneration(generation) => values("key_generation", generation, None),
        LogEvent::Queues { path, forward, back } => on(path, values("one_way_queues", forward, Some(back))),
        LogEvent::DatagramsDropped { late, other } => values("datagrams_dropped", late, Some(other)),
        LogEvent::Fec(event) => of_erasure_correction(event),
        LogEvent::Blocked { path, reason } => on(path, worded("blocked", blocked(reason))),
        LogEvent::State(state) => worded("state", &format!("{state:?}")),
        ref other => of_connection(other),
    }
}

/// A row about a path: the first one need not be told from others.
fn on(path: PathId, row: Row) -> Row {
    Row { space: (path != PathId::ZERO).then_some(SpaceId::Data(path)), ..row }
}

fn of_erasure_correction(event: FecEvent) -> Row {
    let plain = |event| Row { event, ..Row::default() };
    let values = |event, first, count: u16| Row { values: [Some(first), Some(count.into())], ..plain(event) };
    match event {
        FecEvent::RepairSent { first, count } => values("fec_repair_sent", first, count),
        FecEvent::RepairReceived { first, count, outcome } => {
            Row { text: repair_outcome(outcome).to_owned(), ..values("fec_repair_received", first, count) }
        }
        FecEvent::Recovered { id } => values("fec_symbol_recovered", id, 1),
        FecEvent::DecoderOff => plain("fec_decoder_off"),
    }
}

/// The life of the connection.
fn of_connection(event: &LogEvent) -> Row {
    let plain = |event| Row { event, ..Row::default() };
    let values = |event, first, second| Row { values: [Some(first), second], ..plain(event) };
    let worded = |event, text: &str| Row { text: text.replace([',', '"', '\n', '\r'], " "), ..plain(event) };
    let address = |event, ip: [u8; 16], port: Option<u16>| Row {
        text: std::net::Ipv6Addr::from(ip).to_canonical().to_string(),
        values: [port.map(u64::from), None],
        ..plain(event)
    };
    match *event {
        LogEvent::PeerAddress { path, ip, port } => on(path, address("peer_address", ip, Some(port))),
        LogEvent::ObservedAddress { ip, port } => address("observed_address", ip, Some(port)),
        LogEvent::LocalAddress { ip } => address("local_address", ip, None),
        LogEvent::Started { ip, port } => address("started", ip, Some(port)),
        LogEvent::Migration { state, ip, port } => {
            let row = address("migration", ip, Some(port));
            Row { text: format!("{state:?} {}", row.text), ..row }
        }
        LogEvent::VersionKnown { server, version } => {
            let event = if server { "server_version" } else { "client_version" };
            worded(event, &format!("{:#010x}", version.0))
        }
        LogEvent::VersionChosen(version) => {
            worded("version", &version.map_or_else(String::new, |version| format!("{:#010x}", version.0)))
        }
        LogEvent::Parameter { id, value } => values("parameter", id, Some(value)),
        LogEvent::ParametersEnd { remote } => {
            worded("parameters_end", if remote { "remote" } else { "local" })
        }
        LogEvent::RecoveryParameters { initial_rtt, window, .. } => {
            values("recovery_parameters", initial_rtt, Some(window.into()))
        }
        LogEvent::Tls { suite, resumed, early } => {
            let words = [(resumed, " resumed"), (early, " early")];
            let words: String = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
            worded("tls", &format!("{suite}{words}"))
        }
        LogEvent::Text(ref part) => worded("text", &String::from_utf8_lossy(part.as_bytes())),
        LogEvent::KeysInstalled(kind) => worded("keys_installed", &format!("{kind:?}")),
        LogEvent::KeysDiscarded(kind) => worded("keys_discarded", &format!("{kind:?}")),
        LogEvent::Closed { local, cause, code } => {
            let by = if local { "local" } else { "remote" };
            Row { values: [Some(code), None], ..worded("closed", &format!("{by} {cause:?}")) }
        }
        _ => plain("unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let events = [
            LogEvent::PacketSent {
                space: SpaceId::Initial,
                number: 3,
                size: 1_200,
                ack_eliciting: true,
                mtu_probe: false,
                early: false,
                ecn: fulmar_proto::Ecn::NotEct,
            },
            LogEvent::Window { path: PathId::ZERO, window: 12_000, in_flight: 1_200 },
            LogEvent::Window { path: PathId(1), window: 9_000, in_flight: 0 },
            LogEvent::SlowStartThreshold { path: PathId::ZERO, bytes: None },
            LogEvent::Phase { path: PathId::ZERO, name: "probe, \"up\"" },
        ];
        let entries: Vec<LogEntry> = events
            .iter()
            .map(|event| LogEntry { at: Instant::from_nanos(1_234_567), event: *event })
            .collect();
        let text = csv(&entries);
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(HEADER.trim_end()));
        let columns = HEADER.split(',').count();
        assert!(lines.clone().all(|line| line.split(',').count() == columns), "{text}");
        assert_eq!(lines.next(), Some("1234.567,packet_sent,Initial,3,1200,,,,,"));
        assert_eq!(lines.next(), Some("1234.567,window,,,,,,12000,1200,"));
        assert_eq!(lines.next(), Some("1234.567,window,Data(1),,,,,9000,0,"));
    }
}
