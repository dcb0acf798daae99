//! Every record of the files of many kinds of connections, against a schema in CDDL: what is written is what the drafts have.

mod http3;
mod transfers;
mod validator;

use std::collections::BTreeMap;

use fulmar_qlog::Flavor;
use serde_json::{Value, json};

use self::transfers::{Transfer, transfers};
use self::validator::Schema;

const QUIC: &str = include_str!("quic.cddl");
const HTTP3: &str = include_str!("http3.cddl");
const FULMAR: &str = include_str!("fulmar.cddl");

/// Checks both files of a transfer, and returns how often each event occurs in each.
fn checked(schema: &mut Schema, transfer: &Transfer) -> [BTreeMap<String, u64>; 2] {
    transfer.files(Flavor::Draft).map(|file| match schema.check_file(&file) {
        Ok(seen) => seen,
        Err(error) => panic!("{}: {error}", transfer.name),
    })
}

#[test]
fn all_records_are_as_the_schema_has_them() {
    let mut schema = Schema::new([QUIC, FULMAR]);
    let mut all = BTreeMap::new();
    for transfer in transfers() {
        let [client, server] = checked(&mut schema, &transfer);
        for name in transfer.client_has {
            assert!(client.contains_key(*name), "{}: the client's file has no {name}", transfer.name);
        }
        for name in transfer.server_has {
            assert!(server.contains_key(*name), "{}: the server's file has no {name}", transfer.name);
        }
        for (name, count) in client.into_iter().chain(server) {
            *all.entry(name).or_insert(0) += count;
        }
    }
    // A rule that no file has tried proves nothing.
    for rule in QUIC.lines().filter_map(|line| line.strip_prefix("QUIC")) {
        let name = rule.split(" =").next().unwrap();
        let tried = |event: &String| event.replace([':', '_'], "") == format!("quic{}", name.to_lowercase());
        assert!(all.keys().any(tried), "no file has QUIC{name}");
    }
}

#[test]
fn every_kind_of_frame_is_tried() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for transfer in transfers() {
        for file in transfer.files(Flavor::Draft) {
            for record in transfers::records(&file) {
                for frame in record["data"]["frames"].as_array().into_iter().flatten() {
                    *seen.entry(frame["frame_type"].as_str().unwrap().to_owned()).or_default() += 1;
                }
            }
        }
    }
    let kinds = QUIC.split("frame_type: \"").chain(FULMAR.split("frame_type: \"")).skip(1);
    let kinds = kinds.filter_map(|rest| rest.split('"').next()).filter(|kind| kind.len() < 30);
    // Whoever is blocked by the number of streams says so nowhere in these, nor is data blocked on both levels.
    let rare = ["streams_blocked", "data_blocked", "stream_data_blocked"];
    let missing: Vec<&str> = kinds.filter(|kind| !seen.contains_key(*kind) && !rare.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?} in none of {seen:?}");
}

/// The frames of the packets that a file calls sent, or received, by the packets' names.
fn packets(file: &[u8], event: &str) -> BTreeMap<String, Value> {
    let records = transfers::records(file).into_iter().filter(|record| record["name"] == event);
    records.map(|record| (record["data"]["header"].to_string(), record["data"]["frames"].clone())).collect()
}

#[test]
fn both_ends_tell_the_same_of_a_packet() {
    for transfer in transfers().into_iter().filter(|transfer| transfer.name != "by hand") {
        let [client, server] = transfer.files(Flavor::Draft);
        for (sender, receiver) in [(&client, &server), (&server, &client)] {
            let sent = packets(sender, "quic:packet_sent");
            let received = packets(receiver, "quic:packet_received");
            let numbered = received.iter().filter(|(header, _)| header.contains("packet_number"));
            let mut compared = 0;
            for (header, frames) in numbered {
                assert_eq!(sent.get(header), Some(frames), "{}: {header}", transfer.name);
                compared += 1;
            }
            assert!(compared > 3, "{}: {compared} packets", transfer.name);
        }
    }
}

#[test]
fn what_is_wrong_is_found() {
    let mut schema = Schema::new([QUIC, FULMAR]);
    let header = json!({"packet_type": "1RTT", "packet_number": 1, "key_phase": 0});
    let good = json!({"header": header, "raw": {"length": 30}, "frames": [{"frame_type": "ping"}]});
    schema.check("QUICPacketSent", &good).unwrap();
    let with = |key: &str, value: Value| {
        let mut data = good.clone();
        data[key] = value;
        data
    };
    let frame = |frame: Value| with("frames", json!([frame]));
    let wrong = [
        with("more", json!(1)),
        with("raw", json!({"length": -1})),
        with("raw", json!({"length": "30"})),
        with("header", json!({"packet_type": "1RTT", "packet_number": 1})),
        with("header", json!({"packet_type": "2RTT", "packet_number": 1})),
        with("frames", json!([])),
        with("is_mtu_probe_packet", json!("yes")),
        frame(json!({"frame_type": "nonsense"})),
        frame(json!({"frame_type": "ping", "more": 1})),
        frame(json!({"frame_type": "stream", "offset": 0, "raw": {"payload_length": 1}})),
        frame(json!({"frame_type": "ack", "ack_delay": 1.0, "acked_ranges": []})),
        frame(json!({"frame_type": "ack", "ack_delay": 1.0, "acked_ranges": [[1, 2, 3]]})),
        frame(json!({"frame_type": "ack", "ack_delay": 1.0, "acked_ranges": [[1]], "ce": 1})),
        frame(json!({"frame_type": "max_data", "maximum": 1u64 << 63})),
        frame(json!({"frame_type": "stop_sending", "stream_id": 0, "error": "http_early_response"})),
        frame(
            json!({"frame_type": "stop_sending", "stream_id": 0, "error": "http_no_error", "error_code": 256}),
        ),
        frame(
            json!({"frame_type": "connection_close", "error_space": "transport", "error": "crypto_error_0x200"}),
        ),
    ];
    for data in wrong {
        assert!(schema.check("QUICPacketSent", &data).is_err(), "{data}");
    }
    for (rule, data) in [
        ("QUICVersionInformation", json!({"chosen_version": "xyz"})),
        ("QUICVersionInformation", json!({"client_versions": []})),
        ("QUICConnectionStarted", json!({"local": {}})),
        ("QUICRecoveryMetricsUpdated", json!({"pto_count": 70_000})),
        ("QUICRecoveryMetricsUpdated", json!({"congestion_window": 1.5, "bytes_in_flight": 1})),
        ("QUICConnectionClosed", json!({"initiator": "local", "trigger": "because"})),
    ] {
        assert!(schema.check(rule, &data).is_err(), "{rule}: {data}");
    }
}
