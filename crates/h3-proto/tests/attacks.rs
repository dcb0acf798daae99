//! Peers that want to make this end hold or do much: each is stopped, and what is held stays small.

mod pair;

use std::sync::Arc;

use bytes::Bytes;
use fulmar_base::Instant;
use fulmar_h3_proto::{Config, Connection, Critical, ErrorCode, Event, Excess, Received, Scope};
use pair::raw::{GET, control, frame, get_with, headers, section, server_says, varint};
use pair::{End, Pair, get, ok};

fn connection(code: ErrorCode) -> Option<(Scope, ErrorCode)> {
    Some((Scope::Connection, code))
}

fn refused(server: &End, stream: u64) -> Option<Excess> {
    server.events.iter().find_map(|(of, event)| match event {
        Event::Refused(excess) if *of == stream => Some(*excess),
        _ => None,
    })
}

/// What comes of bytes of a new stream, at most one event, without anything beside the connection that holds memory.
fn give(server: &mut Connection, stream: u64, mut bytes: Bytes) -> Option<Event> {
    server.accept(stream, false, Instant::from_millis(0)).unwrap();
    match server.receive(stream, &mut bytes, false).unwrap() {
        Received::Event(event) => Some(event),
        _ => None,
    }
}

/// How many bytes a server has allocated at most, and still holds, after something.
fn memory(attack: impl FnOnce()) -> (u64, i64) {
    let info = allocation_counter::measure(attack);
    (info.bytes_max, info.bytes_current)
}

#[test]
fn a_section_of_one_byte_references_is_refused_and_costs_little() {
    // An entry of 3,800 bytes, and 16 KB of sections that each byte refers to it.
    let value = "v".repeat(3800);
    let insert = [&[0x02, 0x3f, 0xe1, 0x1f, 0x41, b'n'][..], &[0x7f, 0xd9, 0x1c], value.as_bytes()].concat();
    let references = [&[2, 0][..], &[0x80; 16 * 1024]].concat();
    let bytes = Bytes::from(frame(1, &references));
    let (peak, left) = memory(|| {
        let mut server = Connection::server(Arc::new(Config::default()));
        give(&mut server, 2, Bytes::from(insert));
        for n in 0..100 {
            let event = give(&mut server, n * 4, bytes.clone());
            assert!(matches!(event, Some(Event::Refused(Excess::Size))), "{event:?}");
        }
    });
    assert!(peak < 64 * 1024 && left < 1024, "{peak} bytes, {left} are left");
}

#[test]
fn many_small_fields_are_refused() {
    let fields = [&[0, 0][..], &[0xc1; 16 * 1024]].concat();
    let mut server = End::server(Config::default());
    server.deliver((0, frame(1, &fields).into(), true));
    assert!(matches!(refused(&server, 0), Some(Excess::Size | Excess::Fields)));
}

#[test]
fn a_cookie_in_ten_thousand_crumbs_is_refused() {
    let crumbs: Vec<_> = (0..10_000).map(|_| ("cookie", "a=b")).collect();
    let mut server = End::server(Config::default());
    server.deliver((0, headers(&get_with(&crumbs)).into(), true));
    assert_eq!(refused(&server, 0), Some(Excess::CookieCrumbs));
    // The server can still answer, and the connection goes on.
    let mut response = ok();
    response.status = http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    assert!(server.h3.send_response(0, &response, true).is_ok());
    server.deliver((4, headers(&GET).into(), true));
    assert_eq!(server.words(4), ["GET https://example.org/", "finished"]);
}

#[test]
fn headers_that_are_too_long_are_refused_unread() {
    let mut server = End::server(Config::default());
    server.deliver((0, [varint(1), varint(1 << 40)].concat().into(), false));
    assert_eq!(refused(&server, 0), Some(Excess::Size));
    server.deliver((0, Bytes::from(vec![0; 100_000]), false));
    assert_eq!(server.errors, []);
}

