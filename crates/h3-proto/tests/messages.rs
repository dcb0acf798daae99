//! Messages: what goes in at one end comes out at the other, and what is malformed does not come out.

mod pair;

use fulmar_h3_proto::{Config, ErrorCode, Event, Protocol, Scope, SendError};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use pair::raw::{GET, client_says, control, frame, get_with, headers, server_says};
use pair::{Pair, get, ok};

/// A request with a body and trailers, and a response with all that there can be.
fn exchange(pair: &mut Pair) {
    let request = Request::post("https://example.org/a?b=c")
        .header("content-length", "10")
        .header("cookie", "a=1; b=2")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.write(0, head, false);
    for part in ["hello", "world"] {
        let header = pair.client.h3.send_data(0, 5).unwrap();
        pair.client.write(0, [header.as_ref(), part.as_bytes()].concat(), false);
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", HeaderValue::from_static("7"));
    let trailers = pair.client.h3.send_trailers(0, &trailers).unwrap();
    pair.client.h3.finish(0).unwrap();
    pair.client.write(0, trailers, true);
}

fn answer(pair: &mut Pair) {
    let early = Response::builder().status(103).header("link", "</a>").body(()).unwrap().into_parts().0;
    let early = pair.server.h3.send_response(0, &early, true).unwrap();
    pair.server.write(0, early, false);
    let response =
        Response::builder().header("server", "fulmar").header("connection", "close").body(()).unwrap();
    let head = pair.server.h3.send_response(0, &response.into_parts().0, true).unwrap();
    pair.server.write(0, head, false);
    let header = pair.server.h3.send_data(0, 4).unwrap();
    pair.server.write(0, [header.as_ref(), b"body"].concat(), false);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let trailers = pair.server.h3.send_trailers(0, &trailers).unwrap();
    pair.server.h3.finish(0).unwrap();
    pair.server.write(0, trailers, true);
}

const REQUEST: [&str; 4] = [
    "POST https://example.org/a?b=c content-length=10 cookie=a=1; b=2",
    "data helloworld",
    "trailers x-sum=7",
    "finished",
];
const RESPONSE: [&str; 5] =
    ["103 link=</a>", "200 server=fulmar", "data body", "trailers grpc-status=0", "finished"];

#[test]
fn a_request_and_its_response_arrive_whole() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    exchange(&mut pair);
    pair.run();
    answer(&mut pair);
    pair.run();
    pair.assert_no_errors();
    assert_eq!(pair.server.words(0), REQUEST);
    assert_eq!(pair.client.words(0), RESPONSE);
    assert!(pair.client.h3.is_idle() && pair.server.h3.is_idle());
}

#[test]
fn bytes_may_be_split_anywhere() {
    for len in 1..80 {
        let mut pair = Pair::new(Config::default(), Config { grease: Some(7), ..Config::default() });
        exchange(&mut pair);
        pair.run_in_pieces(len);
        answer(&mut pair);
        pair.run_in_pieces(len);
        pair.assert_no_errors();
        assert_eq!(pair.server.words(0), REQUEST, "pieces of {len} bytes");
        assert_eq!(pair.client.words(0), RESPONSE, "pieces of {len} bytes");
    }
}

#[test]
fn a_body_is_not_copied() {
    let mut server = pair::End::server(Config::default());
    server.h3.accept(0, false, server.now).unwrap();
    let bytes = bytes::Bytes::from([headers(&GET), frame(0, &[7; 5000])].concat());
    let mut rest = bytes.clone();
    let mut slices = Vec::new();
    while let fulmar_h3_proto::Received::Event(event) = server.h3.receive(0, &mut rest, false).unwrap() {
        if let Event::Data(data) = event {
            slices.push(data);
        }
    }
    assert_eq!(slices.len(), 1);
    assert!(bytes.as_ptr_range().contains(&slices[0].as_ptr()), "the slice is one of what was received");
}

fn request_is_malformed(fields: &[(&str, &str)]) -> bool {
    let said = server_says(Config::default(), &[(0, headers(fields), true)]);
    assert!(said.is_none() || said == Some((Scope::Stream(0), ErrorCode::MessageError)), "{said:?}");
    said.is_some()
}

