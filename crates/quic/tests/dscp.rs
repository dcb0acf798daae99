//! Packets with a differentiated services code point.
#![cfg(target_os = "linux")]

mod common;

use std::net::Ipv4Addr;

use common::{ALPN, Identity, loopback, run};
use fulmar::{Dscp, Endpoint, TransportConfig};

/// Transfers work as ever with a code point, ECN included: both ends are told of the marks by each other.
#[test]
fn an_endpoint_with_a_code_point_sends_and_its_ecn_bits_arrive() {
    run(async {
        let identity = Identity::new();
        let config = identity.server_config(TransportConfig::default(), ALPN);
        let server = Endpoint::server(config, loopback()).expect("a server endpoint");
        let config = identity.client_config(TransportConfig::default(), ALPN);
        let builder = Endpoint::builder().dscp(Dscp::EF).client_config(config);
        let marked = builder.bind(loopback()).expect("a free port");
        assert_eq!(marked.socket().dscp(), Dscp::EF);
        let addr = server.local_addr().expect("a bound socket");
        let connecting = marked.connect(addr, "localhost").expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await.expect("a handshake") };
        let (client, accepted) = tokio::join!(async { connecting.await.expect("a handshake") }, accept);
        let mut send = client.open_uni().await.expect("an open connection");
        let data = vec![5; 3_000_000];
        let (sent, received) = tokio::join!(
            async {
                send.write_all(&data).await.expect("an open stream");
                send.finish().expect("it is open");
                send.stopped().await.expect("an open connection")
            },
            async {
                let mut recv = accepted.accept_uni().await.expect("an open connection");
                recv.read_to_end(4_000_000).await.expect("it is all there")
            }
        );
        assert_eq!((sent, received.len()), (None, 3_000_000));
        assert_eq!(marked.socket().stats().send_errors, 0);

        // A new socket is marked as well.
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        marked.rebind(socket).expect("the endpoint is open");
        assert_eq!(marked.socket().dscp(), Dscp::EF);
    });
}
