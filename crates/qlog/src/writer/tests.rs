use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Workload};
use fulmar_proto::log::{CloseCause, FecEvent, LogText, RepairOutcome, TextKind};
use fulmar_proto::{Dir, FrameType, PathId, StreamId};
use serde_json::Value;

use super::*;

/// The logs of a client that uploads over a narrow queue, so that there are losses.
fn logs() -> (Vec<LogEntry>, u64) {
    let link = |queue: u64| {
        fulmar_lab::LinkConfig::with_rate(10_000_000, Duration::from_millis(20), Duration::from_millis(queue))
    };
    let lab = Lab::new(5).link(link(20), link(20)).connection(Connecting::new(Workload::upload(1_500_000)));
    let report = lab.recorded(1 << 18).run().unwrap();
    let lost = report.connections[0].client.stats.as_ref().unwrap().packets_lost;
    (report.recording.unwrap().connections.remove(0).client, lost)
}

/// The log of a server that sends over two links.
fn logs_of_two_paths(scenario: &str) -> Vec<LogEntry> {
    let scenario = fulmar_lab::scenario::Scenario::builtin(scenario).unwrap();
    let lab = scenario.lab(scenario.default_controller().unwrap(), 1).unwrap();
    lab.recorded(1 << 18).run().unwrap().recording.unwrap().connections.remove(0).server
}

