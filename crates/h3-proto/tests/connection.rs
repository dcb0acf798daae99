//! What concerns the whole connection: settings, streams, priorities, datagrams, sessions.

mod pair;

use std::sync::Arc;

use bytes::Bytes;
use fulmar_h3_proto::{
    Config, Connection, Critical, ErrorCode, Event, Priority, Rate, Role, Scope, SendError, SessionStreams,
    Settings,
};
use pair::raw::{GET, client_says, control, frame, headers, server_says, varint};
use pair::{End, Pair, get};

const EARLY: bool = true;

fn connection(code: ErrorCode) -> Option<(Scope, ErrorCode)> {
    Some((Scope::Connection, code))
}

#[test]
fn each_end_learns_the_settings_of_the_other() {
    let server = Config {
        enable_connect_protocol: true,
        h3_datagram: true,
        settings: vec![(0x1234_5678, 9)],
        ..Config::default()
    };
    for grease in [None, Some(0), Some(u64::MAX), Some(0x0123_4567_89ab_cdef)] {
        let mut pair = Pair::new(Config { grease, ..Config::default() }, Config { grease, ..server.clone() });
        assert_eq!(pair.client.h3.peer_settings(), None);
        pair.run();
        pair.assert_no_errors();
        let settings = pair.client.h3.peer_settings().unwrap();
        assert!(settings.enable_connect_protocol && settings.h3_datagram);
        assert_eq!(settings.others, [(0x1234_5678, 9)]);
        assert_eq!(settings.max_field_section_size, Some(64 * 1024));
        // Only a server has something to enable.
        let settings = pair.server.h3.peer_settings().unwrap();
        assert!(!settings.enable_connect_protocol && !settings.h3_datagram);
        assert!(matches!(pair.server.events[0], (_, Event::Settings(_))));
    }
}

#[test]
fn the_streams_of_qpack_are_not_opened_for_nothing() {
    let mut server = Connection::server(Arc::new(Config::default()));
    assert_eq!(Critical::ALL.map(|stream| server.has_output(stream)), [true, false, false]);
    assert_eq!(server.take_output(Critical::Encoder), Bytes::new());
    assert!(!server.take_output(Critical::Control).is_empty());
    assert!(!server.has_output(Critical::Control));
}

#[test]
fn a_table_makes_requests_smaller() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let mut sizes = Vec::new();
    for n in 0..8 {
        let mut parts = get("/the/same/path");
        parts.headers.insert("user-agent", http::HeaderValue::from_static("a program with a long name"));
        let head = pair.client.h3.send_request(n * 4, &parts).unwrap();
        sizes.push(head.len());
        pair.client.write(n * 4, head, true);
        pair.run();
    }
    pair.assert_no_errors();
    let literal = "/the/same/path".len() + "user-agent".len() + "a program with a long name".len();
    assert!(sizes.iter().all(|size| size * 3 < literal), "{sizes:?}");
    assert!(pair.server.events.iter().filter(|(_, event)| matches!(event, Event::Request(_))).count() == 8);
}

#[test]
fn a_section_waits_for_the_encoder_stream() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let mut late = Vec::new();
    for n in 0..6 {
        let mut parts = get("/");
        parts.headers.insert("x-long-field", http::HeaderValue::from_static("a value that comes again"));
        let head = pair.client.h3.send_request(n * 4, &parts).unwrap();
        pair.client.write(n * 4, head, false);
        let header = pair.client.h3.send_data(n * 4, 2).unwrap();
        pair.client.write(n * 4, [header.as_ref(), b"hi"].concat(), true);
        // What is unidirectional comes last.
        for piece in pair.client.sent() {
            if piece.0 & 2 == 2 { late.push(piece) } else { pair.server.deliver(piece) }
        }
    }
    let arrived = pair.server.events.len();
    assert!(arrived < 18, "something waits");
    late.into_iter().for_each(|piece| pair.server.deliver(piece));
    pair.assert_no_errors();
    for n in 0..6 {
        let request = "GET https://example.org/ x-long-field=a value that comes again";
        assert_eq!(pair.server.words(n * 4), [request, "data hi", "finished"]);
    }
}

