//! `fulmar serve` over TCP, asked by clients that write HTTP/1.1 themselves.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::run::runtime;
use crate::web::Site;

/// A connection of HTTP/1.1 on which nothing was said.
fn connect(site: &Site) -> StreamOwned<ClientConnection, TcpStream> {
    connect_with(site, "http/1.1")
}

/// A connection of a client that offers this protocol alone.
fn connect_with(site: &Site, protocol: &str) -> StreamOwned<ClientConnection, TcpStream> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS")
        .with_root_certificates(site.roots.clone())
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = rustls::pki_types::ServerName::from(site.server.address.ip());
    let session = ClientConnection::new(Arc::new(tls), name).expect("a session");
    let stream = TcpStream::connect(site.server.address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    StreamOwned::new(session, stream)
}

/// The first bytes of what is answered to `request`, which is sent as it is.
fn answer(stream: &mut StreamOwned<ClientConnection, TcpStream>, request: &[u8]) -> String {
    stream.write_all(request).and_then(|()| stream.flush()).expect("the server takes it");
    let mut text = String::new();
    while !text.contains("\r\n\r\n") {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).expect("a response");
        assert!(count > 0, "the end came after {text:?}");
        text.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
    }
    text
}

#[test]
fn who_sends_all_before_looking_for_a_response_gets_it() {
    let site = Site::new("tcp-upload", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    for len in [100_000, 7_000_000] {
        let mut stream = connect(&site);
        let mut request =
            format!("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n").into_bytes();
        request.resize(request.len() + len, b'x');
        let text = answer(&mut stream, &request);
        assert!(text.starts_with("HTTP/1.1 405 "), "{text}");
        // The connection serves others.
        let text = answer(&mut stream, b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
    }
}

#[test]
fn a_client_that_offers_http_1_0_alone_is_served() {
    let site = Site::new("tcp-old", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    let text = answer(&mut connect_with(&site, "http/1.0"), b"GET /a HTTP/1.0\r\n\r\n");
    assert!(text.starts_with("HTTP/1.0 200 OK"), "{text}");
}

#[test]
fn who_waits_to_be_asked_for_content_is_not_asked() {
    let site = Site::new("tcp-expect", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    let request = "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    let text = answer(&mut connect(&site), request.as_bytes());
    assert!(text.starts_with("HTTP/1.1 405 "), "{text}");
}

#[test]
fn a_request_that_does_not_name_one_server_is_refused() {
    let site = Site::new("tcp-host", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    for (version, fields, status) in [
        ("1.1", "Host: x\r\n", 200),
        ("1.1", "", 400),
        ("1.1", "Host: x\r\nHost: x\r\n", 400),
        ("1.1", "Host: a b\r\n", 400),
        ("1.0", "", 200),
    ] {
        let text = answer(&mut connect(&site), format!("GET /a HTTP/{version}\r\n{fields}\r\n").as_bytes());
        assert!(text.starts_with(&format!("HTTP/{version} {status} ")), "{fields:?}: {text}");
    }
}

#[test]
fn what_is_no_request_has_a_line_as_well() {
    let mut site = Site::new("tcp-none", |_| {}, &[]);
    let text = answer(&mut connect(&site), b"no request\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    let told = site.server.next_object();
    assert_eq!((&told["method"], &told["path"], &told["status"]), (&"-".into(), &"".into(), &400.into()));
}

#[test]
fn a_client_over_ipv4_is_named_as_one() {
    let fill = |www: &std::path::Path| fs::write(www.join("a"), "text").expect("a file");
    let mut site = Site::new("tcp-mapped", fill, &["--listen", "[::]:0"]);
    site.server.address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    let text = answer(&mut connect(&site), b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(text.contains("200 OK"), "{text}");
    let remote = site.server.next_object()["remote"].as_str().expect("an address").to_owned();
    assert!(remote.starts_with("127.0.0.1:"), "{remote}");
}

#[test]
fn connections_that_say_nothing_do_not_hold_up_the_end() {
    let site = Site::new("tcp-silent", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    // Before TLS, and behind it.
    let _silent = TcpStream::connect(site.server.address).expect("a connection");
    let mut stream = connect(&site);
    stream.flush().expect("the handshake");
    std::thread::sleep(Duration::from_millis(300));
    let start = Instant::now();
    site.server.ask_to_stop();
    assert_eq!(site.server.ended(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

/// A request of `/big` by HTTP/2: the preface, SETTINGS, and HEADERS that end the stream, with fields of the static table but for the path
/// and the authority (RFC 7541 appendix A).
fn big_by_http2() -> Vec<u8> {
    let fields = [&[0x82, 0x87, 0x04, 4][..], b"/big", &[0x01, 1, b'x']].concat();
    let head = [0, 0, fields.len() as u8, 1, 0x5, 0, 0, 0, 1];
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &[0, 0, 0, 4, 0, 0, 0, 0, 0], &head, &fields].concat()
}

#[test]
fn what_the_end_cuts_short_has_a_line_as_well() {
    let fill = |www: &std::path::Path| {
        fs::File::create(www.join("big")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    };
    let mut site = Site::new("tcp-cut", fill, &["--grace", "0"]);
    let (mut old, mut newer) = (connect(&site), connect_with(&site, "h2"));
    answer(&mut old, b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n");
    newer.write_all(&big_by_http2()).and_then(|()| newer.flush()).expect("the server takes it");
    // More than frames that tell of nothing.
    newer.read_exact(&mut [0; 10_000]).expect("a response");
    runtime().block_on(async {
        let client = site.client();
        let mut body = client.get(site.server.url("/big")).await.expect("a response").into_body();
        assert!(body.data().await.expect("data").is_some());
        site.server.ask_to_stop();
        let mut told: Vec<_> = (0..3).map(|_| site.server.next_object()["protocol"].to_string()).collect();
        told.sort();
        assert_eq!(told, ["\"HTTP/1.1\"", "\"HTTP/2.0\"", "\"HTTP/3.0\""]);
    });
    assert_eq!(site.server.ended(), Some(0));
}
