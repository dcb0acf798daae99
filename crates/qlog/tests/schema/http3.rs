//! Events of HTTP/3 of every kind, as a connection notes them, against the schema.

use fulmar_base::Instant;
use fulmar_h3_proto::log::{LogEvent, LogField, LogFrame, StreamKind};
use fulmar_h3_proto::{Priority, Settings};
use fulmar_lab::Side;
use fulmar_proto::PathId;
use fulmar_proto::log::{LogEntry, LogEvent as Quic};
use fulmar_qlog::{Flavor, Header, Writer, csv, csv_http3};
use serde_json::{Value, json};

use super::transfers::records;
use super::validator::Schema;
use super::{FULMAR, HTTP3, QUIC};

fn field(name: &[u8], value: Option<&[u8]>) -> LogField {
    LogField { name: name.into(), value: value.map(Into::into), value_len: value.map_or(3_000, <[u8]>::len) }
}

fn events() -> Vec<LogEvent> {
    let headers = |len, left_out| LogFrame::Headers {
        len,
        fields: vec![
            field(b":method", Some(b"GET")),
            field(b":path", Some(b"/\"quoted\" \\ {")),
            field(b"x-bytes", Some(b"\xff\x01")),
            field(b"cookie", None),
        ],
        left_out,
    };
    let settings = || {
        let others = vec![(0x1234_5678, 1)];
        Box::new(Settings {
            max_field_section_size: Some(9),
            h3_datagram: true,
            others,
            ..Settings::default()
        })
    };
    let frames = [
        LogFrame::Data { len: 1 << 40 },
        headers(Some(33), 0),
        headers(None, 7),
        LogFrame::Settings(vec![(1, 2), (6, 3), (7, 4), (8, 1), (0x33, 1), (0x21, 5), (0x4d44, 6)]),
        LogFrame::GoAway(8),
        LogFrame::CancelPush(1),
        LogFrame::MaxPushId(2),
        LogFrame::PriorityUpdate { id: 4, is_push: false, value: "u=1, i, \"\u{1}".into() },
        LogFrame::PriorityUpdate { id: 4, is_push: true, value: "".into() },
        LogFrame::Origin(vec!["https://example.org".to_owned()]),
        LogFrame::Reserved { ty: 0x21, len: 0 },
        LogFrame::Unknown { ty: 0x4d, len: 6 },
    ];
    let kinds = [
        StreamKind::Request,
        StreamKind::Control,
        StreamKind::Encoder,
        StreamKind::Decoder,
        StreamKind::Push,
        StreamKind::Reserved,
        StreamKind::Unknown(0x54),
    ];
    let mut events = vec![
        LogEvent::SettingsSet { is_local: true, settings: settings() },
        LogEvent::SettingsSet { is_local: false, settings: Box::default() },
        LogEvent::SettingsRestored(settings()),
        LogEvent::PrioritySet { stream: 0, new: Priority::default(), is_received: true },
        LogEvent::PrioritySet {
            stream: 0,
            new: Priority { urgency: 7, incremental: true },
            is_received: false,
        },
        LogEvent::DatagramCreated { stream: 8, len: 5 },
        LogEvent::DatagramParsed { stream: 8, len: 0 },
        LogEvent::Missing(3),
    ];
    events.extend(kinds.map(|kind| LogEvent::StreamType { stream: 4, is_local: true, kind }));
    for frame in frames {
        events.push(LogEvent::FrameCreated { stream: 4, frame: frame.clone() });
        events.push(LogEvent::FrameParsed { stream: 4, frame });
    }
    events
}

fn file(quic: &[LogEntry], http3: &[(Instant, &LogEvent)], flavor: Flavor) -> Vec<u8> {
    let header = Header {
        side: Side::Client,
        group_id: "0102",
        title: "x",
        start: Instant::ZERO,
        wall_clock_time: "",
        flavor,
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.write_with_http3(quic, http3).unwrap();
    writer.finish().unwrap()
}

#[test]
fn all_events_of_http3_are_as_the_schema_has_them() {
    let events = events();
    let http3: Vec<(Instant, &LogEvent)> = events.iter().map(|event| (Instant::ZERO, event)).collect();
    let mut schema = Schema::new([QUIC, HTTP3, FULMAR]);
    let seen = schema.check_file(&file(&[], &http3, Flavor::Draft)).unwrap();
    assert_eq!(seen.values().sum::<u64>(), events.len() as u64);
    for rule in HTTP3.lines().filter_map(|line| line.strip_prefix("HTTP3")) {
        let name = rule.split(" =").next().unwrap().to_lowercase();
        let tried = |event: &String| event.replace([':', '_'], "") == format!("http3{name}");
        assert!(seen.keys().any(tried), "no event has HTTP3{name}: {seen:?}");
    }
    let wrong = json!({"stream_id": 1, "frame": {"frame_type": "data"}});
    assert!(schema.check("HTTP3FrameCreated", &wrong).is_err());
    // The other flavour has more keys, but the same number of records, all of them JSON.
    assert_eq!(records(&file(&[], &http3, Flavor::Qvis)).len(), events.len() + 1);
}

#[test]
fn what_others_have_chosen_comes_through_unharmed() {
    let events = events();
    let http3: Vec<(Instant, &LogEvent)> = events.iter().map(|event| (Instant::ZERO, event)).collect();
    let records = records(&file(&[], &http3, Flavor::Draft));
    let of = |kind: &str| -> Vec<&Value> {
        let frames =
            records.iter().map(|record| &record["data"]).filter(|data| data["frame"]["frame_type"] == kind);
        frames.collect()
    };
    let headers = of("headers");
    let fields = &headers[0]["frame"]["headers"];
    assert_eq!(fields[1], json!({"name": ":path", "value": "/\"quoted\" \\ {"}));
    assert_eq!(fields[2], json!({"name": "x-bytes", "value_bytes": "ff01"}));
    assert_eq!(fields[3], json!({"name": "cookie"}));
    assert_eq!(
        (&headers[0]["frame"]["raw"]["payload_length"], &headers[2]["fulmar_fields_left_out"]),
        (&json!(33), &json!(7))
    );
    assert_eq!(of("priority_update")[0]["frame"]["priority_field_value"], "u=1, i, \"\u{1}");
}

#[test]
fn events_of_both_kinds_stand_in_the_order_of_their_times() {
    let mtu = |bytes| Quic::Mtu { path: PathId::ZERO, bytes };
    let quic: Vec<LogEntry> = (0..10)
        .map(|n| LogEntry { at: Instant::from_millis(n * 10), event: mtu(1_200 + n as u16) })
        .collect();
    let event = LogEvent::FrameCreated { stream: 0, frame: LogFrame::Data { len: 1 } };
    let http3: Vec<(Instant, &LogEvent)> =
        [5, 5, 41, 89, 95, 120].map(|millis| (Instant::from_millis(millis), &event)).into();
    let records = records(&file(&quic, &http3, Flavor::Draft));
    assert_eq!(records.len(), 17);
    assert!(records[1..].is_sorted_by_key(|record| (record["time"].as_f64().unwrap() * 1e3) as u64));
    let table = csv(&quic) + &csv_http3(&http3);
    let columns = table.lines().next().unwrap().split(',').count();
    assert!(table.lines().all(|line| line.split(',').count() == columns), "{table}");
    assert!(table.contains("\n5000.000,http3_frame_created,,,1,0,,,,data\n"), "{table}");
}
