//! Who is refused, and who is not: by an endpoint that accepts no more, and where nobody listens.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Endpoints, Pair, run, within};
use fulmar::{Connection, ConnectionError, Endpoint, TransportConfig, TransportErrorCode, VarInt};

/// Whether a connection was refused by the server's endpoint.
fn is_refusal(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::ConnectionClosed { code, .. } if *code == TransportErrorCode::CONNECTION_REFUSED)
}

#[test]
fn who_connects_to_a_closed_endpoint_is_refused_at_once() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        // One attempt waits already, the other comes later.
        let waiting = client.connect(addr, "localhost").expect("a valid address");
        while server.stats().waiting_incoming == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        server.close(VarInt::ZERO, b"");
        let later = client.connect(addr, "localhost").expect("a valid address");
        for connecting in [waiting, later] {
            let error = within(Duration::from_secs(2), connecting).await.expect_err("nobody accepts");
            assert!(is_refusal(&error), "{error}");
        }
        assert!(server.accept().await.is_none());
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "each end has a runtime of its own")]
fn who_waits_to_be_accepted_is_refused_before_an_endpoint_that_was_closed_is_idle() {
    let identity = common::Identity::new();
    let config = identity.server_config(TransportConfig::default(), common::ALPN);
    let (tell, told) = std::sync::mpsc::channel();
    // A program that ends as soon as its endpoint is idle.
    let serving = std::thread::spawn(move || {
        run(async {
            let server = Endpoint::server(config, common::loopback()).expect("a server endpoint");
            tell.send(server.local_addr().expect("a bound socket")).expect("the test waits");
            while server.stats().waiting_incoming == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            server.close(VarInt::ZERO, b"");
            server.wait_idle().await;
        });
    });
    run(async {
        let client = Endpoint::client(common::loopback()).expect("a client endpoint");
        client.set_default_client_config(identity.client_config(TransportConfig::default(), common::ALPN));
        let addr = told.recv().expect("the server begins");
        let connecting = client.connect(addr, "localhost").expect("a valid address");
        let error = within(Duration::from_secs(5), connecting).await.expect_err("nobody accepts");
        assert!(is_refusal(&error), "{error}");
    });
    serving.join().expect("no panic");
}

#[test]
fn who_cannot_be_accepted_is_refused() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        let connecting = client.connect(addr, "localhost").expect("a valid address");
        let incoming = server.accept().await.expect("an open endpoint");
        server.set_server_config(None);
        assert!(incoming.accept().is_err(), "it is no server any more");
        let error = within(Duration::from_secs(2), connecting).await.expect_err("nobody accepts");
        assert!(is_refusal(&error), "{error}");
    });
}

/// Answers each request with as much.
async fn answer(connection: &Connection) -> Result<(), fulmar::AcceptError> {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let data = recv.read_to_end(100_000).await.expect("a request");
        send.finish_with(data.into()).await.expect("an open stream");
    }
    Ok(())
}

/// Many have repeated their ClientHello before it is their turn. The repetition has its turn when the connection has come and gone.
#[test]
fn clients_that_come_all_at_once_are_accepted_once() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        let accepted = Arc::new(AtomicUsize::new(0));
        tokio::spawn({
            let (server, accepted) = (server.clone(), accepted.clone());
            async move {
                while let Some(incoming) = server.accept().await {
                    accepted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(async move { answer(&incoming.await?).await });
                }
            }
        });
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..800 {
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            clients.spawn(async move {
                let connection = connecting.await.expect("a handshake");
                let (mut send, mut recv) = connection.open_bi().await.expect("an open connection");
                send.finish_with(vec![1; 20_000].into()).await.expect("an open stream");
                recv.read_to_end(100_000).await.expect("an answer");
                connection.close(VarInt::ZERO, b"");
            });
        }
        within(Duration::from_secs(100), clients.join_all()).await;
        // What waits has its turn.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(accepted.load(Ordering::Relaxed), 800);
    });
}

#[test]
fn who_connects_when_nobody_can_accept_any_more_is_refused() {
    run(async {
        let Pair { server, client, endpoints } = Pair::new().await;
        let Endpoints { server: acceptor, client: dialler, addr } = endpoints;
        drop(acceptor);
        let connecting = dialler.connect(addr, "localhost").expect("a valid address");
        let error = within(Duration::from_secs(2), connecting).await.expect_err("nobody accepts");
        assert!(is_refusal(&error), "{error}");
        // The connection that there was lives on.
        drop(client.open_uni().await.expect("an open connection"));
        server.accept_uni().await.expect("an open connection");
    });
}

/// An address of the loopback interface at which nobody listens.
#[cfg(target_os = "linux")]
fn nobody() -> std::net::SocketAddr {
    std::net::UdpSocket::bind(common::loopback()).and_then(|socket| socket.local_addr()).expect("a free port")
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_at_which_nobody_listens_refuses_at_once() {
    run(async {
        let Endpoints { client, server, addr } = Endpoints::new();
        for _ in 0..3 {
            let connecting = client.connect(nobody(), "localhost").expect("a valid address");
            let error = within(Duration::from_secs(2), connecting).await.expect_err("nobody listens");
            assert_eq!(error, ConnectionError::Refused);
        }
        // The socket is as good as before.
        let pair = Endpoints { client, server, addr }.connect().await;
        pair.client.close(VarInt::ZERO, b"");
    });
}

/// From an address of the loopback interface nothing leads to another machine.
#[test]
#[cfg(target_os = "linux")]
fn where_no_route_leads_an_attempt_ends_at_once() {
    run(async {
        let Endpoints { client, server, addr } = Endpoints::new();
        let elsewhere = "192.0.2.1:443".parse().expect("an address");
        let connecting = client.connect(elsewhere, "localhost").expect("a valid address");
        let error = within(Duration::from_secs(2), connecting).await.expect_err("no route");
        assert!(matches!(error, ConnectionError::Unsent(_)), "{error}");
        // The socket is as good as before.
        let pair = Endpoints { client, server, addr }.connect().await;
        pair.client.close(VarInt::ZERO, b"");
    });
}

#[test]
fn a_refusal_ends_no_connection_that_was_established() {
    run(async {
        let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let other = other.expect("a runtime");
        let identity = common::Identity::new();
        let config = identity.server_config(TransportConfig::default(), common::ALPN);
        let guard = other.enter();
        let server = Endpoint::server(config, common::loopback()).expect("a server endpoint");
        drop(guard);
        let addr = server.local_addr().expect("a bound socket");
        let client = Endpoint::client(common::loopback()).expect("a client endpoint");
        client.set_default_client_config(identity.client_config(TransportConfig::default(), common::ALPN));
        other.spawn(async move {
            let incoming = server.accept().await.expect("an open endpoint");
            incoming.await.expect("a handshake").closed().await
        });
        let connection =
            client.connect(addr, "localhost").expect("a valid address").await.expect("a handshake");
        // The server vanishes, and with it its socket.
        other.shutdown_background();
        let mut send = connection.open_uni().await.expect("an open connection");
        for _ in 0..20 {
            send.write_all(b"anybody there?").await.expect("an open connection");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(connection.close_reason(), None);
    });
}