#[test]
fn malformed_requests_are_refused() {
    let with = |name, value| request_is_malformed(&get_with(&[(name, value)]));
    for (name, value) in [
        ("Upper", "x"),
        ("", "x"),
        ("a b", "x"),
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("x", "a\rb"),
        ("x", "a\nb"),
        ("x", "a\0b"),
        ("x", " a"),
        ("x", "a\t"),
        ("content-length", "-1"),
        ("content-length", "+1"),
        ("content-length", ""),
        ("content-length", "99999999999999999999"),
        ("content-length", "1"),
        ("host", "another.org"),
        (":protocol", "websocket"),
    ] {
        assert!(with(name, value), "{name}: {value:?}");
    }
    for (name, value) in [
        ("te", "trailers"),
        ("x", ""),
        ("x", "a b\tc"),
        ("x", "\u{e9}"),
        ("content-length", "0"),
        ("host", "Example.org"),
    ] {
        assert!(!with(name, value), "{name}: {value:?}");
    }
    assert!(request_is_malformed(&get_with(&[("content-length", "0"), ("content-length", "1")])));
}

#[test]
fn malformed_targets_are_refused() {
    let with = |n: usize, value| {
        let mut fields = GET;
        fields[n].1 = value;
        request_is_malformed(&fields)
    };
    for (n, value) in [
        (0, ""),
        (0, "G T"),
        (1, ""),
        (1, "h/t"),
        (2, ""),
        (2, "user@example.org"),
        (2, "a b"),
        (3, ""),
        (3, "x"),
        (3, "*"),
        (3, "/a#b"),
        (3, "/a b"),
    ] {
        assert!(with(n, value), "{}: {value:?}", GET[n].0);
    }
    assert!(!with(3, "/a%20b?c=d&e"));
    let options = [(":method", "OPTIONS"), (":scheme", "https"), (":authority", "a"), (":path", "*")];
    assert!(!request_is_malformed(&options));
}

#[test]
fn host_stands_in_for_an_authority() {
    let mut fields = GET.to_vec();
    fields.remove(2);
    assert!(request_is_malformed(&fields));
    fields.push(("host", "example.org"));
    assert!(!request_is_malformed(&fields));
    fields.push(("host", "example.org"));
    assert!(request_is_malformed(&fields));
}

#[test]
fn a_body_has_the_length_that_was_said() {
    let says = |length: &str, body: &[u8]| {
        let bytes = [headers(&get_with(&[("content-length", length)])), frame(0, body)].concat();
        server_says(Config::default(), &[(0, bytes, true)])
    };
    assert_eq!(says("3", b"abc"), None);
    assert_eq!(says("3", b"ab"), Some((Scope::Stream(0), ErrorCode::MessageError)));
    assert_eq!(says("3", b"abcd"), Some((Scope::Stream(0), ErrorCode::MessageError)));
}

#[test]
fn a_response_to_head_has_a_length_and_no_body() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let request = Request::head("https://example.org/").body(()).unwrap().into_parts().0;
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.h3.finish(0).unwrap();
    pair.client.write(0, head, true);
    pair.run();
    let response = Response::builder().header("content-length", "100").body(()).unwrap().into_parts().0;
    let head = pair.server.h3.send_response(0, &response, false).unwrap();
    pair.server.h3.finish(0).unwrap();
    pair.server.write(0, head, true);
    pair.run();
    pair.assert_no_errors();
    assert_eq!(pair.client.words(0), ["200 content-length=100", "finished"]);
}

#[test]
fn malformed_responses_are_refused() {
    let says = |bytes: Vec<u8>| client_says(Config::default(), &[(0, bytes, true)]);
    let malformed = Some((Scope::Stream(0), ErrorCode::MessageError));
    for status in ["", "20", "2000", "abc", "099", "101"] {
        assert_eq!(says(headers(&[(":status", status)])), malformed, "{status}");
    }
    assert_eq!(says(headers(&[("server", "x")])), malformed);
    assert_eq!(says(headers(&[(":status", "200"), (":path", "/")])), malformed);
    assert_eq!(says(headers(&[(":status", "103")])), malformed);
    assert_eq!(says(Vec::new()), malformed);
    assert_eq!(says([headers(&[(":status", "204")]), frame(0, b"x")].concat()), malformed);
    assert_eq!(says(headers(&[(":status", "304"), ("content-length", "5")])), None);
    let with_pseudo_in_trailers = [headers(&[(":status", "200")]), headers(&[(":status", "200")])].concat();
    assert_eq!(says(with_pseudo_in_trailers), malformed);
}

