//! What a server's endpoint holds for each connection while nothing happens.

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{ALPN, Identity, loopback};
use fulmar::{Connection, Endpoint, TransportConfig};
use tokio::runtime::{Builder, Runtime};

/// How many connections are counted, after as many that fill tables.
const COUNT: usize = 600;
/// What each of them may take, in bytes; about 1,800 of these are its part of the receive buffers, of which there are as many
/// whatever the number of connections. What the cryptographic libraries allocate by themselves is not seen.
const BYTES_MAX: i64 = 12_000;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Accepts so many connections, and leaves them alone for a while.
async fn accept(server: &Endpoint, count: usize) -> Vec<Connection> {
    let mut accepted = Vec::with_capacity(count);
    while accepted.len() < count {
        let incoming = server.accept().await.expect("an open endpoint");
        accepted.push(incoming.await.expect("a handshake"));
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    accepted
}

#[test]
fn an_idle_connection_takes_little_memory() {
    let identity = Identity::new();
    let client_config = identity.client_config(TransportConfig::default(), ALPN);
    // What this thread allocates is the server's.
    let serving = runtime();
    let server = serving.block_on(async {
        Endpoint::server(identity.server_config(TransportConfig::default(), ALPN), loopback())
            .expect("a server endpoint")
    });
    let addr = server.local_addr().expect("a bound socket");
    let (asked, asks) = mpsc::channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "what the clients allocate must not be counted")]
    let clients = thread::spawn(move || {
        let runtime = runtime();
        let endpoint = runtime.block_on(async { Endpoint::client(loopback()).expect("a client endpoint") });
        endpoint.set_default_client_config(client_config);
        let mut connections = Vec::new();
        while asks.recv().is_ok() {
            runtime.block_on(async {
                for _ in 0..COUNT {
                    let connecting = endpoint.connect(addr, "localhost").expect("a valid address");
                    connections.push(connecting.await.expect("a handshake"));
                }
                // Until all that belongs to handshakes is acknowledged.
                tokio::time::sleep(Duration::from_millis(500)).await;
            });
        }
    });
    asked.send(()).expect("the clients listen");
    let before = serving.block_on(accept(&server, COUNT));
    asked.send(()).expect("the clients listen");
    let mut connections = Vec::new();
    let seen = allocation_counter::measure(|| connections = serving.block_on(accept(&server, COUNT)));
    let each = seen.bytes_current / COUNT as i64;
    assert!(each <= BYTES_MAX, "{each} bytes for each of {} connections", connections.len());
    drop((before, connections, asked));
    clients.join().expect("clients that end");
}
