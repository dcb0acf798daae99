//! Clients of HTTP/0.9 other than `get --hq`.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fulmar::{Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::time::{sleep, timeout};

use crate::run::{content, runtime};
use crate::web::Site;

/// More than a round trip over loopback, so that what the server has sent is here.
const A_WHILE: Duration = Duration::from_millis(200);

async fn connect(endpoint: &Endpoint, site: &Site) -> Connection {
    connect_with(endpoint, site, TransportConfig::default()).await
}

async fn connect_with(endpoint: &Endpoint, site: &Site, transport: TransportConfig) -> Connection {
    let config = fulmar::tls::client_config(site.roots.clone(), &[b"hq-interop"]).expect("TLS");
    let config = config.with_transport(Arc::new(transport)).expect("valid");
    endpoint.set_default_client_config(config);
    endpoint.connect(site.server.address, "127.0.0.1").expect("an attempt").await.expect("connected")
}

/// Asks for a file, and ends the request.
async fn open(connection: &Connection, request: &[u8]) -> RecvStream {
    let (mut send, recv) = connection.open_bi().await.expect("a stream");
    send.write_all(request).await.expect("written");
    send.finish().expect("an open stream");
    recv
}

/// Fetches the file, and leaves the request without an end.
async fn ask(connection: &Connection) -> SendStream {
    let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
    send.write_all(b"GET /a\r\n").await.expect("written");
    assert_eq!(recv.read_to_end(1_000).await.expect("the file"), b"a file");
    send
}

#[test]
fn a_request_may_end_after_its_answer() {
    let fill = |www: &Path| fs::write(www.join("a"), "a file").expect("a file");
    let site = Site::new("late-end", fill, &[]);
    runtime().block_on(async {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
        let connection = connect(&endpoint, &site).await;
        let mut send = ask(&connection).await;
        sleep(A_WHILE).await;
        send.finish().expect("nobody has stopped the request");
        assert_eq!(send.stopped().await.expect("acknowledged"), None);

        // One that goes on instead, and one that never ends, hold nothing for long.
        let mut more = ask(&connection).await;
        let block = [b'x'; 1 << 10];
        let stopped = timeout(Duration::from_secs(10), async {
            while more.write_all(&block).await.is_ok() {
                sleep(Duration::from_millis(1)).await;
            }
        });
        stopped.await.expect("the server has enough");
        let open = ask(&connection).await;
        let stopped =
            timeout(Duration::from_secs(30), open.stopped()).await.expect("the server waits no more");
        assert!(stopped.expect("a code").is_some());
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
    });
}

/// Reads a little at a time, for ever.
async fn sip(mut recv: RecvStream) {
    let mut some = [0; 8 << 10];
    while recv.read(&mut some).await.expect("more of it").is_some() {
        sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn slow_readers_do_not_keep_others_waiting() {
    const SLOW: usize = 400;
    const WINDOW: u64 = 16 << 10;
    const REQUESTS: usize = 200;
    let fill = |www: &Path| {
        fs::write(www.join("a"), "a file").expect("a file");
        fs::write(www.join("large"), content(2_000_000, 5)).expect("a file");
        fs::write(www.join("empty"), "").expect("a file");
        fs::File::create(www.join("slow")).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    };
    let site = Site::new("slow-readers", fill, &[]);
    runtime().block_on(async {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).expect("a socket");
        let narrow = TransportConfig {
            stream_receive_window: WINDOW,
            stream_receive_window_max: WINDOW,
            ..TransportConfig::default()
        };
        let mut slow = Vec::new();
        while slow.len() < SLOW {
            let connection = connect_with(&endpoint, &site, narrow.clone()).await;
            for _ in 0..50 {
                slow.push(tokio::spawn(sip(open(&connection, b"GET /slow\r\n").await)));
            }
        }
        let connection = connect(&endpoint, &site).await;
        let asking = async {
            for _ in 0..REQUESTS {
                let mut recv = open(&connection, b"GET /a\r\n").await;
                assert_eq!(recv.read_to_end(1_000).await.expect("the file"), b"a file");
            }
            let mut recv = open(&connection, b"GET /large\r\n").await;
            let large = recv.read_to_end(3_000_000).await.expect("the file");
            assert!(large == content(2_000_000, 5), "{} bytes", large.len());
            assert_eq!(
                open(&connection, b"GET /empty\r\n").await.read_to_end(9).await.expect("nothing"),
                b""
            );
        };
        // A turn of each of the slow ones would take longer than this for a few requests.
        timeout(Duration::from_secs(60), asking).await.expect("nobody waits for slow readers");
        assert!(slow.iter().all(|slow| !slow.is_finished()));
    });
}