#[test]
fn packets_tell_their_path_and_are_told_apart_when_they_are_read() {
    let entries = logs_of_two_paths("multipath/both");
    let file = written(&entries, Flavor::Draft);
    let sent = records(&file).into_iter().filter(|record| record["name"] == "quic:packet_sent");
    let mut seen = std::collections::BTreeSet::new();
    for record in sent.filter(|record| record["data"]["header"]["packet_type"] == "1RTT") {
        let header = &record["data"]["header"];
        let path = header.get("path_id").map_or(0, |path| path.as_u64().unwrap());
        assert!(seen.insert((path, header["packet_number"].as_u64().unwrap())), "{header}");
    }
    let paths: std::collections::BTreeSet<u64> = seen.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn figures_tell_their_path() {
    let file = written(&logs_of_two_paths("multipath/both"), Flavor::Draft);
    let mut smallest: [Vec<f64>; 2] = Default::default();
    for record in records(&file) {
        let data = &record["data"];
        let path = data.get("path_id").map_or(0, |path| path.as_u64().unwrap());
        if record["name"] == "quic:recovery_metrics_updated" {
            let tuple = record.get("tuple").map(|tuple| tuple.as_str().unwrap());
            assert_eq!(tuple, ["1"].into_iter().find(|_| path == 1), "{record}");
            smallest[path as usize].extend(data.get("min_rtt").map(|min| min.as_f64().unwrap()));
        }
    }
    for smallest in &smallest {
        assert!(!smallest.is_empty() && smallest.is_sorted_by(|a, b| a >= b), "{smallest:?}");
        assert!(smallest.iter().all(|min| *min > 1.0), "{smallest:?}");
    }
}

#[test]
fn a_path_that_is_new_is_assigned_once() {
    let records = records(&written(&logs_of_two_paths("multipath/both"), Flavor::Draft));
    let assigned = records.iter().filter(|record| record["name"] == "quic:tuple_assigned");
    let told: Vec<_> = assigned.map(|record| (&record["tuple"], &record["data"]["tuple_id"])).collect();
    assert_eq!(told, [(&Value::from("1"), &Value::from("1"))]);
}

/// The last packet number of each path that is acknowledged in the packets that came over one of them.
fn acknowledged(records: &[Value], over: Option<u64>) -> [u64; 2] {
    let mut largest = [0; 2];
    let received = records.iter().filter(|record| record["name"] == "quic:packet_received");
    let data = received.map(|record| &record["data"]).filter(|data| data["header"]["packet_type"] == "1RTT");
    for data in data.filter(|data| data["header"].get("path_id").and_then(Value::as_u64) == over) {
        for frame in data["frames"].as_array().unwrap() {
            let path = match frame["frame_type"].as_str().unwrap() {
                "ack" => 0,
                "path_ack" => frame["path_id"].as_u64().unwrap() as usize,
                _ => continue,
            };
            let last = frame["acked_ranges"].as_array().unwrap().last().unwrap().as_array().unwrap().last();
            largest[path] = last.unwrap().as_u64().unwrap().max(largest[path]);
        }
    }
    largest
}

#[test]
fn an_acknowledgement_tells_whose_packets_it_is_about() {
    let entries = logs_of_two_paths("multipath/rtt_120");
    let mut sent = [0; 2];
    for entry in &entries {
        if let LogEvent::PacketSent { space: SpaceId::Data(PathId(path)), number, .. } = entry.event {
            sent[path as usize] = number;
        }
    }
    let records = records(&written(&entries, Flavor::Draft));
    let (over_first, over_second) = (acknowledged(&records, None), acknowledged(&records, Some(1)));
    for path in [0, 1] {
        let last = over_first[path].max(over_second[path]);
        assert!(last > 10 && last <= sent[path], "path {path}: {last} of {sent:?}");
    }
    assert!(over_first[1] > 10, "those of the slow path come over the quick one, too: {over_first:?}");
}

#[test]
fn figures_of_each_path_are_read_as_its_own() {
    let entries = logs_of_two_paths("multipath/both");
    for flavor in [Flavor::Qvis, Flavor::Draft] {
        let traces = crate::read(&written(&entries, flavor)).unwrap();
        let names: Vec<&str> = traces[0].paths.iter().map(|lane| lane.name.as_str()).collect();
        assert_eq!(names, ["client, path 1"], "{flavor:?}");
        let (connection, others) = fulmar_plot::Timelines::from_log(&entries).finish();
        let [of_file, of_log] = [&traces[0].paths[0].timeline, &others[0].1].map(|timeline| timeline.bytes());
        assert!(of_file == of_log && (1..connection.bytes()).contains(&of_log), "{of_file}, {of_log}");
    }
}

fn written(entries: &[LogEntry], flavor: Flavor) -> Vec<u8> {
    let header = Header {
        side: Side::Client,
        group_id: "0102030405060708",
        title: "a \"test\"",
        start: Instant::ZERO,
        wall_clock_time: "",
        flavor,
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    // However the entries are cut, the file is the same.
    entries.chunks(777).for_each(|part| writer.write(part).unwrap());
    writer.finish().unwrap()
}

fn records(file: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(file).unwrap();
    assert!(text.starts_with('\u{1e}') && text.ends_with('\n'));
    text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn a_file_begins_with_what_readers_look_for() {
    let (entries, lost) = logs();
    let file = written(&entries, Flavor::Draft);
    for field in ["\"file_schema\":\"urn:ietf:params:qlog:file:sequential\"", "\"serialization_format\""] {
        let place = file.windows(field.len()).position(|window| window == field.as_bytes());
        assert!(place.is_some_and(|place| place < 256), "{field} comes late");
    }
    let records = records(&file);
    assert_eq!(records[0]["trace"]["vantage_point"]["type"], "client");
    assert_eq!(records[0]["trace"]["event_schemas"][0], "urn:ietf:params:qlog:events:quic-13");
    assert_eq!(records[0].as_object().unwrap().len(), 3);
    assert!(records[1..].is_sorted_by_key(|event| (event["time"].as_f64().unwrap() * 1e3) as u64));
    let told = records
        .iter()
        .filter(|r| r["name"] == "quic:packet_lost" && r["data"]["is_mtu_probe_packet"].is_null());
    assert_eq!(told.count() as u64, lost);
    assert!(lost > 0);
}

#[test]
fn a_file_for_qvis_has_the_keys_that_it_looks_for() {
    let (entries, _) = logs();
    let file = written(&entries, Flavor::Qvis);
    let head = String::from_utf8_lossy(&file[..1_000]).into_owned();
    assert!(head.contains("\"qlog_version\":\"0.3\"") && head.contains("\"qlog_format\":\"JSON-SEQ\""));
    let records = records(&file);
    let count = |name: &str| records.iter().filter(|record| record["name"] == name).count();
    for name in [
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:metrics_updated",
        "recovery:packet_lost",
    ] {
        assert!(count(name) > 10, "{name}: {}", count(name));
    }
    let frames = records.iter().filter_map(|record| record["data"]["frames"].as_array()).flatten();
    let streams = frames.filter(|frame| frame["frame_type"] == "stream");
    let bytes: u64 = streams.map(|frame| frame["length"].as_u64().unwrap()).sum();
    assert!(bytes >= 1_500_000);
}

#[test]
fn what_is_read_is_what_was_written() {
    let (entries, lost) = logs();
    for flavor in [Flavor::Qvis, Flavor::Draft] {
        let traces = crate::read(&written(&entries, flavor)).unwrap();
        assert_eq!(traces.len(), 1);
        let fact = |name: &str| traces[0].facts.iter().find(|(key, _)| key == name).unwrap().1.clone();
        assert_eq!(fact("bytes"), "1500000", "{flavor:?}");
        assert!(fact("lost").parse::<u64>().unwrap() >= lost, "probes for larger datagrams are lost, too");
        let again = fulmar_plot::Timelines::from_log(&entries);
        assert_eq!(traces[0].lane.timeline.bytes(), again.bytes());
    }
}

#[test]
fn what_the_drafts_do_not_know_has_a_namespace_of_its_own() {
    let ip = std::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
    let events = [
        LogEvent::DatagramsDropped { late: 3, other: 1 },
        LogEvent::ObservedAddress { ip, port: 443 },
        LogEvent::Queues { path: PathId(0), forward: 1_500_000, back: 250_000 },
        LogEvent::Fec(FecEvent::RepairSent { first: 7, count: 3 }),
        LogEvent::Fec(FecEvent::RepairReceived { first: 9, count: 20, outcome: RepairOutcome::Used }),
        LogEvent::Fec(FecEvent::Recovered { id: 10 }),
        LogEvent::Fec(FecEvent::DecoderOff),
    ];
    let at = Instant::from_millis(5);
    let entries: Vec<LogEntry> = events.iter().map(|event| LogEntry { at, event: *event }).collect();
    let records = records(&written(&entries, Flavor::Draft));
    assert_eq!(records[1]["name"], "fulmar:datagrams_dropped");
    assert_eq!(records[1]["data"], serde_json::json!({"late": 3, "other": 1}));
    assert_eq!(records[2]["name"], "fulmar:observed_address");
    assert_eq!(records[2]["data"], serde_json::json!({"ip": "192.0.2.1", "port": 443}));
    assert_eq!(records[3]["name"], "fulmar:one_way_queues");
    assert_eq!(records[3]["data"], serde_json::json!({"forward": 1.5, "return": 0.25}));
    assert_eq!(records[4]["name"], "fulmar:fec_repair_sent");
    assert_eq!(records[4]["data"], serde_json::json!({"first_symbol_id": 7, "symbols": 3}));
    assert_eq!(records[5]["name"], "fulmar:fec_repair_received");
    let received = serde_json::json!({"first_symbol_id": 9, "symbols": 20, "outcome": "used"});
    assert_eq!(records[5]["data"], received);
    assert_eq!(records[6]["name"], "fulmar:fec_symbol_recovered");
    assert_eq!(records[6]["data"], serde_json::json!({"symbol_id": 10}));
    assert_eq!(records[7]["name"], "fulmar:fec_decoder_off");
    assert_eq!(records[7]["data"], serde_json::json!({}));
}

#[test]
fn a_gap_is_told() {
    let (entries, _) = logs();
    let header = Header {
        side: Side::Server,
        group_id: "",
        title: "",
        start: Instant::ZERO,
        wall_clock_time: "2026-11-01T00:00:00Z",
        flavor: Flavor::Qvis,
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.write(&entries[..100]).unwrap();
    writer.note_missing(entries[150].at, 50).unwrap();
    writer.write(&entries[150..]).unwrap();
    let records = records(&writer.finish().unwrap());
    let warning = records.iter().find(|record| record["name"] == "loglevel:warning").unwrap();
    assert_eq!(warning["data"]["message"], "50 events are missing here");
}

/// The records of a connection of this application protocol, in which an error with each of these codes is told in every way.
fn errors_of(alpn: &[u8], codes: &[u64]) -> Vec<Value> {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let frame = |ty: FrameType, value| LogEvent::StreamFrame { kind: ty.0 as u8, id, value };
    let mut events: Vec<LogEvent> = LogText::parts(TextKind::Alpn, alpn).map(LogEvent::Text).collect();
    for &code in codes {
        let (number, size, ecn) = (code, 60, Ecn::NotEct);
        events.extend([
            LogEvent::Reset { code, reliable_size: 5 },
            frame(FrameType::RESET_STREAM, 10),
            LogEvent::Reset { code, reliable_size: 5 },
            frame(FrameType::RESET_STREAM_AT, 10),
            frame(FrameType::STOP_SENDING, code),
            LogEvent::Close { application: true, code },
            LogEvent::PacketReceived {
                space: SpaceId::Data(PathId(0)),
                number,
                size,
                early: false,
                waited: false,
                old_keys: false,
                ecn,
            },
            LogEvent::Closed { local: false, cause: CloseCause::Application, code },
        ]);
    }
    let entries: Vec<LogEntry> =
        events.into_iter().map(|event| LogEntry { at: Instant::ZERO, event }).collect();
    records(&written(&entries, Flavor::Draft))
}

/// What all places say of an error with this code: in a close, and in each kind of frame that has one.
fn told_errors(alpn: &[u8], code: u64) -> Vec<(Value, Value)> {
    let records = errors_of(alpn, &[code]);
    let closed = records.iter().find(|record| record["name"] == "quic:connection_closed").unwrap();
    let packet = records.iter().find(|record| record["name"] == "quic:packet_received").unwrap();
    let mut told = vec![(closed["data"]["application_error"].clone(), closed["data"]["error_code"].clone())];
    for frame in packet["data"]["frames"].as_array().unwrap() {
        told.push((frame["error"].clone(), frame["error_code"].clone()));
    }
    told
}

#[test]
fn errors_of_http3_have_their_names() {
    for (code, name) in [
        (0x100, "http_no_error"),
        (0x104, "http_closed_critical_stream"),
        (0x107, "http_excessive_load"),
        (0x10c, "http_request_cancelled"),
        (0x10d, "http_request_incomplete"),
        (0x10f, "http_connect_error"),
        (0x110, "http_version_fallback"),
    ] {
        assert_eq!(told_errors(b"h3", code), vec![(name.into(), Value::Null); 5], "{code:#x}");
    }
}

#[test]
fn errors_for_which_the_drafts_have_no_name_have_their_code() {
    // Of datagrams, of nobody, H3_MESSAGE_ERROR, of nobody, of QPACK.
    for code in [0x33, 0xff, 0x10e, 0x111, 0x200, 0x201, 0x202, 1 << 61] {
        assert_eq!(told_errors(b"h3", code), vec![("unknown".into(), code.into()); 5], "{code:#x}");
    }
    for alpn in [&b"hq-interop"[..], b"h3x", b""] {
        assert_eq!(told_errors(alpn, 0x100), vec![("unknown".into(), 0x100.into()); 5], "{alpn:?}");
    }
}
