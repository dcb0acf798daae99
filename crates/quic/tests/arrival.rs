//! What a connection measures on a machine that has other things to do.

#![cfg(target_os = "linux")]

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{ALPN, Identity, loopback, run};
use fulmar::{Endpoint, TransportConfig};
use tokio::sync::oneshot;

#[test]
fn a_busy_thread_is_not_taken_for_a_slow_path() {
    let identity = Identity::new();
    let server_config = identity.server_config(TransportConfig::default(), ALPN);
    let (tell, address) = oneshot::channel();
    let (done, end) = oneshot::channel::<()>();
    // The server has a thread of its own, and answers while that of the client is busy.
    #[allow(clippy::disallowed_methods, reason = "two endpoints, of which one is held up")]
    let server = std::thread::spawn(move || {
        run(async {
            let server = Endpoint::server(server_config, loopback()).expect("a server endpoint");
            tell.send(server.local_addr().expect("a bound socket")).expect("a client that waits");
            let incoming = server.accept().await.expect("an open endpoint");
            let _connection = incoming.await.expect("a handshake");
            end.await.expect("a client that ends well");
        });
    });
    run(async {
        let client = Endpoint::client(loopback()).expect("a client endpoint");
        client.set_default_client_config(identity.client_config(TransportConfig::default(), ALPN));
        let address = address.await.expect("a server");
        let connection =
            client.connect(address, "localhost").expect("a valid address").await.expect("a handshake");
        let busy = Duration::from_millis(200);
        for _ in 0..3 {
            for _ in 0..4 {
                connection.send_datagram(Bytes::from_static(b"ping")).expect("it fits");
            }
            // They leave, and their acknowledgements come while nobody looks.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            #[allow(clippy::disallowed_methods, reason = "this is what holds the client up")]
            std::thread::sleep(busy);
            tokio::time::sleep(Duration::from_millis(5)).await;
            let latest = connection.stats().rtt_latest;
            assert!(latest < busy / 2, "{latest:?}");
        }
        done.send(()).expect("a server that waits");
    });
    server.join().expect("a server without a panic");
}
