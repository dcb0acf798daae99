use proptest::prelude::*;

use super::*;

fn fact(trace: &Trace, name: &str) -> String {
    trace.facts.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// A file as qlog 0.3 has it: one JSON text, absolute times, lengths in the frames.
const CONTAINED: &str = r#"{"qlog_version":"0.3","qlog_format":"JSON","title":"x","traces":[{
 "vantage_point":{"name":"someone","type":"server"},
 "common_fields":{"time_format":"absolute","reference_time":0},
 "events":[
 {"time":1700000000000.5,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":0},"raw":{"length":1250},"frames":[{"frame_type":"stream","stream_id":3,"offset":0,"length":1200,"fin":false}]}},
 {"time":1700000000010.5,"name":"transport:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":1},"raw":{"length":1250},"frames":[{"frame_type":"stream","stream_id":3,"offset":1200,"length":1200}]}},
 {"time":1700000000060.5,"name":"transport:packet_received","data":{"header":{"packet_type":"1RTT","packet_number":7},"frames":[{"frame_type":"ack","acked_ranges":[[1]]}]}},
 {"time":1700000000060.5,"name":"recovery:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":0}}},
 {"time":1700000000060.5,"name":"recovery:metrics_updated","data":{"latest_rtt":50.25,"smoothed_rtt":"50","congestion_window":14000,"bytes_in_flight":0,"ssthresh":18446744073709551615}},
 {"time":1700000000061.5,"name":"recovery:congestion_state_updated","data":{"new":"recovery"}},
 {"time":1700000000062.5,"name":"http:frame_parsed","data":{}}
 ]}]}"#;

#[test]
fn one_json_text_of_qlog_0_3() {
    let traces = read(CONTAINED.as_bytes()).unwrap();
    let trace = &traces[0];
    assert_eq!((trace.title.as_str(), trace.events, trace.passed_over), ("someone", 6, 1));
    assert_eq!(fact(trace, "bytes"), "2400");
    assert_eq!(fact(trace, "lost"), "1");
    assert_eq!(fact(trace, "round-trip time"), "50.2 to 50.2 ms");
    let html = page("file", vec![("file.qlog".to_owned(), traces)]).html();
    assert!(html.contains("\"key\":\"lost\",\"t\":[60000]"), "times count from the first event");
}

#[test]
fn requests_are_known_by_their_frames() {
    let event = |at: u32, name: &str, stream: u32, frame: &str| {
        format!(
            "\u{1e}{{\"time\":{at},\"name\":\"{name}\",\"data\":{{\"stream_id\":{stream},\"frame\":{frame}}}}}\n"
        )
    };
    let headers = |pairs: &[(&str, &str)]| {
        let fields: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{{\"name\":\"{name}\",\"value\":\"{value}\"}}"))
            .collect();
        format!("{{\"frame_type\":\"headers\",\"headers\":[{}]}}", fields.join(","))
    };
    let data = |len: u32| format!("{{\"frame_type\":\"data\",\"raw\":{{\"payload_length\":{len}}}}}");
    let text = [
        "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{\"vantage_point\":{\"type\":\"server\"}}}\n".to_owned(),
        event(0, "http3:frame_parsed", 2, "{\"frame_type\":\"settings\",\"settings\":[]}"),
        event(10, "http3:frame_parsed", 4, &headers(&[(":method", "PUT"), (":path", "/up"), ("x", "y")])),
        event(11, "http:frame_parsed", 0, &headers(&[(":method", "GET"), (":path", "/a b")])),
        event(12, "http3:frame_parsed", 4, &data(700)),
        event(20, "http3:frame_created", 4, &headers(&[(":status", "103")])),
        event(30, "http3:frame_created", 4, &headers(&[(":status", "204")])),
        event(31, "http3:frame_parsed", 4, &data(50)),
        event(40, "http3:frame_created", 0, &headers(&[(":status", "200")])),
        event(41, "http3:frame_created", 0, &data(5_000)),
        event(60, "http3:frame_created", 0, &data(1)),
        event(70, "quic:packet_sent", 0, "{}"),
        // A body without a request.
        event(80, "http3:frame_created", 8, &data(1)),
    ];
    let trace = &read(text.concat().as_bytes()).unwrap()[0];
    assert_eq!((trace.events, trace.passed_over), (9, 3));
    assert_eq!(fact(trace, "requests"), "2");
    let at = fulmar_base::Instant::from_millis;
    let put = &trace.lane.requests[0];
    assert_eq!(
        (put.stream, put.method.as_str(), put.path.as_str(), put.status.as_str()),
        (4, "PUT", "/up", "204")
    );
    assert_eq!((put.start, put.answered, put.end), (at(10), Some(at(30)), at(31)));
    assert_eq!((put.sent, put.received), (750, 0));
    let get = &trace.lane.requests[1];
    assert_eq!((get.start, get.answered, get.end, get.received), (at(11), Some(at(40)), at(60), 5_001));
    let html = page("x", vec![("x".to_owned(), read(text.concat().as_bytes()).unwrap())]).html();
    assert!(
        html.contains("\"path\":\"/up\",\"status\":\"204\",\"start\":10000,\"answered\":30000"),
        "{html}"
    );
}

