//! How connections and endpoints end.

mod common;

use std::time::Duration;

use bytes::Bytes;
use common::{Endpoints, Pair, run, run_threaded, within};
use fulmar::{ConnectionError, TransportConfig, VarInt};

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
        assert!(server.connect(*addr, "localhost").is_err());
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
