//! How connections and endpoints end.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Endpoints, Pair, run, run_threaded, within};
use fulmar::{ConnectError, ConnectionError, Endpoint, TransportConfig, VarInt};

#[test]
fn the_peer_is_told_code_and_reason() {
    run(async {
        let pair = Pair::new().await;
        assert!(pair.client.close_reason().is_none());
        pair.client.close(VarInt::from_u32(77), b"enough");
        assert_eq!(pair.client.closed().await, ConnectionError::LocallyClosed);
        let expected = ConnectionError::ApplicationClosed {
            code: VarInt::from_u32(77),
            reason: Bytes::from_static(b"enough"),
        };
        assert_eq!(pair.server.closed().await, expected);
        assert_eq!(pair.server.close_reason(), Some(expected.clone()));
        assert_eq!(pair.server.open_bi().await.expect_err("closed"), expected);
        assert_eq!(pair.server.accept_uni().await.expect_err("closed"), expected);
        assert_eq!(pair.server.read_datagram().await.expect_err("closed"), expected);
        assert_eq!(pair.client.open_uni().await.expect_err("closed"), ConnectionError::LocallyClosed);
    });
}

#[test]
fn waiting_tasks_are_woken_by_the_end() {
    run_threaded(async {
        let pair = Pair::new().await;
        let server = pair.server.clone();
        let waiting = [
            tokio::spawn({
                let server = server.clone();
                async move { server.accept_bi().await.map(|_| ()) }
            }),
            tokio::spawn({
                let server = server.clone();
                async move { server.read_datagram().await.map(|_| ()) }
            }),
            tokio::spawn(async move { Err(server.closed().await) }),
        ];
        tokio::time::sleep(Duration::from_millis(50)).await;
        pair.client.close(VarInt::from_u32(5), b"");
        for task in waiting {
            let error = task.await.expect("no panic").expect_err("the connection is over");
            assert!(matches!(error, ConnectionError::ApplicationClosed { .. }), "{error}");
        }
    });
}

#[test]
fn dropping_the_last_handle_closes() {
    run(async {
        let pair = Pair::new().await;
        let (send, recv) = pair.client.open_bi().await.expect("an open connection");
        drop(pair.client);
        drop(recv);
        // A stream is a handle too.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(pair.server.close_reason().is_none());
        drop(send);
        let expected = ConnectionError::ApplicationClosed { code: VarInt::ZERO, reason: Bytes::new() };
        assert_eq!(within(Duration::from_secs(5), pair.server.closed()).await, expected);
        // Nobody holds it, and the endpoint is idle when its peer need not be told again.
        within(Duration::from_secs(5), pair.endpoints.client.wait_idle()).await;
    });
}

#[test]
fn a_silent_connection_times_out() {
    run(async {
        let idle = TransportConfig {
            max_idle_timeout: Some(Duration::from_millis(400)),
            keep_alive_interval: None,
            ..TransportConfig::default()
        };
        let pair = Pair::with(idle, TransportConfig::default()).await;
        let start = tokio::time::Instant::now();
        let (server, client) = tokio::join!(pair.server.closed(), pair.client.closed());
        assert_eq!((server, client), (ConnectionError::TimedOut, ConnectionError::TimedOut));
        assert!(start.elapsed() >= Duration::from_millis(300));
        assert!(start.elapsed() < Duration::from_secs(10));
        pair.endpoints.server.wait_idle().await;
        assert_eq!(pair.endpoints.server.stats().open_connections, 0);
    });
}

#[test]
fn keep_alive_keeps_alive() {
    run(async {
        let idle = TransportConfig {
            max_idle_timeout: Some(Duration::from_millis(400)),
            ..TransportConfig::default()
        };
        let lively = TransportConfig {
            keep_alive_interval: Some(Duration::from_millis(100)),
            ..TransportConfig::default()
        };
        let pair = Pair::with(idle, lively).await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(pair.server.close_reason().is_none());
        assert!(pair.client.close_reason().is_none());
    });
}

#[test]
fn closing_an_endpoint_closes_everything() {
    run(async {
        let pair = Pair::new().await;
        let Endpoints { server, client, addr } = &pair.endpoints;
        let (mut send, _recv) = pair.client.open_bi().await.expect("an open connection");
        server.close(VarInt::from_u32(3), b"maintenance");
        assert_eq!(pair.server.close_reason(), Some(ConnectionError::LocallyClosed));
        match pair.client.closed().await {
            ConnectionError::ApplicationClosed { code, reason } => {
                assert_eq!((code, &reason[..]), (VarInt::from_u32(3), &b"maintenance"[..]));
            }
            other => panic!("{other}"),
        }
        assert!(send.write(b"x").await.is_err());
        assert!(server.accept().await.is_none());
        client.close(VarInt::ZERO, b"");
        let refused = client.connect(*addr, "localhost").expect_err("the endpoint is closed");
        assert_eq!(refused, ConnectError::EndpointClosed);
        within(Duration::from_secs(10), async { tokio::join!(server.wait_idle(), client.wait_idle()) }).await;
        assert_eq!((server.stats().open_connections, client.stats().open_connections), (0, 0));
    });
}

