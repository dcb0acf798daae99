//! Endpoints with several workers, with a kernel that chooses among them and without.

use std::net::Ipv4Addr;
use std::time::Duration;

use fulmar_base::Rng;
use fulmar_proto::{CidGenerator, ConnectionError, RandomCids, VarInt, WorkerCids};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;
use crate::tls;

const ALPN: &[u8] = b"fulmar-test";
const DEADLINE: Duration = Duration::from_secs(20);

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const WORKERS: usize = 2;

fn sockets() -> Vec<std::net::UdpSocket> {
    UdpSocket::bind_group(LOOPBACK, WORKERS).unwrap()
}

/// A server that is started so, and a client of two workers.
fn endpoints(start: impl FnOnce(EndpointBuilder) -> io::Result<Endpoint>) -> (Endpoint, Endpoint) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let server_config = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN]).unwrap();
    let client_config = tls::client_config(roots, &[ALPN]).unwrap();
    let server = start(Endpoint::builder().server_config(server_config));
    let client = Endpoint::builder().client_config(client_config).workers(WORKERS).bind(LOOPBACK);
    (server.unwrap(), client.unwrap())
}

/// A server whose kernel chooses among its two workers.
fn steered(server: EndpointBuilder) -> io::Result<Endpoint> {
    server.workers(WORKERS).bind(LOOPBACK)
}

/// A server whose kernel does not.
fn unsteered(server: EndpointBuilder) -> io::Result<Endpoint> {
    server.runtimes(vec![tokio::runtime::Handle::current(); WORKERS]).start(sockets())
}

/// Echoes on the streams of each connection.
fn serve(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move { echo_all(incoming.await.unwrap()).await });
        }
    });
}

async fn echo_all(connection: crate::Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::io::copy(&mut recv, &mut send).await.unwrap();
        send.finish().unwrap();
    }
}

async fn echo(connection: &crate::Connection) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(b"are you there?").await.unwrap();
    send.finish().unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"are you there?");
}

fn connections_of(endpoint: &Endpoint) -> Vec<usize> {
    endpoint.shared.workers().iter().map(|worker| lock(&worker.core).connection_count()).collect()
}

async fn connect_all(client: &Endpoint, server: &Endpoint, count: usize) -> Vec<crate::Connection> {
    let addr = server.local_addr().unwrap();
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(client.connect(addr, "localhost").unwrap().await.unwrap());
    }
    connections
}

/// Runs a test on a runtime with a thread for each worker.
fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKERS).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await.expect("done in time") });
}