#[test]
fn a_sequence_with_deltas_and_a_torn_end() {
    let text = "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{\"vantage_point\":{\"type\":\"client\"},\"common_fields\":{\"time_format\":\"relative_to_previous_event\"}}}\n\
        \u{1e}{\"time\":5,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"initial\",\"packet_number\":\"0\"},\"frames\":[{\"frame_type\":\"crypto\"}]}}\n\
        \u{1e}{\"time\":10,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"congestion_window\":12000,\"pacing_rate\":8000}}\n\
        \u{1e}{\"time\":10,\"name\":\"quic:timer_updated\",\"data\":{\"timer_type\":\"pto\",\"event_type\":\"expired\"}}\n\
        \u{1e}{\"time\":10,\"na";
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!((trace.events, fact(trace, "probe timeouts").as_str()), (3, "1"));
}

#[test]
fn events_as_arrays_of_columns() {
    let text = r#"{"qlog_version":"draft-00","traces":[{"configuration":{"time_units":"us"},"event_fields":["relative_time","category","event","data"],"events":[[0,"transport","packet_sent",{"packet_type":"1RTT","header":{"packet_number":"4","packet_size":1252},"frames":[{"frame_type":"stream","id":0,"offset":0,"length":10}]}],[2000,"recovery","metrics_updated",{"cwnd":15000}]]}]}"#;
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!((trace.events, fact(trace, "bytes").as_str()), (2, "10"));
}

#[test]
fn round_trip_times_are_in_the_unit_of_the_trace() {
    let text = r#"{"qlog_version":"draft-00","traces":[{"vantage_point":{"type":"client"},"configuration":{"time_units":"us"},"event_fields":["relative_time","path_id","category","event","data"],"events":[[0,0,"transport","packet_sent",{"packet_type":"initial","header":{"packet_number":0,"packet_size":1252},"frames":[{"frame_type":"crypto"}]}],[46151,0,"recovery","metrics_updated",{"cwnd":12154,"smoothed_rtt":46151,"min_rtt":45000,"latest_rtt":46151}]]}]}"#;
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!(fact(trace, "round-trip time"), "46.2 to 46.2 ms");
}

/// noq names the path in the data of figures and in the headers of packets, picoquic in a column; the drafts leave it to the tuple.
#[test]
fn paths_of_other_stacks_are_told_apart() {
    let head = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n";
    let metrics = |time: u32, rtt: u32, tuple: &str, path: &str| {
        format!(
            "\u{1e}{{\"time\":{time},\"name\":\"quic:recovery_metrics_updated\"{tuple},\"data\":{{\"min_rtt\":{rtt},\"latest_rtt\":{rtt}{path}}}}}\n"
        )
    };
    let ways = [
        ["", ",\"path_id\":0", "", ",\"path_id\":1"],
        [",\"tuple\":\"p0\"", "", ",\"tuple\":\"p1\"", ""],
        ["", "", ",\"tuple\":\"1\"", ""],
        ["", "", ",\"path\":\"1\"", ""],
    ];
    for [tuple, path, other_tuple, other_path] in ways {
        let text = [
            head.to_owned(),
            metrics(1, 30, tuple, path),
            metrics(2, 80, other_tuple, other_path),
            metrics(3, 29, tuple, path),
        ];
        let trace = &read(text.concat().as_bytes()).unwrap()[0];
        let names: Vec<&str> = trace.paths.iter().map(|lane| lane.name.as_str()).collect();
        assert_eq!(names, ["client, path 1"], "{text:?}");
        let html = page("x", vec![("x".to_owned(), read(text.concat().as_bytes()).unwrap())]).html();
        assert!(html.contains("\"key\":\"rtt_min\",\"t\":[0,2000],\"v\":[30000,-1000]"), "{html}");
        assert!(html.contains("\"key\":\"rtt_min\",\"t\":[1000],\"v\":[80000]"), "{html}");
    }
    let columns = r#"{"qlog_version":"draft-00","traces":[{"vantage_point":{"type":"client"},"configuration":{"time_units":"us"},"event_fields":["relative_time","path_id","category","event","data"],"events":[[0,0,"recovery","metrics_updated",{"cwnd":12154,"min_rtt":45000,"latest_rtt":45000}],[10,1,"recovery","metrics_updated",{"cwnd":9000,"min_rtt":90000,"latest_rtt":90000}]]}]}"#;
    assert_eq!(read(columns.as_bytes()).unwrap()[0].paths.len(), 1);
}

