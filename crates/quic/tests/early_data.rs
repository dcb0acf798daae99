//! Sessions that are resumed, early data, and proofs of addresses.

mod common;

use std::time::Duration;

use common::{ALPN, Identity, loopback, run, within};
use fulmar::{
    AddressValidation, ConnectionError, EarlyData, Endpoint, ReadError, ReadToEndError, RetryPolicy,
    ServerConfig, SessionStore, TransportConfig, VarInt,
};

/// A server that answers each stream with what it received, and whether that was early data.
fn echo(identity: &Identity, adjust: impl FnOnce(ServerConfig) -> ServerConfig) -> Endpoint {
    let config = adjust(identity.server_config(TransportConfig::default(), ALPN));
    let server = Endpoint::server(config, loopback()).expect("a server endpoint");
    let endpoint = server.clone();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let Ok(Ok(connection)) = incoming.accept().map(fulmar::Connecting::into_0rtt) else { continue };
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let mut first = [0];
                    recv.read_exact(&mut first).await.expect("a byte");
                    let early = recv.is_early_data();
                    let rest = recv.read_to_end(1_000).await.expect("a short message");
                    let answer = [&[u8::from(early)], &first[..], &rest].concat();
                    send.write_all(&answer).await.expect("the client listens");
                    send.finish().expect("it is open");
                }
            });
        }
    });
    server
}

async fn ask(connection: &fulmar::Connection) -> Vec<u8> {
    let (mut send, mut recv) = connection.open_bi().await.expect("an open connection");
    send.write_all(b"?").await.expect("the server listens");
    send.finish().expect("it is open");
    recv.read_to_end(1_000).await.expect("an answer")
}

#[test]
fn the_second_connection_sends_before_its_handshake() {
    run(async {
        let identity = Identity::new();
        let server = echo(&identity, |config| config.with_early_data(true));
        let addr = server.local_addr().expect("a bound socket");
        let client = Endpoint::client(loopback()).expect("a client endpoint");
        let sessions = SessionStore::new(8);
        let config = identity.client_config(TransportConfig::default(), ALPN);
        let config = config.with_sessions(sessions.clone()).with_early_data(true);
        let connecting = client.connect_with(config.clone(), addr, "localhost").expect("a valid address");
        let connecting = connecting.into_0rtt().expect_err("nothing is remembered yet");
        let first = connecting.await.expect("a handshake");
        assert_eq!(ask(&first).await, [0, b'?']);
        first.close(VarInt::ZERO, b"");
        assert!(sessions.has_session("localhost", addr.port()));

        let connecting = client.connect_with(config, addr, "localhost").expect("a valid address");
        let second = connecting.into_0rtt().expect("a session is resumed");
        assert_eq!(ask(&second).await, [1, b'?'], "the server says that it was early");
        second.connected().await.expect("a handshake");
        assert_eq!(second.early_data(), EarlyData::Accepted);
        second.update_keys();
        assert_eq!(ask(&second).await, [0, b'?']);
    });
}

#[test]
fn a_retry_on_demand_and_a_token_that_spares_it() {
    run(async {
        let identity = Identity::new();
        let validation = AddressValidation { retry: RetryPolicy::Never, ..AddressValidation::default() };
        let server = identity.server_config(TransportConfig::default(), ALPN);
        let server = server.with_address_validation(validation).expect("a valid configuration");
        let server = Endpoint::server(server, loopback()).expect("a server endpoint");
        let addr = server.local_addr().expect("a bound socket");
        let client = Endpoint::client(loopback()).expect("a client endpoint");
        let config = identity.client_config(TransportConfig::default(), ALPN);
        client.set_default_client_config(config.with_sessions(SessionStore::new(8)));
        let mut retries = Vec::new();
        for _ in 0..2 {
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            let accept = async {
                let mut retries = 0;
                loop {
                    let incoming = server.accept().await.expect("an open endpoint");
                    if incoming.is_validated() {
                        assert_eq!(incoming.may_retry(), retries == 0, "a client follows one Retry");
                        return (incoming.await.expect("a handshake"), retries);
                    }
                    retries += 1;
                    incoming.retry().expect("it was not asked before");
                }
            };
            let ((connection, count), dialled) = tokio::join!(accept, connecting);
            let dialled = dialled.expect("a handshake");
            // The tokens come before this stream.
            let mut stream = connection.open_uni().await.expect("an open connection");
            stream.write_all(b"hello").await.expect("the client listens");
            stream.finish().expect("it is open");
            let mut stream = dialled.accept_uni().await.expect("an open connection");
            assert_eq!(stream.read_to_end(10).await.expect("all of it"), b"hello");
            retries.push(count > 0);
        }
        assert_eq!(retries, [true, false]);
    });
}

#[test]
fn early_data_to_a_server_that_is_gone_ends_with_the_handshake() {
    run(async {
        let identity = Identity::new();
        let server = echo(&identity, |config| config.with_early_data(true));
        let addr = server.local_addr().expect("a bound socket");
        let transport =
            TransportConfig { handshake_timeout: Duration::from_millis(500), ..TransportConfig::default() };
        let config = identity.client_config(transport, ALPN);
        let config = config.with_sessions(SessionStore::new(8)).with_early_data(true);
        let client = Endpoint::client(loopback()).expect("a client endpoint");
        let connecting = client.connect_with(config.clone(), addr, "localhost").expect("a valid address");
        let first = connecting.await.expect("a handshake");
        assert_eq!(ask(&first).await, [0, b'?']);
        first.close(VarInt::ZERO, b"");

        // A socket that answers nothing takes the place of the server's.
        server.rebind(std::net::UdpSocket::bind(loopback()).expect("a free port")).expect("a socket");
        drop(server);
        let mute = async {
            loop {
                match std::net::UdpSocket::bind(addr) {
                    Ok(socket) => return socket,
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let _mute = within(Duration::from_secs(10), mute).await;
        let connecting = client.connect_with(config, addr, "localhost").expect("a valid address");
        let second = connecting.into_0rtt().expect("a session is resumed");
        let (mut send, mut recv) = second.open_bi().await.expect("an open connection");
        send.write_all(b"?").await.expect("room");
        send.finish().expect("it is open");
        let lost = ConnectionError::HandshakeTimedOut;
        let answer = within(Duration::from_secs(5), recv.read_to_end(1_000)).await;
        assert_eq!(answer, Err(ReadToEndError::Read(ReadError::ConnectionLost(lost.clone()))));
        assert_eq!(second.connected().await, Err(lost));
    });
}
