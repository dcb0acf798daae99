//! What endpoints hold: a server for each connection while nothing happens, a client for those that are gone.

mod common;

use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{ALPN, Identity, loopback};
use fulmar::{Connection, Endpoint, TransportConfig};
use tokio::runtime::{Builder, Runtime};

/// How many connections are counted, after as many that fill tables.
const COUNT: usize = 600;
/// What each of them may take, in bytes. What the cryptographic libraries allocate by themselves is not seen.
const BYTES_MAX: i64 = 6_000;
/// What an attempt to connect may leave behind that was given up, in bytes: a place in tables that have grown.
const LEFT_MAX: i64 = 300;

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
                tokio::time::sleep(Duration::from_secs(2)).await;
            });
        }
    });
    let batch = || {
        asked.send(()).expect("the clients listen");
        serving.block_on(accept(&server, COUNT))
    };
    let mut connections = batch();
    // The buffers for a burst are made when the first one comes, which on a busy machine may be later: not in each batch.
    let each = (0..2).map(|_| {
        let seen = allocation_counter::measure(|| connections.extend(batch()));
        seen.bytes_current / COUNT as i64
    });
    let each = each.min().expect("two batches");
    assert!(each <= BYTES_MAX, "{each} bytes for each of {COUNT} connections");
    drop((connections, asked));
    clients.join().expect("clients that end");
}

#[test]
fn attempts_that_were_given_up_leave_little_memory() {
    const COUNT: i64 = 2_000;
    let identity = Identity::new();
    let runtime = runtime();
    // Whoever is bound there says nothing, and no report of the network has the attempts looked through.
    let silent = UdpSocket::bind(loopback()).expect("a free port");
    let addr = silent.local_addr().expect("a bound socket");
    let client = runtime.block_on(async { Endpoint::client(loopback()).expect("a client endpoint") });
    client.set_default_client_config(identity.client_config(TransportConfig::default(), ALPN));
    let dial = |count| {
        runtime.block_on(async {
            let dialled: Vec<_> =
                (0..count).map(|_| client.connect(addr, "localhost").expect("a valid address")).collect();
            tokio::time::sleep(Duration::from_millis(100)).await;
            drop(dialled);
            client.wait_idle().await;
        });
    };
    // What is made once.
    dial(10);
    let left = allocation_counter::measure(|| dial(COUNT)).bytes_current / COUNT;
    assert!(left <= LEFT_MAX, "{left} bytes of each attempt are left");
}