#[test]
fn accept_ends_when_the_endpoint_is_closed() {
    run(async {
        let Endpoints { server, .. } = Endpoints::new();
        let waiting = tokio::spawn({
            let server = server.clone();
            async move { server.accept().await.is_none() }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.close(VarInt::ZERO, b"");
        assert!(waiting.await.expect("no panic"));
    });
}

#[test]
fn connections_outlive_the_endpoint_handle() {
    run(async {
        let Pair { server, client, endpoints } = Pair::new().await;
        drop(endpoints);
        let mut send = client.open_uni().await.expect("an open connection");
        send.write_all(b"still here").await.expect("an open stream");
        send.finish().expect("an open stream");
        let mut recv = server.accept_uni().await.expect("an open connection");
        assert_eq!(recv.read_to_end(100).await.expect("all of it"), b"still here");
    });
}

#[test]
fn handles_survive_their_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let Pair { server, client, endpoints } = runtime.block_on(Pair::new());
    drop(runtime);
    assert_eq!(client.close_reason(), Some(ConnectionError::LocallyClosed));
    assert_eq!(server.close_reason(), Some(ConnectionError::LocallyClosed));
    run(async {
        assert_eq!(client.open_bi().await.expect_err("no worker"), ConnectionError::LocallyClosed);
        endpoints.server.wait_idle().await;
        assert!(endpoints.server.accept().await.is_none());
    });
}

#[test]
fn an_upload_that_was_read_to_the_end_was_delivered_though_the_server_hangs_up() {
    run_threaded(async {
        const CLIENTS: usize = 50;
        let endpoints = Endpoints::new();
        let server = endpoints.server.clone();
        let serving = tokio::spawn(async move {
            for _ in 0..CLIENTS {
                let connection = server.accept().await.expect("an open endpoint").await.expect("a handshake");
                let mut recv = connection.accept_uni().await.expect("an open connection");
                assert_eq!(recv.read_to_end(100).await.expect("all of it"), b"an upload");
            }
        });
        for client in 0..CLIENTS {
            let connecting = endpoints.client.connect(endpoints.addr, "localhost").expect("a valid address");
            let connection = connecting.await.expect("a handshake");
            let mut send = connection.open_uni().await.expect("an open connection");
            send.write_all(b"an upload").await.expect("an open stream");
            send.finish().expect("an open stream");
            assert_eq!(send.stopped().await, Ok(None), "client {client}");
        }
        serving.await.expect("no panic");
    });
}

#[test]
fn a_server_that_looks_late_gets_what_a_client_sent_that_is_gone() {
    run(async {
        let Endpoints { server, client, addr } = Endpoints::new();
        let connecting = client.connect(addr, "localhost").expect("a valid address");
        let late = server.accept().await.expect("an open endpoint").accept().expect("a handshake begins");
        let connection = connecting.await.expect("a handshake");
        let mut send = connection.open_uni().await.expect("an open connection");
        send.write_all(b"an upload").await.expect("an open stream");
        send.finish().expect("an open stream");
        assert_eq!(send.stopped().await, Ok(None));
        connection.close(VarInt::ZERO, b"done");
        client.wait_idle().await;
        let connection = late.await.expect("a handshake that was complete");
        let mut recv = connection.accept_uni().await.expect("a stream that has arrived");
        assert_eq!(recv.read_to_end(100).await.expect("all of it"), b"an upload");
        assert!(matches!(connection.closed().await, ConnectionError::ApplicationClosed { .. }));
    });
}

#[test]
fn of_connections_that_are_over_only_the_latest_are_remembered_that_somebody_holds_and_are_to_be_answered() {
    run(async {
        // The clients may keep acknowledgements back for so long that each connection would be remembered for half a minute.
        let slow = TransportConfig { max_ack_delay: Duration::from_secs(10), ..TransportConfig::default() };
        let Endpoints { server, client, addr } = Endpoints::with(TransportConfig::default(), slow);
        let mut held = Vec::new();
        for over in 0..650 {
            let connecting = client.connect(addr, "localhost").expect("a valid address");
            let incoming = async { server.accept().await.expect("an open endpoint").await };
            let (accepted, connected) = tokio::join!(incoming, connecting);
            let (accepted, connected) = (accepted.expect("a handshake"), connected.expect("a handshake"));
            accepted.close(VarInt::ZERO, b"");
            connected.closed().await;
            // Some are let go at once.
            held.extend((over >= 50).then_some(accepted));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let remembered = server.stats().open_connections;
        assert!((450..=500).contains(&remembered), "{remembered} of 600");
        // Of the others the endpoint needs the connection IDs, and the packet that says the end.
        assert_eq!(client.stats().open_connections, 0);
        drop(held);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(server.stats().open_connections, 0);
        let idle = tokio::time::timeout(Duration::from_millis(100), server.wait_idle());
        assert!(idle.await.is_err(), "peers may have to be told");
    });
}

/// How long what must happen may take.
const WAIT: Duration = Duration::from_secs(10);

#[test]
fn streams_that_were_finished_are_waited_for_until_they_have_arrived() {
    run(async {
        let pair = Pair::new().await;
        assert!(pair.client.is_delivered());
        pair.client.delivered().await.expect("there is nothing to wait for");
        let mut open = pair.client.open_uni().await.expect("an open connection");
        open.write_all(b"more may follow").await.expect("room");
        assert!(pair.client.is_delivered(), "it was not finished");
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = pair.client.open_uni().await.expect("an open connection");
            stream.write_all(&[1; 10_000]).await.expect("room");
            stream.finish().expect("it is open");
            streams.push(stream);
        }
        drop(streams);
        assert!(!pair.client.is_delivered());
        within(WAIT, pair.client.delivered()).await.expect("the connection is open");
        assert!(pair.client.is_delivered());
        for _ in 0..4 {
            let mut stream = pair.server.accept_uni().await.expect("an open connection");
            assert!(stream.read_chunk(1, true).await.expect("bytes").is_some());
        }
    });
}

#[test]
fn who_waits_for_delivery_is_told_of_a_reset_and_of_the_end() {
    run(async {
        let pair = Pair::new().await;
        let mut stream = pair.client.open_uni().await.expect("an open connection");
        stream.write_all(&[1; 100]).await.expect("room");
        stream.finish().expect("it is open");
        let waiting = tokio::spawn({
            let client = pair.client.clone();
            async move { client.delivered().await }
        });
        tokio::task::yield_now().await;
        let _ = stream.reset(VarInt::from_u32(1));
        within(WAIT, waiting).await.expect("no panic").expect("nothing is left to arrive");
        let mut stream = pair.client.open_uni().await.expect("an open connection");
        stream.write_all(&[1; 100]).await.expect("room");
        stream.finish().expect("it is open");
        pair.client.close(VarInt::from_u32(5), b"");
        let error = within(WAIT, pair.client.delivered()).await.expect_err("it can arrive no more");
        assert_eq!(error, ConnectionError::LocallyClosed);
    });
}

#[test]
fn the_time_of_the_newest_datagrams_is_known() {
    run(async {
        let before = tokio::time::Instant::now().into_std();
        let pair = Pair::new().await;
        let mut stream = pair.client.open_uni().await.expect("an open connection");
        let asked = tokio::time::Instant::now().into_std();
        stream.write_all(b"x").await.expect("room");
        let mut stream = within(WAIT, pair.server.accept_uni()).await.expect("an open connection");
        stream.read_chunk(1, true).await.expect("bytes");
        let received = pair.server.received_at();
        assert!(before < asked && asked < received && received <= tokio::time::Instant::now().into_std());
    });
}

#[test]
fn a_client_that_may_acknowledge_late_keeps_no_endpoint_from_being_idle() {
    run(async {
        let ordinary = || TransportConfig { ack_frequency: false, ..TransportConfig::default() };
        let late = || TransportConfig { max_ack_delay: Duration::from_millis(16_383), ..ordinary() };
        let identity = common::Identity::new();
        let server = Endpoint::server(identity.server_config(ordinary(), common::ALPN), common::loopback())
            .expect("a server endpoint");
        let client = Endpoint::client(common::loopback()).expect("a client endpoint");
        let addr = server.local_addr().expect("a bound socket");
        client.set_default_client_config(identity.client_config(late(), common::ALPN));
        let mut pair = Endpoints { server, client, addr }.connect().await;
        pair.client.close(VarInt::ZERO, b"");
        let reason = pair.server.closed().await;
        assert!(matches!(reason, ConnectionError::ApplicationClosed { .. }), "{reason}");

        // What the server remembers of that one is no matter of the next.
        let Pair { endpoints, .. } = pair;
        endpoints.client.set_default_client_config(identity.client_config(ordinary(), common::ALPN));
        pair = endpoints.connect().await;
        pair.server.close(VarInt::ZERO, b"");
        pair.client.closed().await;
        let Pair { endpoints: Endpoints { server, .. }, .. } = pair;
        within(Duration::from_secs(5), server.wait_idle()).await;
    });
}
