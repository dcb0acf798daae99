//! `fulmar get` that sends something, to a server that takes it, and tells what it has got.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use fulmar::{Endpoint, tls};
use fulmar_h3::{ALPN, Body, Server};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::PrivatePkcs8KeyDer;
use tower_service::Service;

use crate::run::{finish, fulmar, runtime};
use crate::test_dir::TestDir;

/// How late a server may take what is sent.
const LATE: Duration = Duration::from_secs(1);
/// More than any test sends, in bytes.
const CONTENT_MAX: usize = 32 << 20;

/// Answers with the method, the path and what was sent. From `/moved` it sends on to `/here`, it is always busy at `/busy`, and late at `/late`.
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
            if path == "/late" {
                tokio::time::sleep(LATE).await;
                let mut content = request.into_body();
                while let Ok(Some(_)) = content.data().await {}
                return Ok(Response::new(Full::default()));
            }
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
    // A dash is no option there, and a time of zero no limit.
    finish(server.get(&dir, &["-q", "-m", "0", "-d", "-5", "-o", "-x"], "/form")).succeeded();
    assert_eq!(fs::read(dir.path().join("-x")).expect("the answer"), b"POST /form: -5");
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
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let answer = finish(get).succeeded().stdout();
    grower.join().expect("it has grown");
    let len: usize = answer.strip_prefix("PUT /log: ").expect("an answer").parse().expect("a length");
    assert!((LEN..LEN + 200_000).contains(&len), "{len}");
}

/// A server over TCP that takes what is sent a second later.
fn late_over_tcp(protocol: &'static str) -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a server");
    tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            tell.send(listener.local_addr().expect("its address")).expect("someone listens");
            let tls = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
            loop {
                let (stream, _) = listener.accept().await.expect("a client");
                let Ok(stream) = tls.accept(stream).await else { continue };
                let service = hyper::service::service_fn(async |request: Request<hyper::body::Incoming>| {
                    tokio::time::sleep(LATE).await;
                    let mut content = request.into_body();
                    while let Some(Ok(_)) = content.frame().await {}
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
                });
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            }
        });
    });
    told.recv().expect("the server starts")
}

/// Over HTTP/3, HTTP/2 and HTTP/1.1.
#[test]
fn a_file_that_shrinks_while_it_is_sent_is_no_broken_connection() {
    let (server, dir) = (Running::start(), TestDir::new("web-upload-shrinks"));
    for address in [server.address, late_over_tcp("h2"), late_over_tcp("http/1.1")] {
        let file = dir.path().join("log");
        fs::File::create(&file).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
        let url = format!("https://{address}/late");
        let mut get = fulmar(&["get", "--insecure", "--retry", "3", "-T", "log", &url]);
        get.current_dir(dir.path());
        let get = std::thread::spawn(move || finish(get));
        std::thread::sleep(LATE / 2);
        fs::File::options().write(true).open(&file).and_then(|file| file.set_len(1)).expect("shorter");
        get.join().expect("ended").failed(26, &["what was to be sent failed", "shorter"]);
    }
}
