//! Clients that go over to another socket.

mod common;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use common::{ALPN, Identity, Pair, loopback, pattern, run, within};
use fulmar::{Connection, Endpoint, Local, TransportConfig};

/// Long enough for whatever is under way to be acknowledged or given up.
const SETTLED: Duration = Duration::from_millis(300);

/// Sends back what comes on every stream.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            let data = recv.read_to_end(1 << 20).await.expect("all of it");
            send.write_all(&data).await.expect("an open stream");
            send.finish().expect("an open stream");
        });
    }
}

#[test]
fn a_connection_moves_with_its_endpoint_to_another_socket() {
    run(async {
        let pair = Pair::new().await;
        tokio::spawn(echo(pair.server.clone()));
        for round in 0..20 {
            let before = pair.server.remote_address();
            let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
            let data = pattern(200_000);
            send.write_all(&data[..100_000]).await.expect("an open stream");
            let socket = UdpSocket::bind(loopback()).expect("a free port");
            let port = socket.local_addr().expect("a bound socket").port();
            pair.endpoints.client.rebind(socket).expect("a socket that can be used");
            send.write_all(&data[100_000..]).await.expect("an open stream");
            send.finish().expect("an open stream");
            assert_eq!(recv.read_to_end(1 << 20).await.expect("all of it"), data);
            let after = pair.server.remote_address();
            assert_ne!(before, after);
            assert_eq!(after.port(), port);
            // Before the handshake is confirmed, the first change is left to look like that of a NAT.
            assert!(pair.client.stats().migrations >= round);
        }
    });
}

#[test]
fn a_connection_follows_its_endpoint_from_socket_to_socket_however_fast() {
    run(async {
        let pair = Pair::new().await;
        tokio::spawn(echo(pair.server.clone()));
        for moves in [2, 5, 5, 12] {
            let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
            let data = pattern(200_000);
            send.write_all(&data[..100_000]).await.expect("an open stream");
            let mut port = 0;
            for n in 0..moves {
                let socket = UdpSocket::bind(loopback()).expect("a free port");
                port = socket.local_addr().expect("a bound socket").port();
                pair.endpoints.client.rebind(socket).expect("a socket that can be used");
                // Some sockets are used for a few packets, some for none.
                tokio::time::sleep(Duration::from_millis(n % 3)).await;
            }
            send.write_all(&data[100_000..]).await.expect("an open stream");
            send.finish().expect("an open stream");
            assert_eq!(recv.read_to_end(1 << 20).await.expect("all of it"), data);
            assert_eq!(pair.server.remote_address().port(), port);
        }
        assert!(pair.server.stats().migrations >= 4);
    });
}

#[test]
fn a_connection_that_may_not_move_leaves_an_address_that_its_new_socket_has_not() {
    run(async {
        let server = TransportConfig { migration: false, ..TransportConfig::default() };
        let identity = Identity::new();
        let server = Endpoint::server(identity.server_config(server, ALPN), loopback()).expect("a free port");
        let client = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into()).expect("a free port");
        let config = identity.client_config(TransportConfig::default(), ALPN);
        let local = Local::Ip(Ipv4Addr::new(127, 0, 0, 2).into());
        let addr = server.local_addr().expect("a bound socket");
        let accept = async { server.accept().await.expect("open").await.expect("a client") };
        let connect = client.connect_from(config, local, addr, "localhost").expect("a fine address");
        let (connection, accepted) = tokio::join!(connect, accept);
        let connection = connection.expect("a server");
        tokio::spawn(echo(accepted));
        connection.confirmed().await.expect("an open connection");
        client.rebind(UdpSocket::bind(loopback()).expect("a free port")).expect("a socket that can be used");
        let echoed = async {
            let (mut send, mut recv) = connection.open_bi().await.expect("an open connection");
            send.write_all(b"here").await.expect("an open stream");
            send.finish().expect("an open stream");
            recv.read_to_end(10).await.expect("all of it")
        };
        assert_eq!(within(Duration::from_secs(3), echoed).await, b"here");
    });
}

#[test]
fn what_is_on_its_way_to_the_old_socket_is_still_received() {
    run(async {
        let pair = Pair::new().await;
        let (mut send, mut recv) = pair.client.open_bi().await.expect("an open connection");
        send.write_all(b"go").await.expect("an open stream");
        let (mut answer, _question) = pair.server.accept_bi().await.expect("a stream");
        tokio::time::sleep(SETTLED).await;
        let data = pattern(5_000);
        let before = pair.server.stats();
        answer.write_all(&data).await.expect("an open stream");
        answer.finish().expect("an open stream");
        while pair.server.stats().packets_sent < before.packets_sent + 4 {
            tokio::task::yield_now().await;
        }
        // Its packets are in the client's socket now, which nobody has looked at since.
        let socket = UdpSocket::bind(loopback()).expect("a free port");
        pair.endpoints.client.rebind(socket).expect("a socket that can be used");
        assert_eq!(recv.read_to_end(1 << 20).await.expect("all of it"), data);
        tokio::time::sleep(SETTLED).await;
        assert_eq!(pair.server.stats().packets_lost, before.packets_lost);
        assert_eq!(pair.server.stats().migrations, 1);
    });
}
