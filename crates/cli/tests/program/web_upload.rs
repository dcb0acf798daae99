//! `fulmar get` that sends something, to a server that takes it, and tells what it has got.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::process::Command;
use std::sync::mpsc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Body, Server};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tower_service::Service;

use crate::run::{finish, fulmar};
use crate::test_dir::TestDir;

/// More than any test sends, in bytes.
const CONTENT_MAX: usize = 1 << 20;

/// Answers with the method, the path and what was sent.
#[derive(Clone)]
struct Taker;

impl Service<Request<Body>> for Taker {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async move {
            let authority =
                request.uri().authority().expect("an authority").as_str().parse().expect("a value");
            let mut answer = format!("{} {}: ", request.method(), request.uri().path()).into_bytes();
            answer.extend(request.into_body().bytes(CONTENT_MAX).await.expect("what is sent arrives"));
            let mut response = Response::new(Full::from(answer));
            *response.status_mut() = StatusCode::CREATED;
            response.headers_mut().insert("x-authority", authority);
            Ok(response)
        })
    }
}

/// Such a server, which lives as long as the tests.
struct Running {
    address: SocketAddr,
}

impl Running {
    fn start() -> Self {
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let endpoint = endpoint();
                tell.send(endpoint.local_addr().expect("its address")).expect("someone listens");
                Server::new(endpoint).serve(Taker).await;
            });
        });
        Self { address: told.recv().expect("the server starts") }
    }

    /// `get` of a path, in `dir`, where the file `photo` is.
    fn get(&self, dir: &TestDir, arguments: &[&str], path: &str) -> Command {
        fs::write(dir.path().join("photo"), "a photo").expect("a file");
        let mut command = fulmar(&["get", "--insecure", "--http3-only"]);
        command.args(arguments).arg(format!("https://{}{path}", self.address)).current_dir(dir.path());
        command
    }
}

fn endpoint() -> Endpoint {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN]).expect("a server");
    Endpoint::server(tls, (Ipv4Addr::LOCALHOST, 0).into()).expect("an endpoint")
}

#[test]
fn what_answers_an_upload_is_printed_and_the_file_stays() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload"));
    for (arguments, method) in [(["-T", "photo"], "PUT"), (["-d", "@photo"], "POST")] {
        let finished = finish(server.get(&dir, &arguments, "/album/photo")).succeeded();
        assert_eq!(finished.stdout(), format!("{method} /album/photo: a photo"));
        assert_eq!(dir.names(), ["photo"]);
        assert_eq!(fs::read(dir.path().join("photo")).expect("the file"), b"a photo");
    }
}

#[test]
fn what_answers_an_upload_goes_where_the_user_says() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-out"));
    finish(server.get(&dir, &["-q", "-T", "photo", "-o", "answer"], "/photo")).succeeded();
    assert_eq!(fs::read(dir.path().join("answer")).expect("the answer"), b"PUT /photo: a photo");
    finish(server.get(&dir, &["-q", "-O", "-d", "a=b"], "/form")).succeeded();
    assert_eq!(fs::read(dir.path().join("form")).expect("the answer"), b"POST /form: a=b");
}

#[test]
fn an_upload_to_a_directory_has_the_name_of_the_file() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-name"));
    fs::write(dir.path().join("a photo?"), "another").expect("a file");
    for (file, path, answer) in [
        ("photo", "/album/", "PUT /album/photo: a photo"),
        ("a photo?", "/", "PUT /a%20photo%3F: another"),
        ("photo", "/album/?size=1", "PUT /album/photo: a photo"),
        ("photo", "/album", "PUT /album: a photo"),
    ] {
        let finished = finish(server.get(&dir, &["-T", file], path)).succeeded();
        assert_eq!(finished.stdout(), answer);
    }
}

#[test]
fn a_directory_is_not_sent() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-directory"));
    finish(server.get(&dir, &["-T", "."], "/album/")).failed(2, &["directory"]);
}

#[test]
fn a_host_of_ones_own_choice_is_told_to_the_server() {
    let (server, dir) = (Running::start(), TestDir::new("web-host"));
    let told = finish(server.get(&dir, &["-v", "-H", "Host: other.example", "-o", "-"], "/")).stderr();
    assert!(told.contains("< x-authority: other.example"), "{told}");
    for wrong in ["Host: a b", "Host: user@a"] {
        finish(server.get(&dir, &["-H", wrong, "-o", "-"], "/")).failed(2, &["names one server"]);
    }
    finish(server.get(&dir, &["-H", "Host: a", "-H", "Host: b", "-o", "-"], "/")).failed(2, &["once"]);
}
