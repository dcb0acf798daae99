use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};

use rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;
use crate::serve::{Directory, Serving, Site};
use crate::test_dir::TestDir;

/// Long against what a busy machine is late by.
const IDLE: Duration = Duration::from_millis(300);
const STILL: Duration = Duration::from_secs(2);
/// Within this time a connection must be over of which nothing comes.
const OVER_MAX: Duration = Duration::from_secs(10);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty frame (RFC 9113 §6.5).
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: u8 = 6;
const ACK: u8 = 1;

fn tcp(dir: &TestDir) -> Tcp {
    std::fs::File::create(dir.path().join("big")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let tls =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .expect("a server");
    let site = Site::new(&Serving::bare(Directory::open(dir.path(), false).expect("a directory")));
    let phase = site.phase.subscribe();
    // It goes on as long as the process.
    std::mem::forget(site.phase);
    Tcp {
        tls: Arc::new(tls),
        web: site.web,
        alternative: alternative(1),
        runtimes: Vec::new(),
        open: Transfers::default(),
        phase,
        patience: Patience { idle: IDLE, still: STILL },
    }
}

/// Serves a client without TLS, and returns how long the connection was there.
fn serve(name: &str, client: impl FnOnce(std::net::TcpStream) + Send + 'static) -> Duration {
    let dir = TestDir::new(name);
    crate::net::runtime().expect("a runtime").block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let client = std::thread::spawn(move || {
            client(std::net::TcpStream::connect(address).expect("a connection"));
        });
        let (stream, remote) = listener.accept().await.expect("a client");
        let start = std::time::Instant::now();
        let served = timeout(OVER_MAX, tcp(&dir).serve_http(stream, remote)).await;
        served.expect("the server has enough");
        let took = start.elapsed();
        client.join().expect("the client has seen the end");
        took
    })
}

/// Waits for the end.
fn await_end(mut stream: std::net::TcpStream) {
    stream.set_read_timeout(Some(OVER_MAX)).expect("set");
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_client_that_says_nothing_is_left() {
    serve("tcp-nothing", await_end);
    // What may become HTTP/2 and what may become HTTP/1.1.
    for begin in [&PREFACE[..10], b"GET /big HT"] {
        serve("tcp-begun", move |mut stream| {
            stream.write_all(begin).expect("written");
            await_end(stream);
        });
    }
}

#[test]
fn a_client_of_http_2_that_asks_for_nothing_is_left() {
    for answers in [true, false] {
        let took = serve("tcp-pings", move |mut stream| {
            stream.set_read_timeout(Some(OVER_MAX)).expect("set");
            stream.write_all(&[PREFACE, &SETTINGS].concat()).expect("written");
            let mut head = [0; 9];
            while stream.read_exact(&mut head).is_ok() {
                let mut content = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
                stream.read_exact(&mut content).expect("a frame");
                if answers && head[3] == PING && head[4] != ACK {
                    head[4] = ACK;
                    let _ = stream.write_all(&[&head[..], &content].concat());
                }
            }
        });
        assert_eq!(took < STILL, answers, "{took:?}");
    }
}

#[test]
fn a_client_that_takes_nothing_of_a_response_is_left() {
    let took = serve("tcp-stands", |mut stream| {
        stream.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
        std::thread::sleep(STILL * 2);
        drop(stream);
    });
    assert!(took >= STILL && took < STILL * 2, "{took:?}");
}

#[test]
fn a_client_that_takes_a_response_slowly_is_served() {
    let took = serve("tcp-slow", |mut stream| {
        stream.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
        let (start, mut bytes) = (std::time::Instant::now(), vec![0; 1 << 20]);
        while start.elapsed() < STILL * 2 {
            stream.read_exact(&mut bytes).expect("it goes on");
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = stream.shutdown(Shutdown::Both);
    });
    assert!(took >= STILL * 2, "{took:?}");
}
