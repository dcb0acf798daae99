//! What a connection notes for qlog.

mod pair;

use bytes::Bytes;
use fulmar_h3_proto::log::{LOG_SECTION_MAX, LOG_VALUE_MAX, LOG_WAITING_MAX, LogEvent, LogFrame, StreamKind};
use fulmar_h3_proto::{Config, Critical, Priority};
use pair::{Pair, get, ok};

/// Ends that note, whose critical streams are open.
fn noting(config: Config) -> Pair {
    let mut pair = Pair::new(config.clone(), config);
    for (end, first) in [(&mut pair.client, 2), (&mut pair.server, 3)] {
        end.h3.start_log();
        end.h3.on_opened(Critical::Control, first);
    }
    pair
}

fn frames(events: &[LogEvent], on: u64) -> (Vec<LogFrame>, Vec<LogFrame>) {
    let (mut created, mut parsed) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            LogEvent::FrameCreated { stream, frame } if *stream == on => created.push(frame.clone()),
            LogEvent::FrameParsed { stream, frame } if *stream == on => parsed.push(frame.clone()),
            _ => {}
        }
    }
    (created, parsed)
}

/// The names and values of a frame of headers; `-` stands for a value that is not told.
fn lines(frame: &LogFrame) -> Vec<String> {
    let LogFrame::Headers { fields, .. } = frame else { panic!("{frame:?}") };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let line = |field: &fulmar_h3_proto::log::LogField| {
        format!("{}={}", text(&field.name), field.value.as_deref().map_or("-".to_owned(), text))
    };
    fields.iter().map(line).collect()
}

#[test]
fn an_exchange_is_noted_at_both_ends_alike() {
    let mut pair = noting(Config { grease: Some(0x1234_5678_9abc), ..Config::default() });
    let mut parts = get("/a?b");
    parts.headers.insert("priority", "u=1, i".parse().unwrap());
    let head = pair.client.h3.send_request(0, &parts).unwrap();
    pair.client.h3.finish(0).unwrap();
    pair.client.write(0, head, true);
    pair.run();
    let mut response = pair.server.h3.send_response(0, &ok(), true).unwrap().to_vec();
    response.extend_from_slice(pair.server.h3.send_data(0, 5).unwrap().as_ref());
    response.extend_from_slice(b"hello");
    // A frame that means nothing.
    response.extend_from_slice(&[0x21, 1, 0]);
    pair.server.h3.finish(0).unwrap();
    pair.server.write(0, Bytes::from(response), true);
    pair.run();
    pair.assert_no_errors();

    let (client, server) = (pair.client.h3.take_log(), pair.server.h3.take_log());
    let (created, parsed) = frames(&client, 0);
    let (answered, asked) = frames(&server, 0);
    assert_eq!(lines(&created[0]), lines(&asked[0]));
    assert_eq!(lines(&asked[0])[0], ":method=GET");
    assert!(lines(&asked[0]).contains(&":path=/a?b".to_owned()), "{asked:?}");
    assert_eq!(lines(&answered[0]), [":status=200"]);
    assert_eq!(lines(&parsed[0]), [":status=200"]);
    assert_eq!(answered[1..], [LogFrame::Data { len: 5 }]);
    assert_eq!(parsed[1..], [LogFrame::Data { len: 5 }, LogFrame::Reserved { ty: 0x21, len: 1 }]);
    let LogFrame::Headers { len: Some(len), .. } = created[0] else { panic!("{created:?}") };
    assert!(len > 3 && len < 60, "{len}");

    // The control streams: what one end has made the other one has read.
    for (stream, from, to) in [(2, &client, &server), (3, &server, &client)] {
        let (created, parsed) = (frames(from, stream).0, frames(to, stream).1);
        assert!(matches!(created[0], LogFrame::Settings(_)), "{created:?}");
        assert_eq!(created[0], parsed[0]);
        assert!(matches!((&created[1], &parsed[1]), (LogFrame::Reserved { .. }, LogFrame::Reserved { .. })));
        let set = |events: &[LogEvent], local| {
            let mut of = events.iter().filter_map(|event| match event {
                LogEvent::SettingsSet { is_local, settings } if *is_local == local => Some(settings.clone()),
                _ => None,
            });
            of.next().expect("settings")
        };
        assert_eq!(set(from, true).qpack_blocked_streams, set(to, false).qpack_blocked_streams);
    }
    let kind = |is_local, stream, kind| LogEvent::StreamType { stream, is_local, kind };
    assert!(client.contains(&kind(true, 2, StreamKind::Control)), "{client:?}");
    assert!(client.contains(&kind(true, 0, StreamKind::Request)), "{client:?}");
    assert!(server.contains(&kind(false, 2, StreamKind::Control)), "{server:?}");
    assert!(server.contains(&kind(false, 0, StreamKind::Request)), "{server:?}");
    let new = Priority { urgency: 1, incremental: true };
    assert!(server.contains(&LogEvent::PrioritySet { stream: 0, new, is_received: true }), "{server:?}");
    assert_eq!(pair.client.h3.take_log(), [], "what was taken is gone");
}

