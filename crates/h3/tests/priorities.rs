//! Responses that are sent side by side, and which of them comes first.

mod common;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::{Identity, soon};
use fulmar::{Connection, RecvStream, TransportConfig};

const LEN: usize = 4 << 20;

/// Asks for `/`, by hand.
async fn ask(quic: &Connection) -> RecvStream {
    let (mut send, recv) = quic.open_bi().await.unwrap();
    send.finish_with(vec![1, 8, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a'].into()).await.unwrap();
    recv
}

/// Reads what comes next, and returns how much that is; nothing at the end.
async fn read(stream: &mut RecvStream) -> usize {
    let chunk = stream.read_chunk(usize::MAX, true).await.unwrap();
    chunk.map_or(0, |chunk| chunk.bytes.len())
}

#[tokio::test]
async fn a_priority_that_changes_counts_for_what_was_begun() {
    let identity = Identity::new();
    let serving = identity.serve(Router::new().route("/", get(|| async { vec![7; LEN] })));
    // The two share the window of the connection, so that the server has to choose.
    let transport =
        TransportConfig { receive_window: 1 << 16, receive_window_max: 1 << 16, ..Default::default() };
    let quic = identity.connect(&serving, Arc::new(transport)).await;
    let mut control = quic.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0]).await.unwrap();
    let (mut first, mut second) = (ask(&quic).await, ask(&quic).await);
    // Both bodies, which are one frame each, wait for room then.
    tokio::time::sleep(Duration::from_millis(200)).await;
    // PRIORITY_UPDATE of stream 4.
    control.write_all(&[0x80, 0x0f, 0x07, 0x00, 4, 4, b'u', b'=', b'0']).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (mut first_len, mut second_len) = (0, 0);
    let read_second = async {
        while second_len < LEN / 2 {
            second_len += soon(read(&mut second)).await;
        }
    };
    let read_first = async {
        loop {
            match read(&mut first).await {
                0 => std::future::pending().await,
                len => first_len += len,
            }
        }
    };
    tokio::select! {
        () = read_second => {}
        () = read_first => {}
    }
    assert!(first_len < LEN / 4, "{first_len} bytes of the first");
}

#[tokio::test]
async fn the_most_urgent_response_does_not_hold_up_the_table_that_it_refers_to() {
    let identity = Identity::new();
    let app = Router::new().route("/", get(|| async { ([("x-name", "some value")], vec![7; LEN]) }));
    let serving = identity.serve(app);
    // One response can take all of the credit of the connection.
    let transport = TransportConfig {
        receive_window: 1 << 16,
        receive_window_max: 1 << 16,
        stream_receive_window: 1 << 16,
        stream_receive_window_max: 1 << 16,
        ..Default::default()
    };
    let quic = identity.connect(&serving, Arc::new(transport)).await;
    let mut control = quic.open_uni().await.unwrap();
    // SETTINGS with a table of 4 KiB, and 16 streams that may wait for it.
    control.write_all(&[0, 4, 5, 1, 0x50, 0, 7, 16]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (mut send, _unread) = quic.open_bi().await.unwrap();
    let head = [1, 22, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 1, b'a', 0x27, 1];
    send.finish_with([&head[..], b"priority", &[3], b"u=0"].concat().into()).await.unwrap();
    let encoder_stream = async {
        // None of them may be stopped.
        let mut streams = Vec::new();
        loop {
            let mut stream = quic.accept_uni().await.unwrap();
            let chunk = stream.read_chunk(usize::MAX, true).await.unwrap().unwrap();
            streams.push(stream);
            if chunk.bytes.starts_with(&[2]) {
                return streams;
            }
        }
    };
    soon(encoder_stream).await;
}