#[test]
fn a_trace_tells_of_so_many_paths_at_most() {
    let head = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n".to_owned();
    let text = (0..1_000).fold(head, |text, path| {
        text + &format!(
            "\u{1e}{{\"time\":1,\"name\":\"transport:packet_sent\",\"data\":{{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":0,\"path_id\":{path}}},\"frames\":[{{\"frame_type\":\"stream\",\"stream_id\":0,\"offset\":{path},\"length\":1}}]}}}}\n"
        )
    });
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!((trace.paths.len(), trace.lane.timeline.bytes()), (fulmar_plot::PATHS_MAX, 1_000));
}

/// picoquic writes a version list that is no JSON; others are stopped before they close the brackets.
#[test]
fn of_a_broken_text_what_is_whole_is_read() {
    let text = r#"{"qlog_version":"draft-00","title":"x","traces":[
{"vantage_point":{"name":"y","type":"client"},"event_fields":["relative_time","category","event","data"],
"configuration":{"time_units":"us"},
"events": [
[0,"transport","parameters_set",{
    "version_negotiation": "chosen": "00000001", "others": ["00000001"]},
    "initial_max_data" : 9}],
[10,"transport","packet_sent",{"packet_type":"1RTT","header":{"packet_number":4,"packet_size":1252},"frames":[
{"frame_type":"stream","id":0,"offset":0,"length":10}]}],
[2000,"recovery","metrics_updated",{"cwnd":15000}],
[3000,"transport","packet_sent",{"packet_type":"1RTT","header":{"packet_number":5,"packet_size":1252},"frames":[{"frame_type":"stream","id":0,"offset":10,"length":20}]}]
"#;
    let by_line = text.replace("\"frames\":[\n", "\"frames\":[");
    for ending in ["]}]}", "", ",\n[4000,\"transp"] {
        let trace = &read(format!("{by_line}{ending}").as_bytes()).unwrap()[0];
        assert_eq!((trace.events, fact(trace, "bytes").as_str()), (3, "30"), "{ending}");
        assert!(trace.passed_over >= 1);
    }
    // An event that was cut by a line of its own is lost, the others are not.
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!((trace.events, fact(trace, "bytes").as_str()), (2, "20"));
    assert!(read(text.replace("\"events\"", "\"event\"").as_bytes()).is_err());
}

#[test]
fn a_round_trip_time_that_is_only_assumed_is_not_shown() {
    let event = |time: u64, latest: u64, smoothed: u64| {
        format!(
            "{{\"time\":{time},\"name\":\"recovery:metrics_updated\",\"data\":\
             {{\"latest_rtt\":{latest},\"smoothed_rtt\":{smoothed}}}}}\n"
        )
    };
    let header = "{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.3\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n";
    let packet = "{\"time\":9,\"name\":\"transport:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":0}}}\n";
    let text = [header, packet, &event(1, 0, 333), &event(9, 4, 5), &event(12, 0, 4)].concat();
    let traces = read(text.as_bytes()).unwrap();
    assert_eq!(fact(&traces[0], "round-trip time"), "0.0 to 4.0 ms");
    let html = page("file", vec![("file".to_owned(), traces)]).html();
    let smoothed = html.split("\"key\":\"rtt_smoothed\"").nth(1).unwrap().split('}').next().unwrap();
    assert!(smoothed.contains("\"v\":[5000,"), "an assumption is no measurement: {smoothed}");
}

/// How aioquic tells what was agreed on: numbers for versions, and plain texts.
#[test]
fn versions_may_be_numbers() {
    let text = r#"{"qlog_format":"JSON","qlog_version":"0.3","traces":[{"common_fields":{"ODCID":"01"},"vantage_point":{"name":"aioquic","type":"client"},"events":[
 {"data":{"client_versions":[1,1798521807],"chosen_version":1798521807},"name":"transport:version_information","time":1700000000000.1},
 {"data":{"chosen_alpn":"hq-interop"},"name":"transport:alpn_information","time":1700000000000.2},
 {"data":{"frames":[],"header":{"packet_type":"1RTT","packet_number":3},"raw":{"length":60}},"name":"transport:packet_sent","time":1700000000000.3}]}]}"#;
    let trace = &read(text.as_bytes()).unwrap()[0];
    assert_eq!(
        (fact(trace, "version"), fact(trace, "protocol")),
        ("6b3343cf".to_owned(), "hq-interop".to_owned())
    );
}