#[test]
fn frames_of_a_message_keep_their_order() {
    let unexpected = Some((Scope::Connection, ErrorCode::FrameUnexpected));
    let trailers = || headers(&[("x", "y")]);
    for bytes in [
        [headers(&GET), trailers(), frame(0, b"x")].concat(),
        [headers(&GET), trailers(), trailers()].concat(),
        [headers(&GET), frame(4, &[])].concat(),
        [headers(&GET), frame(7, &[0])].concat(),
        [headers(&GET), frame(0xd, &[0])].concat(),
        [headers(&GET), frame(5, &[0])].concat(),
        [headers(&GET), frame(0xf_0700, &[0])].concat(),
        [headers(&GET), frame(2, &[])].concat(),
        [headers(&GET), frame(6, &[])].concat(),
        [headers(&GET), frame(8, &[])].concat(),
        [headers(&GET), frame(9, &[])].concat(),
    ] {
        assert_eq!(server_says(Config::default(), &[(0, bytes, false)]), unexpected);
    }
    let says = client_says(Config::default(), &[(0, frame(0, b"x"), false)]);
    assert_eq!(says, unexpected);
}

#[test]
fn a_stream_that_ends_too_early_is_refused() {
    let request = headers(&GET);
    for end in 0..request.len() {
        let says = server_says(Config::default(), &[(0, request[..end].to_vec(), true)]);
        let expected = match end {
            0 => (Scope::Stream(0), ErrorCode::RequestIncomplete),
            _ => (Scope::Connection, ErrorCode::FrameError),
        };
        assert_eq!(says, Some(expected), "{end} bytes");
    }
    let cut = [request, frame(0, b"data")[..4].to_vec()].concat();
    let says = server_says(Config::default(), &[(0, cut, true)]);
    assert_eq!(says, Some((Scope::Connection, ErrorCode::FrameError)));
}

#[test]
fn crumbs_of_a_cookie_are_joined() {
    let mut server = pair::End::server(Config::default());
    let fields = get_with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")]);
    server.deliver((0, headers(&fields).into(), true));
    assert_eq!(server.words(0)[0], "GET https://example.org/ x=y cookie=a=1; b=2; c=3");
}

#[test]
fn a_sensitive_field_remains_one() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let mut request = get("/");
    let mut secret = HeaderValue::from_static("secret");
    secret.set_sensitive(true);
    request.headers.insert("authorization", secret);
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.write(0, head, true);
    pair.run();
    let Some((_, Event::Request(head))) = pair.server.events.first() else { panic!("no request") };
    assert!(head.parts.headers["authorization"].is_sensitive());
}

#[test]
fn connect_opens_a_tunnel() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let request = Request::connect("example.org:443").body(()).unwrap().into_parts().0;
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.write(0, head, false);
    pair.run();
    assert_eq!(pair.server.words(0), ["CONNECT example.org:443"]);
    let head = pair.server.h3.send_response(0, &ok(), true).unwrap();
    pair.server.write(0, head, false);
    for end in [&mut pair.client, &mut pair.server] {
        let header = end.h3.send_data(0, 3).unwrap();
        end.write(0, [header.as_ref(), b"raw"].concat(), false);
    }
    pair.run();
    assert_eq!(pair.client.words(0), ["200", "data raw"]);
    assert_eq!(pair.server.words(0)[1], "data raw");
    pair.server.deliver((0, headers(&[("x", "y")]).into(), false));
    assert_eq!(pair.server.errors[0].code(), ErrorCode::FrameUnexpected);
}

#[test]
fn connect_names_a_port_and_nothing_else() {
    let connect = |more: &[(&'static str, &'static str)]| {
        request_is_malformed(&[&[(":method", "CONNECT")], more].concat())
    };
    assert!(!connect(&[(":authority", "a:443")]));
    assert!(connect(&[(":authority", "a")]));
    assert!(connect(&[]));
    assert!(connect(&[(":authority", "a:443"), (":path", "/")]));
    assert!(connect(&[(":scheme", "https"), (":authority", "a:443")]));
}

