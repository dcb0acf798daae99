use std::time::Duration;

use fulmar_lab::{Connecting, Lab, Workload};
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

fn written(entries: &[LogEntry], flavor: Flavor) -> Vec<u8> {
    let header = Header {
        side: Side::Client,
        group_id: "0102030405060708",
        title: "a \"test\"",
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

/// The fields of each event of the drafts that are written: mandatory ones, and others that are allowed. A name with a
/// slash is a field of a field.
const SCHEMA: &[(&str, &[&str], &[&str])] = &[
    ("quic:packet_sent", &["header"], &["raw", "frames", "is_mtu_probe_packet"]),
    ("quic:packet_received", &["header"], &["raw", "frames"]),
    ("quic:packet_dropped", &[], &["raw", "trigger"]),
    ("quic:packet_lost", &["header"], &["is_mtu_probe_packet"]),
    (
        "quic:recovery_metrics_updated",
        &[],
        &[
            "min_rtt",
            "smoothed_rtt",
            "latest_rtt",
            "rtt_variance",
            "pto_count",
            "congestion_window",
            "bytes_in_flight",
            "ssthresh",
            "pacing_rate",
        ],
    ),
    ("quic:congestion_state_updated", &["new"], &[]),
    ("quic:timer_updated", &["event_type"], &["timer_type", "packet_number_space"]),
    ("quic:mtu_updated", &["new"], &[]),
    ("quic:ecn_state_updated", &["new"], &[]),
    ("quic:key_updated", &["key_type"], &["key_phase"]),
    ("quic:tuple_assigned", &["tuple_id"], &["tuple_remote"]),
    ("quic:connection_state_updated", &["new"], &[]),
    ("quic:connection_closed", &[], &["initiator", "trigger"]),
];

/// Likewise the frames.
const FRAMES: &[(&str, &[&str], &[&str])] = &[
    ("ack", &[], &["ack_delay", "acked_ranges", "ce"]),
    ("stream", &["stream_id"], &["offset", "fin", "raw"]),
    ("crypto", &["offset", "raw"], &[]),
    ("ping", &[], &[]),
    ("new_connection_id", &["sequence_number", "retire_prior_to", "connection_id"], &[]),
    ("retire_connection_id", &["sequence_number"], &[]),
    ("connection_close", &[], &["error_space", "error", "error_code"]),
    ("handshake_done", &[], &[]),
    ("max_data", &["maximum"], &[]),
    ("max_stream_data", &["stream_id", "maximum"], &[]),
    ("max_streams", &["stream_type", "maximum"], &[]),
    ("reset_stream", &["stream_id", "error", "final_size"], &["error_code"]),
    ("stop_sending", &["stream_id", "error"], &["error_code"]),
    ("data_blocked", &["limit"], &[]),
    ("stream_data_blocked", &["stream_id", "limit"], &[]),
    ("streams_blocked", &["stream_type", "limit"], &[]),
    ("path_challenge", &[], &[]),
    ("path_response", &[], &[]),
    ("new_token", &["token"], &[]),
    ("datagram", &[], &["raw"]),
    ("unknown", &["frame_type_bytes"], &[]),
    // Those of extensions, whose names are ours.
    ("observed_address", &["sequence_number"], &[]),
    ("timestamp", &["timestamp"], &[]),
    ("reset_stream_at", &["stream_id", "error", "reliable_size"], &[]),
];

fn check(value: &Value, name: &str, schema: &[(&str, &[&str], &[&str])], own: &[&str]) {
    let (_, mandatory, optional) = *schema
        .iter()
        .find(|(known, ..)| *known == name)
        .unwrap_or_else(|| panic!("{name} is not in the drafts"));
    let object = value.as_object().unwrap();
    for field in mandatory {
        assert!(object.contains_key(*field), "{name} lacks {field}: {value}");
    }
    for field in object.keys().map(String::as_str) {
        let known = mandatory.contains(&field) || optional.contains(&field) || own.contains(&field);
        assert!(known, "{name} has {field}: {value}");
    }
}

fn check_event(event: &Value) {
    assert!(event["time"].is_f64() || event["time"].is_u64(), "{event}");
    let name = event["name"].as_str().unwrap();
    // Namespaces of one's own are allowed (main-schema §8).
    if name.starts_with("fulmar:") {
        return;
    }
    let data = &event["data"];
    check(data, name, SCHEMA, &[]);
    if let Some(header) = data.get("header") {
        assert!(["initial", "handshake", "1RTT"].contains(&header["packet_type"].as_str().unwrap()));
        assert!(header["packet_number"].is_u64());
    }
    for frame in data.get("frames").and_then(Value::as_array).into_iter().flatten() {
        check(frame, frame["frame_type"].as_str().unwrap(), FRAMES, &["frame_type"]);
        for range in frame.get("acked_ranges").and_then(Value::as_array).into_iter().flatten() {
            let range: Vec<u64> = range.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
            assert!(range.len() == 1 || (range.len() == 2 && range[0] < range[1]), "{range:?}");
        }
    }
}

#[test]
fn a_file_is_as_the_drafts_have_it() {
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
    records[1..].iter().for_each(check_event);
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
        let again = fulmar_plot::Timeline::from_log(&entries);
        assert_eq!(traces[0].lane.timeline.bytes(), again.bytes());
    }
}

#[test]
fn what_the_drafts_do_not_know_has_a_namespace_of_its_own() {
    let ip = std::net::Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets();
    let events = [
        LogEvent::DatagramsDropped { late: 3, other: 1 },
        LogEvent::ObservedAddress { ip, port: 443 },
        LogEvent::Queues { forward: 1_500_000, back: 250_000 },
    ];
    let at = Instant::from_millis(5);
    let entries: Vec<LogEntry> = events.iter().map(|event| LogEntry { at, event: *event }).collect();
    let records = records(&written(&entries, Flavor::Draft));
    records[1..].iter().for_each(check_event);
    assert_eq!(records[1]["name"], "fulmar:datagrams_dropped");
    assert_eq!(records[1]["data"], serde_json::json!({"late": 3, "other": 1}));
    assert_eq!(records[2]["name"], "fulmar:observed_address");
    assert_eq!(records[2]["data"], serde_json::json!({"ip": "192.0.2.1", "port": 443}));
    assert_eq!(records[3]["name"], "fulmar:one_way_queues");
    assert_eq!(records[3]["data"], serde_json::json!({"forward": 1.5, "return": 0.25}));
}

#[test]
fn a_gap_is_told() {
    let (entries, _) = logs();
    let header = Header {
        side: Side::Server,
        group_id: "",
        title: "",
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