#[test]
fn other_priorities_and_going_away_are_noted() {
    let mut pair = noting(Config::default());
    let head = pair.client.h3.send_request(0, &get("/")).unwrap();
    pair.client.write(0, head, false);
    pair.run();
    let new = Priority { urgency: 0, incremental: false };
    pair.client.h3.send_priority_update(0, new).unwrap();
    pair.server.h3.finish_shutdown().unwrap();
    pair.run();
    let (client, server) = (pair.client.h3.take_log(), pair.server.h3.take_log());
    let update = LogFrame::PriorityUpdate { id: 0, is_push: false, value: "u=0".into() };
    assert_eq!(frames(&client, 2).0.last(), Some(&update));
    assert_eq!(frames(&server, 2).1.last(), Some(&update));
    assert!(client.contains(&LogEvent::PrioritySet { stream: 0, new, is_received: false }));
    assert!(server.contains(&LogEvent::PrioritySet { stream: 0, new, is_received: true }));
    assert_eq!(frames(&server, 3).0.last(), Some(&LogFrame::GoAway(4)));
    assert_eq!(frames(&client, 3).1.last(), Some(&LogFrame::GoAway(4)));
}

#[test]
fn datagrams_are_noted_by_their_length() {
    let mut pair = noting(Config { h3_datagram: true, ..Config::default() });
    let head = pair.client.h3.send_request(0, &get("/")).unwrap();
    pair.client.write(0, head, false);
    pair.run();
    let datagram = pair.client.h3.send_datagram(0, b"seven b").unwrap();
    assert!(pair.server.h3.receive_datagram(datagram).unwrap().is_some());
    assert_eq!(pair.client.h3.take_log().last(), Some(&LogEvent::DatagramCreated { stream: 0, len: 7 }));
    assert_eq!(pair.server.h3.take_log().last(), Some(&LogEvent::DatagramParsed { stream: 0, len: 7 }));
}

#[test]
fn secrets_and_long_values_are_told_by_their_length() {
    let mut pair = noting(Config::default());
    let mut parts = get("/");
    let mut add = |name: &'static str, value: String| parts.headers.append(name, value.parse().unwrap());
    add("authorization", "Basic c2VjcmV0".to_owned());
    add("cookie", "id=secret".to_owned());
    add("x-long", "l".repeat(LOG_VALUE_MAX + 1));
    add("x-short", "s".repeat(LOG_VALUE_MAX));
    let head = pair.client.h3.send_request(0, &parts).unwrap();
    pair.client.write(0, head, true);
    pair.run();
    for events in [pair.client.h3.take_log(), pair.server.h3.take_log()] {
        let (created, parsed) = frames(&events, 0);
        let frame = created.first().or(parsed.first()).expect("a frame");
        let told = lines(frame);
        for line in ["authorization=-", "cookie=-", "x-long=-"] {
            assert!(told.contains(&line.to_owned()), "{told:?}");
        }
        assert!(told.contains(&format!("x-short={}", "s".repeat(LOG_VALUE_MAX))));
        let LogFrame::Headers { fields, .. } = frame else { unreachable!() };
        let long = fields.iter().find(|field| &field.name[..] == b"x-long").unwrap();
        assert_eq!(long.value_len, LOG_VALUE_MAX + 1);
        assert!(!format!("{events:?}").contains("c2VjcmV0"));
    }
}

#[test]
fn a_log_is_limited_and_says_what_is_missing() {
    let mut pair = noting(Config::default());
    pair.run();
    pair.server.h3.take_log();
    let mut parts = get("/");
    for n in 0..60 {
        parts.headers.append("x-many", format!("{n}{}", "v".repeat(400)).parse().unwrap());
    }
    let head = pair.client.h3.send_request(0, &parts).unwrap();
    pair.client.write(0, head, false);
    pair.run();
    let events = pair.server.h3.take_log();
    let (_, parsed) = frames(&events, 0);
    let LogFrame::Headers { fields, left_out, .. } = &parsed[0] else { panic!("{parsed:?}") };
    assert!(*left_out > 20 && fields.len() + left_out == 64, "{} and {left_out}", fields.len());
    assert!(events.iter().map(LogEvent::size).sum::<usize>() < LOG_SECTION_MAX + 1_000);

    pair.server.h3.send_response(0, &ok(), true).unwrap();
    for _ in 0..LOG_WAITING_MAX + 9 {
        pair.server.h3.send_data(0, 1).unwrap();
    }
    let events = pair.server.h3.take_log();
    assert_eq!((events.len(), events.last()), (LOG_WAITING_MAX + 1, Some(&LogEvent::Missing(10))));
}

#[test]
fn nothing_is_noted_unless_it_was_asked_for() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let head = pair.client.h3.send_request(0, &get("/")).unwrap();
    pair.client.write(0, head, true);
    pair.run();
    assert_eq!((pair.client.h3.take_log(), pair.server.h3.take_log()), (vec![], vec![]));
}
