//! How connections begin, or do not.

mod common;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use common::{ALPN, Endpoints, Identity, Pair, loopback, run, run_threaded};
use fulmar::{
    CipherSuite, ClientConfig, ConnectError, ConnectionError, Endpoint, EndpointConfig, ResetKey, Side,
    TransportConfig, TransportErrorCode, restrict_suites,
};
use rustls::RootCertStore;

/// A transport that gives up quickly.
fn impatient() -> TransportConfig {
    TransportConfig { handshake_timeout: Duration::from_millis(500), ..TransportConfig::default() }
}

#[test]
fn the_cipher_suite_is_the_fastest_one_here_whatever_the_client_puts_first() {
    run(async {
        let identity = Identity::new();
        let server = Endpoint::server(identity.server_config(TransportConfig::default(), ALPN), loopback())
            .expect("a server endpoint");
        let client = Endpoint::client(loopback()).expect("a client endpoint");
        let mut roots = RootCertStore::empty();
        roots.add(identity.cert.clone()).expect("a valid certificate");
        let mut slowest_first = CipherSuite::fastest_first();
        slowest_first.reverse();
        for suites in [slowest_first, CipherSuite::fastest_first()] {
            let provider = restrict_suites(&rustls::crypto::aws_lc_rs::default_provider(), &suites);
            let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
                .with_protocol_versions(&[&rustls::version::TLS13])
                .expect("TLS 1.3")
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            tls.alpn_protocols = vec![ALPN.to_vec()];
            client.set_default_client_config(ClientConfig::new(Arc::new(tls)));
            let addr = server.local_addr().expect("a bound socket");
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            let (connection, _accepted) =
                tokio::join!(connecting, async { server.accept().await.expect("open").await });
            let stats = connection.expect("a handshake").stats();
            assert_eq!(stats.cipher_suite, Some(CipherSuite::fastest_first()[0]));
        }
    });
}

#[test]
fn both_sides_agree_about_the_connection() {
    run(async {
        let pair = Pair::new().await;
        assert_eq!(pair.client.alpn().as_deref(), Some(ALPN));
        assert_eq!(pair.server.alpn().as_deref(), Some(ALPN));
        assert_eq!((pair.client.side(), pair.server.side()), (Side::Client, Side::Server));
        assert_eq!(pair.server.server_name().as_deref(), Some("localhost"));
        assert_eq!(pair.client.remote_address(), pair.endpoints.addr);
        let client_addr = pair.endpoints.client.local_addr().expect("a bound socket");
        assert_eq!(pair.server.remote_address(), client_addr);
        assert_eq!(pair.client.peer_certificates().map(|chain| chain.len()), Some(1));
        assert!(pair.server.peer_certificates().is_none());
        let mut keys = [[0; 32]; 2];
        pair.client.export_keying_material(&mut keys[0], b"label", Some(b"context")).expect("32 bytes");
        pair.server.export_keying_material(&mut keys[1], b"label", Some(b"context")).expect("32 bytes");
        assert_eq!(keys[0], keys[1]);
        assert_ne!(keys[0], [0; 32]);
        assert!(pair.client.rtt() > Duration::ZERO);
        assert!(pair.client.handshake_time().is_some());
    });
}

#[test]
fn it_works_across_threads() {
    run_threaded(async {
        let pair = Pair::new().await;
        assert!(pair.client.close_reason().is_none());
    });
}

#[test]
fn one_socket_listens_and_dials() {
    run(async {
        let identity = Identity::new();
        let make = || {
            Endpoint::builder()
                .server_config(identity.server_config(TransportConfig::default(), ALPN))
                .client_config(identity.client_config(TransportConfig::default(), ALPN))
                .bind(loopback())
                .expect("an endpoint")
        };
        let ends = [make(), make()];
        let addrs = [&ends[0], &ends[1]].map(|end| end.local_addr().expect("a bound socket"));
        let dial = |from: usize| {
            let connecting = ends[from].connect(addrs[1 - from], "localhost").expect("a valid address");
            let accepting = ends[1 - from].accept();
            async move {
                let accept = async { accepting.await.expect("an open endpoint").await.expect("a handshake") };
                tokio::join!(async { connecting.await.expect("a handshake") }, accept)
            }
        };
        let ((a_to_b, at_b), (b_to_a, at_a)) = tokio::join!(dial(0), dial(1));
        assert_eq!(at_b.remote_address(), addrs[0]);
        assert_eq!(at_a.remote_address(), addrs[1]);
        assert_eq!((a_to_b.side(), b_to_a.side()), (Side::Client, Side::Client));
        assert_eq!(ends[0].stats().open_connections, 2);
    });
}