#[test]
fn parts_of_headers_on_many_streams_share_a_limit() {
    let max = Config::default().sections_partial_max;
    let part = Bytes::from([varint(1), varint(60_000), vec![0; 10_000]].concat());
    let mut refused = 0;
    let (peak, left) = memory(|| {
        let mut server = Connection::server(Arc::new(Config::default()));
        for n in 0..1000 {
            refused += usize::from(give(&mut server, n * 4, part.clone()).is_some());
        }
        // What was kept is let go with its streams.
        for n in 0..1000 {
            let now = Instant::from_millis(n * 20);
            server.on_reset(n * 4, now).unwrap();
            server.stop_sending(n * 4);
            let mut out = server.take_output(Critical::Decoder);
            out.clear();
        }
        assert_eq!(give(&mut server, 4000, part.clone()).map(drop), None);
    });
    assert_eq!(refused, 1000 - max / 10_000);
    assert!(peak < 3 * max as u64 && left < 1024, "{peak} bytes, {left} are left");
}

#[test]
fn endless_frames_that_bring_nothing_end_the_connection() {
    for endless in [frame(0, &[]), frame(0x4242, &[]), frame(0x21, &[]), frame(0xf_0799, b"abc")] {
        let bytes = [headers(&GET), endless.repeat(2000)].concat();
        assert_eq!(
            server_says(Config::default(), &[(0, bytes, false)]),
            connection(ErrorCode::ExcessiveLoad)
        );
    }
    for endless in [frame(0x21, &[]), frame(0xd, &[7]), frame(7, &[0]), frame(0xf_0700, &[0])] {
        let bytes = control(&endless.repeat(2000));
        assert_eq!(
            server_says(Config::default(), &[(2, bytes, false)]),
            connection(ErrorCode::ExcessiveLoad)
        );
    }
    let streams: Vec<_> = (0..2000).map(|n| (2 + n * 4, varint(0x21), false)).collect();
    let mut server = End::server(Config::default());
    streams.into_iter().for_each(|(stream, bytes, is_last)| server.deliver((stream, bytes.into(), is_last)));
    assert!(server.errors.iter().any(|error| error.code() == ErrorCode::ExcessiveLoad));
}

#[test]
fn endless_informational_responses_end_the_connection() {
    let bytes = headers(&[(":status", "103")]).repeat(2000);
    let says = pair::raw::client_says(Config::default(), &[(0, bytes, false)]);
    assert_eq!(says, connection(ErrorCode::ExcessiveLoad));
}

#[test]
fn messages_with_some_reserved_frames_are_no_attack() {
    let mut server = End::server(Config::default());
    for n in 0..5000 {
        let bytes = [headers(&GET), frame(0x21, b"grease"), frame(0, b"data"), frame(0, b"")].concat();
        server.deliver((n * 4, bytes.into(), true));
        let head = server.h3.send_response(n * 4, &ok(), true).unwrap();
        server.h3.finish(n * 4).unwrap();
        server.write(n * 4, head, true);
        server.sent();
    }
    assert_eq!(server.errors, []);
    assert!(server.h3.is_idle());
}

#[test]
fn rapid_resets_end_the_connection() {
    let mut server = End::server(Config::default());
    let mut resets = 0;
    let error = loop {
        let stream = resets * 4;
        server.deliver((stream, headers(&GET).into(), false));
        // A client that resets also stops, which counts once.
        let result = server.h3.on_stop_sending(Some(stream), server.now);
        if let Err(error) = result.and_then(|()| server.h3.on_reset(stream, server.now)) {
            break error;
        }
        resets += 1;
        assert!(server.h3.is_idle());
    };
    assert_eq!((error.scope(), error.code()), (Scope::Connection, ErrorCode::ExcessiveLoad));
    assert_eq!(resets, 500);
}

/// A request whose body is longer than it says.
fn malformed() -> Vec<u8> {
    [headers(&get_with(&[("content-length", "1")])), frame(0, b"ab")].concat()
}

#[test]
fn requests_that_the_server_is_made_to_reset_end_the_connection() {
    let mut server = End::server(Config::default());
    let mut faults = 0;
    let last = loop {
        server.deliver((faults * 4, malformed().into(), false));
        let error = *server.errors.last().expect("the body is too long");
        if error.scope() == Scope::Connection {
            break error;
        }
        assert_eq!(error.code(), ErrorCode::MessageError);
        // What its client says of a request that is over counts no more.
        server.h3.on_stop_sending(Some(faults * 4), server.now).unwrap();
        faults += 1;
        assert!(server.h3.is_idle() && faults < 1000);
    };
    assert_eq!(last.code(), ErrorCode::ExcessiveLoad);
    assert_eq!(faults, 500);
}

