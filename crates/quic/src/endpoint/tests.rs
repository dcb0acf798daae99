//! An endpoint with two workers, as far as there can be one without a kernel that steers: on two ports.

use std::net::Ipv4Addr;
use std::time::Duration;

use fulmar_proto::VarInt;
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::*;
use crate::tls;

const ALPN: &[u8] = b"fulmar-test";
const DEADLINE: Duration = Duration::from_secs(20);

fn sockets() -> Vec<UdpSocket> {
    (0..2).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap()).collect()
}

/// A server and a client of two workers each.
fn endpoints() -> (Endpoint, Endpoint) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let server_config = tls::server_config(vec![made.cert.der().clone()], key.into(), &[ALPN]).unwrap();
    let client_config = tls::client_config(roots, &[ALPN]).unwrap();
    let server = Endpoint::builder().server_config(server_config).start(sockets()).unwrap();
    let client = Endpoint::builder().client_config(client_config).start(sockets()).unwrap();
    (server, client)
}

/// Echoes on the first stream of each connection.
fn serve(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let connection = incoming.await.unwrap();
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::io::copy(&mut recv, &mut send).await.unwrap();
                    send.finish().unwrap();
                }
            });
        }
    });
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

async fn run() {
    let (server, client) = endpoints();
    serve(server.clone());
    let ports: Vec<SocketAddr> =
        server.shared.workers().iter().map(|worker| worker.socket().local_addr().unwrap()).collect();
    let mut connections = Vec::new();
    for at in [0, 1, 1, 0, 0, 1] {
        let connecting = client.connect(ports[at], "localhost").unwrap();
        connections.push(connecting.await.unwrap());
    }
    for connection in &connections {
        echo(connection).await;
    }
    // The workers of the client take turns, and each of the server's has what came to its port.
    assert_eq!((connections_of(&client), connections_of(&server)), (vec![3, 3], vec![3, 3]));

    let metrics = client.metrics();
    let mut ids: Vec<u64> = metrics.connections.iter().map(|connection| connection.id).collect();
    ids.dedup();
    assert_eq!((ids.len(), metrics.endpoint.open_connections, metrics.totals.connections), (6, 6, 6));
    let sent: u64 = client.shared.workers().iter().map(|worker| worker.socket().stats().bytes_sent).sum();
    assert!(client.stats().socket.bytes_sent <= sent && sent > 6 * 1_200);

    // Each worker gets a socket, or nothing changes.
    let one = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
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
}

#[test]
fn an_endpoint_of_two_workers_is_one_endpoint() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE, run()).await.expect("done in time") });
}