#[test]
fn a_section_that_waits_is_given_up_with_its_stream() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    for n in 0..6 {
        let mut parts = get("/");
        parts.headers.insert("x-long-field", http::HeaderValue::from_static("a value that comes again"));
        let head = pair.client.h3.send_request(n * 4, &parts).unwrap();
        pair.client.write(n * 4, head, true);
    }
    let (late, now): (Vec<_>, Vec<_>) = pair.client.sent().into_iter().partition(|piece| piece.0 & 2 == 2);
    now.into_iter().for_each(|piece| pair.server.deliver(piece));
    for n in 0..6 {
        pair.server.h3.on_reset(n * 4, pair.server.now).unwrap();
    }
    let before = pair.server.events.len();
    late.into_iter().for_each(|piece| pair.server.deliver(piece));
    assert_eq!(pair.server.events.len(), before);
    pair.run();
    pair.assert_no_errors();
}

#[test]
fn critical_streams_must_stay() {
    for ty in [0, 2, 3] {
        let mut server = End::server(Config::default());
        server.deliver((2, Bytes::from(vec![ty]), false));
        let error = server.h3.on_reset(2, server.now).unwrap_err();
        assert_eq!((error.scope(), error.code()), (Scope::Connection, ErrorCode::ClosedCriticalStream));
    }
    let mut server = End::server(Config::default());
    let error = server.h3.on_stop_sending(None, server.now).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClosedCriticalStream);
    // Within a frame, too.
    for end in 1..6 {
        let mut bytes = control(&frame(7, &[0]));
        bytes.truncate(end);
        let says = server_says(Config::default(), &[(2, bytes, true)]);
        assert_eq!(says, connection(ErrorCode::ClosedCriticalStream), "{end} bytes");
    }
}

#[test]
fn critical_streams_come_once() {
    for ty in [0, 2, 3] {
        let streams = [(2, vec![ty], false), (6, vec![ty], false)];
        assert_eq!(server_says(Config::default(), &streams), connection(ErrorCode::StreamCreationError));
    }
}

#[test]
fn streams_of_unknown_types_are_refused_and_nothing_else() {
    for ty in [0x21, 0x54, 0x4242] {
        let says = server_says(Config::default(), &[(2, varint(ty), false), (0, headers(&GET), true)]);
        assert_eq!(says, Some((Scope::Stream(2), ErrorCode::StreamCreationError)));
    }
    // A stream that ends before its type says nothing.
    assert_eq!(server_says(Config::default(), &[(2, vec![], true), (6, vec![0x40], true)]), None);
}

#[test]
fn streams_that_the_peer_must_not_open_are_an_error() {
    let error = ErrorCode::StreamCreationError;
    assert_eq!(client_says(Config::default(), &[(1, vec![], false)]), connection(error));
}

#[test]
fn pushes_are_refused() {
    let id = connection(ErrorCode::IdError);
    assert_eq!(client_says(Config::default(), &[(0, frame(5, &[0, 0, 0]), false)]), id);
    assert_eq!(client_says(Config::default(), &[(3, vec![1, 0], false)]), id);
    assert_eq!(client_says(Config::default(), &[(3, control(&frame(3, &[0])), false)]), id);
    let unexpected = connection(ErrorCode::FrameUnexpected);
    assert_eq!(client_says(Config::default(), &[(3, control(&frame(0xd, &[0])), false)]), unexpected);
    assert_eq!(client_says(Config::default(), &[(3, control(&frame(0xf_0700, &[0])), false)]), unexpected);
    let creation = connection(ErrorCode::StreamCreationError);
    assert_eq!(server_says(Config::default(), &[(2, vec![1], false)]), creation);
    // A server promises none, whatever the client allows, which must not sink.
    let allowed = [frame(0xd, &[7]), frame(0xd, &[7])].concat();
    assert_eq!(server_says(Config::default(), &[(2, control(&allowed), false)]), None);
    let sinks = [frame(0xd, &[7]), frame(0xd, &[6])].concat();
    assert_eq!(server_says(Config::default(), &[(2, control(&sinks), false)]), id);
    assert_eq!(server_says(Config::default(), &[(2, control(&frame(0xf_0701, &[0])), false)]), id);
}

#[test]
fn frames_of_the_wrong_length_are_errors() {
    for bytes in [frame(7, &[]), frame(7, &[0, 0]), frame(7, &[0x40]), frame(0xd, &[0, 1]), frame(3, &[])] {
        let says = server_says(Config::default(), &[(2, control(&bytes), false)]);
        assert_eq!(says, connection(ErrorCode::FrameError));
    }
    let long = [varint(7), varint(1 << 30)].concat();
    let says = server_says(Config::default(), &[(2, control(&long), false)]);
    assert_eq!(says, connection(ErrorCode::ExcessiveLoad));
}