#[test]
fn extended_connect_needs_the_servers_setting() {
    let mut request = Request::connect("https://example.org/chat").body(()).unwrap().into_parts().0;
    request.extensions.insert(Protocol::new("websocket").unwrap());

    let mut pair = Pair::joined(Config::default(), Config::default());
    assert_eq!(pair.client.h3.send_request(0, &request), Err(SendError::Unsupported));

    let server = Config { enable_connect_protocol: true, ..Config::default() };
    let mut pair = Pair::joined(Config::default(), server);
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.write(0, head, false);
    pair.run();
    let Some((_, Event::Request(head))) = pair.server.events.first() else { panic!("no request") };
    assert_eq!(head.parts.method, Method::CONNECT);
    assert_eq!(head.parts.uri, "https://example.org/chat");
    assert_eq!(head.parts.extensions.get::<Protocol>().unwrap().as_str(), "websocket");
}

#[test]
fn what_http3_cannot_carry_is_not_sent() {
    let mut pair = Pair::joined(Config::default(), Config::default());
    let relative = Request::get("/x").body(()).unwrap().into_parts().0;
    assert!(matches!(pair.client.h3.send_request(0, &relative), Err(SendError::Malformed(_))));

    let mut request = get("/");
    request.headers.insert("content-length", HeaderValue::from_static("3"));
    request.headers.insert("transfer-encoding", HeaderValue::from_static("chunked"));
    request.headers.insert("te", HeaderValue::from_static("gzip"));
    request.headers.insert("host", HeaderValue::from_static("other"));
    let head = pair.client.h3.send_request(0, &request).unwrap();
    pair.client.write(0, head, false);
    assert_eq!(pair.client.h3.send_data(0, 4), Err(SendError::ContentLength));
    assert_eq!(pair.client.h3.finish(0), Err(SendError::ContentLength));
    assert_eq!(pair.client.h3.check_finish(0), Err(SendError::ContentLength));
    pair.client.h3.send_data(0, 3).unwrap();
    assert_eq!(pair.client.h3.check_finish(0), Ok(()));
    pair.client.h3.finish(0).unwrap();
    assert_eq!(pair.client.h3.check_finish(0), Err(SendError::Closed));
    assert_eq!(pair.client.h3.send_data(0, 1), Err(SendError::Closed));
    pair.run();
    assert_eq!(pair.server.words(0), ["GET https://example.org/ content-length=3"]);

    assert_eq!(pair.server.h3.send_data(0, 1), Err(SendError::OutOfOrder));
    assert_eq!(pair.server.h3.finish(0), Err(SendError::OutOfOrder));
    let mut switching = ok();
    switching.status = StatusCode::SWITCHING_PROTOCOLS;
    assert!(matches!(pair.server.h3.send_response(0, &switching, true), Err(SendError::Malformed(_))));
    pair.server.h3.send_response(0, &ok(), true).unwrap();
    assert_eq!(pair.server.h3.send_response(0, &ok(), true), Err(SendError::OutOfOrder));
}

#[test]
fn fields_larger_than_the_peer_accepts_are_not_sent() {
    let mut server = Config::default();
    server.decoder.field_section_size_max = 500;
    let mut pair = Pair::joined(Config::default(), server);
    let mut request = get("/");
    request.headers.insert("x", HeaderValue::from_str(&"y".repeat(500)).unwrap());
    assert_eq!(pair.client.h3.send_request(0, &request), Err(SendError::TooLarge));
    assert!(pair.client.h3.send_request(0, &get("/")).is_ok());
}

#[test]
fn unknown_frames_are_ignored() {
    let mut server = pair::End::server(Config::default());
    let grease = frame(0x21 + 0x1f * 1000, b"whatever");
    let bytes =
        [&grease[..], &headers(&GET), &grease, &frame(0, b"x"), &frame(0x4242, &[]), &grease].concat();
    server.deliver((2, control(&grease).into(), false));
    server.deliver((0, bytes.into(), true));
    assert_eq!(server.errors, []);
    assert_eq!(server.words(0), ["GET https://example.org/", "data x", "finished"]);
}