#[test]
fn an_endpoint_of_two_workers_is_one_endpoint() {
    run(async {
        let (server, client) = endpoints(steered);
        serve(server.clone());
        let connections = connect_all(&client, &server, 6).await;
        for connection in &connections {
            echo(connection).await;
        }
        // The workers of the client take turns.
        assert_eq!(connections_of(&client), vec![3, 3]);
        assert_eq!(connections_of(&server).iter().sum::<usize>(), 6);

        let metrics = client.metrics();
        let mut ids: Vec<u64> = metrics.connections.iter().map(|connection| connection.id).collect();
        ids.dedup();
        assert_eq!((ids.len(), metrics.endpoint.open_connections, metrics.totals.connections), (6, 6, 6));
        let workers = client.shared.workers();
        let sent: u64 = workers.iter().map(|worker| worker.socket().stats().bytes_sent).sum();
        assert!(client.stats().socket.bytes_sent <= sent && sent > 6 * 1_200);

        // Each worker gets a socket, or nothing changes.
        let one = std::net::UdpSocket::bind(LOOPBACK).unwrap();
        assert_eq!(client.replace_sockets(vec![one]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        client.replace_sockets(sockets()).unwrap();
        for connection in &connections {
            echo(connection).await;
        }

        // The last connection of one worker is not the last of all.
        connections[1].close(VarInt::ZERO, b"");
        connections[3].close(VarInt::ZERO, b"");
        connections[5].close(VarInt::ZERO, b"");
        let idle = tokio::time::timeout(Duration::from_millis(500), client.wait_idle());
        assert!(idle.await.is_err(), "{:?}", connections_of(&client));
        client.close(VarInt::ZERO, b"");
        client.wait_idle().await;
        server.close(VarInt::ZERO, b"");
        server.wait_idle().await;
        assert!(server.accept().await.is_none());
    });
}

#[cfg(target_os = "linux")]
#[test]
fn clients_that_move_stay_with_their_worker() {
    run(async {
        let (server, client) = endpoints(steered);
        serve(server.clone());
        let connections = connect_all(&client, &server, 32).await;
        let before = connections_of(&server);
        // Clients choose at random: one worker alone has all of them once in two thousand million runs.
        assert!(before.iter().all(|count| *count > 0), "{before:?}");
        for _ in 0..5 {
            client.replace_sockets(sockets()).unwrap();
            for connection in &connections {
                echo(connection).await;
            }
        }
        assert_eq!(connections_of(&server), before);
    });
}

#[test]
fn workers_hand_on_what_the_kernel_gives_to_the_wrong_one() {
    run(async {
        let (server, client) = endpoints(unsteered);
        serve(server.clone());
        let connections = connect_all(&client, &server, 16).await;
        for _ in 0..3 {
            client.replace_sockets(sockets()).unwrap();
            for connection in &connections {
                echo(connection).await;
            }
        }
        assert!(server.stats().forwarded_datagrams > 0);
    });
}

#[test]
fn a_stateless_reset_reaches_its_connection_whichever_worker_it_seems_to_name() {
    run(async {
        let socket = std::net::UdpSocket::bind(LOOPBACK).unwrap();
        let of_server = socket.try_clone().unwrap();
        let (server, client) = endpoints(|server| server.socket(socket));
        serve(server.clone());
        let connections = connect_all(&client, &server, WORKERS * WORKERS).await;
        for connection in &connections {
            echo(connection).await;
        }
        for worker in client.shared.workers() {
            // The workers have taken turns.
            let of_worker = lock(&worker.core).connections();
            assert_eq!(of_worker.len(), WORKERS);
            for (inner, named) in of_worker.iter().zip(0..) {
                let token = inner.lock().proto.peer_transport_parameters().unwrap().stateless_reset_token;
                let cids = WorkerCids::new(Arc::new(RandomCids::new(8)), named);
                let cid = cids.generate(&mut Rng::from_u64(1));
                let reset = [&[0x40], cid.as_bytes(), &[7; 20], &token.unwrap().0].concat();
                of_server.send_to(&reset, client.local_addr().unwrap()).unwrap();
            }
        }
        for connection in &connections {
            let end = tokio::time::timeout(Duration::from_secs(1), connection.closed()).await;
            assert_eq!(end, Ok(ConnectionError::Reset));
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn attempts_of_every_worker_are_told_that_nobody_listens() {
    run(async {
        let (_server, client) = endpoints(steered);
        // The kernel gives each report to one of the two sockets, whichever of them has sent: each time it is the wrong one in one
        // run out of 65,536.
        for _ in 0..16 {
            let nobody = std::net::UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
            let dialled = client.connect(nobody, "localhost").unwrap();
            assert!(client.shared.workers().iter().all(|worker| worker.socket().reports_refusals()));
            let end = tokio::time::timeout(Duration::from_secs(2), dialled).await;
            assert_eq!(end.expect("the network says so").unwrap_err(), ConnectionError::Refused);
        }
    });
}

#[test]
fn workers_that_cannot_be_are_refused() {
    run(async {
        let kind = |endpoint: io::Result<Endpoint>| endpoint.unwrap_err().kind();
        assert_eq!(kind(Endpoint::builder().workers(0).bind(LOOPBACK)), io::ErrorKind::InvalidInput);
        assert_eq!(kind(Endpoint::builder().workers(65).bind(LOOPBACK)), io::ErrorKind::InvalidInput);
        let socket = std::net::UdpSocket::bind(LOOPBACK).unwrap();
        assert_eq!(kind(Endpoint::builder().workers(2).socket(socket)), io::ErrorKind::InvalidInput);
        let reset_key = fulmar_proto::ResetKey::new(&[7; 32]);
        let cid_generator = Arc::new(RandomCids::new(20));
        let config = EndpointConfig { cid_generator, ..EndpointConfig::new(reset_key) };
        assert_eq!(
            kind(Endpoint::builder().config(config).workers(2).bind(LOOPBACK)),
            io::ErrorKind::InvalidInput
        );
    });
}

/// A runtime of the current thread, which runs until the sender is dropped.
fn runtime_of_a_thread() -> (tokio::runtime::Handle, tokio::sync::oneshot::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    let (end, ended) = tokio::sync::oneshot::channel();
    #[allow(clippy::disallowed_methods, reason = "a runtime of the current thread needs one")]
    std::thread::spawn(move || runtime.block_on(ended));
    (handle, end)
}

#[test]
fn each_worker_lives_in_a_runtime_of_its_own_and_so_do_its_connections() {
    let (runtimes, _ends): (Vec<_>, Vec<_>) = (0..WORKERS).map(|_| runtime_of_a_thread()).unzip();
    run(async {
        let (server, client) = endpoints(|server| server.runtimes(runtimes.clone()).bind(LOOPBACK));
        let (ids, mut seen) = tokio::sync::mpsc::unbounded_channel();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                let (runtime, ids) = (incoming.runtime().clone(), ids.clone());
                runtime.spawn(async move {
                    ids.send(tokio::runtime::Handle::current().id()).unwrap();
                    echo_all(incoming.await.unwrap()).await;
                });
            }
        });
        let open = connect_all(&client, &server, 32).await;
        for connection in &open {
            echo(connection).await;
        }
        let mut used = Vec::new();
        while let Ok(id) = seen.try_recv() {
            used.push(id);
        }
        assert_eq!(used.len(), 32);
        for (runtime, connections) in runtimes.iter().zip(connections_of(&server)) {
            assert_eq!(used.iter().filter(|id| **id == runtime.id()).count(), connections);
            assert!(connections > 0);
        }
    });
}