#[test]
fn a_priority_comes_from_the_field_or_the_update_before_it() {
    let priority = |server: &End, stream| {
        server.events.iter().find_map(|(of, event)| match event {
            Event::Request(head) if *of == stream => Some(head.priority),
            _ => None,
        })
    };
    let mut pair = Pair::joined(Config::default(), Config::default());
    let mut parts = get("/");
    parts.headers.insert("priority", http::HeaderValue::from_static("u=1, i"));
    let (first, second) =
        (Priority { urgency: 1, incremental: true }, Priority { urgency: 6, incremental: false });
    for stream in [0, 4] {
        let head = pair.client.h3.send_request(stream, &parts).unwrap();
        pair.client.write(stream, head, true);
    }
    pair.client.h3.send_priority_update(4, second).unwrap();
    // In two lines, which are one value.
    parts.headers.insert("priority", http::HeaderValue::from_static("u=5"));
    parts.headers.append("priority", http::HeaderValue::from_static("i, u=1"));
    let head = pair.client.h3.send_request(8, &parts).unwrap();
    pair.client.write(8, head, true);
    pair.run();
    assert_eq!(priority(&pair.server, 0), Some(first));
    assert_eq!(priority(&pair.server, 4), Some(second));
    assert_eq!(priority(&pair.server, 8), Some(first));

    pair.client.h3.send_priority_update(0, second).unwrap();
    pair.client.h3.send_priority_update(400, second).unwrap();
    pair.run();
    pair.assert_no_errors();
    let updates: Vec<_> = pair
        .server
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::PriorityUpdate { .. }))
        .collect();
    assert!(
        matches!(updates[..], [(_, Event::PriorityUpdate { stream: 0, priority })] if *priority == second)
    );
    let says = server_says(Config::default(), &[(2, control(&frame(0xf_0700, &[2])), false)]);
    assert_eq!(says, connection(ErrorCode::IdError));
}

#[test]
fn a_request_of_early_data_is_told_from_others() {
    let mut server = Connection::server(Arc::new(Config::default()));
    let now = End::server(Config::default()).now;
    let mut heads = Vec::new();
    for (stream, method, is_early) in [(0, "GET", EARLY), (4, "POST", EARLY), (8, "POST", !EARLY)] {
        server.accept(stream, is_early, now).unwrap();
        let mut fields = GET;
        fields[0].1 = method;
        let received = server.receive(stream, &mut headers(&fields).into(), true).unwrap();
        let fulmar_h3_proto::Received::Event(Event::Request(head)) = received else { panic!("no request") };
        heads.push((head.is_early, head.is_too_early()));
    }
    assert_eq!(heads, [(true, false), (true, true), (false, false)]);
}

#[test]
fn a_client_holds_the_server_to_the_settings_of_early_data() {
    let remembered = Settings {
        qpack_max_table_capacity: 4096,
        qpack_blocked_streams: 50,
        h3_datagram: true,
        ..Settings::default()
    };
    let says = |settings: &Settings| {
        let mut client = End::new(Connection::client(Arc::new(Config::default()), Some(remembered.clone())));
        assert!(client.h3.send_request(0, &get("/")).is_ok());
        client.deliver((3, [vec![0], frame(4, &settings.encode())].concat().into(), false));
        client.errors.first().map(|error| error.code())
    };
    assert_eq!(says(&remembered), None);
    assert_eq!(says(&Settings { qpack_blocked_streams: 100, ..remembered.clone() }), None);
    assert_eq!(
        says(&Settings { qpack_blocked_streams: 49, ..remembered.clone() }),
        Some(ErrorCode::SettingsError)
    );
    assert_eq!(says(&Settings { h3_datagram: false, ..remembered.clone() }), Some(ErrorCode::SettingsError));
    let other_table = Settings { qpack_max_table_capacity: 2048, ..remembered.clone() };
    assert_eq!(says(&other_table), Some(ErrorCode::QpackDecoderStreamError));
}

#[test]
fn a_client_learns_the_origins_of_a_server() {
    let origins = vec!["https://example.org".to_owned(), "https://example.com:8443".to_owned()];
    let mut pair = Pair::new(Config::default(), Config { origins: origins.clone(), ..Config::default() });
    pair.run();
    pair.assert_no_errors();
    assert!(
        pair.client.events.iter().any(|(_, event)| matches!(event, Event::Origins(said) if *said == origins))
    );
    // It is nothing to a server, and broken it is an error.
    assert_eq!(server_says(Config::default(), &[(2, control(&frame(0xc, &[0, 9])), false)]), None);
    let says = client_says(Config::default(), &[(3, control(&frame(0xc, &[0, 9])), false)]);
    assert_eq!(says, connection(ErrorCode::FrameError));
}