#[test]
fn an_endpoint_runs_on_a_given_socket() {
    run(async {
        let identity = Identity::new();
        let socket = UdpSocket::bind(loopback()).expect("a free port");
        let addr = socket.local_addr().expect("a bound socket");
        let config = EndpointConfig::new(ResetKey::new(&[7; 32]));
        let server = identity.server_config(TransportConfig::default(), ALPN);
        let server = Endpoint::new(config, Some(server), socket).expect("an endpoint");
        assert_eq!(server.local_addr().expect("a bound socket"), addr);
        let client = Endpoint::client(loopback()).expect("an endpoint");
        let connecting = client
            .connect_with(identity.client_config(TransportConfig::default(), ALPN), addr, "localhost")
            .expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await.expect("a handshake") };
        let (connected, _accepted) = tokio::join!(connecting, accept);
        connected.expect("a handshake");
    });
}

#[test]
fn a_dual_stack_server_takes_both_families() {
    run(async {
        let identity = Identity::new();
        let config = identity.server_config(TransportConfig::default(), ALPN);
        let Ok(server) = Endpoint::server(config, (Ipv6Addr::UNSPECIFIED, 0).into()) else {
            // A host without IPv6 has nothing to show here.
            return;
        };
        let port = server.local_addr().expect("a bound socket").port();
        for (bind, to) in [
            (SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            ((Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::LOCALHOST, port).into()),
            ((Ipv6Addr::UNSPECIFIED, 0).into(), (Ipv4Addr::LOCALHOST, port).into()),
        ] {
            let client = Endpoint::client(bind).expect("an endpoint");
            client.set_default_client_config(identity.client_config(TransportConfig::default(), ALPN));
            let connecting = client.connect(to, "localhost").expect("a valid address");
            let accept =
                async { server.accept().await.expect("an open endpoint").await.expect("a handshake") };
            let (connected, accepted) = tokio::join!(connecting, accept);
            assert_eq!(connected.expect("a handshake").remote_address(), to);
            assert_eq!(accepted.local_ip(), Some(to.ip()));
        }
    });
}

#[test]
fn nothing_is_dialled_that_cannot_be_reached() {
    run(async {
        let Endpoints { client, addr, .. } = Endpoints::new();
        for unreachable in [(Ipv6Addr::LOCALHOST, 443).into(), (Ipv4Addr::LOCALHOST, 0).into()] {
            let result = client.connect(unreachable, "localhost");
            assert_eq!(result.expect_err("unreachable"), ConnectError::UnreachableAddress(unreachable));
        }
        assert!(matches!(client.connect(addr, "not a name"), Err(ConnectError::Config(_))));
        let bare = Endpoint::client(loopback()).expect("an endpoint");
        assert_eq!(
            bare.connect(addr, "localhost").expect_err("no configuration"),
            ConnectError::NoClientConfig
        );
        client.close(fulmar::VarInt::ZERO, b"");
        assert_eq!(client.connect(addr, "localhost").expect_err("closed"), ConnectError::EndpointClosed);
    });
}

#[test]
fn a_dead_address_times_out() {
    run(async {
        let silent = UdpSocket::bind(loopback()).expect("a free port");
        let Endpoints { client, .. } = Endpoints::with(TransportConfig::default(), impatient());
        let start = tokio::time::Instant::now();
        let addr = silent.local_addr().expect("a bound socket");
        let error = client.connect(addr, "localhost").expect("a valid address").await.expect_err("silence");
        assert_eq!(error, ConnectionError::HandshakeTimedOut);
        assert!(start.elapsed() >= Duration::from_millis(450), "it waits for the configured time");
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn an_ignored_attempt_times_out() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::with(TransportConfig::default(), impatient());
        let connecting = client.connect(addr, "localhost").expect("a valid address");
        let ignore = async {
            // The client repeats itself, and each time it is a new attempt.
            while let Some(incoming) = server.accept().await {
                incoming.ignore();
            }
        };
        let error = tokio::select! {
            result = connecting => result.expect_err("nobody answers"),
            () = ignore => panic!("the endpoint is open"),
        };
        assert_eq!(error, ConnectionError::HandshakeTimedOut);
    });
}

#[test]
fn a_refused_attempt_fails_at_once() {
    run(async {
        for drop_only in [false, true] {
            let Endpoints { server, client, addr } = Endpoints::new();
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            let refuse = async {
                let incoming = server.accept().await.expect("an open endpoint");
                assert_eq!(incoming.remote_address(), client.local_addr().expect("a bound socket"));
                if drop_only { drop(incoming) } else { incoming.refuse() }
            };
            let (result, ()) = tokio::join!(connecting, refuse);
            match result.expect_err("refused") {
                ConnectionError::ConnectionClosed { code, .. } => {
                    assert!(code.to_string().contains("CONNECTION_REFUSED"), "{code}");
                }
                other => panic!("{other}"),
            }
        }
    });
}

#[test]
fn a_client_refuses_a_certificate_it_does_not_trust() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        let stranger = Identity::new().client_config(TransportConfig::default(), ALPN);
        let connecting = client.connect_with(stranger, addr, "localhost").expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await };
        let (connected, accepted) = tokio::join!(connecting, accept);
        assert!(matches!(connected.expect_err("untrusted"), ConnectionError::Tls(_)));
        assert!(accepted.is_err());
    });
}

