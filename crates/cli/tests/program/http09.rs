//! Clients of HTTP/0.9 other than `get --hq`.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use fulmar::{Connection, Endpoint, SendStream, VarInt};
use tokio::time::{sleep, timeout};

use crate::run::runtime;
use crate::web::Site;

/// More than a round trip over loopback, so that what the server has sent is here.
const A_WHILE: Duration = Duration::from_millis(200);

async fn connect(endpoint: &Endpoint, site: &Site) -> Connection {
    let config = fulmar::tls::client_config(site.roots.clone(), &[b"hq-interop"]).expect("TLS");
    endpoint.set_default_client_config(config);
    endpoint.connect(site.server.address, "127.0.0.1").expect("an attempt").await.expect("connected")
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
