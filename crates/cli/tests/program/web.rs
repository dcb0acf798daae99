//! `fulmar serve` over HTTP/3, HTTP/2 and HTTP/1.1.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fulmar_h3::Client;
use http::{HeaderMap, Method, Request, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;

use crate::run::{Server, content, finish, fulmar, runtime};
use crate::test_dir::TestDir;

pub(crate) const BODY_MAX: usize = 64 << 20;

/// A server with a certificate that its clients trust.
pub(crate) struct Site {
    pub(crate) dir: TestDir,
    pub(crate) roots: RootCertStore,
    pub(crate) server: Server,
}

impl Site {
    pub(crate) fn new(name: &str, fill: impl FnOnce(&std::path::Path), options: &[&str]) -> Self {
        let dir = TestDir::new(name);
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        fs::write(&cert, made.cert.pem()).expect("a file");
        fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let www = dir.path().join("www");
        fs::create_dir(&www).expect("a directory");
        fill(&www);
        let mut arguments =
            vec!["--cert", cert.to_str().expect("a path"), "--key", key.to_str().expect("a path")];
        arguments.extend(options);
        let server = Server::serve(&www, &arguments);
        Self { roots, server, dir }
    }

    pub(crate) fn client(&self) -> Client {
        Client::with_roots(self.roots.clone()).expect("a client")
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// Asks over HTTP/3.
async fn ask(client: &Client, site: &Site, method: Method, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().method(method).uri(site.server.url(path));
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::<Bytes>::default()).expect("a request");
    let response = client.request(request).await.expect(path);
    assert_eq!(response.version(), Version::HTTP_3);
    let (head, body) = response.into_parts();
    let body = body.bytes(BODY_MAX).await.expect("a body");
    Answer { status: head.status, headers: head.headers, body }
}

pub(crate) async fn get(client: &Client, site: &Site, path: &str, fields: &[(&str, &str)]) -> Answer {
    ask(client, site, Method::GET, path, fields).await
}

#[test]
fn files_are_served_over_http_3() {
    let big = content(3_000_000, 1);
    let site = Site::new(
        "web-files",
        |www| {
            fs::write(www.join("index.html"), "<p>home").expect("a file");
            fs::write(www.join("big.bin"), &big).expect("a file");
            fs::create_dir_all(www.join("sub/deep")).expect("directories");
            fs::write(www.join("sub/index.html"), "sub").expect("a file");
            fs::write(www.join("a b&c.css"), "p{}").expect("a file");
            fs::write(www.join(".secret"), "secret").expect("a file");
            fs::create_dir(www.join(".well-known")).expect("a directory");
            fs::write(www.join(".well-known/x"), "known").expect("a file");
            fs::write(www.join("empty"), "").expect("a file");
        },
        &["--workers", "2"],
    );
    runtime().block_on(async {
        let client = site.client();
        let home = get(&client, &site, "/", &[]).await;
        assert_eq!((home.status, &home.body[..]), (StatusCode::OK, &b"<p>home"[..]));
        assert_eq!(home.field("content-type"), "text/html; charset=utf-8");
        assert!(home.field("date").ends_with(" GMT") && home.field("vary") == "accept-encoding");
        assert!(home.headers.get("alt-svc").is_none(), "it is spoken already");

        let all = get(&client, &site, "/big.bin?query", &[]).await;
        assert!(all.body == big && all.field("content-length") == "3000000");
        let part = get(&client, &site, "/big.bin", &[("range", "bytes=100-2000099")]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.field("content-range"), "bytes 100-2000099/3000000");
        assert!(part.body == big[100..2_000_100]);
        let (tag, date) = (all.field("etag"), all.field("last-modified"));
        let again = [("if-range", tag), ("range", "bytes=-10")];
        assert!(get(&client, &site, "/big.bin", &again).await.body == big[2_999_990..]);
        let other = [("if-range", "\"other\""), ("range", "bytes=-10")];
        assert_eq!(get(&client, &site, "/big.bin", &other).await.body.len(), big.len());
        let beyond = get(&client, &site, "/big.bin", &[("range", "bytes=3000000-")]).await;
        assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
        assert_eq!(beyond.field("content-range"), "bytes */3000000");
        for field in [("if-none-match", tag), ("if-modified-since", date)] {
            let same = get(&client, &site, "/big.bin", &[field]).await;
            assert_eq!((same.status, same.body.len()), (StatusCode::NOT_MODIFIED, 0), "{field:?}");
            assert_eq!(same.field("etag"), tag);
        }
        let failed = get(&client, &site, "/big.bin", &[("if-match", "\"other\"")]).await;
        assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED);
        let head = ask(&client, &site, Method::HEAD, "/big.bin", &[("range", "bytes=0-1")]).await;
        assert_eq!(
            (head.status, head.field("content-length"), head.body.len()),
            (StatusCode::OK, "3000000", 0)
        );

        let css = get(&client, &site, "/a%20b%26c.css", &[]).await;
        assert_eq!((css.field("content-type"), &css.body[..]), ("text/css; charset=utf-8", &b"p{}"[..]));
        assert_eq!(get(&client, &site, "/empty", &[]).await.field("content-length"), "0");
        assert_eq!(get(&client, &site, "/sub/", &[]).await.body, "sub");
        let moved = get(&client, &site, "/sub?a=b", &[]).await;
        assert_eq!((moved.status, moved.field("location")), (StatusCode::PERMANENT_REDIRECT, "/sub/?a=b"));
        // This would name another server.
        assert_eq!(get(&client, &site, "//sub", &[]).await.field("location"), "/sub/");
        assert_eq!(get(&client, &site, "/.well-known/x", &[]).await.body, "known");
        for path in
            ["/.secret", "/%2esecret", "/sub/deep/", "/nothing", "/big.bin/", "/%2e%2e/cert.pem", "/a/../b"]
        {
            assert_eq!(get(&client, &site, path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        for path in ["/%zz", "/a%00"] {
            assert_eq!(get(&client, &site, path, &[]).await.status, StatusCode::BAD_REQUEST, "{path}");
        }
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            let answer = ask(&client, &site, method, "/", &[]).await;
            assert_eq!((answer.status, answer.field("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
        }
        client.close().await;
    });
}

#[test]
fn compressed_forms_of_files_are_sent_to_those_who_take_them() {
    let site = Site::new(
        "web-compressed",
        |www| {
            for (name, text) in [("a.js", "plain"), ("a.js.gz", "gzip"), ("a.js.br", "brotli"), ("b.js", "b")]
            {
                fs::write(www.join(name), text).expect("a file");
            }
        },
        &[],
    );
    runtime().block_on(async {
        let client = site.client();
        for (path, accept, body, encoding) in [
            ("/a.js", "gzip, br, zstd", "brotli", "br"),
            ("/a.js", "gzip, br;q=0.1", "gzip", "gzip"),
            ("/a.js", "zstd", "plain", ""),
            ("/b.js", "gzip, br", "b", ""),
        ] {
            let answer = get(&client, &site, path, &[("accept-encoding", accept)]).await;
            assert_eq!((&answer.body[..], answer.field("content-encoding")), (body.as_bytes(), encoding));
            assert_eq!(answer.field("content-type"), "text/javascript; charset=utf-8");
            assert_eq!(answer.field("vary"), "accept-encoding");
        }
        client.close().await;
    });
}

#[test]
fn listings_and_single_page_applications_are_opt_in() {
    let fill = |www: &std::path::Path| {
        fs::write(www.join("index.html"), "app").expect("a file");
        fs::create_dir(www.join("sub")).expect("a directory");
        fs::write(www.join("sub/<b>.txt"), "x").expect("a file");
        fs::write(www.join("sub/.hidden"), "x").expect("a file");
    };
    let site = Site::new("web-options", fill, &["--list", "--spa"]);
    runtime().block_on(async {
        let client = site.client();
        let listing = get(&client, &site, "/sub/", &[]).await;
        let page = String::from_utf8(listing.body.to_vec()).expect("text");
        assert!(page.contains("./%3Cb%3E.txt") && page.contains("&lt;b&gt;.txt"), "{page}");
        assert!(
            !page.contains("hidden") && listing.field("content-security-policy").contains("'none'"),
            "{page}"
        );
        assert_eq!(get(&client, &site, "/made/up", &[]).await.body, "app");
        for path in ["/made/up.js", "/sub/.hidden"] {
            assert_eq!(get(&client, &site, path, &[]).await.status, StatusCode::NOT_FOUND, "{path}");
        }
        client.close().await;
    });
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_listed_and_served() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9 <1>.txt");
    let fill = |www: &std::path::Path| fs::write(www.join(name), "latin").expect("a file");
    let site = Site::new("web-latin", fill, &["--list"]);
    runtime().block_on(async {
        let client = site.client();
        let listing = get(&client, &site, "/", &[]).await;
        let page = String::from_utf8(listing.body.to_vec()).expect("text");
        let row = "<a href=\"./caf%E9%20%3C1%3E.txt\">caf\u{fffd} &lt;1&gt;.txt</a>";
        assert!(page.contains(row), "{page}");
        assert_eq!(get(&client, &site, "/caf%E9%20%3C1%3E.txt", &[]).await.body, "latin");
        assert_eq!(get(&client, &site, "/caf%E8", &[]).await.status, StatusCode::NOT_FOUND);
        client.close().await;
    });
    let out = TestDir::new("web-latin-out");
    let url = site.server.url("/caf%E9%20%3C1%3E.txt");
    finish(fulmar(&["get", "-q", "--insecure", "-o", out.path().to_str().expect("a path"), &url]))
        .succeeded();
    assert_eq!(out.names(), ["caf%E9%20%3C1%3E.txt"]);
}

#[test]
fn the_tcp_port_of_the_same_number_tells_of_http_3() {
    let site =
        Site::new("web-tcp", |www| fs::write(www.join("a"), content(500_000, 2)).expect("a file"), &[]);
    runtime().block_on(async {
        for protocol in ["h2", "http/1.1"] {
            let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS")
            .with_root_certificates(site.roots.clone())
            .with_no_client_auth();
            tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
            let stream = tokio::net::TcpStream::connect(site.server.address).await.expect("a connection");
            let name = rustls::pki_types::ServerName::from(site.server.address.ip());
            let stream =
                tokio_rustls::TlsConnector::from(Arc::new(tls)).connect(name, stream).await.expect("TLS");
            let mut request = Request::get(site.server.url("/a"));
            if protocol == "http/1.1" {
                request = request.header("host", "127.0.0.1");
            }
            let request = request.body(Empty::<Bytes>::new()).expect("a request");
            let response = if protocol == "h2" {
                let io = TokioIo::new(stream);
                let made = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
                let (mut sender, connection) = made.expect("HTTP/2");
                tokio::spawn(connection);
                sender.send_request(request).await.expect("a response")
            } else {
                let made = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                let (mut sender, connection) = made.expect("HTTP/1.1");
                tokio::spawn(connection);
                sender.send_request(request).await.expect("a response")
            };
            let port = site.server.address.port();
            assert_eq!(response.headers()["alt-svc"], format!("h3=\":{port}\"; ma=86400"), "{protocol}");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            assert!(body == content(500_000, 2), "{protocol}");
        }
    });
}

#[test]
fn requests_of_http_have_lines_and_idle_clients_do_not_hold_up_the_end() {
    let mut site = Site::new("web-end", |www| fs::write(www.join("a"), "text").expect("a file"), &[]);
    runtime().block_on(async {
        let client = site.client();
        assert_eq!(get(&client, &site, "/a?q", &[]).await.body, "text");
        let line = site.server.next_object();
        assert_eq!((&line["protocol"], &line["method"]), (&"HTTP/3.0".into(), &"GET".into()), "{line}");
        assert_eq!(
            (&line["path"], &line["status"], &line["bytes"]),
            (&"/a?q".into(), &200.into(), &4.into())
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
        let start = Instant::now();
        site.server.ask_to_stop();
        assert_eq!(site.server.ended(), Some(0));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    });
}

#[test]
fn ten_thousand_requests_beside_slow_readers() {
    let site = Site::new(
        "web-slow",
        |www| {
            fs::write(www.join("small"), [7; 1_000]).expect("a file");
            fs::File::create(www.join("big")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
        },
        &[],
    );
    runtime().block_on(async {
        // Clients that read nothing but the beginning: each makes the server hold what its windows let in.
        let mut slow = Vec::new();
        for _ in 0..16 {
            let client = site.client();
            let body = client.get(site.server.url("/big")).await.expect("a response").into_body();
            slow.push((client, body));
        }
        let client = site.client();
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (client, url) = (client.clone(), site.server.url("/small"));
            tasks.spawn(async move {
                for _ in 0..200 {
                    let body = client.get(&*url).await.expect("a response").into_body();
                    assert_eq!(body.bytes(2_000).await.expect("a body").len(), 1_000);
                }
            });
        }
        while let Some(result) = tasks.join_next().await {
            result.expect("answers");
        }
        for (_, body) in &mut slow {
            assert!(body.data().await.expect("still there").is_some());
        }
    });
}

#[test]
fn the_interop_case_http3_moves_files_over_http_3() {
    let site =
        Site::new("web-interop", |www| fs::write(www.join("a"), content(1_000_000, 3)).expect("a file"), &[]);
    let path = |name: &str| site.dir.path().join(name).to_str().expect("a path").to_owned();
    let mut server = fulmar(&["interop", "server", "--json", "--testcase", "http3"]);
    server.args(["--www", &path("www"), "--cert", &path("cert.pem"), "--key", &path("key.pem")]);
    let server = Server::start(server);
    fs::create_dir(path("out")).expect("a directory");
    let mut client = fulmar(&["interop", "client", "--testcase", "http3", "--downloads", &path("out")]);
    client.args(["--requests", &server.url("/a")]);
    finish(client).succeeded();
    assert!(fs::read(path("out/a")).expect("the file") == content(1_000_000, 3));
}
