//! Clients that go over to another socket.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{Pair, loopback, pattern, run};
use fulmar::Connection;

/// Longer than the validation of a path takes.
const PAUSE: Duration = Duration::from_millis(500);

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
        for round in 0..5 {
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
            // Several moves within one validation of a path are another matter, see the known limits in ARCHITECTURE.
            tokio::time::sleep(PAUSE).await;
        }
    });
}