#[test]
fn a_wrong_name_is_refused() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        let connecting = client.connect(addr, "example.com").expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await };
        let (connected, _) = tokio::join!(connecting, accept);
        assert!(matches!(connected.expect_err("another name"), ConnectionError::Tls(_)));
    });
}

#[test]
fn no_common_protocol_fails_on_both_sides() {
    run(async {
        let identity = Identity::new();
        let config = identity.server_config(TransportConfig::default(), b"one");
        let server = Endpoint::server(config, loopback()).expect("an endpoint");
        let client = Endpoint::client(loopback()).expect("an endpoint");
        client.set_default_client_config(identity.client_config(TransportConfig::default(), b"another"));
        let addr = server.local_addr().expect("a bound socket");
        let connecting = client.connect(addr, "localhost").expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await };
        let (connected, accepted) = tokio::join!(connecting, accept);
        // RFC 9001 §8.1: no_application_protocol, alert 120.
        match connected.expect_err("no protocol") {
            ConnectionError::ConnectionClosed { code, .. } => {
                assert_eq!(code, TransportErrorCode::crypto(120))
            }
            other => panic!("{other}"),
        }
        assert!(accepted.is_err());
    });
}

#[test]
fn the_same_client_connects_again() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        // The later connections resume the TLS session of the first.
        for _ in 0..3 {
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            let accept = async { server.accept().await.expect("an open endpoint").await };
            let (connected, accepted) = tokio::join!(connecting, accept);
            let (connected, accepted) = (connected.expect("a handshake"), accepted.expect("a handshake"));
            let mut send = accepted.open_uni().await.expect("an open connection");
            send.write_all(b"after the tickets").await.expect("an open stream");
            send.finish().expect("an open stream");
            let mut recv = connected.accept_uni().await.expect("an open connection");
            assert_eq!(recv.read_to_end(100).await.expect("all of it"), b"after the tickets");
        }
    });
}

#[test]
fn an_endpoint_stops_and_starts_serving() {
    run(async {
        let identity = Identity::new();
        let Endpoints { server, client, addr } = Endpoints::new();
        server.set_server_config(None);
        let config = identity.client_config(impatient(), ALPN);
        let result = client.connect_with(config.clone(), addr, "localhost").expect("a valid address").await;
        assert_eq!(result.expect_err("no server"), ConnectionError::HandshakeTimedOut);
        server.set_server_config(Some(identity.server_config(TransportConfig::default(), ALPN)));
        let connecting = client.connect_with(config, addr, "localhost").expect("a valid address");
        let accept = async { server.accept().await.expect("an open endpoint").await };
        let (connected, accepted) = tokio::join!(connecting, accept);
        connected.expect("a handshake");
        accepted.expect("a handshake");
    });
}