#[test]
fn datagrams_find_their_request() {
    let config = Config { h3_datagram: true, ..Config::default() };
    let mut pair = Pair::new(config.clone(), config);
    pair.client.request(0);
    assert_eq!(pair.client.h3.send_datagram(0, b"x"), Err(SendError::Unsupported));
    pair.run();
    let head = pair.client.h3.send_request(4, &get("/")).unwrap();
    let datagram = pair.client.h3.send_datagram(4, b"hello").unwrap();
    let early = pair.server.h3.receive_datagram(datagram.clone()).unwrap().unwrap();
    assert_eq!((early.stream, &early.payload[..], early.is_early), (4, &b"hello"[..], true));
    pair.client.write(4, head, false);
    pair.run();
    assert!(!pair.server.h3.receive_datagram(datagram.clone()).unwrap().unwrap().is_early);
    // The request on stream 0 has ended, so that nobody waits for datagrams of it.
    assert_eq!(pair.server.h3.receive_datagram(Bytes::from_static(&[0, 1])).unwrap(), None);
    for broken in [&[][..], &[0x40], &[0xff; 8]] {
        let error = pair.server.h3.receive_datagram(Bytes::copy_from_slice(broken)).unwrap_err();
        assert_eq!((error.scope(), error.code()), (Scope::Connection, ErrorCode::DatagramError));
    }
}

#[test]
fn a_session_claims_the_streams_that_name_it() {
    let session_streams = SessionStreams { bidirectional: vec![0x41], unidirectional: vec![0x54] };
    let config = Config { session_streams, enable_connect_protocol: true, ..Config::default() };
    let mut pair = Pair::joined(config.clone(), config.clone());
    pair.client.request(0);
    let uni = pair.client.open_uni();
    pair.client.write(uni, [&Connection::session_stream_prefix(0x54, 0)[..], b"uni"].concat(), true);
    pair.client.write(4, [&Connection::session_stream_prefix(0x41, 0)[..], b"bidi"].concat(), false);
    pair.server.write(1, [&Connection::session_stream_prefix(0x41, 0)[..], b"server"].concat(), false);
    pair.run_in_pieces(1);
    pair.assert_no_errors();
    assert_eq!(pair.server.claimed[&uni], b"uni");
    assert_eq!(pair.server.claimed[&4], b"bidi");
    assert_eq!(pair.client.claimed[&1], b"server");
    let sessions = |end: &End| {
        let named = end.events.iter().filter_map(|(stream, event)| match event {
            Event::SessionStream { kind, session } => Some((*stream, *kind, *session)),
            _ => None,
        });
        named.collect::<Vec<_>>()
    };
    assert_eq!(sessions(&pair.server), [(4, 0x41, 0), (uni, 0x54, 0)]);
    assert_eq!(sessions(&pair.client), [(1, 0x41, 0)]);

    let id = connection(ErrorCode::IdError);
    assert_eq!(server_says(config.clone(), &[(2, [varint(0x54), vec![3]].concat(), false)]), id);
    assert_eq!(server_says(config.clone(), &[(0, [varint(0x41), vec![1]].concat(), false)]), id);
    // The signal only counts where a stream begins.
    let later = [headers(&GET), varint(0x41), vec![0]].concat();
    assert_eq!(server_says(config, &[(0, later, true)]), None);
}

#[test]
fn the_rate_of_requests_can_be_limited() {
    let config = Config { requests: Some(Rate { burst: 2, per_second: 1 }), ..Config::default() };
    let mut server = End::server(config);
    for n in 0..4 {
        server.deliver((n * 4, headers(&GET).into(), true));
    }
    let rejected: Vec<_> = server.errors.iter().map(|error| (error.scope(), error.code())).collect();
    let rejection = |stream| (Scope::Stream(stream), ErrorCode::RequestRejected);
    assert_eq!(rejected, [rejection(8), rejection(12)]);
    server.now += std::time::Duration::from_secs(1);
    server.deliver((16, headers(&GET).into(), true));
    assert_eq!(server.errors.len(), 2);
}

#[test]
fn a_connection_has_two_roles() {
    assert_eq!(End::client(Config::default()).h3.role(), Role::Client);
    let mut server = End::server(Config::default());
    assert_eq!(server.h3.send_request(0, &get("/")), Err(SendError::OutOfOrder));
    assert_eq!(server.h3.send_priority_update(0, Priority::default()), Err(SendError::OutOfOrder));
    let error = server.h3.accept(1, false, server.now).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InternalError);
}