#[test]
fn a_malformed_request_now_and_then_is_no_attack() {
    let mut server = End::server(Config::default());
    for n in 0..2000 {
        server.deliver((n * 4, malformed().into(), false));
        server.now += std::time::Duration::from_millis(20);
    }
    assert!(server.errors.iter().all(|error| matches!(error.scope(), Scope::Stream(_))));
    assert!(server.h3.is_idle());
}

#[test]
fn resets_now_and_then_are_no_attack() {
    let mut server = End::server(Config::default());
    for n in 0..5000 {
        server.deliver((n * 4, headers(&GET).into(), false));
        server.now += std::time::Duration::from_millis(20);
        server.h3.on_reset(n * 4, server.now).unwrap();
        server.h3.stop_sending(n * 4);
    }
    assert!(server.h3.is_idle());
}

#[test]
fn requests_that_time_out_are_no_attack() {
    let mut server = End::server(Config::default());
    for round in 0..40 {
        let streams = (round * 50..(round + 1) * 50).map(|n| n * 4);
        streams.clone().for_each(|stream| server.deliver((stream, headers(&GET).into(), true)));
        server.now += std::time::Duration::from_millis(100);
        for stream in streams {
            server.h3.on_stop_sending(Some(stream), server.now).unwrap();
        }
    }
    assert!(server.h3.is_idle());
}

#[test]
fn responses_that_are_given_up_in_the_middle_are_no_attack() {
    let mut server = End::server(Config::default());
    for n in 0..2000 {
        server.deliver((n * 4, headers(&GET).into(), true));
        server.h3.send_response(n * 4, &ok(), true).unwrap();
        server.h3.on_stop_sending(Some(n * 4), server.now).unwrap();
    }
    assert!(server.h3.is_idle());
}

#[test]
fn a_decoder_stream_that_is_not_read_ends_the_connection() {
    let mut server = End::server(Config::default());
    server.deliver((2, Bytes::from_static(&[0x02, 0x3f, 0xe1, 0x1f, 0x41, b'n', 0x01, b'v']), false));
    let bytes = frame(1, &[2, 0, 0x80]);
    for n in 0..20_000 {
        server.deliver((n * 4, Bytes::copy_from_slice(&bytes), true));
        if server.errors.iter().any(|error| error.code() == ErrorCode::ExcessiveLoad) {
            return;
        }
    }
    panic!("the decoder stream grows without an end");
}

#[test]
fn more_blocked_streams_than_allowed_end_the_connection() {
    let mut server = End::server(Config::default());
    for n in 0..101 {
        server.deliver((n * 4, frame(1, &[2, 0, 0x80]).into(), false));
    }
    let errors: Vec<_> = server.errors.iter().map(|error| (error.scope(), error.code())).collect();
    assert_eq!(errors, [(Scope::Connection, ErrorCode::QpackDecompressionFailed)]);
}

#[test]
fn requests_leave_nothing_behind() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let round = |pair: &mut Pair, n: u64| {
        let head = pair.client.h3.send_request(n * 4, &get("/")).unwrap();
        pair.client.h3.finish(n * 4).unwrap();
        pair.client.write(n * 4, head, true);
        pair.run();
        let head = pair.server.h3.send_response(n * 4, &ok(), true).unwrap();
        pair.server.h3.finish(n * 4).unwrap();
        pair.server.write(n * 4, head, true);
        pair.run();
        for end in [&mut pair.client, &mut pair.server] {
            end.forget_streams();
        }
    };
    (0..100).for_each(|n| round(&mut pair, n));
    let (_, left) = memory(|| (100..1100).for_each(|n| round(&mut pair, n)));
    pair.assert_no_errors();
    assert!(left < 4096, "{left} bytes");
}

#[test]
fn a_section_may_be_as_large_as_the_limit() {
    let value = "v".repeat(60_000);
    let mut server = End::server(Config::default());
    let bytes = frame(1, &section(&get_with(&[("x", &value)])));
    for piece in bytes.chunks(1000) {
        server.deliver((0, Bytes::copy_from_slice(piece), false));
    }
    assert_eq!(server.events.len(), 1);
    assert_eq!(server.errors, []);
}
