//! Ends that tell each other their addresses.

mod common;

use std::net::{Ipv4Addr, SocketAddr};

use common::{Pair, run};
use fulmar::{AddressDiscovery, TransportConfig, VarInt};

fn roles(address_discovery: Option<AddressDiscovery>) -> TransportConfig {
    TransportConfig { address_discovery, ..TransportConfig::default() }
}

#[test]
fn both_ends_learn_where_they_are_and_where_they_have_moved_to() {
    run(async {
        let both = || roles(Some(AddressDiscovery::Both));
        let pair = Pair::with(both(), both()).await;
        let at_client = pair.client.observed_address_changed(None).await.expect("an open connection");
        assert_eq!(at_client, pair.server.remote_address());
        assert_eq!(pair.client.observed_address(), Some(at_client));
        let at_server = pair.server.observed_address_changed(None).await.expect("an open connection");
        assert_eq!(at_server, pair.client.remote_address());

        let elsewhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = std::net::UdpSocket::bind(elsewhere).expect("a free port");
        let new = socket.local_addr().expect("a bound socket");
        pair.endpoints.client.rebind(socket).expect("the endpoint is open");
        let moved = pair.client.observed_address_changed(Some(at_client)).await.expect("an open connection");
        assert_eq!(moved.port(), new.port());
        pair.client.close(VarInt::ZERO, b"");
        assert!(pair.client.observed_address_changed(Some(moved)).await.is_err());
    });
}

#[test]
fn nobody_is_told_who_has_not_asked() {
    run(async {
        let pair = Pair::with(roles(Some(AddressDiscovery::Both)), roles(None)).await;
        let mut stream = pair.client.open_uni().await.expect("an open connection");
        stream.write_all(b"x").await.expect("an open stream");
        stream.finish().expect("it is open");
        assert_eq!(stream.stopped().await.expect("an open connection"), None);
        assert_eq!((pair.client.observed_address(), pair.server.observed_address()), (None, None));
    });
}