#[test]
fn what_was_agreed_on_and_how_it_ended_is_told() {
    let text = "\u{1e}{\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n\
        \u{1e}{\"time\":5,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"initial\",\"packet_number\":0}}}\n\
        \u{1e}{\"time\":6,\"name\":\"quic:version_information\",\"data\":{\"chosen_version\":\"00000001\"}}\n\
        \u{1e}{\"time\":7,\"name\":\"quic:alpn_information\",\"data\":{\"chosen_alpn\":{\"string_value\":\"h3\"}}}\n\
        \u{1e}{\"time\":8,\"name\":\"quic:connection_closed\",\"data\":{\"application_error\":\"unknown\",\"error_code\":256,\"reason\":\"<done>\"}}\n";
    let traces = read(text.as_bytes()).unwrap();
    let told = ["version", "protocol", "end"].map(|name| fact(&traces[0], name));
    assert_eq!(told, ["00000001", "h3", "256, <done>"]);
    let html = page("file", vec![("file.qlog".to_owned(), traces)]).html();
    assert!(!html.contains("<done>"), "the words of a stranger are no part of the page");
}

/// A text sequence in which the packets `(group, number)` are sent.
fn grouped(groups: impl Iterator<Item = (String, u64)>) -> String {
    let head = "\u{1e}{\"trace\":{\"title\":\"all\",\"vantage_point\":{\"type\":\"server\"}}}\n".to_owned();
    groups.fold(head, |text, (group, number)| {
        text + &format!(
            "\u{1e}{{\"time\":{number},\"name\":\"transport:packet_sent\",\"group_id\":\"{group}\",\"data\":\
             {{\"header\":{{\"packet_type\":\"1RTT\",\"packet_number\":{number}}},\"raw\":{{\"length\":60}}}}}}\n"
        )
    })
}

#[test]
fn connections_of_one_trace_are_told_apart() {
    let text = grouped((0..9).map(|number| (format!("c{}", number % 3 % 2), number)));
    let traces = read(text.as_bytes()).unwrap();
    let told: Vec<_> = traces.iter().map(|trace| (trace.title.as_str(), trace.events)).collect();
    assert_eq!(told, [("c0", 6), ("c1", 3)]);
    assert_eq!(traces.iter().map(|trace| fact(trace, "packets sent")).collect::<Vec<_>>(), ["6", "3"]);
    // Events that name the connection of their trace, or the only one, are no reason for names.
    let one = grouped((0..9).map(|number| ("c".to_owned(), number)));
    let traces = read(one.as_bytes()).unwrap();
    assert_eq!(traces.iter().map(|trace| trace.title.as_str()).collect::<Vec<_>>(), ["all"]);
}

#[test]
fn a_trace_tells_of_so_many_connections_at_most() {
    let text = grouped((0..1_000).map(|number| (number.to_string(), number)));
    // The first place is kept for events that name none.
    assert_eq!(read(text.as_bytes()).unwrap().len(), GROUPS_MAX - 1);
}

#[test]
fn what_is_no_qlog_is_refused_with_its_place() {
    assert_eq!(read(b"{}").unwrap_err(), QlogError::NoTrace);
    assert_eq!(read(b"").unwrap_err(), QlogError::NoTrace);
    assert!(matches!(read(b"hello"), Err(QlogError::Json { line: 1, .. })));
    let broken = "{\"trace\":{}}\nnot json\n{\"time\":1}\n";
    assert!(matches!(read(broken.as_bytes()), Err(QlogError::Json { line: 2, .. })));
    // Depth costs stack, so the parser has a limit.
    assert!(read("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn absurd_numbers_make_a_page_all_the_same() {
    let text = CONTAINED
        .replace("1200", "18446744073709551615")
        .replace("\"packet_number\":1}", "\"packet_number\":1e300}")
        .replace("[[1]]", "[[0,18446744073709551615],[9,3],[],[-1],\"x\"]")
        .replace("50.25", "1e30")
        .replace("1700000000061.5", "-1e300");
    let traces = read(text.as_bytes()).unwrap();
    assert!(page("x", vec![("x".to_owned(), traces)]).html().len() < 200_000);
}

proptest! {
    #[test]
    fn damaged_files_do_no_harm(at in 0..CONTAINED.len(), byte in any::<u8>(), cut in 0..CONTAINED.len()) {
        let mut bytes = CONTAINED.as_bytes().to_vec();
        bytes[at] = byte;
        let _ = read(&bytes);
        bytes.truncate(cut);
        let _ = read(&bytes);
    }
}
