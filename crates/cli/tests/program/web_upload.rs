//! `fulmar get` that sends something, to a server that takes it, and tells what it has got.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::io::Write;
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
const CONTENT_MAX: usize = 32 << 20;

/// Answers with the method, the path and what was sent. From `/moved` it sends on to `/here`, and it is always busy at `/busy`.
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
            let path = request.uri().path().to_owned();
            let mut answer = format!("{} {path}: ", request.method()).into_bytes();
            let sent = request.into_body().bytes(CONTENT_MAX).await.expect("what is sent arrives");
            match path.as_str() {
                "/log" => answer.extend(sent.len().to_string().into_bytes()),
                _ => answer.extend(sent),
            }
            let mut response = Response::new(Full::from(answer));
            *response.status_mut() = match path.as_str() {
                "/moved" => StatusCode::TEMPORARY_REDIRECT,
                "/busy" => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::CREATED,
            };
            response.headers_mut().insert("location", "/here".parse().expect("a value"));
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

/// What comes out of a pipe of this name.
fn pipe(dir: &TestDir, text: &'static str) -> std::thread::JoinHandle<()> {
    let path = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    std::thread::spawn(move || fs::write(path, text).expect("it is read"))
}

#[test]
fn what_comes_out_of_a_pipe_is_sent_once() {
    let server = Running::start();
    for (case, arguments, path, code, words) in [
        ("taken", &["-T", "pipe"][..], "/here", 0, "PUT /here: piped"),
        ("moved", &["-L", "-T", "pipe"], "/moved", 65, "cannot be sent again"),
        ("busy", &["--retry", "3", "-T", "pipe"], "/busy", 22, "503"),
    ] {
        let dir = TestDir::new(&format!("web-upload-pipe-{case}"));
        let writer = pipe(&dir, "piped");
        let finished = finish(server.get(&dir, arguments, path));
        writer.join().expect("the pipe was read");
        match code {
            0 => assert_eq!(finished.succeeded().stdout(), words),
            _ => drop(finished.failed(code, &[words])),
        }
    }
    let dir = TestDir::new("web-upload-pipe-file");
    finish(server.get(&dir, &["-L", "-T", "photo"], "/moved")).succeeded();
}

#[test]
fn what_is_piped_in_goes_to_one_url() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-two"));
    let other = format!("https://{}/b", server.address);
    finish(server.get(&dir, &["-T", "-", &other], "/a")).failed(2, &["one URL"]);
}

#[test]
fn a_file_that_grows_is_sent_as_long_as_it_was() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-grows"));
    const LEN: usize = 8 << 20;
    let log = dir.path().join("log");
    fs::write(&log, vec![b'x'; LEN]).expect("a file");
    let get = server.get(&dir, &["-T", "log"], "/log");
    let grower = std::thread::spawn(move || {
        let mut log = fs::OpenOptions::new().append(true).open(log).expect("the file");
        for _ in 0..200 {
            log.write_all(&[b'y'; 1_000]).expect("appended");
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    });
    let answer = finish(get).succeeded().stdout();
    grower.join().expect("it has grown");
    let len: usize = answer.strip_prefix("PUT /log: ").expect("an answer").parse().expect("a length");
    assert!((LEN..LEN + 200_000).contains(&len), "{len}");
}
